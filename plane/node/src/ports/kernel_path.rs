//! Kernel path: selection of the TAP NICs between which the kernel forwards frames directly.
//!
//! The kernel only forwards frames. A NIC takes part while its configuration requires no other
//! processing by the switch.

mod publishing;

use std::sync::Mutex;

use suimon_contract::HostConfig;

/// Configuration published last, and state of the kernel path.
#[derive(Default)]
pub(crate) struct PublishedKernelPaths(Mutex<Plan>);

#[derive(Default)]
struct Plan {
    config: HostConfig,
    is_in_use: bool,
    /// True if the kernel rejected part of the last table.
    has_failed: bool,
}

#[cfg(test)]
#[path = "kernel_path_tests.rs"]
mod tests;
