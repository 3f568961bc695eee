//! Guest memory and virtqueues, split and packed, as a network device and a disk see them
//! (virtio 1.3, sections 2.7, 2.8, 5.1.6 and 5.2.6).
//!
//! - [`GuestMemory`]: the VM's memory, mapped from the descriptors a vhost-user
//!   front-end passes; every access is bounds-checked and copies.
//! - [`TxRing`]: a VM's transmit ring as a
//!   [`FrameSource`](suimon_ports::FrameSource).
//! - [`RxRing`]: a VM's receive ring as a [`FrameSink`](suimon_ports::FrameSink).
//! - [`DiskRing`]: a ring of a VM's disk as a
//!   [`DiskQueue`](suimon_ports::DiskQueue), whose requests are answered in any order;
//!   [`DiskFacts`]: what it must know of the disk, some of which changes while it runs.
//! - [`RingSetup`]: what a ring is made from. Its features choose the form of the
//!   ring (`RING_PACKED`) and how buffers are returned (`IN_ORDER`).
//! - [`RingRecords`]: what a ring writes down beside its work: the [`DirtyLog`] of
//!   pages for a migration, and its part of the [`Inflight`] region. Neither can be
//!   given to a running ring: drop it and make another from its position, as when a
//!   queue is handed over.
//! - [`RingState`]: where a ring stands; outlives the ring, so that the driver
//!   can be told after the ring was given up.
//! - [`CallLine`]: the descriptor that interrupts the guest; exchangeable while
//!   the ring runs.
//!
//! What it does not do: it knows no message of vhost-user, owns no thread and
//! never waits. An IOMMU is not implemented, so the feature must not be offered.
//!
//! Lifecycle: a ring is made from memory, addresses and a base index; it runs in
//! whatever thread owns it; dropping it publishes what was still pending, leaves its
//! position in its [`RingState`], and closes its part of the in-flight region. A ring of a
//! disk is dropped when every request was answered. If its process dies instead, the
//! next ring with that part goes on exactly where the driver saw it end. A ring that met
//! a [`RingFault`] is finished: it reports the fault again and again and touches the
//! guest's memory no more.
//!
//! Invariants
//! - Nothing here hands out a reference into guest memory: the guest changes it
//!   at any moment. A descriptor is read once, checked, and used from the copy.
//! - Whatever the guest writes, work per call is bounded by the queue's size and
//!   by the batch, no index leaves its ring, no copy leaves a mapped region.
//! - A network device's chains are returned in the order in which they were made
//!   available, a disk's in the order in which they were answered; the used index never
//!   passes what was written.
//! - A write to a buffer is in the dirty log before the driver is told of it; a write
//!   to the ring, when the call that made it returns.
//! - No call allocates or locks per frame; a ring of a disk allocates where a request has
//!   more buffers than any before. The interrupt line's lock is taken once per interrupt.
//!
//! What a hostile *front-end process* (not guest) can still do: cut its memory
//! file short. Access beyond the end then reads zeros and the ring faults; see
//! [`suimon_mapping`].
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod arming;
mod call_line;
mod cells;
mod chain;
mod copy;
mod dirty_log;
mod disk_facts;
mod disk_request;
mod disk_ring;
mod fault;
mod features;
mod inflight;
mod inflight_packed;
mod inflight_split;
#[cfg(test)]
mod interleaving;
mod kick;
mod memory;
mod memory_view;
mod packed;
mod packed_arming;
mod packed_cells;
mod position;
mod prefetch;
mod region;
mod request_buffers;
mod rings;
mod rx_ring;
mod setup;
mod shared_map;
mod split;
mod tail;
mod tx_ring;
mod virtqueue;

pub use call_line::CallLine;
pub use dirty_log::{DirtyLog, LOG_PAGE_BYTES, RingLog};
pub use disk_facts::{DiskFacts, DiskShape, RANGE_SECTORS_MAX, SECTOR_BYTES, SERIAL_BYTES};
pub use disk_ring::{DISK_QUEUE_SIZE_MAX, DiskRing};
pub use fault::{InflightError, LogError, MemoryError, RingArea, RingFault};
pub use features::RingFeatures;
pub use inflight::{Inflight, InflightQueue, InflightShape};
pub use memory::{GuestMemory, REGIONS_MAX};
pub use position::used_position;
pub use region::{Region, RegionSpec};
pub use rings::{RxRing, TxRing};
pub use rx_ring::OffloadMask;
pub use setup::{QUEUE_SIZE_MAX, RingAddresses, RingRecords, RingSetup};
pub use tx_ring::Announcer;
pub use virtqueue::RingState;
