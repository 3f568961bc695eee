//! Threads that serve the sockets of any number of devices and connections.
//!
//! - [`SocketRuntime`]: a fixed number of worker threads that run one task per device or
//!   connection, and threads for calls that block.
//! - [`Task`]: one task, which its owner can stop and join.
//! - [`blocking`]: runs a call that blocks, such as giving a queue to a worker of the data plane, so
//!   that the tasks of other devices proceed. [`blocking_on`]: the same for a call that works on a value
//!   which the task keeps.
//! - [`ReconnectPause`], [`LogPace`], [`TurnAwayPace`]: limits on what peers cost.
//! - [`Watched`]: a descriptor whose readiness a task awaits.
//!
//! Bounds
//! - Worker threads: the number given to [`SocketRuntime::new`], whatever the number of tasks.
//! - Threads for blocking calls: one per call that is being executed, at most [`BLOCKING_MAX`].
//!   An unused one ends after [`BLOCKING_IDLE`]. No call may block for as long as a store stalls or a
//!   peer does nothing: a task that waits for such a thing sleeps, and looks again.
//!
//! Confinement: every worker thread calls the [`ThreadStart`] of its runtime first. Threads for
//! blocking calls are started by worker threads and inherit what those have given up (capabilities,
//! seccomp filters and Landlock rules are inherited by `clone`, seccomp(2) and landlock(7)).
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod peer_limits;
mod runtime;
mod task;
#[cfg(test)]
mod tests;
mod watched;

pub use peer_limits::{LogPace, ReconnectPause, TurnAwayPace};
pub use runtime::{BLOCKING_IDLE, BLOCKING_MAX, SocketRuntime, ThreadHooks};
pub use task::{Interrupted, Stop, Task, blocking, blocking_on};
pub use watched::Watched;
