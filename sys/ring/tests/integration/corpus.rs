//! Replays the fuzzers' corpora, intact, truncated and damaged, and checks the results with the
//! fuzzers' oracles.

use crate::disk_oracle;
use crate::packed_oracle;
use crate::replay;
use crate::ring_oracle;

#[test]
fn the_corpora_pass() {
    replay::corpus_passes("ring", ring_oracle::check);
    replay::corpus_passes("ring_packed", packed_oracle::check);
    replay::corpus_passes("disk_ring", disk_oracle::check);
}

#[test]
fn damaged_split_seeds_pass() {
    replay::damaged_corpus_passes("ring", ring_oracle::check);
}

#[test]
fn damaged_packed_seeds_pass() {
    replay::damaged_corpus_passes("ring_packed", packed_oracle::check);
}

#[test]
fn damaged_disk_seeds_pass() {
    replay::damaged_corpus_passes("disk_ring", disk_oracle::check);
}

#[test]
fn any_bytes_pass() {
    replay::any_bytes_pass(ring_oracle::check);
    replay::any_bytes_pass(packed_oracle::check);
    replay::any_bytes_pass(disk_oracle::check);
}
