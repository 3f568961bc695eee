//! A VM's NIC: what its owner sees of it.

use std::io;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};
use suimon_ports::{
    DeviceError, DeviceErrorKind, DeviceStatus, PortDevice, PortObserver, PortSpec, QueueHost,
    VhostUserMode, VhostUserPromise, VhostUserSpec,
};
use suimon_quantity::PortId;
use suimon_ring::{OffloadMask, RingFeatures};

use crate::control::{Changing, Shared};
use crate::door::Door;
use crate::endpoint::{self, Listener};
use crate::features::{Offer, egress_allowed};

/// A NIC over vhost-user. Dropping it takes its queues back, closes the
/// connection and removes the socket.
pub struct VhostUserNic {
    shared: Arc<Shared>,
    control: Option<JoinHandle<()>>,
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
        check(spec)?;
        let mut door = match spec.mode {
            VhostUserMode::Server => Door::Listens(Listener::bind(&spec.socket)?),
            VhostUserMode::Client => Door::connects(spec.socket.clone()),
        };
        let event = || {
            eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
                .map_err(|errno| host_error("make an eventfd", &errno.into()))
        };
        let status = DeviceStatus { mac: spec.mac, mtu: spec.mtu, ..DeviceStatus::default() };
        let shared = Arc::new(Shared {
            port,
            host,
            observer,
            mask: Arc::new(OffloadMask::new(egress_allowed(&spec.offload))),
            stop: event()?,
            wake: event()?,
            faults: Arc::new(event()?),
            changing: Mutex::new(Changing { spec: spec.clone(), status, promise: spec.promise }),
        });
        let inside = Arc::clone(&shared);
        let control = std::thread::Builder::new()
            .name(format!("vhost-{}", port.0))
            .spawn(move || inside.run(&mut door))
            .map_err(|error| host_error("start a thread", &error))?;
        Ok(Self { shared, control: Some(control) })
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
        if let Some(control) = self.control.take() {
            let _ = control.join();
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
