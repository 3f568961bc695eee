//! Integration tests of this crate, one module per subject. A single program, because linking
//! dominates the build time of tests.

mod nic;
#[allow(unreachable_pub, reason = "shared by several crates' tests")]
#[path = "../../../../fuzz/src/replay.rs"]
mod replay;
mod stream_corpus;
#[allow(unreachable_pub, missing_docs, reason = "public for the fuzz target")]
#[path = "../../../../fuzz/src/stream_oracle.rs"]
mod stream_oracle;
