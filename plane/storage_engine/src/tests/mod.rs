//! Tests of the engine as a whole, and test benches.

mod consistency;
pub(crate) mod content_model;
pub(crate) mod device_bench;
pub(crate) mod disk_bench;
mod polling;
mod process_restart;
mod write_zeroes;
