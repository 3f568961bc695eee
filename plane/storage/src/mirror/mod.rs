//! Copies a disk in use to another one of the same size that reads as zeros, while its clients
//! write.
//!
//! - [`DirtyMap`](suimon_storage_engine::DirtyMap): changed regions, marked by the worker of the
//!   disk.
//! - [`Mirror`]: threads that copy marked regions from one [`DiskClient`](suimon_ports::DiskClient)
//!   to another.
//!
//! This module opens no connections, accesses disks only through these two clients, and does not
//! stop the disk's clients. To make the copy equal to the disk, the caller stops the clients and
//! calls [`Mirror::finish`].
//!
//! ```text
//! a client's write, discard or zeros ──► the file ──► marked ──► completion to the client
//!                                                       │
//!        ┌──────────────────────────────────────────────┘
//!        ▼
//! mark is cleared ──► read through the storage plane ──► written to the copy
//! ```
//!
//! Proof that every change is copied: a change is marked after it is in the file, and a mark is
//! cleared before its region is read. A change whose mark was cleared is therefore included in the
//! following read. A later change, also one during the read, sets a new mark. If marks were cleared
//! after the read, a change in between would be lost. A change in the file without a mark belongs
//! to a request in flight, so after all requests have completed, every change is marked.
//!
//! Invariants
//! - No two threads copy the same region at a time, so that older content never overwrites newer
//!   content.
//! - Clients of the disk never wait for the copying of their changes: its cost for them is an
//!   atomic bit operation.
//! - Unallocated ranges are neither read nor written: allocation is queried before copying begins,
//!   with marking already active.
mod claims;
#[cfg(test)]
mod claims_tests;
mod copy;
#[cfg(test)]
mod fake_disk;
mod progress;
#[cfg(test)]
mod tests;
mod threads;

pub use progress::{MirrorError, MirrorProgress};
pub use threads::Mirror;
