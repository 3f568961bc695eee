//! Downloads and builds the kernels and file systems that test guests boot, into `target/guest`.
//! Does nothing if they exist.
//!
//! Tests run in network namespaces from which no package can be downloaded, so this runs before.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    suimon_test_programs::end_program("guest_files", suimon_rig::prepare_guest_files())
}
