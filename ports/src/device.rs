//! What a NIC or an uplink stands on.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use suimon_frame::{MacAddr, Offloads};
use suimon_offload::{DeviceFeatures, OffloadSwitches};
use suimon_quantity::PortId;
use thiserror::Error;

use crate::{
    KernelPathCounters, KernelPathState, KernelPathTable, LinkFacts, LinkSpeed, QueueHost,
    SteeringRule, SteeringState,
};

/// Who listens on a vhost-user socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VhostUserMode {
    /// We listen; the VM's front-end connects.
    Server,
    /// The front-end listens; we connect, again and again.
    Client,
}

/// A NIC of a VM over vhost-user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VhostUserSpec {
    /// The Unix socket.
    pub socket: PathBuf,
    /// Who listens on it.
    pub mode: VhostUserMode,
    /// Queue pairs offered, 1 to 64.
    pub queue_pairs: u16,
    /// The MAC address the guest is told, if the front-end asks us.
    pub mac: Option<MacAddr>,
    /// Largest IP packet, 68 to 9216 bytes.
    pub mtu: u16,
    /// What the guest may negotiate.
    pub offload: OffloadSwitches,
    /// What a VM that may come back relies on. Not part of what is desired: it is
    /// what [`DeviceNotice::Promised`] said last.
    pub promise: VhostUserPromise,
}

/// What the VM on a NIC has negotiated and must find again whenever its front-end
/// returns, also after this process was replaced: a guest cannot lose a feature
/// while it runs. All zero if no VM relies on anything. Likewise of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VhostUserPromise {
    /// Virtio feature bits.
    pub features: u64,
    /// Queue pairs; of a disk queues.
    pub queue_pairs: u16,
}

/// A NIC that a VM's QEMU emulates and whose frames come over a stream socket, on which we
/// listen: each behind its length in 4 bytes, big-endian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSpec {
    /// The Unix socket.
    pub socket: PathBuf,
    /// The address that the guest's NIC has, as far as it is ours to say.
    pub mac: Option<MacAddr>,
    /// Largest IP packet, 68 to 9216 bytes.
    pub mtu: u16,
}

/// A TAP device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapSpec {
    /// Device name, 1 to 15 bytes.
    pub device: String,
    /// Name of the network namespace it lives in (`ip netns`); ours if `None`.
    pub netns: Option<String>,
    /// Queue pairs, 1 to 64.
    pub queue_pairs: u16,
    /// The address of the kernel's side.
    pub mac: Option<MacAddr>,
    /// Whether a device that exists keeps its address, which its owner may have changed, unless `mac`
    /// changes while it is open.
    pub keeps_mac: bool,
    /// Largest IP packet, 68 to 9216 bytes.
    pub mtu: u16,
    /// What the kernel's side may use.
    pub offload: OffloadSwitches,
    /// Whether the kernel may move its frames itself, as far as a
    /// [`KernelPathTable`] says so.
    pub kernel_path: bool,
}

/// How frames reach an uplink's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UplinkDriver {
    /// A packet socket with virtio-net headers on an existing device.
    AfPacket,
    /// AF_XDP sockets on an existing device, one for each of its receive queues.
    AfXdp,
    /// A TAP device, made if it does not exist.
    Tap,
}

/// The device that leads out of an external switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UplinkSpec {
    /// Device name, 1 to 15 bytes.
    pub device: String,
    /// How frames reach it.
    pub driver: UplinkDriver,
    /// Queue pairs, 1 to 64. Over AF_XDP as many as the device receives with.
    pub queue_pairs: u16,
    /// Largest IP packet; `None` keeps the device's own.
    pub mtu: Option<u16>,
    /// Over AF_XDP: addresses that the host has on the device. If there are any, frames to
    /// the device's own MAC address and what asks for these stay with the host.
    pub host_addresses: Vec<IpAddr>,
    /// What we may leave to the device, and it to us, seen from us.
    pub offload: OffloadSwitches,
}

/// What a port stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortSpec {
    /// A VM's NIC over vhost-user.
    VhostUser(VhostUserSpec),
    /// A NIC that a VM's QEMU emulates.
    Stream(StreamSpec),
    /// A TAP device: a light guest's NIC, or the host NIC of an internal switch.
    Tap(TapSpec),
    /// An uplink.
    Uplink(UplinkSpec),
}

/// What a device reports while it runs, from a thread of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceNotice {
    /// The front-end connected, or the device's carrier came up.
    LinkUp,
    /// The front-end left, or the carrier is gone.
    LinkDown {
        /// Why, as far as it is known.
        reason: String,
    },
    /// The link of an uplink's device is like this from now on: told once at the
    /// beginning, and whenever carrier, speed or duplex change; after
    /// [`DeviceNotice::LinkUp`] or [`DeviceNotice::LinkDown`] if they are told too.
    LinkChanged(LinkFacts),
    /// What was opened is no longer what the port stands on; it has to be closed and
    /// opened again.
    Lost {
        /// Why.
        reason: String,
    },
    /// The guest's driver started with these features.
    Negotiated {
        /// Virtio feature bits.
        features: u64,
        /// Queue pairs in use.
        queue_pairs: u16,
    },
    /// The VM relies on this from now on; to be given to the NIC when it is opened
    /// the next time, as [`VhostUserSpec::promise`].
    Promised(VhostUserPromise),
    /// The other side broke the protocol and was cut off.
    Violation {
        /// What it did, with the message and field named.
        detail: String,
    },
}

/// Hears of notices. Must not block.
pub trait PortObserver: Send + Sync {
    /// A notice of the device under `port`.
    fn handle_notice(&self, port: PortId, notice: DeviceNotice);
}

/// What a device looks like now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceStatus {
    /// Whether frames can pass.
    pub link_up: bool,
    /// How fast the link of an uplink's device is; unknown of all others.
    pub speed: LinkSpeed,
    /// Queue pairs in use.
    pub queue_pairs: u16,
    /// What the other side could hand us. A TAP and a packet socket can do more than
    /// the switches let them; of a virtio driver only what was negotiated is known.
    pub ingress: Offloads,
    /// What the other side could be handed.
    pub egress: Offloads,
    /// Negotiated virtio features, if it is a virtio device.
    pub features: Option<u64>,
    /// The device's own address, if it has one.
    pub mac: Option<MacAddr>,
    /// The largest IP packet it takes now.
    pub mtu: u16,
    /// The kernel's path, if it was asked for.
    pub kernel_path: Option<KernelPathState>,
    /// How its AF_XDP sockets get at frames, if it has any.
    pub xdp: Option<XdpState>,
    /// What became of the rules of [`PortDevice::steer`], if it has queues to choose from.
    pub steering: Option<SteeringState>,
}

/// Where frames leave a device's way into the kernel, to AF_XDP sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpHook {
    /// In its driver.
    Driver,
    /// Before the kernel's stack, after the kernel has made packets of them.
    Generic,
}

/// How AF_XDP sockets get at a device's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpState {
    /// Where they are taken.
    pub hook: XdpHook,
    /// Whether the device reads and writes the sockets' memory itself. Otherwise the
    /// kernel copies.
    pub zero_copy: bool,
    /// Whether a frame may lie in several chunks.
    pub multi_buffer: bool,
    /// Bytes of a chunk.
    pub chunk_bytes: u16,
    /// Frames received since it was opened for which a socket had no room.
    pub lost_frames: u64,
}

/// What kind of failure opening or changing a device met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceErrorKind {
    /// The device, namespace or directory does not exist.
    Missing,
    /// Something else holds it.
    Busy,
    /// Not allowed for this user.
    Denied,
    /// The device exists but cannot do this.
    Unsupported,
    /// The host refused otherwise.
    Host,
}

/// Why a device could not be opened or changed.
#[derive(Clone, Debug, Error)]
#[error("{detail}")]
pub struct DeviceError {
    /// What kind of failure.
    pub kind: DeviceErrorKind,
    /// The configuration key at fault (`device`, `netns`, `socket`, …).
    pub field: &'static str,
    /// What happened and what to do next.
    pub detail: String,
}

/// An open device. Dropping it closes it: its queues are detached first, the
/// socket file is removed; a TAP stays (see [`DeviceFactory::remove_tap`]).
pub trait PortDevice: Send {
    /// How it looks now.
    fn status(&self) -> DeviceStatus;

    /// Changes what can be changed live. `Ok(false)` if this change needs the
    /// device to be closed and opened again; then nothing was changed.
    ///
    /// # Errors
    /// The device stays as it was.
    fn change(&mut self, to: &PortSpec) -> Result<bool, DeviceError>;

    /// Has the device give frames to receive queues as these rules say, and no others of
    /// before. What becomes of them is in [`DeviceStatus::steering`]; where a frame arrives
    /// is of no consequence for where it goes. Does nothing unless the device has queues to
    /// choose from.
    fn steer(&mut self, _rules: &[SteeringRule]) {}
}

/// Opens devices.
pub trait DeviceFactory: Send + Sync {
    /// Looks whether `open` could succeed, without changing anything: the
    /// namespace, the uplink's device, the socket's directory, permissions.
    ///
    /// # Errors
    /// What `open` would say.
    fn probe(&self, spec: &PortSpec) -> Result<(), DeviceError>;

    /// Opens the device of `port` and attaches its queues to `queues`, now or,
    /// for vhost-user, whenever a front-end brings them. A TAP that exists is
    /// taken over, one that does not is made and outlives this process.
    ///
    /// # Errors
    /// Nothing was opened.
    fn open(
        &self,
        port: PortId,
        spec: &PortSpec,
        queues: Arc<dyn QueueHost>,
        observer: Arc<dyn PortObserver>,
    ) -> Result<Box<dyn PortDevice>, DeviceError>;

    /// What the device that `spec` stands on does itself, asked of the kernel now,
    /// whether or not it is open; `None` if there is no such device behind it, but a
    /// guest or the kernel. Not for a processor's thread: it may wait.
    ///
    /// # Errors
    /// The device is not there, or the kernel cannot be asked.
    fn features(&self, spec: &PortSpec) -> Result<Option<DeviceFeatures>, DeviceError>;

    /// Has the kernel move the frames between TAPs of which this table says so, and no
    /// others, as soon as this returns. Ports whose devices were not opened with
    /// [`TapSpec::kernel_path`], or not yet, are left out.
    ///
    /// Returns the addresses, by group, from which frames took that path since they were
    /// asked for the last time, every [`KERNEL_PATH_HEARD_EVERY`]; otherwise nothing.
    ///
    /// [`KERNEL_PATH_HEARD_EVERY`]: crate::KERNEL_PATH_HEARD_EVERY
    ///
    /// # Errors
    /// The kernel has no room for all of it; what is missing goes through the switch.
    fn set_kernel_paths(&self, table: &KernelPathTable)
    -> Result<Vec<(u32, MacAddr)>, DeviceError>;

    /// What took the kernel's path from and to a port, also while it had another device.
    fn kernel_path_counters(&self, port: PortId) -> KernelPathCounters;

    /// Whether a TAP of that name exists in the namespace.
    fn tap_exists(&self, device: &str, netns: Option<&str>) -> bool;

    /// Deletes a TAP that `open` made. One that is already gone, or whose
    /// namespace is, counts as deleted.
    ///
    /// # Errors
    /// The host refused.
    fn remove_tap(&self, device: &str, netns: Option<&str>) -> Result<(), DeviceError>;
}
