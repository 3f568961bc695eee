//! [`VhostUserNic`]: a vhost-user NIC of a VM, as its owner uses it.

use std::sync::{Arc, Mutex};

use suimon_ports::{
    DeviceError, DeviceErrorKind, DeviceStatus, NegotiatedFeatures, PortDevice, PortDeviceSpec,
    PortObserver, QueueHost, VhostUserNicSpec,
};
use suimon_quantity::PortId;
use suimon_ring::{OffloadMask, RingFeatures};

use crate::acceptor;
use crate::control::ChangeableState;
use crate::device_owner::{DeviceOwner, NicOwner};
use crate::features::{FeatureOffer, allowed_egress_offloads};
use crate::open_device::{OpenDevice, VhostUserThreads};

/// NIC of a VM over vhost-user. Dropping it detaches its queues, closes the connection and removes
/// the socket file.
pub struct VhostUserNic {
    served: OpenDevice,
}

impl VhostUserNic {
    /// Opens the NIC of `port`: listens on its socket, or starts to connect to it. Attaches a ring
    /// to `host` when a front-end has configured it.
    ///
    /// # Errors
    /// The socket cannot be bound, no descriptor is free, the specification is invalid, or it lacks
    /// features or queues that the VM has negotiated.
    pub fn open(
        port: PortId,
        spec: &VhostUserNicSpec,
        host: Arc<dyn QueueHost>,
        observer: Arc<dyn PortObserver>,
        threads: &VhostUserThreads,
    ) -> Result<Self, DeviceError> {
        check(spec)?;
        let status = DeviceStatus { mac: spec.mac, mtu: spec.mtu, ..DeviceStatus::default() };
        let subject = DeviceOwner::Nic(NicOwner {
            port,
            host,
            observer,
            mask: Arc::new(OffloadMask::new(allowed_egress_offloads(&spec.offload))),
            spec: Mutex::new(spec.clone()),
        });
        let changing = ChangeableState { status, negotiated: spec.negotiated };
        let served = OpenDevice::open(subject, changing, (&spec.socket, spec.mode), threads)?;
        Ok(Self { served })
    }

    fn subject(&self) -> Option<&NicOwner> {
        match &self.served.shared.owner {
            DeviceOwner::Nic(nic) => Some(nic),
            DeviceOwner::Disk(_) => None,
        }
    }

    /// Checks whether [`VhostUserNic::open`] could succeed, without changing anything.
    ///
    /// # Errors
    /// The error that `open` would return.
    pub fn probe(spec: &VhostUserNicSpec) -> Result<(), DeviceError> {
        check(spec)?;
        acceptor::probe(&spec.socket, spec.mode)
    }
}

impl PortDevice for VhostUserNic {
    fn status(&self) -> DeviceStatus {
        self.served.shared.changeable_state().status.clone()
    }

    /// Applies a new specification while the NIC is open. Returns false if that is impossible. A
    /// disabled offload is done in software for the running guest, and not offered to the next one.
    /// The MTU can change unless the guest has negotiated the MTU feature.
    fn apply_spec(&mut self, requested: &PortDeviceSpec) -> Result<bool, DeviceError> {
        let PortDeviceSpec::VhostUser(requested) = requested else { return Ok(false) };
        check(requested)?;
        let Some(nic) = self.subject() else { return Ok(false) };
        let shared = &self.served.shared;
        let mut changing = shared.changeable_state();
        let mut spec = nic.spec();
        let live = VhostUserNicSpec {
            offload: requested.offload,
            mtu: requested.mtu,
            negotiated: requested.negotiated,
            ..spec.clone()
        };
        let knows_mtu = changing.status.virtio_features.is_some_and(|features| {
            RingFeatures(features).has(virtio_bindings::virtio_net::VIRTIO_NET_F_MTU)
        });
        if live != *requested || (requested.mtu != spec.mtu && knows_mtu) {
            return Ok(false);
        }
        *spec = live;
        drop(spec);
        changing.status.mtu = requested.mtu;
        nic.mask.set(allowed_egress_offloads(&requested.offload));
        shared.owner.refresh_offloads(&mut changing.status);
        drop(changing);
        shared.wake_control();
        Ok(true)
    }
}

/// Checks that the specification is valid, and that it has the features and queues that the VM has
/// negotiated.
fn check(spec: &VhostUserNicSpec) -> Result<(), DeviceError> {
    let refuse = |field, detail: String| {
        Err(DeviceError { kind: DeviceErrorKind::Unsupported, field, detail })
    };
    if !(1..=64).contains(&spec.queue_pairs) {
        return refuse(
            "queues",
            format!("{} queue pairs are outside of 1 to 64", spec.queue_pairs),
        );
    }
    if !(68..=9216).contains(&spec.mtu) {
        return refuse("mtu", format!("an MTU of {} bytes is outside of 68 to 9216", spec.mtu));
    }
    let NegotiatedFeatures { features, queue_pairs } = spec.negotiated;
    let way_out = "shut down the VM, then delete the NIC and create it again";
    if queue_pairs > spec.queue_pairs {
        let detail = format!(
            "the VM of this NIC uses {queue_pairs} queue pairs, but only {} would remain after it \
             reconnects; {way_out}",
            spec.queue_pairs
        );
        return refuse("queues", detail);
    }
    let offer =
        FeatureOffer::for_nic(spec.queue_pairs, spec.mac.is_some(), &spec.offload, features);
    let missing = features & !offer.features;
    if missing != 0 {
        let detail = format!(
            "the VM of this NIC has negotiated virtio features {features:#x}, of which \
             {missing:#x} would be missing after it reconnects; {way_out}"
        );
        return refuse("queues", detail);
    }
    Ok(())
}
