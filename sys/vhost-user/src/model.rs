//! Differences between NICs and disks. The other modules apply to both.

use std::fmt;
use std::sync::Arc;

use suimon_frame::MacAddr;
use suimon_ports::{DetachingQueue, DiskQueueHost, QueueHost};
use suimon_quantity::{Direction, DiskId, PortId, QueueId};
use suimon_ring::{DiskProperties, OffloadMask};

use crate::config_space::ConfigSpace;
use crate::disk_config::{DiskConfig, WRITEBACK_AT};

/// Name of a device in log messages and thread names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceName {
    Nic(PortId),
    Disk(DiskId),
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nic(port) => write!(f, "NIC of port {}", port.0),
            Self::Disk(disk) => write!(f, "disk {}", disk.0),
        }
    }
}

/// Kind of a device, with its properties and the host of its rings.
#[derive(Clone)]
pub enum DeviceModel {
    /// Network device (virtio 1.3, section 5.1).
    Nic(NicModel),
    /// Block device (virtio 1.3, section 5.2).
    Disk(DiskModel),
}

/// Properties of a NIC that are reported to the guest, and the host of its rings.
#[derive(Clone)]
pub struct NicModel {
    /// Port of the switch that the NIC is connected to.
    pub port: PortId,
    /// Host to which running rings are attached.
    pub host: Arc<dyn QueueHost>,
    /// Offloads that frames delivered to the guest may currently use.
    pub mask: Arc<OffloadMask>,
    /// MAC address of the guest, if known.
    pub mac: Option<MacAddr>,
    /// Maximum size of an IP packet in bytes.
    pub mtu: u16,
}

/// Properties of a disk that are reported to the guest, and the host of its rings.
#[derive(Clone)]
pub struct DiskModel {
    /// Id of the disk on this host.
    pub disk: DiskId,
    /// Host to which running rings are attached.
    pub host: Arc<dyn DiskQueueHost>,
    /// Properties that the rings use. The capacity may change.
    pub properties: Arc<DiskProperties>,
    /// Physical sector size in bytes: the logical sector size times a power of two.
    pub physical_sector_bytes: u32,
}

impl DeviceModel {
    pub(crate) fn name(&self) -> DeviceName {
        match self {
            Self::Nic(nic) => DeviceName::Nic(nic.port),
            Self::Disk(disk) => DeviceName::Disk(disk.disk),
        }
    }

    /// Returns the word for the device in messages: `NIC` or `disk`.
    pub(crate) const fn kind_name(&self) -> &'static str {
        match self {
            Self::Nic(_) => "NIC",
            Self::Disk(_) => "disk",
        }
    }

    /// Returns the number of vrings of a device with `queues` queues (queue pairs of a NIC).
    pub(crate) fn vrings(&self, queues: u16) -> u16 {
        queues.saturating_mul(self.vrings_per_queue())
    }

    /// Returns the number of vrings per queue (per queue pair of a NIC).
    pub(crate) fn vrings_per_queue(&self) -> u16 {
        match self {
            Self::Nic(_) => 2,
            Self::Disk(_) => 1,
        }
    }

    /// Requests that the host detaches vring `index`. Does not block; the returned value waits for
    /// the detachment.
    pub(crate) fn begin_detach(&self, index: u16) -> Box<dyn DetachingQueue> {
        match self {
            Self::Nic(nic) => nic.host.begin_detach(nic.queue_id(index)),
            Self::Disk(disk) => disk.host.begin_detach(disk.disk, index),
        }
    }

    /// Returns `size` bytes at `offset` of configuration space; an empty vector if the space does
    /// not contain all of them.
    pub(crate) fn read_config(&self, queues: u16, offset: u32, size: u32) -> Vec<u8> {
        match self {
            Self::Nic(nic) => {
                let NicModel { mac, mtu, .. } = *nic;
                ConfigSpace { mac, queue_pairs: queues, mtu }.read(offset, size)
            }
            Self::Disk(disk) => {
                let physical_sector_bytes = disk.physical_sector_bytes;
                DiskConfig { properties: &disk.properties, queues, physical_sector_bytes }
                    .read(offset, size)
            }
        }
    }

    /// Writes `bytes` to configuration space at `offset`. Returns false if the range is read-only
    /// or the value is invalid.
    pub(crate) fn write_config(&self, offset: u32, bytes: &[u8]) -> bool {
        match (self, bytes) {
            (Self::Disk(disk), [writeback @ 0..=1]) if offset == WRITEBACK_AT => {
                disk.properties.set_write_back(*writeback == 1);
                true
            }
            _ => false,
        }
    }

    /// Restores the default of settings that a driver has changed, because the device is reset.
    pub(crate) fn reset(&self) {
        if let Self::Disk(disk) = self {
            disk.properties.set_write_back(true);
        }
    }
}

impl NicModel {
    /// Returns the switch's queue for a vring: even vrings are receive queues of the guest (egress
    /// of the switch), odd ones transmit queues.
    pub(crate) fn queue_id(&self, index: u16) -> QueueId {
        let direction = if index % 2 == 0 { Direction::Egress } else { Direction::Ingress };
        QueueId { port: self.port, direction, index: index / 2 }
    }
}
