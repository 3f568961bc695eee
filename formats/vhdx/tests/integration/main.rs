//! Integration tests of this crate, one module per subject. A single test program, because linking
//! takes most of a test program's build time.

mod crash;
#[path = "support/disk_file.rs"]
mod disk_file;
mod hostile;
mod images;
#[path = "support/peer_bench.rs"]
mod peer_bench;
mod peers;
#[path = "support/power.rs"]
mod power;
mod redo;
#[path = "support/redo_bench.rs"]
mod redo_bench;
#[allow(unreachable_pub, reason = "shared by several crates' tests")]
#[path = "../../../../fuzz/src/replay.rs"]
mod replay;
mod support;
mod vhdx_corpus;
#[allow(unreachable_pub, reason = "public for the fuzz target")]
#[path = "../../../../fuzz/src/vhdx_oracle.rs"]
mod vhdx_oracle;
