//! Queues of a disk, as the control plane identifies them.

/// Identifier of a queue among the queues of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QueueKey {
    /// Virtqueue of a VM, by its index.
    Ring(u16),
    /// Connection of a client, by its number.
    Client(u64),
    /// Connection of a VM's QEMU that emulates the disk's controller, by its number.
    EmulatedDisk(u64),
    /// Connection of a mirror job that copies the disk, or copies to it.
    Mirror,
}

/// Selection of a disk's queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueSelection {
    One(QueueKey),
    Rings,
    Clients,
}

impl QueueSelection {
    pub(crate) fn has(self, key: QueueKey) -> bool {
        match self {
            Self::One(wanted_key) => wanted_key == key,
            Self::Rings => matches!(key, QueueKey::Ring(_)),
            Self::Clients => matches!(key, QueueKey::Client(_) | QueueKey::EmulatedDisk(_)),
        }
    }
}
