//! Device of a port that is an AF_XDP uplink.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use suimon_frame::Offloads;
use suimon_netif::raw_socket::RawSocket;
use suimon_netif::rtnetlink::RtnetlinkSocket;
use suimon_ports::{
    DeviceError, DeviceErrorKind, DeviceStatus, PortDevice, PortDeviceSpec, PortObserver,
    QueueHost, SteeringRule, UplinkSpec, XdpHook, XdpState,
};
use suimon_quantity::{Direction, PortId, QueueId};

use super::flow_table::DeviceFlowTable;
use super::host_frames::HostAddresses;
use super::observer::LossObserver;
use super::program::{AttachedProgram, is_hook_in_use};
use super::queue::{XdpQueue, XdpSink, XdpSource, frame_bytes_max};
use super::socket::{
    Binding, ChunkLayout, OpenStep, RECEIVE_HEADROOM, Receiver, Sender, XdpSocket,
};
use super::steering::Steering;
use crate::errors::{device_error, host_error};
use crate::link::Link;
use crate::namespace::Namespace;
use crate::offload;
use crate::watch::{LinkWatch, LinkWatcher};
use crate::watched_link::WatchSubject;

const SMALL_CHUNK_BYTES: usize = 2048;
const LARGE_CHUNK_BYTES: usize = 4096;

/// Interface indices of the devices to which this process has attached its program. Clones share
/// the same set.
#[derive(Clone, Debug, Default)]
pub(crate) struct AttachedDevices(Arc<Mutex<BTreeSet<u32>>>);

impl AttachedDevices {
    fn get(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct XdpDevice {
    port: PortId,
    spec: UplinkSpec,
    link: Link,
    index: u32,
    watch: LinkWatch,
    state: XdpState,
    layout: ChunkLayout,
    queues: Vec<Arc<XdpQueue>>,
    host: Arc<dyn QueueHost>,
    installed: AttachedDevices,
    /// True if the device removed VLAN tags from received frames before it was opened, and must
    /// again when it is closed.
    had_vlan_offload: bool,
    steering: Steering<DeviceFlowTable>,
    /// Program attached to the device; `None` while the device is being closed.
    attached: Option<AttachedProgram>,
    /// Socket that keeps the device in promiscuous mode while it is open.
    _promiscuous: RawSocket,
}

/// Attached program and open sockets, whose queues are not attached to the switch yet.
struct Sockets {
    attached: AttachedProgram,
    opened: Vec<(XdpSocket, Receiver, Sender)>,
    layout: ChunkLayout,
}

impl XdpDevice {
    pub(crate) fn open(
        port: PortId,
        spec: &UplinkSpec,
        queue_host: Arc<dyn QueueHost>,
        watcher: &LinkWatcher,
        attached_devices: &AttachedDevices,
        observer: Arc<dyn PortObserver>,
    ) -> Result<Self, DeviceError> {
        let (link, index) = check(spec, attached_devices)?;
        if let Some(mtu) = spec.mtu {
            link.set_mtu(mtu)?;
        }
        link.bring_up()?;
        let mtu = link.mtu()?;
        let promiscuous = RawSocket::new()
            .and_then(|socket| socket.add_membership(index, None).map(|()| socket))
            .map_err(|cause| opening(spec, &cause))?;
        let rules = DeviceFlowTable::new(Link::new(&spec.device)?);
        let had_vlan_offload = disable_tag_removal(&link)?;
        let sockets = open_sockets(spec, &link, index, mtu)
            .inspect_err(|_| restore(&link, had_vlan_offload))?;
        let Sockets { attached, opened, layout } = sockets;
        let device: Arc<str> = spec.device.as_str().into();
        let state = state(&attached, &opened, layout);
        let watch = watch(watcher, &link, index, &device, port, observer)
            .inspect_err(|_| restore(&link, had_vlan_offload))?;
        let mut queues = Vec::new();
        for (nth, (socket, receiver, sender)) in (0..).zip(opened) {
            let egress = egress(spec, socket.completes_checksums);
            let queue = XdpQueue::new(socket, Arc::clone(&device), egress, frame_bytes_max(mtu));
            let queue = Arc::new(queue);
            let id = |direction| QueueId { port, direction, index: nth };
            let sink = XdpSink::new(Arc::clone(&queue), sender);
            queue_host.attach_sink(id(Direction::Egress), Box::new(sink));
            let source = XdpSource::new(Arc::clone(&queue), receiver);
            queue_host.attach_source(id(Direction::Ingress), Box::new(source));
            queues.push(queue);
        }
        let steering = Steering::new(rules, spec.queue_pairs.max(1));
        attached_devices.get().insert(index);
        Ok(Self {
            port,
            spec: spec.clone(),
            link,
            index,
            watch,
            state,
            layout,
            queues,
            host: queue_host,
            installed: attached_devices.clone(),
            had_vlan_offload,
            steering,
            attached: Some(attached),
            _promiscuous: promiscuous,
        })
    }
}

/// Checks whether [`XdpDevice::open`] could succeed, without changing anything.
///
/// # Errors
/// The error that opening would return, as far as it is known in advance.
pub(crate) fn probe(
    spec: &UplinkSpec,
    attached_devices: &AttachedDevices,
) -> Result<(), DeviceError> {
    check(spec, attached_devices).map(drop)
}

fn check(
    spec: &UplinkSpec,
    attached_devices: &AttachedDevices,
) -> Result<(Link, u32), DeviceError> {
    let link = Link::new(&spec.device)?;
    let index = link.ethernet_index()?;
    check_queues(spec, &link)?;
    let program = RtnetlinkSocket::open().and_then(|mut settings| settings.xdp_program_id(index));
    let program = program.map_err(|errno| opening(spec, &errno.into()))?;
    match program {
        Some(program) if !attached_devices.get().contains(&index) => {
            Err(program_in_use(&spec.device, program))
        }
        _ => Ok((link, index)),
    }
}

/// Checks that the uplink has as many queues as the device receives with: frames of a receive queue
/// without a socket would not reach the switch.
fn check_queues(spec: &UplinkSpec, link: &Link) -> Result<(), DeviceError> {
    let UplinkSpec { device, queue_pairs: requested, .. } = spec;
    // If the driver does not report its queues, binding detects the error.
    let Some((receiving, sending)) = link.queue_counts()? else { return Ok(()) };
    let requested = u32::from((*requested).max(1));
    let detail = if receiving > requested {
        format!(
            "device {device} receives on {receiving} queues, and frames of a queue without a \
             socket do not reach the switch; set queues = {receiving}, or set the device to \
             {requested} with `ethtool -L {device}`"
        )
    } else if receiving < requested || sending < requested {
        let available = receiving.min(sending);
        format!(
            "device {device} has {receiving} receive queues and {sending} transmit queues; set \
             queues = {available}, or set the device to {requested} with `ethtool -L {device}`"
        )
    } else {
        return Ok(());
    };
    Err(device_error(DeviceErrorKind::Unsupported, "queues", detail))
}

fn program_in_use(device: &str, program: u32) -> DeviceError {
    let number_text = if program == 0 { String::new() } else { format!(" (number {program})") };
    let detail = format!(
        "device {device} already has an XDP program{number_text}; remove it with `ip link set dev \
         {device} xdp off`, stop the program that attached it, or set driver = \"af_packet\""
    );
    device_error(DeviceErrorKind::Busy, "device", detail)
}

fn opening(spec: &UplinkSpec, cause: &io::Error) -> DeviceError {
    host_error("device", &format!("opening device {} for AF_XDP", spec.device), cause)
}

/// Makes the device keep VLAN tags in received frames, because the socket does not receive removed
/// tags. Returns true if the device removed them before.
fn disable_tag_removal(link: &Link) -> Result<bool, DeviceError> {
    let takes_out = link.rx_vlan_offload()?;
    if takes_out {
        link.set_rx_vlan_offload(false)?;
    }
    Ok(takes_out)
}

fn restore(link: &Link, had_vlan_offload: bool) {
    if had_vlan_offload {
        // The device may have been removed.
        let _ = link.set_rx_vlan_offload(true);
    }
}

/// Returns the layout of frames with this MTU (bytes) in chunks. `copies` is true for copy mode.
fn chunk_layout(mtu: u16, copies: bool) -> ChunkLayout {
    let fits_chunk = |chunk: usize| frame_bytes_max(mtu) <= chunk - RECEIVE_HEADROOM;
    let chunk_bytes =
        if fits_chunk(SMALL_CHUNK_BYTES) { SMALL_CHUNK_BYTES } else { LARGE_CHUNK_BYTES };
    ChunkLayout { chunk_bytes, uses_multi_buffer: !fits_chunk(chunk_bytes), uses_copy_mode: copies }
}

/// Returns the device's MAC address and the host's IP addresses on it. The MAC address is read
/// again at each call, because it may change.
fn host_addresses(spec: &UplinkSpec, link: &Link) -> Result<HostAddresses, DeviceError> {
    let mac = link.address()?.unwrap_or_default();
    Ok(HostAddresses { mac, ips: spec.host_addresses.clone() })
}

fn open_sockets(
    spec: &UplinkSpec,
    link: &Link,
    index: u32,
    mtu: u16,
) -> Result<Sockets, DeviceError> {
    let several = chunk_layout(mtu, false).uses_multi_buffer;
    let queues = u32::from(spec.queue_pairs.max(1));
    let host = host_addresses(spec, link)?;
    let attached = AttachedProgram::new(index, queues, several, host).map_err(|cause| {
        if is_hook_in_use(&cause) { program_in_use(&spec.device, 0) } else { opening(spec, &cause) }
    })?;
    let layout = chunk_layout(mtu, attached.hook == suimon_bpf::XdpHook::Generic);
    let mut opened = Vec::new();
    for queue in 0..queues {
        let binding = Binding { index, queue };
        let fail = |(step, cause)| explain(spec, mtu, binding, layout, step, &cause);
        opened.push(XdpSocket::open(layout, binding).map_err(fail)?);
    }
    for (queue, (socket, ..)) in (0..).zip(&opened) {
        attached.set_queue_socket(queue, socket.fd()).map_err(|cause| opening(spec, &cause))?;
    }
    Ok(Sockets { attached, opened, layout })
}

fn explain(
    spec: &UplinkSpec,
    mtu: u16,
    binding: Binding,
    layout: ChunkLayout,
    step: OpenStep,
    cause: &io::Error,
) -> DeviceError {
    let device = &spec.device;
    let unsupported = |field, detail| device_error(DeviceErrorKind::Unsupported, field, detail);
    match (step, Errno::from_io_error(cause)) {
        (OpenStep::Socket, Some(Errno::AFNOSUPPORT)) => unsupported(
            "driver",
            "this kernel has no AF_XDP (CONFIG_XDP_SOCKETS); set driver = \"af_packet\"".into(),
        ),
        (OpenStep::Umem, Some(Errno::NOBUFS | Errno::NOMEM)) => device_error(
            DeviceErrorKind::Host,
            "device",
            format!(
                "the buffers of queue {} of device {device} cannot be locked in memory: {cause}; \
                 give suimond CAP_IPC_LOCK or raise its limit of locked memory (LimitMEMLOCK)",
                binding.queue
            ),
        ),
        (OpenStep::Bind, Some(Errno::BUSY)) => device_error(
            DeviceErrorKind::Busy,
            "device",
            format!(
                "another process has an AF_XDP socket on queue {} of device {device}; stop that \
                 process or choose another device",
                binding.queue
            ),
        ),
        (OpenStep::Bind, Some(Errno::INVAL | Errno::OPNOTSUPP)) if layout.uses_multi_buffer => {
            unsupported(
                "mtu",
                format!(
                    "frames of MTU {mtu} need several buffers each, which this kernel (before 6.6) or \
                 device does not support; set an mtu of at most {}, or driver = \"af_packet\"",
                    LARGE_CHUNK_BYTES - RECEIVE_HEADROOM - frame_bytes_max(0)
                ),
            )
        }
        (OpenStep::Bind, Some(Errno::INVAL)) => unsupported(
            "queues",
            format!(
                "device {device} has no queue {}; set queues = {}",
                binding.queue, binding.queue
            ),
        ),
        _ => opening(spec, cause),
    }
}

fn state(
    attached: &AttachedProgram,
    opened: &[(XdpSocket, Receiver, Sender)],
    layout: ChunkLayout,
) -> XdpState {
    XdpState {
        hook: match attached.hook {
            suimon_bpf::XdpHook::Driver => XdpHook::Driver,
            suimon_bpf::XdpHook::Generic => XdpHook::Generic,
        },
        // A driver supports zero-copy for all of its queues or for none.
        zero_copy: opened.iter().all(|(socket, ..)| socket.is_zero_copy),
        multi_buffer: layout.uses_multi_buffer,
        chunk_bytes: layout.chunk_bytes as u16,
        dropped_frames: 0,
    }
}

/// Returns the offloads that sent frames may use: checksums only, if the configuration permits it
/// and the kernel completes them. Segmentation is not supported.
fn egress(spec: &UplinkSpec, completes_checksums: bool) -> Offloads {
    let allowed = offload::egress(spec.offload.with_directions_swapped(), false);
    allowed.intersection(egress_offloads(completes_checksums))
}

fn egress_offloads(completes_checksums: bool) -> Offloads {
    Offloads { checksum: completes_checksums, ..Offloads::NONE }
}

fn watch(
    watcher: &LinkWatcher,
    link: &Link,
    index: u32,
    device: &Arc<str>,
    port: PortId,
    inner: Arc<dyn PortObserver>,
) -> Result<LinkWatch, DeviceError> {
    let socket: OwnedFd = link.socket()?;
    let observer = LossObserver { inner, index, device: Arc::clone(device), socket };
    let present = link.state()?;
    let (has_speed, is_lost_on_rename) = (true, true);
    let subject = WatchSubject {
        index,
        device,
        initial_state: present,
        reports_speed: has_speed,
        is_lost_on_rename,
    };
    watcher.watch(&Namespace::open(None)?, subject, port, Arc::new(observer))
}

impl PortDevice for XdpDevice {
    fn status(&self) -> DeviceStatus {
        let link = self.watch.state();
        let completes = self.queues.iter().all(|queue| queue.socket.completes_checksums);
        let lost = self.queues.iter().map(|queue| queue.socket.lost_frames());
        DeviceStatus {
            link_up: link.is_usable(),
            speed: self.watch.speed(),
            queue_pairs: self.spec.queue_pairs.max(1),
            ingress_offloads: Offloads::NONE,
            egress_offloads: egress_offloads(completes),
            virtio_features: None,
            mac: link.mac,
            mtu: link.mtu.or(self.spec.mtu).unwrap_or_default(),
            kernel_path: None,
            xdp: Some(XdpState { dropped_frames: lost.fold(0, u64::saturating_add), ..self.state }),
            steering: Some(self.steering.state()),
        }
    }

    fn set_steering_rules(&mut self, rules: &[SteeringRule]) {
        self.steering.set_rules(rules);
    }

    fn apply_spec(&mut self, spec: &PortDeviceSpec) -> Result<bool, DeviceError> {
        let PortDeviceSpec::Uplink(spec) = spec else { return Ok(false) };
        let live = UplinkSpec {
            mtu: spec.mtu,
            host_addresses: spec.host_addresses.clone(),
            offload: spec.offload,
            ..self.spec.clone()
        };
        // The MTU must fit the present layout of chunks.
        let has_same_chunks =
            spec.mtu.is_none_or(|mtu| chunk_layout(mtu, self.layout.uses_copy_mode) == self.layout);
        if live != *spec || !has_same_chunks {
            return Ok(false);
        }
        if let Some(attached) = &mut self.attached {
            let host = host_addresses(spec, &self.link)?;
            attached.set_host_addresses(host).map_err(|cause| opening(spec, &cause))?;
        }
        if let Some(mtu) = spec.mtu {
            self.link.set_mtu(mtu)?;
            for queue in &self.queues {
                queue.frame_bytes_max.store(frame_bytes_max(mtu), Ordering::Relaxed);
            }
        }
        for queue in &self.queues {
            queue.egress.store(egress(spec, queue.socket.completes_checksums));
        }
        self.spec = spec.clone();
        Ok(true)
    }
}

impl Drop for XdpDevice {
    fn drop(&mut self) {
        // First, frames reach the kernel's network stack again; then the sockets are closed.
        self.attached = None;
        self.host.detach_port(self.port);
        restore(&self.link, self.had_vlan_offload);
        self.installed.get().remove(&self.index);
    }
}
