//! Identifiers of what the data plane is made of.

use core::fmt;

use serde::{Deserialize, Serialize};

/// A switch, for as long as it exists on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SwitchId(pub u32);

/// A port of a switch: a NIC, a host NIC or an uplink. Never used again for
/// another port while the daemon runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PortId(pub u32);

/// A virtual disk. Never used again for another disk while the daemon runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DiskId(pub u32);

/// A backing store: the device, file system or array that disks' files are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StoreId(pub u32);

/// A processor: the worker thread that owns queues on one logical CPU. Counts
/// from 0 in the order of `[host] processors`; it is not the CPU's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProcessorId(pub u16);

/// Which way a queue carries frames, seen from the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Into the switch: a VM's TX ring, what a TAP's kernel side sent, what an
    /// uplink received.
    Ingress,
    /// Out of the switch: a VM's RX ring, towards a TAP's kernel side, what an
    /// uplink sends.
    Egress,
}

/// One queue of a port. A queue has exactly one owning processor at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QueueId {
    /// The port it belongs to.
    pub port: PortId,
    /// Which way it carries frames.
    pub direction: Direction,
    /// Counts from 0 within the port and direction.
    pub index: u16,
}

impl fmt::Display for ProcessorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        })
    }
}
