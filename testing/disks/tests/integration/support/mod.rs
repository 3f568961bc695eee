//! Helpers shared with the tests of the image formats against other programs.
#![allow(dead_code, reason = "each test uses what it needs")]

#[path = "../../../../../formats/vhdx/tests/integration/support/disk_file.rs"]
pub(crate) mod disk_file;
#[path = "../../../../../formats/vhdx/tests/integration/support/peer_bench.rs"]
pub(crate) mod peer_bench;
