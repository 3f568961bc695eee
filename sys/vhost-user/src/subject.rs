//! The NIC or disk to which a device belongs, as its owner has opened it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use suimon_ports::{
    DeviceNotice, DeviceStatus, DiskObserver, PortObserver, QueueHost, VhostUserDiskSpec,
    VhostUserSpec,
};
use suimon_quantity::PortId;
use suimon_ring::{OffloadMask, RingFeatures};

use crate::device::Device;
use crate::features::{Offer, egress_allowed};
use crate::model::{DeviceName, DiskModel, Model, NicModel};

/// Whose device it is.
pub(crate) enum Subject {
    Nic(NicSubject),
    Disk(DiskSubject),
}

/// A NIC.
pub(crate) struct NicSubject {
    pub(crate) port: PortId,
    pub(crate) host: Arc<dyn QueueHost>,
    pub(crate) observer: Arc<dyn PortObserver>,
    pub(crate) mask: Arc<OffloadMask>,
    /// Changes while the NIC is open. Locked after `Shared::changing` if both are.
    pub(crate) spec: Mutex<VhostUserSpec>,
}

/// A disk. Of what is desired only its length changes.
pub(crate) struct DiskSubject {
    pub(crate) model: DiskModel,
    pub(crate) observer: Arc<dyn DiskObserver>,
    pub(crate) spec: VhostUserDiskSpec,
}

impl Subject {
    pub(crate) fn name(&self) -> DeviceName {
        match self {
            Self::Nic(nic) => DeviceName::Nic(nic.port),
            Self::Disk(disk) => DeviceName::Disk(disk.model.disk),
        }
    }

    /// Takes all its queues back.
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

    /// What a front-end is offered whose VM relies on `promised` features.
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

    /// Has a device hear of what was changed.
    pub(crate) fn refresh(&self, device: &mut Device) {
        match self {
            Self::Nic(nic) => {
                let mtu = nic.spec().mtu;
                device.set_mtu(mtu);
            }
            Self::Disk(_) => device.tell_config_changed(),
        }
    }

    /// Brings what a NIC's status says of offloads up to date.
    pub(crate) fn refresh_offloads(&self, status: &mut DeviceStatus) {
        let Self::Nic(nic) = self else { return };
        let features = status.features.map(RingFeatures).unwrap_or_default();
        status.ingress = features.ingress();
        status.egress = features.egress().and(egress_allowed(&nic.spec().offload));
    }
}

impl NicSubject {
    pub(crate) fn spec(&self) -> MutexGuard<'_, VhostUserSpec> {
        self.spec.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
