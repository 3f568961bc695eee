//! Replays the reader's fuzzing corpus, unmodified and corrupted, with the fuzz target's oracle.

use crate::qmp_oracle::{Outcome, check};
use crate::replay;
use suimon_qmp::LINE_BYTES_MAX;

#[test]
fn seeds_have_their_expected_result() {
    let seeds = [
        (&include_bytes!("../../../../fuzz/corpus/qmp/seed-session")[..], (1, 3, 1, 2, false)),
        (&include_bytes!("../../../../fuzz/corpus/qmp/seed-lists")[..], (1, 3, 0, 0, false)),
        (&include_bytes!("../../../../fuzz/corpus/qmp/seed-nonsense")[..], (1, 1, 0, 1, true)),
        (&include_bytes!("../../../../fuzz/corpus/qmp/seed-events")[..], (0, 0, 0, 5, false)),
        (&include_bytes!("../../../../fuzz/corpus/qmp/seed-agent")[..], (0, 3, 1, 0, false)),
        (&include_bytes!("../../../../fuzz/corpus/qmp/seed-limits")[..], (1, 3, 1, 2, false)),
    ];
    for (input, (greetings, returns, errors, events, was_cut)) in seeds {
        assert_eq!(check(input), Outcome { greetings, returns, errors, events, was_cut });
    }
}

#[test]
fn corpus_passes_unmodified_and_corrupted() {
    let check = |input: &[u8]| {
        check(input);
    };
    replay::corpus_passes("qmp", check);
    replay::damaged_corpus_passes("qmp", check);
    replay::any_bytes_pass(check);
}

#[test]
fn line_length_and_nesting_are_limited() {
    for bytes in [LINE_BYTES_MAX - 1, LINE_BYTES_MAX, LINE_BYTES_MAX + 1] {
        let mut line = br#"{"return": ""#.to_vec();
        line.resize(bytes - 3, b'x');
        line.extend(b"\"}\n");
        let is_within = bytes <= LINE_BYTES_MAX;
        assert_eq!(check(&line).returns, usize::from(is_within), "{bytes}");
    }
    let endless = vec![b' '; LINE_BYTES_MAX];
    assert!(check(&endless).was_cut);
    let nest = [&br#"{"return": "#[..], &vec![b'['; 100_000], b"\n"].concat();
    assert!(check(&nest).was_cut);
}

/// A short text can contain many values: an object of a few bytes has several hundred in memory.
#[test]
fn lines_have_a_limited_number_of_values() {
    for (value, count, is_read) in [
        ("{}", 16_000, true),
        ("{}", 17_000, false),
        ("0", 130_000, true),
        ("0", 140_000, false),
        ("[]", 60_000, true),
        ("[]", 70_000, false),
    ] {
        let line = format!("{{\"return\":[{}]}}\n", vec![value; count].join(","));
        let outcome = check(line.as_bytes());
        assert_eq!((outcome.returns, outcome.was_cut), (usize::from(is_read), !is_read), "{value}");
    }
}
