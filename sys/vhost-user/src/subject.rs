//! NIC or disk that a device belongs to, as its owner has opened it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use suimon_ports::{
    DeviceNotice, DeviceStatus, DiskObserver, PortObserver, QueueHost, VhostUserDiskSpec,
    VhostUserSpec,
};
use suimon_quantity::PortId;
use suimon_ring::{OffloadMask, RingFeatures};

use crate::device::VhostUserDevice;
use crate::features::{Offer, egress_allowed};
use crate::model::{DeviceName, DiskModel, Model, NicModel};

/// NIC or disk that a device belongs to: its specification and its observer.
pub(crate) enum DeviceOwner {
    Nic(OwnedNic),
    Disk(OwnedDisk),
}

/// NIC with the host of its queues, its observer and its specification.
pub(crate) struct OwnedNic {
    pub(crate) port: PortId,
    pub(crate) host: Arc<dyn QueueHost>,
    pub(crate) observer: Arc<dyn PortObserver>,
    pub(crate) mask: Arc<OffloadMask>,
    /// Specification, changed while the NIC is open. Lock order: `Shared::changing` before this.
    pub(crate) spec: Mutex<VhostUserSpec>,
}

/// Disk with its properties, observer and specification. Only its capacity changes while it is
/// open.
pub(crate) struct OwnedDisk {
    pub(crate) model: DiskModel,
    pub(crate) observer: Arc<dyn DiskObserver>,
    pub(crate) spec: VhostUserDiskSpec,
}

impl DeviceOwner {
    pub(crate) fn name(&self) -> DeviceName {
        match self {
            Self::Nic(nic) => DeviceName::Nic(nic.port),
            Self::Disk(disk) => DeviceName::Disk(disk.model.disk),
        }
    }

    /// Detaches all queues from their host.
    pub(crate) fn detach(&self) {
        match self {
            Self::Nic(nic) => nic.host.detach_port(nic.port),
            Self::Disk(disk) => disk.model.host.detach_disk(disk.model.disk),
        }
    }

    pub(crate) fn notify(&self, notice: DeviceNotice) {
        match self {
            Self::Nic(nic) => nic.observer.handle_notice(nic.port, notice),
            Self::Disk(disk) => disk.observer.handle_notice(disk.model.disk, notice),
        }
    }

    /// Returns the properties and the offer for a device whose VM has already negotiated the
    /// features `promised`.
    pub(crate) fn offer(&self, promised: u64) -> (Model, Offer) {
        match self {
            Self::Nic(nic) => {
                let spec = nic.spec();
                let has_mac = spec.mac.is_some();
                let offer = Offer::new(spec.queue_pairs, has_mac, &spec.offload, promised);
                let model = NicModel {
                    port: nic.port,
                    host: Arc::clone(&nic.host),
                    mask: Arc::clone(&nic.mask),
                    mac: spec.mac,
                    mtu: spec.mtu,
                };
                (Model::Nic(model), offer)
            }
            Self::Disk(disk) => {
                let spec = &disk.spec;
                let offer = Offer::disk(spec.queues, spec.is_read_only, promised);
                (Model::Disk(disk.model.clone()), offer)
            }
        }
    }

    /// Applies the current specification to a device that is connected to a front-end.
    pub(crate) fn refresh(&self, device: &mut VhostUserDevice) {
        match self {
            Self::Nic(nic) => {
                let mtu = nic.spec().mtu;
                device.set_mtu(mtu);
            }
            Self::Disk(_) => device.notify_config_changed(),
        }
    }

    /// Updates the negotiated offloads in the status of a NIC; does nothing for a disk.
    pub(crate) fn refresh_offloads(&self, status: &mut DeviceStatus) {
        let Self::Nic(nic) = self else { return };
        let features = status.virtio_features.map(RingFeatures).unwrap_or_default();
        status.ingress = features.ingress();
        status.egress = features.egress().intersection(egress_allowed(&nic.spec().offload));
    }
}

impl OwnedNic {
    pub(crate) fn spec(&self) -> MutexGuard<'_, VhostUserSpec> {
        self.spec.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
