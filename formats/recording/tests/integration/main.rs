//! Integration tests of this crate, one module per subject. One program, because linking
//! takes most of the time that a test program costs.

mod recording_corpus;
#[allow(unreachable_pub, reason = "the fuzzer uses it, too")]
#[path = "../../../../fuzz/src/recording_oracle.rs"]
mod recording_oracle;
