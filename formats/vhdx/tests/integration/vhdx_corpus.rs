//! Replays the VHDX fuzzing corpus, unmodified and corrupted, with the fuzz target's oracle.

use crate::replay;
use std::path::Path;

use crate::vhdx_oracle::{Outcome, check};

/// Environment variable that rewrites the seeds after a change to the scripts.
const WRITE_SEEDS: &str = "SUIMON_WRITE_SEEDS";

/// Option of a fuzz input: type of the image.
const DYNAMIC: u8 = 0;
const CHILD: u8 = 1;
const LARGE: u8 = 2 | 4;
const FIXED: u8 = 8;
/// Option of a fuzz input: the image was not closed.
const NOT_CLOSED: u8 = 16;

/// Structure that a fuzz input corrupts; followed by offset, value and operation.
const HEADER: u8 = 0;
const REGION: u8 = 2;
const ITEM: u8 = 4;
const BAT: u8 = 6;
const LOG: u8 = 7;
const TRUNCATED: u8 = 8;
/// Flag of a corruption: the checksum is not corrected.
const WRONG: u8 = 0x80;

/// Guest requests of a fuzz input: kind, offset, length.
const USE: &[u8] = &[
    1, 0, 8, 200, 9, 2, 0, 4, 255, 15, 3, 0, 0, 0, 0, 5, 9, 9, 9, 9, 0x81, 1, 0, 2, 0, 0xc1, 0, 0,
    1, 0, 9, 0, 16, 100, 3, 3, 0, 0, 0, 0,
];

fn seeds() -> Vec<(&'static str, Vec<u8>, Outcome)> {
    let seed = |options: u8, damages: &[[u8; 5]]| {
        let mut input = vec![options, damages.len() as u8];
        input.extend(damages.concat());
        input.extend(USE);
        input
    };
    let used = Outcome { was_read: true, was_opened: true, writes: 5, replayed: 0 };
    let replayed = Outcome { replayed: 1, ..used };
    let refused = Outcome::default();
    vec![
        ("dynamic", seed(DYNAMIC, &[]), used),
        ("child", seed(CHILD, &[]), used),
        ("large-child", seed(CHILD | LARGE, &[]), used),
        ("fixed", seed(FIXED, &[]), used),
        ("left", seed(NOT_CLOSED, &[]), replayed),
        ("left-child", seed(NOT_CLOSED | CHILD, &[]), replayed),
        ("one-header", seed(DYNAMIC, &[[HEADER, 8, 0, 1, WRONG]]), used),
        ("no-header", seed(DYNAMIC, &[[HEADER, 8, 0, 1, WRONG], [1, 8, 0, 1, WRONG]]), refused),
        ("one-region-table", seed(DYNAMIC, &[[REGION, 8, 0, 9, WRONG]]), used),
        ("region-elsewhere", seed(DYNAMIC, &[[REGION, 34, 0, 0x10, 0]]), refused),
        ("item-elsewhere", seed(DYNAMIC, &[[ITEM, 48, 0, 9, 0x13]]), refused),
        ("no-signature", seed(DYNAMIC, &[[ITEM, 0, 0, 9, 1]]), refused),
        ("shared-block", seed(DYNAMIC, &[[BAT, 0, 0, 6, 0], [BAT, 2, 0, 0x60, 0]]), refused),
        ("cut", seed(DYNAMIC, &[[TRUNCATED, 0, 0, 128, 0]]), refused),
        ("torn-log", seed(NOT_CLOSED, &[[LOG, 100, 0, 1, WRONG]]), replayed),
    ]
}

#[test]
fn corpus_contains_each_image_type_and_its_expected_result() {
    for (name, input, expected) in seeds() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/vhdx");
        let path = path.join(format!("seed-{name}"));
        if std::env::var_os(WRITE_SEEDS).is_some() {
            std::fs::write(&path, &input).unwrap();
        }
        let stored = std::fs::read(&path).unwrap_or_default();
        assert_eq!(stored, input, "{} is stale; run with {WRITE_SEEDS}=1", path.display());
        assert_eq!(check(&input), expected, "{name}");
    }
}

#[test]
fn corpus_passes_unmodified_and_corrupted() {
    let check = |input: &[u8]| {
        check(input);
    };
    replay::corpus_passes("vhdx", check);
    replay::damaged_corpus_passes("vhdx", check);
    replay::any_bytes_pass(check);
}
