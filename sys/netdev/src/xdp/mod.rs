//! Uplinks that exchange frames with the device through AF_XDP sockets, without the kernel's
//! network stack (the kernel's `networking/af_xdp`).
//!
//! ```text
//!   device ── program ──▶ socket of the receive queue:  fill ◀── chunks ── XdpSource
//!      ▲                                                 RX ──── frames ─▶
//!      └──────────── socket beside it, the same UMEM:    TX ◀─── frames ── XdpSink
//!                                                completion ──── chunks ─▶
//! ```
//!
//! Each receive queue of the device has two sockets with a common UMEM. Half of its chunks are for
//! receiving, half for sending, so that source and sink, which two workers may own, share only the
//! descriptors. The sending socket is separate from the one that is waited for, because the kernel
//! wakes a socket's waiters for each of its frames that has left.
//!
//! Large frames and checksum states of received frames are not supported; the offload engine
//! performs these functions.
//!
//! Life cycle: [`XdpDevice::open`] attaches the program, binds the sockets and gives their
//! descriptors to the program; then frames are received. Dropping the device, or any end of the
//! process, closes the link to the program, which restores the device's normal operation.
//!
//! Invariants
//! - A chunk is in one place at a time: in a ring, or owned by its source or sink.
//! - For any address and length in a ring, no memory outside of a chunk is accessed.

mod device;
mod flow_table;
mod host_frames;
mod memory;
mod observer;
#[cfg(any(test, feature = "on-memory"))]
mod on_memory;
mod program;
mod queue;
mod ring;
mod ring_cells;
mod socket;
mod steering;

pub(crate) use device::{AttachedDevices, XdpDevice, probe};
#[cfg(any(test, feature = "on-memory"))]
pub use on_memory::XdpOnFile;

#[cfg(test)]
mod corpus_tests;
#[cfg(test)]
mod device_tests;
/// Exploration of interleavings for tests, shared with the tests of virtqueues in `sys/ring`.
#[cfg(test)]
#[path = "../../../ring/src/interleaving.rs"]
mod interleaving;
#[cfg(test)]
mod kept_tests;
#[cfg(test)]
mod tests;
