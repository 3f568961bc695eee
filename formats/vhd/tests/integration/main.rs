//! Integration tests of this crate, one module per subject. A single test program, because linking
//! takes most of a test program's build time.

mod allocations;
mod crashes;
mod large_blocks;
mod peers;
#[path = "../../../vhdx/tests/integration/support/power.rs"]
mod power;
mod redo;
#[path = "../../../vhdx/tests/integration/support/redo_bench.rs"]
mod redo_bench;
#[allow(unreachable_pub, reason = "shared by several crates' tests")]
#[path = "../../../../fuzz/src/replay.rs"]
mod replay;
mod requests;
mod sizes;
mod support;
mod vhd_corpus;
#[allow(unreachable_pub, reason = "public for the fuzz target")]
#[path = "../../../../fuzz/src/vhd_oracle.rs"]
mod vhd_oracle;
mod workloads;
