//! Integration tests of this crate, one module per subject. A single test program, because linking
//! takes most of a test program's build time.

mod recording_corpus;
#[allow(unreachable_pub, reason = "the fuzzer uses it, too")]
#[path = "../../../../fuzz/src/recording_oracle.rs"]
mod recording_oracle;
