//! Eventfds received from other processes, used without ever blocking.
//!
//! - [`PeerEventFd`]: an eventfd that another process holds too. It is checked, signalled and
//!   cleared.
//! - [`prepare`]: allocates the kernel objects that signals need.
//!
//! The flag `O_NONBLOCK` and the counter belong to the open file description, which the peer
//! shares. The peer can clear the flag and fill the counter at any time, also between a check and a
//! system call. `read` and `write` on such a descriptor can therefore block. This crate uses
//! neither:
//!
//! - A counter is cleared by `preadv2` with `RWF_NOWAIT`, which ignores the flag.
//! - A counter is incremented by the kernel, as the completion notification of an asynchronous I/O
//!   operation (`IOCB_FLAG_RESFD`, io_submit(2)). This increment saturates and never waits.
//!
//! Outside of the scope: eventfds within this process, which no peer can change.
//!
//! Invariants
//! - No call on a [`PeerEventFd`] blocks, whatever the peer does to the descriptor.
//! - A [`PeerEventFd`] refers to an eventfd, not to another kind of file.
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod contexts;
mod peer;

pub use contexts::{is_eventfd, prepare};
pub use peer::{EventFdError, PeerEventFd};
