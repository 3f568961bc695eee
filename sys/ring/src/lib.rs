//! Guest memory and split virtqueues, as a network device sees them (virtio 1.3,
//! sections 2.7 and 5.1.6).
//!
//! - [`GuestMemory`]: the VM's memory, mapped from the descriptors a vhost-user
//!   front-end passes; every access is bounds-checked and copies.
//! - [`TxRing`]: a VM's transmit ring as a
//!   [`FrameSource`](suimon_ports::FrameSource).
//! - [`RxRing`]: a VM's receive ring as a [`FrameSink`](suimon_ports::FrameSink).
//! - [`RingState`]: where a ring stands; outlives the ring, so that the driver
//!   can be told after the ring was given up.
//! - [`CallLine`]: the descriptor that interrupts the guest; exchangeable while
//!   the ring runs.
//!
//! What it does not do: it knows no message of vhost-user, owns no thread and
//! never waits. Packed rings, memory logging for migration and an IOMMU are not
//! implemented, so the features must not be offered.
//!
//! Lifecycle: a ring is made from memory, addresses and a base index; it runs in
//! whatever thread owns it; dropping it publishes what was still pending and
//! leaves its position in its [`RingState`]. A ring that met a [`RingFault`] is
//! finished: it reports the fault again and again and touches the guest's memory
//! no more.
//!
//! Invariants
//! - Nothing here hands out a reference into guest memory: the guest changes it
//!   at any moment. A descriptor is read once, checked, and used from the copy.
//! - Whatever the guest writes, work per call is bounded by the queue's size and
//!   by the batch, no index leaves its ring, no copy leaves a mapped region.
//! - Used entries are published in the order of the available ring; the used
//!   index never passes what was written.
//! - No call allocates or locks per frame; the interrupt line's lock is taken
//!   once per interrupt.
//!
//! What a hostile *front-end process* (not guest) can still do: cut its memory
//! file short. Access beyond the end then reads zeros and the ring faults; see
//! [`memory_faults`].
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod arming;
mod call_line;
mod cells;
mod chain;
mod copy;
mod fault;
mod features;
mod memory;
mod rx_ring;
mod sigbus;
mod split;
mod tx_ring;

pub use call_line::CallLine;
pub use fault::{MemoryError, RingArea, RingFault};
pub use features::RingFeatures;
pub use memory::{GuestMemory, REGIONS_MAX, Region, RegionSpec};
pub use rx_ring::{OffloadMask, RxRing};
pub use sigbus::memory_faults;
pub use split::{QUEUE_SIZE_MAX, RingAddresses, RingSetup, RingState};
pub use tx_ring::{Announcer, TxRing};
