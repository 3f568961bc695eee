//! Frames that the kernel moves itself, past the switch.

use core::time::Duration;
use std::collections::BTreeMap;

use suimon_frame::MacAddr;
use suimon_quantity::PortId;

/// How often it is told from which addresses frames took the kernel's path: less than
/// the shortest ageing that a switch may have.
pub const KERNEL_PATH_HEARD_EVERY: Duration = Duration::from_secs(5);

/// Which frames the kernel moves from TAP to TAP: those from and to addresses of one
/// group, without a VLAN tag. All others take the way through the switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelPathTable {
    /// The ports that may take part.
    pub ports: BTreeMap<PortId, KernelPathPort>,
    /// Who is where, by group and address.
    pub addresses: BTreeMap<(u32, MacAddr), KernelPathAddress>,
}

/// A port on the kernel's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelPathPort {
    /// Ports reach those of their own group only.
    pub group: u32,
    /// Whether addresses may move here: one that sends here and is known elsewhere is
    /// then forgotten at once.
    pub learns: bool,
    /// The largest IP packet it may send, and ports of its group take, in bytes.
    pub mtu: u16,
}

/// Where an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelPathAddress {
    /// The port.
    pub port: PortId,
    /// Whether it is configured, so that it cannot move.
    pub fixed: bool,
}

/// Whether a device could have a path in the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelPathState {
    /// It has one, which frames take as far as a [`KernelPathTable`] says so.
    Ready,
    /// It has none.
    Unavailable {
        /// Why, and what to do.
        reason: String,
    },
}

/// What the kernel moved between a port and others. A large frame that was not
/// segmented counts as one, as everywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelPathCounters {
    /// Frames that the guest sent.
    pub sent_frames: u64,
    /// Their bytes, with Ethernet headers.
    pub sent_bytes: u64,
    /// Frames that the guest received.
    pub received_frames: u64,
    /// Their bytes, with Ethernet headers.
    pub received_bytes: u64,
}
