//! Devices behind NICs and uplinks: specifications, status, notices and the factory that opens
//! them.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use suimon_frame::{MacAddr, Offloads};
use suimon_offload::{DeviceFeatures, OffloadToggles};
use suimon_quantity::PortId;
use thiserror::Error;

use crate::{
    KernelPathCounters, KernelPathState, KernelPathTable, LinkProperties, LinkSpeed, QueueHost,
    SteeringRule, SteeringState,
};

/// Side that listens on a vhost-user socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VhostUserMode {
    /// The daemon listens; the VM's front-end connects.
    Server,
    /// The front-end listens; the daemon connects and reconnects.
    Client,
}

/// Specification of a VM's vhost-user NIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VhostUserNicSpec {
    /// Path of the Unix socket.
    pub socket: PathBuf,
    /// Side that listens on the socket.
    pub mode: VhostUserMode,
    /// Queue pairs offered, 1 to 64.
    pub queue_pairs: u16,
    /// MAC address reported to the guest if the front-end negotiates `VIRTIO_NET_F_MAC`.
    pub mac: Option<MacAddr>,
    /// Largest IP packet, 68 to 9216 bytes.
    pub mtu: u16,
    /// Offloads that the guest may negotiate.
    pub offload: OffloadToggles,
    /// Features that a reconnecting VM depends on. Observed state: the value of the last
    /// [`DeviceNotice::FeaturesCommitted`], not part of the configuration.
    pub negotiated: NegotiatedFeatures,
}

/// Virtio features and queues that a guest has negotiated. The daemon must offer them again
/// whenever the front-end reconnects, including after a restart of the daemon, because a running
/// guest cannot lose a feature. All zero if no VM depends on a feature. Used for NICs and disks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NegotiatedFeatures {
    /// Virtio feature bits that were negotiated.
    pub features: u64,
    /// Queue pairs of a NIC; queues of a disk.
    pub queue_pairs: u16,
}

/// Specification of a NIC that QEMU emulates. Frames are transferred over a stream socket on which
/// the daemon listens; each frame follows its length (4 bytes, big-endian), as in QEMU's `-netdev
/// stream`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamNicSpec {
    /// Path of the Unix socket.
    pub socket: PathBuf,
    /// MAC address of the guest's NIC; `None` if QEMU chooses it.
    pub mac: Option<MacAddr>,
    /// Largest IP packet, 68 to 9216 bytes.
    pub mtu: u16,
}

/// Specification of a TAP device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapSpec {
    /// Device name, 1 to 15 bytes.
    pub device: String,
    /// Name of the device's network namespace (`ip netns`); `None`: the daemon's namespace.
    pub netns: Option<String>,
    /// Queue pairs, 1 to 64.
    pub queue_pairs: u16,
    /// MAC address of the kernel's network interface.
    pub mac: Option<MacAddr>,
    /// True if an existing device keeps its MAC address, which its owner may have changed, unless
    /// `mac` changes while the device is open.
    pub keeps_mac: bool,
    /// Largest IP packet, 68 to 9216 bytes.
    pub mtu: u16,
    /// Offloads that the kernel's network stack may use.
    pub offload: OffloadToggles,
    /// True if the kernel may forward the device's frames itself, as specified by a
    /// [`KernelPathTable`].
    pub may_use_kernel_path: bool,
}

/// Driver that transfers the frames of an uplink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UplinkDriver {
    /// AF_PACKET socket with virtio-net headers (`PACKET_VNET_HDR`) on an existing device.
    AfPacket,
    /// AF_XDP sockets on an existing device, one per receive queue.
    AfXdp,
    /// TAP device, created if it does not exist.
    Tap,
}

/// Specification of the uplink of an external switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UplinkSpec {
    /// Device name, 1 to 15 bytes.
    pub device: String,
    /// Driver that transfers the frames.
    pub driver: UplinkDriver,
    /// Queue pairs, 1 to 64. With AF_XDP, the number of receive queues of the device.
    pub queue_pairs: u16,
    /// Largest IP packet in bytes; `None` keeps the device's MTU.
    pub mtu: Option<u16>,
    /// AF_XDP only: IP addresses of the host on the device. If not empty, frames to the device's
    /// MAC address and ARP and neighbour requests for these addresses are passed to the host's
    /// network stack.
    pub host_addresses: Vec<IpAddr>,
    /// Offloads used between switch and device, seen from the switch.
    pub offload: OffloadToggles,
}

/// Specification of the device behind a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortDeviceSpec {
    /// NIC of a VM over vhost-user.
    VhostUser(VhostUserNicSpec),
    /// NIC of a VM, emulated by QEMU.
    Stream(StreamNicSpec),
    /// TAP device: NIC of a namespace guest, or host NIC of an internal switch.
    Tap(TapSpec),
    /// Uplink of an external switch.
    Uplink(UplinkSpec),
}

/// Notice of an open device, emitted on the device's own thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceNotice {
    /// The front-end connected, or the device's carrier came up.
    LinkUp,
    /// The front-end disconnected, or the device lost its carrier.
    LinkDown {
        /// Reason, as far as known.
        reason: String,
    },
    /// State of an uplink's link. Emitted once after opening and whenever carrier, speed or duplex
    /// change; follows [`DeviceNotice::LinkUp`] or [`DeviceNotice::LinkDown`] if one of these is
    /// emitted too.
    LinkChanged(LinkProperties),
    /// The open device is no longer the one the port is configured for: it was deleted or moved, or
    /// a new device has taken its name. It must be closed and reopened.
    DeviceLost {
        /// Reason for the loss, in words.
        reason: String,
    },
    /// The guest's driver negotiated features and started the device.
    Negotiated {
        /// Virtio feature bits that were negotiated.
        features: u64,
        /// Queue pairs that the driver uses.
        queue_pairs: u16,
    },
    /// Features that the VM depends on from now on. The port must pass them as
    /// [`VhostUserNicSpec::negotiated`] the next time it opens the NIC.
    FeaturesCommitted(NegotiatedFeatures),
    /// The peer violated the protocol and was disconnected.
    ProtocolViolation {
        /// Violation, naming message and field.
        detail: String,
    },
}

/// Receiver of device notices. Called on device threads; must not block.
pub trait PortObserver: Send + Sync {
    /// Handles a notice of the device behind `port`.
    fn handle_notice(&self, port: PortId, notice: DeviceNotice);
}

/// Current state of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceStatus {
    /// True if the link is up and frames can pass.
    pub link_up: bool,
    /// Speed and duplex of an uplink's link; unknown for other devices.
    pub speed: LinkSpeed,
    /// Queue pairs currently in use by the peer.
    pub queue_pairs: u16,
    /// Offloads that received frames may use. TAP and packet sockets report what they support, even
    /// if the offload configuration permits less; virtio devices report what was negotiated.
    pub ingress_offloads: Offloads,
    /// Offloads that transmitted frames may use.
    pub egress_offloads: Offloads,
    /// Virtio feature bits negotiated with the device; `None` for other devices.
    pub virtio_features: Option<u64>,
    /// MAC address of the device itself; `None` if it has none.
    pub mac: Option<MacAddr>,
    /// Largest IP packet in bytes that the device currently accepts.
    pub mtu: u16,
    /// State of the kernel path; `None` if it is not enabled.
    pub kernel_path: Option<KernelPathState>,
    /// State of the AF_XDP sockets; `None` for other drivers.
    pub xdp: Option<XdpState>,
    /// Result of the rules set by [`PortDevice::set_steering_rules`]; `None` if the device has no
    /// steerable receive queues.
    pub steering: Option<SteeringState>,
}

/// Hook at which XDP redirects frames to AF_XDP sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpHook {
    /// Native mode: in the device driver.
    Driver,
    /// Generic mode (`XDP_FLAGS_SKB_MODE`): in the network stack, after allocation of socket
    /// buffers.
    Generic,
}

/// State of a device's AF_XDP sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpState {
    /// Hook at which frames are redirected.
    pub hook: XdpHook,
    /// True if the device accesses the sockets' memory (UMEM) directly; false if the kernel copies.
    pub zero_copy: bool,
    /// True if a frame may span several chunks (`XDP_USE_SG`).
    pub multi_buffer: bool,
    /// Size of a chunk in bytes.
    pub chunk_bytes: u16,
    /// Received frames dropped since the device was opened because a socket had no free buffer.
    pub dropped_frames: u64,
}

/// Kind of a failure to open or change a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceErrorKind {
    /// The device, namespace or directory does not exist.
    Missing,
    /// Another program holds the device.
    Busy,
    /// The daemon's user lacks the permission.
    Denied,
    /// The device exists but does not support the request.
    Unsupported,
    /// The host rejected the request for another reason.
    Host,
}

/// Failure to open or change a device.
#[derive(Clone, Debug, Error)]
#[error("{detail}")]
pub struct DeviceError {
    /// Kind of the failure, on which the reaction of callers depends.
    pub kind: DeviceErrorKind,
    /// The configuration key at fault (`device`, `netns`, `socket`, …).
    pub field: &'static str,
    /// Failure and what to do next, in words.
    pub detail: String,
}

/// An open device. Dropping the device detaches its queues, removes its socket file and closes it.
/// A TAP device persists (see [`DeviceFactory::remove_tap`]).
pub trait PortDevice: Send {
    /// Returns link state, offloads and driver-specific state.
    fn status(&self) -> DeviceStatus;

    /// Applies a changed specification to the open device. Returns `Ok(false)`, with nothing
    /// changed, if the device must be closed and reopened instead.
    ///
    /// # Errors
    /// Fails if the host rejects the change; the device keeps its previous configuration.
    fn apply_spec(&mut self, spec: &PortDeviceSpec) -> Result<bool, DeviceError>;

    /// Replaces the receive queue steering rules of the device. The result appears in
    /// [`DeviceStatus::steering`]. Steering affects only the receiving queue, not the forwarding
    /// decision. No-op if the device has no steerable receive queues.
    fn set_steering_rules(&mut self, _rules: &[SteeringRule]) {}
}

/// Opens the devices behind switch ports.
pub trait DeviceFactory: Send + Sync {
    /// Checks whether `open` can succeed, without side effects: namespace, uplink device, directory
    /// of the socket, permissions.
    ///
    /// # Errors
    /// Returns the error that `open` would return.
    fn probe(&self, spec: &PortDeviceSpec) -> Result<(), DeviceError>;

    /// Opens the device of `port` and attaches its queues to `queues`: immediately, or for
    /// vhost-user whenever a front-end connects. An existing TAP device is taken over; otherwise
    /// one is created, which persists beyond this process. A created TAP has a mark that later
    /// processes recognise and that no device of another program has.
    ///
    /// # Errors
    /// Fails without any device opened.
    fn open(
        &self,
        port: PortId,
        spec: &PortDeviceSpec,
        queues: Arc<dyn QueueHost>,
        observer: Arc<dyn PortObserver>,
    ) -> Result<Box<dyn PortDevice>, DeviceError>;

    /// Returns the hardware features of the device behind `spec`, read from the kernel whether or
    /// not the device is open. `None` if the peer is a guest or the kernel's network stack. May
    /// block; must not be called on a worker thread.
    ///
    /// # Errors
    /// Fails if the device does not exist or the kernel query fails.
    fn hardware_features(
        &self,
        spec: &PortDeviceSpec,
    ) -> Result<Option<DeviceFeatures>, DeviceError>;

    /// Returns the index of the network device that has the name in `spec` now. `None` if there is
    /// no such device, or if opening the port creates it. Another index than before means that
    /// another device has taken the name. Does not block.
    fn device_index(&self, spec: &PortDeviceSpec) -> Option<u32>;

    /// Replaces the kernel path table. When the call returns, the kernel forwards exactly the
    /// frames between TAP devices that `table` specifies. Ports without an open device, or with a
    /// device opened without [`TapSpec::kernel_path`], are ignored.
    ///
    /// Returns the source addresses, with their group, of frames forwarded since the previous
    /// report. Reported at most once per [`KERNEL_PATH_REPORT_INTERVAL`]; other calls return an
    /// empty list.
    ///
    /// [`KERNEL_PATH_REPORT_INTERVAL`]: crate::KERNEL_PATH_REPORT_INTERVAL
    ///
    /// # Errors
    /// Fails if the kernel has no room for the complete table; frames of missing entries pass
    /// through the switch.
    fn set_kernel_path_table(
        &self,
        table: &KernelPathTable,
    ) -> Result<Vec<(u32, MacAddr)>, DeviceError>;

    /// Returns the counters of frames forwarded by the kernel from and to a port, summed over all
    /// devices the port has had.
    fn kernel_path_counters(&self, port: PortId) -> KernelPathCounters;

    /// Deletes a TAP device created by `open` of this or an earlier process. A missing device or
    /// namespace counts as success. Returns false if another program created the device of this
    /// name; it is kept.
    ///
    /// # Errors
    /// Fails if the host rejects the deletion.
    fn remove_tap(&self, device: &str, netns: Option<&str>) -> Result<bool, DeviceError>;
}
