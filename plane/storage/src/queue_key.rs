//! Queues of a disk, as whoever attaches them calls them.

/// What a queue of a disk is told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QueueKey {
    /// A VM's ring, by its index.
    Ring(u16),
    /// A client's connection, by its number.
    Client(u64),
    /// The connection of a VM's QEMU that emulates the disk's controller, by its number.
    VmClient(u64),
    /// The connection by which the disk is copied, from here or to here.
    Mirror,
}

/// Queues of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    One(QueueKey),
    Rings,
    Clients,
}

impl Which {
    pub(crate) fn has(self, key: QueueKey) -> bool {
        match self {
            Self::One(one) => one == key,
            Self::Rings => matches!(key, QueueKey::Ring(_)),
            Self::Clients => matches!(key, QueueKey::Client(_) | QueueKey::VmClient(_)),
        }
    }
}
