//! Guest memory and virtqueues, split and packed, from the device's side, for network devices and
//! disks (virtio 1.3, sections 2.7, 2.8, 5.1.6 and 5.2.6).
//!
//! - [`GuestMemory`]: a VM's memory, mapped from the file descriptors of a vhost-user front-end.
//!   Every access is bounds-checked and copies.
//! - [`TxRing`]: a VM's transmit ring as a [`FrameSource`](suimon_ports::FrameSource).
//! - [`RxRing`]: a VM's receive ring as a [`FrameSink`](suimon_ports::FrameSink).
//! - [`DiskRing`]: a request ring of a VM's disk as a [`DiskQueue`](suimon_ports::DiskQueue), whose
//!   requests are completed in any order. [`DiskProperties`]: the disk's properties, some of which
//!   change while the ring runs.
//! - [`RingSetup`]: parameters of a ring. The negotiated features select split or packed
//!   (`RING_PACKED`) and the order of returned buffers (`IN_ORDER`).
//! - [`RingTracking`]: side records of a ring: the [`DirtyLog`] for a migration and its part of the
//!   [`InflightRegion`] region. They cannot be added to a running ring; the ring is dropped and
//!   another is created from its position.
//! - [`RingState`]: position and fault of a ring; outlives the ring.
//! - [`InterruptLine`]: interrupt line to the guest; its eventfd can be replaced while the ring
//!   runs.
//!
//! The crate handles no vhost-user messages, owns no thread and never blocks. An IOMMU is not
//! implemented, so the feature must not be offered.
//!
//! Life cycle: a ring is created from memory, addresses and a base index, and runs in the thread
//! that owns it. Dropping it publishes completed chains, stores the position in its [`RingState`],
//! and closes its part of the in-flight region. A disk's ring is dropped after every request was
//! completed. If the process dies instead, the next ring on that part continues exactly where the
//! driver saw the previous one end. A ring that met a [`RingFault`] reports the fault on every call
//! and does not access guest memory again.
//!
//! Invariants
//! - No reference into guest memory is handed out, because the guest changes it at any time. A
//!   descriptor is read once, validated, and used from the copy.
//! - For any guest input, work per call is bounded by the queue's size and the batch, no index
//!   leaves its ring, and no copy leaves a mapped region.
//! - A network device's chains are returned in the order in which they were made available, a
//!   disk's in the order in which they were completed. The used index never passes the entries
//!   written.
//! - A write to a buffer is in the dirty log before the buffer is reported as used; a write to the
//!   ring, when the call that made it returns.
//! - No call allocates or locks per frame. A disk's ring allocates if a request has more buffers
//!   than any before. The interrupt line's lock is taken once per interrupt.
//!
//! A hostile front-end process (not guest) can truncate its memory file. Access beyond the end then
//! reads zeros and the ring faults; see [`suimon_mapping`].
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod addresses;
mod cells;
mod chain;
mod chain_head;
mod chain_walk;
mod copy;
mod dirty_log;
mod disk_properties;
mod disk_request;
mod disk_ring;
mod fault;
mod features;
mod inflight;
mod inflight_layout;
mod inflight_packed;
mod inflight_split;
#[cfg(test)]
mod interleaving;
mod interrupt_line;
mod kick;
mod mapping_limits;
mod memory;
mod memory_view;
mod notification;
mod packed;
mod packed_areas;
mod packed_arming;
mod prefetch;
mod region;
mod request_buffers;
mod ring_position;
mod rings;
mod rx_ring;
mod setup;
mod shared_map;
mod split;
mod tail;
mod tx_ring;
mod used_position;
mod virtqueue;

pub use addresses::{QUEUE_SIZE_MAX, RingAddresses};
pub use dirty_log::{DirtyLog, LOG_PAGE_BYTES, RingLog};
pub use disk_properties::{
    DiskDescription, DiskProperties, RANGE_SECTORS_MAX, SECTOR_BYTES, SERIAL_BYTES,
};
pub use disk_ring::{DISK_QUEUE_SIZE_MAX, DiskRing};
pub use fault::{InflightError, LogError, MEMORY_FILE, MemoryError, RingArea, RingFault};
pub use features::RingFeatures;
pub use inflight::{InflightLayout, InflightQueue, InflightRegion};
pub use interrupt_line::InterruptLine;
pub use mapping_limits::{MappedMemoryCounter, device_bytes_max};
pub use memory::{GuestMemory, REGIONS_MAX};
pub use region::{Region, RegionSpec, is_memory_file};
pub use rings::{RxRing, TxRing};
pub use rx_ring::OffloadMask;
pub use setup::{RingSetup, RingTracking};
pub use tx_ring::RarpAnnouncer;
pub use used_position::used_position;
pub use virtqueue::RingState;
