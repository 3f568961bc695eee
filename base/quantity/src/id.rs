//! Identifiers of data-plane objects.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Identifier of a switch on this host, valid while the switch exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SwitchId(pub u32);

/// Identifier of a switch port: a NIC, a host NIC or an uplink. Not reused while the daemon runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PortId(pub u32);

/// Identifier of a virtual disk. Not reused while the daemon runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DiskId(pub u32);

/// Identifier of a backing store: the device, file system or array that contains disk files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StoreId(pub u32);

/// Number of a worker, the thread that owns queues on one logical CPU. Workers are numbered from 0
/// in the order of `[host] worker_cpus`; the number differs from that of the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkerId(pub u16);

/// Direction in which a queue carries frames, seen from the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Into the switch: from a VM's TX ring, from the kernel's side of a TAP, received by an
    /// uplink.
    Ingress,
    /// Out of the switch: to a VM's RX ring, to the kernel's side of a TAP, sent by an uplink.
    Egress,
}

/// Identifier of a queue of a port. A queue has exactly one owning worker at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QueueId {
    /// Port that the queue belongs to.
    pub port: PortId,
    /// Direction in which it carries frames.
    pub direction: Direction,
    /// Index within the port and direction, counted from 0.
    pub index: u16,
}

impl fmt::Display for WorkerId {
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
