//! Replays the fuzzer's corpus of messages, intact, truncated and damaged, and checks the results
//! with the fuzzer's oracle.

use crate::replay;
use crate::vhost_user_oracle::check;

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
