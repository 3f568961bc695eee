//! Kernel path: frames between TAP devices that the kernel forwards itself, bypassing the switch.

use core::time::Duration;
use std::collections::BTreeMap;

use suimon_frame::MacAddr;
use suimon_quantity::PortId;

/// Interval at which source addresses seen on the kernel path are reported. Shorter than the
/// shortest address ageing time of a switch.
pub const KERNEL_PATH_REPORT_INTERVAL: Duration = Duration::from_secs(5);

/// Forwarding table of the kernel path. The kernel forwards untagged frames from TAP to TAP if
/// source and destination belong to the same group; other frames pass through the switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelPathTable {
    /// Ports that participate in the kernel path, with their group and limits.
    pub ports: BTreeMap<PortId, KernelPathPort>,
    /// Locations of MAC addresses, keyed by group ([`KernelPathPort::group`]) and address.
    pub addresses: BTreeMap<(u32, MacAddr), KernelPathAddress>,
}

/// A port on the kernel path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelPathPort {
    /// Group of the port. Frames are forwarded within a group only.
    pub group: u32,
    /// True if dynamically learned addresses may move to this port. If an address known at another
    /// port sends here, its entry is removed immediately.
    pub is_learning: bool,
    /// Largest IP packet in bytes that the port may send and that every port of its group accepts.
    pub mtu: u16,
}

/// Location of a MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelPathAddress {
    /// Port at which the address is located.
    pub port: PortId,
    /// True if the address is configured and therefore cannot move.
    pub is_static: bool,
}

/// Availability of the kernel path for a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelPathState {
    /// Available; the [`KernelPathTable`] determines which frames use it.
    Ready,
    /// The kernel path cannot be used.
    Unavailable {
        /// Reason and remedy, in words.
        reason: String,
    },
}

/// Frames that the kernel forwarded from and to a port. An unsegmented large frame counts as one
/// frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelPathCounters {
    /// Frames sent by the guest.
    pub sent_frames: u64,
    /// Bytes sent by the guest, including Ethernet headers.
    pub sent_bytes: u64,
    /// Frames received by the guest.
    pub received_frames: u64,
    /// Bytes received by the guest, including Ethernet headers.
    pub received_bytes: u64,
}
