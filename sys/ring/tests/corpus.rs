//! Rings, judged by the fuzzer's oracle: its corpus is replayed, whole, cut short
//! and damaged.

use std::path::Path;

use proptest::prelude::*;
use proptest::sample::Index;

#[allow(unreachable_pub, reason = "public for the fuzz target")]
#[path = "../../../fuzz/src/ring_oracle.rs"]
mod ring_oracle;

use ring_oracle::check;

fn corpus() -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/ring");
    let entries = std::fs::read_dir(directory).unwrap();
    let mut inputs: Vec<_> =
        entries.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect();
    inputs.sort();
    inputs
}

#[test]
fn the_corpus_passes() {
    let corpus = corpus();
    assert!(corpus.len() >= 3, "the seeds are gone");
    for input in corpus {
        check(&input);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_seeds_pass(
        seed in any::<Index>(),
        changes in prop::collection::vec((any::<Index>(), any::<u8>()), 0..12),
        cut in prop::option::weighted(0.2, any::<Index>()),
    ) {
        let corpus = corpus();
        let mut input = seed.get(&corpus).clone();
        for (at, byte) in changes {
            let len = input.len();
            input[at.index(len)] = byte;
        }
        if let Some(cut) = cut {
            input.truncate(cut.index(input.len()));
        }
        check(&input);
    }

    #[test]
    fn any_bytes_pass(input in prop::collection::vec(any::<u8>(), 0..700)) {
        check(&input);
    }
}
