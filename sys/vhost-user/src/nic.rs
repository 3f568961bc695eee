//! A VM's NIC: what its owner sees of it.

use std::io;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};
use suimon_ports::{
    DeviceError, DeviceErrorKind, DeviceStatus, PortDevice, PortObserver, PortSpec, QueueHost,
    ThreadStart, VhostUserMode, VhostUserPromise, VhostUserSpec,
};
use suimon_quantity::PortId;
use suimon_ring::{OffloadMask, RingFeatures};

use crate::control::{Changing, Shared};
use crate::door::Door;
use crate::endpoint::{self, Listener, SocketFile};
use crate::features::{Offer, egress_allowed};

/// A NIC over vhost-user. Dropping it takes its queues back, closes the
/// connection and removes the socket.
pub struct VhostUserNic {
    shared: Arc<Shared>,
    control: Option<JoinHandle<()>>,
    /// Makes connections, if the front-end listens.
    reach: Option<JoinHandle<()>>,
    /// Removed when the NIC is closed.
    file: Option<SocketFile>,
}

impl VhostUserNic {
    /// Opens the NIC of `port`: listens on its socket, or starts trying to
    /// connect to it. Rings go to `host` as front-ends bring them.
    ///
    /// # Errors
    /// The socket cannot be bound, the host has no thread or descriptor left, or
    /// the NIC as it is described cannot keep what its VM was promised.
    pub fn open(
        port: PortId,
        spec: &VhostUserSpec,
        host: Arc<dyn QueueHost>,
        observer: Arc<dyn PortObserver>,
    ) -> Result<Self, DeviceError> {
        let nothing: ThreadStart = Arc::new(|| Ok(()));
        Self::open_with(port, spec, host, observer, &nothing)
    }

    /// The same; the thread that reads the front-end's messages calls `on_start`
    /// first. It is handed all descriptors it needs, and opens nothing by name.
    ///
    /// # Errors
    /// As [`VhostUserNic::open`], or what `on_start` said.
    pub fn open_with(
        port: PortId,
        spec: &VhostUserSpec,
        host: Arc<dyn QueueHost>,
        observer: Arc<dyn PortObserver>,
        on_start: &ThreadStart,
    ) -> Result<Self, DeviceError> {
        check(spec)?;
        suimon_ring::watch_memory_faults()
            .map_err(|error| host_error("watch over guests' memory", &error))?;
        let event = || {
            eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
                .map_err(|errno| host_error("make an eventfd", &errno.into()))
        };
        let stop = Arc::new(event()?);
        let (mut door, file, reach) = match spec.mode {
            VhostUserMode::Server => {
                let (listener, file) = Listener::bind(&spec.socket)?;
                (Door::Listens(listener), Some(file), None)
            }
            VhostUserMode::Client => {
                let (door, thread) = Door::connects(spec.socket.clone(), port, Arc::clone(&stop))
                    .map_err(|error| host_error("start a thread", &error))?;
                (door, None, Some(thread))
            }
        };
        let status = DeviceStatus { mac: spec.mac, mtu: spec.mtu, ..DeviceStatus::default() };
        let shared = Arc::new(Shared {
            port,
            host,
            observer,
            mask: Arc::new(OffloadMask::new(egress_allowed(&spec.offload))),
            stop,
            wake: event()?,
            faults: Arc::new(event()?),
            changing: Mutex::new(Changing { spec: spec.clone(), status, promise: spec.promise }),
        });
        let inside = Arc::clone(&shared);
        let on_start = Arc::clone(on_start);
        let (report, outcome) = sync_channel(1);
        let control = std::thread::Builder::new()
            .name(format!("vhost-{}", port.0))
            .spawn(move || {
                let started = on_start();
                let is_started = started.is_ok();
                // The opener waits for this one message, so sending cannot fail.
                let _ = report.send(started);
                if is_started {
                    inside.run(&mut door);
                }
            })
            .map_err(|error| host_error("start a thread", &error))?;
        // Closes what is open if the thread did not start.
        let nic = Self { shared, control: Some(control), reach, file };
        match outcome.recv() {
            Ok(Ok(())) => Ok(nic),
            Ok(Err(error)) => Err(host_error("confine the thread", &error)),
            Err(_) => Err(host_error("start a thread", &io::ErrorKind::BrokenPipe.into())),
        }
    }

    /// Looks whether [`VhostUserNic::open`] could succeed, without changing
    /// anything.
    ///
    /// # Errors
    /// What `open` would say.
    pub fn probe(spec: &VhostUserSpec) -> Result<(), DeviceError> {
        check(spec)?;
        endpoint::probe(spec)
    }
}

impl PortDevice for VhostUserNic {
    fn status(&self) -> DeviceStatus {
        self.shared.changing().status.clone()
    }

    /// Offload switches change live: what was switched off is from now on done in
    /// software for the guest that runs, and not offered to the next one. The MTU
    /// changes live unless the guest was told the old one.
    fn change(&mut self, to: &PortSpec) -> Result<bool, DeviceError> {
        let PortSpec::VhostUser(to) = to else { return Ok(false) };
        check(to)?;
        let mut changing = self.shared.changing();
        let spec = &changing.spec;
        let same =
            VhostUserSpec { offload: to.offload, mtu: to.mtu, promise: to.promise, ..spec.clone() };
        let knows_mtu = changing.status.features.is_some_and(|features| {
            RingFeatures(features).has(virtio_bindings::virtio_net::VIRTIO_NET_F_MTU)
        });
        if same != *to || (to.mtu != spec.mtu && knows_mtu) {
            return Ok(false);
        }
        changing.spec = same;
        changing.status.mtu = to.mtu;
        self.shared.mask.set(egress_allowed(&to.offload));
        changing.refresh_offloads();
        drop(changing);
        self.shared.wake_control();
        Ok(true)
    }
}

impl Drop for VhostUserNic {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.shared.stop, &1_u64.to_ne_bytes());
        self.file = None;
        for thread in [self.control.take(), self.reach.take()].into_iter().flatten() {
            let _ = thread.join();
        }
        // The thread has taken its rings back; this covers one that panicked.
        self.shared.host.detach_port(self.shared.port);
    }
}

/// Whether the numbers are ones a NIC can have, and enough for its VM.
fn check(spec: &VhostUserSpec) -> Result<(), DeviceError> {
    let refuse = |field, detail: String| {
        Err(DeviceError { kind: DeviceErrorKind::Unsupported, field, detail })
    };
    if !(1..=64).contains(&spec.queue_pairs) {
        return refuse("queues", format!("{} queue pairs; 1 to 64 are possible", spec.queue_pairs));
    }
    if !(68..=9216).contains(&spec.mtu) {
        return refuse("mtu", format!("an MTU of {} bytes; 68 to 9216 are possible", spec.mtu));
    }
    let VhostUserPromise { features, queue_pairs } = spec.promise;
    let way_out = "shut the VM down, then delete the NIC and create it again";
    if queue_pairs > spec.queue_pairs {
        let detail = format!(
            "the VM on this NIC uses {queue_pairs} queue pairs, {} would be left to it when it \
             comes back; {way_out}",
            spec.queue_pairs
        );
        return refuse("queues", detail);
    }
    let offer = Offer::new(spec.queue_pairs, spec.mac.is_some(), &spec.offload, features);
    let missing = features & !offer.features;
    if missing != 0 {
        let detail = format!(
            "the VM on this NIC has negotiated virtio features {features:#x}, of which \
             {missing:#x} could not be offered to it when it comes back; {way_out}"
        );
        return refuse("queues", detail);
    }
    Ok(())
}

fn host_error(action: &str, error: &io::Error) -> DeviceError {
    DeviceError {
        kind: DeviceErrorKind::Host,
        field: "socket",
        detail: format!("cannot {action} for the NIC: {error}"),
    }
}
