//! Replays the fuzzer's corpus of frame streams, intact and damaged, and checks the results with
//! the fuzzer's oracle.

use crate::replay;
use crate::stream_oracle::{Outcome, check};

#[test]
fn seeds_lead_where_they_should() {
    macro_rules! seed {
        ($name:literal) => {
            &include_bytes!(concat!("../../../../fuzz/corpus/stream_frames/seed-", $name))[..]
        };
    }
    let seeds = [
        (seed!("frames"), (3, false)),
        (seed!("cut-frame"), (1, false)),
        (seed!("empty-frame"), (1, true)),
        (seed!("too-long"), (2, true)),
        (seed!("short-frames"), (14, false)),
    ];
    for (input, (frames, was_cut)) in seeds {
        assert_eq!(check(input), Outcome { frames, was_cut });
    }
}

#[test]
fn the_corpus_passes_the_oracle_whole_and_damaged() {
    let check = |input: &[u8]| {
        check(input);
    };
    replay::corpus_passes("stream_frames", check);
    replay::damaged_corpus_passes("stream_frames", check);
    replay::any_bytes_pass(check);
}
