//! Replays a fuzz target's corpus against its oracle within a crate's own tests,
//! which include this file by path: inputs as they are, damaged and cut short, and
//! bytes of no origin.

use std::path::Path;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestRunner;

/// Damaged and random inputs tried, each.
const CASES: u32 = 400;
/// Fewer inputs than this and the corpus is not there.
const SEEDS_MIN: usize = 3;

/// The inputs checked in for a target, in a fixed order.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut inputs: Vec<_> =
        entries.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect();
    inputs.sort();
    assert!(inputs.len() >= SEEDS_MIN, "{folder:?}: the seeds are gone");
    inputs
}

/// Every input of the corpus passes.
pub fn corpus_passes(target: &str, check: impl Fn(&[u8])) {
    for input in corpus(target) {
        check(&input);
    }
}

/// Inputs of the corpus with some bytes changed, some of them cut short, pass.
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

/// Any bytes pass.
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
