//! Messages, judged by the fuzzer's oracle: its corpus is replayed, whole, cut short
//! and damaged.

#[allow(unreachable_pub, reason = "shared by several crates' tests")]
#[path = "../../../fuzz/src/replay.rs"]
mod replay;
#[allow(unreachable_pub, reason = "public for the fuzz target")]
#[path = "../../../fuzz/src/vhost_user_oracle.rs"]
mod vhost_user_oracle;

use vhost_user_oracle::check;

#[test]
fn the_corpus_passes() {
    replay::corpus_passes("vhost_user_messages", check);
}

#[test]
fn damaged_seeds_pass() {
    replay::damaged_corpus_passes("vhost_user_messages", check);
}

#[test]
fn any_bytes_pass() {
    replay::any_bytes_pass(check);
}
