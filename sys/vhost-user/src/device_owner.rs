//! NIC or disk that a device belongs to, as its owner has opened it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use suimon_ports::{
    DeviceNotice, DeviceStatus, DiskObserver, PortObserver, QueueHost, VhostUserDiskSpec,
    VhostUserNicSpec,
};
use suimon_quantity::PortId;
use suimon_ring::{OffloadMask, RingFeatures};

use crate::device::VhostUserDevice;
use crate::features::{FeatureOffer, allowed_egress_offloads};
use crate::model::{DeviceModel, DeviceName, DiskModel, NicModel};

/// NIC or disk that a device belongs to: its specification and its observer.
pub(crate) enum DeviceOwner {
    Nic(NicOwner),
    Disk(DiskOwner),
}

/// NIC with the host of its queues, its observer and its specification.
pub(crate) struct NicOwner {
    pub(crate) port: PortId,
    pub(crate) host: Arc<dyn QueueHost>,
    pub(crate) observer: Arc<dyn PortObserver>,
    pub(crate) mask: Arc<OffloadMask>,
    /// Specification, changed while the NIC is open. Lock order: `SharedDeviceState::changing`
    /// before this.
    pub(crate) spec: Mutex<VhostUserNicSpec>,
}

/// Disk with its properties, observer and specification. Only its capacity changes while it is
/// open.
pub(crate) struct DiskOwner {
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
    pub(crate) fn model_and_offer(&self, promised: u64) -> (DeviceModel, FeatureOffer) {
        match self {
            Self::Nic(nic) => {
                let spec = nic.spec();
                let has_mac = spec.mac.is_some();
                let offer =
                    FeatureOffer::for_nic(spec.queue_pairs, has_mac, &spec.offload, promised);
                let model = NicModel {
                    port: nic.port,
                    host: Arc::clone(&nic.host),
                    mask: Arc::clone(&nic.mask),
                    mac: spec.mac,
                    mtu: spec.mtu,
                };
                (DeviceModel::Nic(model), offer)
            }
            Self::Disk(disk) => {
                let spec = &disk.spec;
                let offer = FeatureOffer::for_disk(spec.queues, spec.is_read_only, promised);
                (DeviceModel::Disk(disk.model.clone()), offer)
            }
        }
    }

    /// Applies the current specification to a device that is connected to a front-end.
    pub(crate) fn apply_spec(&self, device: &mut VhostUserDevice) {
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
        status.ingress_offloads = features.ingress();
        status.egress_offloads =
            features.egress().intersection(allowed_egress_offloads(&nic.spec().offload));
    }
}

impl NicOwner {
    pub(crate) fn spec(&self) -> MutexGuard<'_, VhostUserNicSpec> {
        self.spec.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
