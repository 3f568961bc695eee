//! Copies a disk that is in use to another one, of the same size and reading as zeros, while
//! its clients write.
//!
//! - [`DirtyMap`](crate::DirtyMap): what has changed; the processor that has the disk marks.
//! - [`Mirror`]: threads that copy what is marked, from one
//!   [`DiskClient`](suimon_ports::DiskClient) to another.
//!
//! What it does not do: it opens no connection and knows no disk but by these two; it does
//! not stop the disk's clients. Whoever wants the copy to be the disk as it is stops them
//! and calls [`Mirror::finish`].
//!
//! ```text
//! a client's write, discard or zeros ──► the file ──► marked ──► the client is answered
//!                                                       │
//!        ┌──────────────────────────────────────────────┘
//!        ▼
//! mark is taken away ──► read through the storage plane ──► written to the copy
//! ```
//!
//! Why that copies everything. A change is marked after the file has it, and a mark is taken
//! away before the region is read. So a change whose mark was taken away is in what is read
//! then; and one that comes later, also during the reading, leaves a mark behind. Were the
//! mark taken away after the reading, a change between the two would be lost with it. What
//! was written to the file and not marked yet is a request under way: who waits until there
//! are none finds every change marked.
//!
//! Invariants
//! - No two threads copy the same region at a time, so that what was read first is not
//!   written last.
//! - A disk's clients never wait for a mirror: what is done for them is to set a bit.
//! - What was never allocated is not read and not written: before anything is copied it is
//!   looked what is allocated, with marking on already.
mod claims;
#[cfg(test)]
mod claims_tests;
mod copy;
#[cfg(test)]
mod fakes;
mod progress;
#[cfg(test)]
mod tests;
mod threads;

pub use progress::{MirrorError, MirrorProgress};
pub use threads::Mirror;
