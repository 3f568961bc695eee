//! Replays a fuzz target's corpus with its oracle in the tests of the crate under test, which
//! include this file by path: inputs as committed, damaged and truncated ones, and random bytes.

use std::path::Path;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestRunner;

/// Number of damaged inputs, and of random inputs.
const CASES: u32 = 400;
/// Minimum number of inputs in a corpus; fewer mean that the corpus is missing.
const SEEDS_MIN: usize = 3;

/// Returns the committed inputs of a target, sorted.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut inputs: Vec<_> =
        entries.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect();
    inputs.sort();
    assert!(inputs.len() >= SEEDS_MIN, "{folder:?}: the seeds are missing");
    inputs
}

/// Checks each input of the corpus.
pub fn corpus_passes(target: &str, check: impl Fn(&[u8])) {
    for input in corpus(target) {
        check(&input);
    }
}

/// Checks inputs of the corpus with some bytes changed, some of them truncated.
pub fn damaged_corpus_passes(target: &str, check: impl Fn(&[u8])) {
    let corpus = corpus(target);
    let damage = (
        any::<Index>(),
        prop::collection::vec((any::<Index>(), any::<u8>()), 0..12),
        prop::option::weighted(0.2, any::<Index>()),
    );
    run(damage, |(seed, changes, cut)| {
        let mut input = seed.get(&corpus).clone();
        for (position, byte) in changes {
            let len = input.len();
            input[position.index(len)] = byte;
        }
        if let Some(cut) = cut {
            input.truncate(cut.index(input.len()));
        }
        check(&input);
    });
}

/// Checks random bytes.
pub fn any_bytes_pass(check: impl Fn(&[u8])) {
    run(prop::collection::vec(any::<u8>(), 0..700), |input| check(&input));
}

fn run<S: Strategy>(inputs: S, check: impl Fn(S::Value)) {
    let config =
        ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() };
    let checked = TestRunner::new(config).run(&inputs, |input| {
        check(input);
        Ok(())
    });
    checked.unwrap_or_else(|failure| panic!("{failure}"));
}
