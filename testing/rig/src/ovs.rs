//! Open vSwitch for comparison: with DPDK for vhost-user ports, without it for TAP ports, and with
//! bonds as an LACP partner. All its files are in the rig's folder; an Open vSwitch that runs on
//! the machine is not affected.

mod bond;
mod dpdk;
mod server;
mod woken;

pub use bond::{Lacp, OvsBonds};
pub use dpdk::OvsDpdk;
pub use woken::OvsWoken;

use std::path::Path;

use anyhow::Result;

use crate::command::run;

/// Returns true if Open vSwitch with DPDK is installed.
pub fn is_installed() -> bool {
    Path::new(server::DAEMON).exists() && Path::new(server::SCHEMA).exists()
}

/// Returns the version of Open vSwitch as text.
///
/// # Errors
/// Open vSwitch is not installed.
pub fn version() -> Result<String> {
    let output = run(&["ovs-vsctl", "--version"])?;
    Ok(output
        .lines()
        .next()
        .unwrap_or_default()
        .replace("ovs-vsctl (Open vSwitch)", "Open vSwitch"))
}
