//! Integration tests of this crate, one module per subject. One test program, because linking
//! dominates the build time of a test program.

mod lacp_corpus;
#[allow(unreachable_pub, reason = "public for the fuzz target")]
#[path = "../../../../fuzz/src/lacp_oracle.rs"]
mod lacp_oracle;
mod partners;
#[allow(unreachable_pub, reason = "shared by several crates' tests")]
#[path = "../../../../fuzz/src/replay.rs"]
mod replay;
#[path = "partners/world.rs"]
mod world;
