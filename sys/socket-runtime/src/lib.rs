//! Threads that serve the sockets of any number of devices and connections.
//!
//! - [`SocketRuntime`]: a fixed number of worker threads that run one task per device or
//!   connection, and threads for calls that block.
//! - [`Task`]: one task, which its owner can stop and join.
//! - [`blocking`]: runs a call that blocks, such as taking a queue back from a worker of the data
//!   plane, so that the tasks of other devices proceed.
//! - [`Watched`]: a descriptor whose readiness a task awaits.
//!
//! Bounds
//! - Worker threads: the number given to [`SocketRuntime::new`], whatever the number of tasks.
//! - Threads for blocking calls: one per call that is being executed, at most [`BLOCKING_MAX`].
//!   An unused one ends after [`BLOCKING_IDLE`]. Only tasks whose device does not respond, such as
//!   disks on a store that stalls, occupy one for longer than milliseconds.
//!
//! Confinement: every worker thread calls the [`ThreadStart`] of its runtime first. Threads for
//! blocking calls are started by worker threads and inherit what those have given up (capabilities,
//! seccomp filters and Landlock rules are inherited by `clone`, seccomp(2) and landlock(7)).
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod runtime;
mod task;
#[cfg(test)]
mod tests;
mod watched;

pub use runtime::{BLOCKING_IDLE, BLOCKING_MAX, SocketRuntime, ThreadHooks};
pub use task::{Interrupted, Stop, Task, blocking};
pub use watched::Watched;
