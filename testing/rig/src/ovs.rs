//! Open vSwitch, the peer: with DPDK beside the vhost-user path, without it, woken by
//! its devices, beside TAP ports; with bonds, a partner for LACP. Everything it uses is in the rig's folder; an Open
//! vSwitch that runs on the machine is not touched.

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

/// Whether it is installed.
pub fn is_installed() -> bool {
    Path::new(server::DAEMON).exists() && Path::new(server::SCHEMA).exists()
}

/// Its version, as it says.
///
/// # Errors
/// It is not installed.
pub fn version() -> Result<String> {
    let said = run(&["ovs-vsctl", "--version"])?;
    Ok(said.lines().next().unwrap_or_default().replace("ovs-vsctl (Open vSwitch)", "Open vSwitch"))
}
