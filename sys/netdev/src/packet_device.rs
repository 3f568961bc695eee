//! Device of a port that is an uplink over packet sockets.

use std::sync::Arc;

use suimon_frame::Offloads;
use suimon_ports::{
    DeviceError, DeviceStatus, PortDevice, PortDeviceSpec, PortObserver, QueueHost, UplinkDriver,
    UplinkSpec,
};
use suimon_quantity::{Direction, PortId, QueueId};

use crate::errors::host_error;
use crate::link::Link;
use crate::namespace::Namespace;
use crate::offload::{self, SharedOffloads};
use crate::packet_queue::{PacketQueue, PacketSink, PacketSource};
use crate::packet_socket::PacketSocket;
use crate::watch::{LinkWatch, LinkWatcher};
use crate::watched_link::WatchSubject;

pub(crate) struct PacketDevice {
    port: PortId,
    spec: UplinkSpec,
    link: Link,
    watch: LinkWatch,
    queues: Vec<Arc<PacketQueue>>,
    host: Arc<dyn QueueHost>,
}

impl PacketDevice {
    pub(crate) fn open(
        port: PortId,
        spec: &UplinkSpec,
        queue_host: Arc<dyn QueueHost>,
        watcher: &LinkWatcher,
        observer: Arc<dyn PortObserver>,
    ) -> Result<Self, DeviceError> {
        let link = Link::new(&spec.device)?;
        let index = link.ethernet_index()?;
        if let Some(mtu) = spec.mtu {
            link.set_mtu(mtu)?;
        }
        // Before the sockets are opened: a socket bound to a device that is down has an error
        // pending.
        link.bring_up()?;
        let sockets = open_sockets(spec, index)?;
        let namespace = Namespace::open(None)?;
        let present = link.state()?;
        let (device, has_speed, is_lost_on_rename) = (&spec.device, true, true);
        let subject = WatchSubject {
            index,
            device,
            initial_state: present,
            reports_speed: has_speed,
            is_lost_on_rename,
        };
        let watch = watcher.watch(&namespace, subject, port, observer)?;
        let device: Arc<str> = spec.device.as_str().into();
        let queue = |socket| {
            let [ingress, egress] = forms(spec).map(SharedOffloads::new);
            let device = Arc::clone(&device);
            Arc::new(PacketQueue { socket, index, device, ingress, egress })
        };
        let queues: Vec<_> = sockets.into_iter().map(queue).collect();
        for (index, queue) in (0..).zip(&queues) {
            let id = |direction| QueueId { port, direction, index };
            let sink = PacketSink::new(Arc::clone(queue));
            queue_host.attach_sink(id(Direction::Egress), Box::new(sink));
            let source = PacketSource::new(Arc::clone(queue));
            queue_host.attach_source(id(Direction::Ingress), Box::new(source));
        }
        Ok(Self { port, spec: spec.clone(), link, watch, queues, host: queue_host })
    }
}

/// Checks whether [`PacketDevice::open`] could succeed, without changing anything.
///
/// # Errors
/// The error that [`PacketDevice::open`] would return.
pub(crate) fn probe(spec: &UplinkSpec) -> Result<(), DeviceError> {
    let index = Link::new(&spec.device)?.ethernet_index()?;
    PacketSocket::open(index)
        .map(drop)
        .map_err(|cause| host_error("device", &format!("opening device {}", spec.device), &cause))
}

fn open_sockets(spec: &UplinkSpec, index: u32) -> Result<Vec<PacketSocket>, DeviceError> {
    let device = &spec.device;
    let fail =
        |cause: std::io::Error| host_error("device", &format!("opening device {device}"), &cause);
    let mut sockets: Vec<PacketSocket> = Vec::new();
    let mut group = None;
    for _ in 0..spec.queue_pairs.max(1) {
        let socket = PacketSocket::open(index).map_err(fail)?;
        if sockets.is_empty() {
            socket.set_promiscuous(index).map_err(fail)?;
        }
        if spec.queue_pairs > 1 {
            group = Some(socket.join_fanout_group(group).map_err(fail)?);
        }
        sockets.push(socket);
    }
    Ok(sockets)
}

/// Returns the offloads of received and of sent frames that the configuration permits. The kernel
/// accepts frames with any offload, and completes and segments them in place of the device.
fn forms(spec: &UplinkSpec) -> [Offloads; 2] {
    let switches = spec.offload.with_directions_swapped();
    // Frames that the kernel cannot describe are not received.
    [offload::ingress(switches, true), offload::egress(switches, kernel_carries_uso())]
}

/// Returns true if the kernel supports large UDP frames in virtio-net headers (since Linux 6.2).
fn kernel_carries_uso() -> bool {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy();
    let mut numbers = release.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (6, 2)
}

impl PortDevice for PacketDevice {
    fn status(&self) -> DeviceStatus {
        let link = self.watch.state();
        DeviceStatus {
            link_up: link.is_usable(),
            speed: self.watch.speed(),
            queue_pairs: self.spec.queue_pairs.max(1),
            ingress_offloads: offload::ALL,
            egress_offloads: Offloads { udp_segmentation: kernel_carries_uso(), ..offload::ALL },
            virtio_features: None,
            mac: link.mac,
            mtu: link.mtu.or(self.spec.mtu).unwrap_or_default(),
            kernel_path: None,
            xdp: None,
            steering: None,
        }
    }

    fn apply_spec(&mut self, spec: &PortDeviceSpec) -> Result<bool, DeviceError> {
        let PortDeviceSpec::Uplink(spec) = spec else { return Ok(false) };
        let live = UplinkSpec { mtu: spec.mtu, offload: spec.offload, ..self.spec.clone() };
        if live != *spec || spec.driver != UplinkDriver::AfPacket {
            return Ok(false);
        }
        if let Some(mtu) = spec.mtu {
            self.link.set_mtu(mtu)?;
        }
        let [ingress, egress] = forms(spec);
        for queue in &self.queues {
            queue.ingress.store(ingress);
            queue.egress.store(egress);
        }
        self.spec = spec.clone();
        Ok(true)
    }
}

impl Drop for PacketDevice {
    fn drop(&mut self) {
        self.host.detach_port(self.port);
    }
}
