//! Downloads and builds the kernels and file systems that test guests boot, into `target/guest`.
//! Does nothing if they exist.
//!
//! Tests run in network namespaces from which no package can be downloaded, so this runs before.
#![forbid(unsafe_code)]

fn main() -> anyhow::Result<()> {
    suimon_rig::prepare_guest_files()
}
