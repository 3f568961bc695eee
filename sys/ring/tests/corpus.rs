//! Rings, judged by the fuzzers' oracles: their corpora are replayed, whole, cut
//! short and damaged.

#[allow(unreachable_pub, reason = "public for the fuzz target")]
#[path = "../../../fuzz/src/disk_oracle.rs"]
mod disk_oracle;
#[allow(unreachable_pub, reason = "public for the fuzz targets")]
#[path = "../../../fuzz/src/guest_image.rs"]
mod guest_image;
#[allow(unreachable_pub, reason = "public for the fuzz target")]
#[path = "../../../fuzz/src/packed_oracle.rs"]
mod packed_oracle;
#[allow(unreachable_pub, reason = "shared by several crates' tests")]
#[path = "../../../fuzz/src/replay.rs"]
mod replay;
#[allow(unreachable_pub, reason = "public for the fuzz target")]
#[path = "../../../fuzz/src/ring_oracle.rs"]
mod ring_oracle;

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
