//! Integration tests of this crate, one module per subject. One program, because linking
//! takes most of the time that a test program costs.

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
