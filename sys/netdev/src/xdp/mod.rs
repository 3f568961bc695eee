//! Uplinks whose frames come and go through AF_XDP sockets, past the kernel's stack
//! (the kernel's `networking/af_xdp`).
//!
//! ```text
//!   device ── program ──▶ socket of the receive queue:  fill ◀── chunks ── XdpSource
//!      ▲                                                 RX ──── frames ─▶
//!      └──────────── socket beside it, the same UMEM:    TX ◀─── frames ── XdpSink
//!                                                completion ──── chunks ─▶
//! ```
//!
//! Two sockets for each receive queue of the device, with one UMEM for the two: half of
//! its chunks are received into, half are sent from, so that source and sink, which two
//! processors may own, share nothing but the descriptors. What sends is not what is waited
//! for: the kernel runs a socket's waiters for each frame of it that has left.
//!
//! What it does not do: it takes no large frames and knows no checksum of what arrives;
//! the offload engine does what is left.
//!
//! Lifecycle: [`XdpDevice::open`] attaches the program, binds the sockets and gives the
//! program their descriptors; then frames come. Dropping the device, or the process' end
//! however it comes, closes the link to the program, and the device is as it was before.
//!
//! Invariants
//! - A chunk is in one place at a time: in a ring, or in the hands of its source or sink.
//! - Whatever address and length a ring says, nothing outside of a chunk is touched.

mod device;
mod flow_table;
mod kept;
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

pub(crate) use device::{HeldDevices, XdpDevice, probe};
#[cfg(any(test, feature = "on-memory"))]
pub use on_memory::XdpOnMemory;

#[cfg(test)]
mod corpus_tests;
/// As for virtqueues.
#[cfg(test)]
#[path = "../../../ring/src/interleaving.rs"]
mod interleaving;
#[cfg(test)]
mod kept_tests;
#[cfg(test)]
mod tests;
