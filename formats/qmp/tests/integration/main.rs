//! Integration tests of this crate, one module per subject. A single test program, because linking
//! takes most of a test program's build time.

mod commands;
mod qmp_corpus;
#[allow(unreachable_pub, missing_docs, reason = "public for the fuzz target")]
#[path = "../../../../fuzz/src/qmp_oracle.rs"]
mod qmp_oracle;
#[allow(unreachable_pub, reason = "shared by several crates' tests")]
#[path = "../../../../fuzz/src/replay.rs"]
mod replay;
