//! Threads that serve the sockets of any number of devices and connections.
//!
//! - [`SocketRuntime`]: a fixed number of worker threads that run one task per device or
//!   connection, and threads for blocking calls.
//! - [`Task`]: one task, which its owner can stop and join.
//! - [`blocking`]: runs a call that blocks, such as handing a queue to a worker of the data plane,
//!   so that the tasks of other devices proceed. [`run_blocking_on`]: the same for a call on a
//!   value that the task retains. [`run_blocking_detached`]: the same without waiting for the end
//!   of the call.
//! - [`ReconnectPause`], [`LogRateLimit`], [`RejectionRateLimit`]: limits on the costs that peers
//!   cause.
//! - [`HandshakeLimits`]: limits on the CPU time that TLS handshakes cost.
//! - [`DescriptorGuard`]: protection from descriptors that peers attach to their data.
//! - [`WatchedFd`]: a descriptor whose readiness a task awaits.
//!
//! Bounds
//! - Worker threads: the number given to [`SocketRuntime::new`], for any number of tasks.
//! - Threads for blocking calls: one per call in execution, at most [`BLOCKING_CALLS_MAX`]. An
//!   unused thread ends after [`BLOCKING_THREAD_IDLE_MAX`]. No call may block for the duration of a
//!   stall of a store or of a peer's inactivity. A task that waits for such a condition polls it
//!   and sleeps in between.
//! - Values dropped by [`SocketRuntime::drop_later`]: at most [`CONCURRENT_DROPS_MAX`] at once.
//!
//! Confinement: every worker thread calls the [`ThreadInit`] of its runtime first. Threads for
//! blocking calls are started by worker threads and inherit their restrictions (capabilities,
//! seccomp filters and Landlock rules are inherited by `clone`, seccomp(2) and landlock(7)).
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod blocking;
mod descriptor_guard;
mod handshake_limits;
mod peer_limits;
mod runtime;
mod task;
#[cfg(test)]
mod tests;
mod watched;

pub use blocking::{BlockingCallFailed, run_blocking, run_blocking_detached, run_blocking_on};
pub use descriptor_guard::DescriptorGuard;
pub use handshake_limits::{
    HANDSHAKE_PEERS_MAX, HANDSHAKES_BURST, HANDSHAKES_PER_SECOND, HandshakeLimits,
};
pub use peer_limits::{LogRateLimit, ReconnectPause, RejectionRateLimit};
pub use runtime::{
    BLOCKING_CALLS_MAX, BLOCKING_THREAD_IDLE_MAX, CONCURRENT_DROPS_MAX, SocketRuntime, ThreadHooks,
};
pub use task::{Task, TaskStop};
pub use watched::WatchedFd;
