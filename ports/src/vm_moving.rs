//! VMs that go from one host to another while they run.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_frame::MacAddr;

use crate::VmDevice;

/// What a VM that comes from another host is to be there, so that it finds its machine as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmArrival {
    /// The machine that QEMU emulates, like `pc-q35-7.2`.
    pub machine: String,
    /// The version of the QEMU that it leaves, like `7.2.22`. One that is older cannot take it.
    pub qemu_version: String,
}

/// Where a VM that runs has what its guest finds by its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmLayout {
    /// The machine that QEMU emulates, like `pc-q35-7.2`.
    pub machine: String,
    /// What is plugged in.
    pub plugged: Vec<VmPlugged>,
}

/// A device of a VM that runs, as its guest finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmPlugged {
    /// The device.
    pub device: VmDevice,
    /// The machine's port that it is plugged into, 0 to 15.
    pub port: u8,
    /// The address that a NIC has, whoever chose it.
    pub mac: Option<MacAddr>,
}

/// How a VM is sent to another host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendSpec {
    /// For how long it may stand still: it stops once what is left takes no longer.
    pub downtime: Duration,
    /// Bytes sent in a second at most.
    pub bytes_per_second: Option<u64>,
}

/// How far a VM's memory and devices have come to another host, on either side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendPhase {
    /// None was begun.
    None,
    /// Its memory is copied while it runs.
    Copying,
    /// It stands still until it is told to send the rest.
    Waiting,
    /// It stands still, and the rest is copied.
    Finishing,
    /// All has come, and either side could go on.
    Done,
    /// It came to nothing, for this reason. Where it ran it goes on.
    Failed(String),
}

/// See [`SendPhase`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendStatus {
    /// How far it is.
    pub phase: SendPhase,
    /// Bytes sent, what was sent again included.
    pub bytes_sent: u64,
    /// Bytes left, as far as is known.
    pub bytes_left: u64,
}
