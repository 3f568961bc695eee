//! What a device is: a NIC or a disk. Everything that is not said here is the same for
//! both.

use std::fmt;
use std::sync::Arc;

use suimon_frame::MacAddr;
use suimon_ports::{DetachedQueue, DetachingQueue, DiskQueueHost, QueueHost};
use suimon_quantity::{Direction, DiskId, PortId, QueueId};
use suimon_ring::{DiskFacts, OffloadMask};

use crate::config_space::ConfigSpace;
use crate::disk_config::{DiskConfig, WRITEBACK_AT};

/// A device's name, in logs and of threads.
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

/// What a device is connected to, and what its guest is told about it.
#[derive(Clone)]
pub enum Model {
    /// A NIC.
    Nic(NicModel),
    /// A disk.
    Disk(DiskModel),
}

/// A NIC.
#[derive(Clone)]
pub struct NicModel {
    /// The port whose NIC it is.
    pub port: PortId,
    /// Takes the rings.
    pub host: Arc<dyn QueueHost>,
    /// What may be handed to the guest now.
    pub mask: Arc<OffloadMask>,
    /// The guest's address, if we know it.
    pub mac: Option<MacAddr>,
    /// Largest IP packet the port carries.
    pub mtu: u16,
}

/// A disk.
#[derive(Clone)]
pub struct DiskModel {
    /// Which one.
    pub disk: DiskId,
    /// Takes the rings.
    pub host: Arc<dyn DiskQueueHost>,
    /// The disk as its rings see it. Its length may change.
    pub facts: Arc<DiskFacts>,
    /// What it is best written in: bytes, a power of two times its sectors.
    pub physical_sector_bytes: u32,
}

impl Model {
    pub(crate) fn name(&self) -> DeviceName {
        match self {
            Self::Nic(nic) => DeviceName::Nic(nic.port),
            Self::Disk(disk) => DeviceName::Disk(disk.disk),
        }
    }

    /// What it is called.
    pub(crate) const fn noun(&self) -> &'static str {
        match self {
            Self::Nic(_) => "NIC",
            Self::Disk(_) => "disk",
        }
    }

    /// Vrings of a device that offers so many queues (of a NIC pairs of queues).
    pub(crate) fn vrings(&self, queues: u16) -> u16 {
        queues.saturating_mul(self.vrings_per_queue())
    }

    /// Vrings that make one queue of what the offer counts.
    pub(crate) fn vrings_per_queue(&self) -> u16 {
        match self {
            Self::Nic(_) => 2,
            Self::Disk(_) => 1,
        }
    }

    /// Requests vring `index` back from its host. The ring of a NIC is back when this returns,
    /// because workers do not wait for networks.
    pub(crate) fn begin_detach(&self, index: u16) -> Box<dyn DetachingQueue> {
        match self {
            Self::Nic(nic) => {
                nic.host.detach(nic.queue_id(index));
                Box::new(DetachedQueue)
            }
            Self::Disk(disk) => disk.host.begin_detach(disk.disk, index),
        }
    }

    /// The `size` bytes at `offset` of configuration space; none if they are not all
    /// inside.
    pub(crate) fn read_config(&self, queues: u16, offset: u32, size: u32) -> Vec<u8> {
        match self {
            Self::Nic(nic) => {
                let NicModel { mac, mtu, .. } = *nic;
                ConfigSpace { mac, queue_pairs: queues, mtu }.read(offset, size)
            }
            Self::Disk(disk) => {
                let physical_sector_bytes = disk.physical_sector_bytes;
                DiskConfig { facts: &disk.facts, queues, physical_sector_bytes }.read(offset, size)
            }
        }
    }

    /// Writes configuration space. `false` if that cannot be written.
    pub(crate) fn write_config(&self, offset: u32, bytes: &[u8]) -> bool {
        match (self, bytes) {
            (Self::Disk(disk), [writeback @ 0..=1]) if offset == WRITEBACK_AT => {
                disk.facts.set_write_back(*writeback == 1);
                true
            }
            _ => false,
        }
    }

    /// The driver starts anew: what the last one chose is forgotten.
    pub(crate) fn reset(&self) {
        if let Self::Disk(disk) = self {
            disk.facts.set_write_back(true);
        }
    }
}

impl NicModel {
    /// The queue of a vring: even ones receive (egress of the switch), odd ones transmit.
    pub(crate) fn queue_id(&self, index: u16) -> QueueId {
        let direction = if index % 2 == 0 { Direction::Egress } else { Direction::Ingress };
        QueueId { port: self.port, direction, index: index / 2 }
    }
}
