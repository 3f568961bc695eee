//! Replays the corpus of the AF_XDP queue fuzzer, in which the kernel's side behaves arbitrarily,
//! intact and damaged, and checks the results with the fuzzer's oracle.

use std::path::Path;

#[allow(unreachable_pub, reason = "shared by several crates' tests")]
#[path = "../../../../fuzz/src/replay.rs"]
mod replay;
#[allow(unreachable_pub, reason = "public for the fuzz target")]
#[path = "../../../../fuzz/src/xdp_oracle.rs"]
mod xdp_oracle;

use xdp_oracle::{Outcome, check, step::*};

/// Environment variable that makes the test rewrite the seeds, for use after a change of the
/// scripts.
const WRITE_SEEDS: &str = "SUIMON_WRITE_SEEDS";

const SMALL: u8 = 0;
const LARGE: u8 = 1;

fn step(kind: u8, arguments: &[u8]) -> [u8; 8] {
    let mut step = [0; 8];
    step[0] = kind;
    step[1..=arguments.len()].copy_from_slice(arguments);
    step
}

fn script(mtu: u8, steps: &[[u8; 8]]) -> Vec<u8> {
    [&[mtu][..], steps.as_flattened()].concat()
}

/// Encodes the step in which the kernel delivers a descriptor of `len` bytes. `continues` is 1 if
/// the frame continues in the next descriptor.
fn arrive(len: u16, continues: u8, mode: u8) -> [u8; 8] {
    let [a, b] = len.to_le_bytes();
    step(ARRIVE, &[a, b, 0, continues, 0, 1, mode])
}

fn send(len: u16, tag: u8) -> [u8; 8] {
    let [a, b] = len.to_le_bytes();
    step(SEND, &[a, b, tag])
}

fn outcome(received: usize, malformed: u64, sent: usize, is_honest: bool) -> Outcome {
    Outcome { received, malformed, sent, is_honest }
}

fn seeds() -> Vec<(&'static str, Vec<u8>, Outcome)> {
    let (receive, flush) = (step(RECEIVE, &[]), step(FLUSH, &[]));
    let complete = step(COMPLETE, &[]);
    let woken = step(FLAGS, &[1, 1, 1, 1]);
    let round = [arrive(60, 0, 0), arrive(1514, 0, 0), receive, step(ARM, &[])].repeat(8);
    let sending = [send(60, 0), send(1514, 3), flush, complete, complete].repeat(8);
    let steps = [arrive(1792, 1, 0), arrive(1792, 1, 0), receive, arrive(900, 0, 0), receive];
    let large =
        [vec![send(9000, 0), flush], vec![complete; 5], vec![send(8000, 1), flush]].concat();
    let full = [vec![send(64, 0); 12], vec![flush], vec![complete; 12], vec![send(70, 0), flush]];
    let outside = [
        step(ARRIVE, &[100, 0, 3, 0, 0xff, 0xff, 1]),
        step(ARRIVE, &[0xff, 0xff, 0, 0, 0, 8, 1]),
        step(ARRIVE, &[100, 0, 0, 0, 0xf0, 7, 1]),
        receive,
    ];
    let out_of_range = [
        step(INDEX, &[0, 0xff, 0xff, 0xff, 0xff]),
        receive,
        step(INDEX, &[7, 9, 0, 0, 0x80]),
        step(INDEX, &[3, 200, 0, 0, 0]),
        flush,
        step(COMPLETE, &[0xff, 0xff, 3, 1]),
        send(300, 0),
        flush,
    ];
    vec![
        ("received", script(SMALL, &round), outcome(16, 0, 0, true)),
        ("sent", script(SMALL, &sending), outcome(0, 0, 16, true)),
        ("received-in-pieces", script(LARGE, &steps), outcome(1, 0, 0, true)),
        ("sent-in-pieces", script(LARGE, &large), outcome(0, 0, 2, true)),
        ("full", script(SMALL, &full.concat()), outcome(0, 0, 9, true)),
        ("woken", script(SMALL, &[&[woken], &sending[..]].concat()), outcome(0, 0, 16, true)),
        ("outside", script(SMALL, &outside), outcome(0, 3, 0, false)),
        ("beyond", script(SMALL, &out_of_range), outcome(0, 8, 1, false)),
    ]
}

#[test]
fn the_corpus_holds_a_script_of_each_kind_and_scripts_lead_where_they_should() {
    for (name, script, expected) in seeds() {
        assert_eq!(check(&script), expected, "{name}");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/xdp");
        let path = path.join(format!("seed-{name}"));
        if std::env::var_os(WRITE_SEEDS).is_some() {
            std::fs::write(&path, &script).unwrap();
        }
        let stored = std::fs::read(&path).unwrap_or_default();
        assert_eq!(stored, script, "{} is stale; run with {WRITE_SEEDS}=1", path.display());
    }
}

#[test]
fn the_corpus_passes_the_oracle_whole_and_damaged() {
    let check = |input: &[u8]| {
        check(input);
    };
    replay::corpus_passes("xdp", check);
    replay::damaged_corpus_passes("xdp", check);
    replay::any_bytes_pass(check);
}
