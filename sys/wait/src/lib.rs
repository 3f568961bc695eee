//! Worker threads: CPU affinity, clock and wait.
//!
//! Implements [`suimon_ports::WorkerRuntime`], [`suimon_ports::WaitSet`] and
//! [`suimon_ports::Waker`] on Linux: `sched_setaffinity`, epoll, an eventfd and `CLOCK_BOOTTIME`.
//! In addition, [`cpu_topology`] returns the core and NUMA node of CPUs.
//!
//! Outside of the scope: queues, frames and scheduling. No list of started threads is kept.
//!
//! Life cycle: [`WorkerThreads::start`] creates a thread, pins it, passes it an [`EpollWait`] and
//! runs the body; the caller keeps the waker and the join function. The waker may outlive the
//! thread and then has no effect.
//!
//! Invariants
//! - A wake-up is never lost, and costs a system call only while the worker sleeps (proof and model
//!   check: `sleep_flag.rs`).
//! - A wait returns before its deadline only because of a ready descriptor, a wake-up or a signal,
//!   except once after a wake-up that came late (`sleep_flag.rs`). Timer slack is 1 ns.
//! - No allocation after start-up, except when `ready` must grow.
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod clock;
mod cpu_topology;
mod epoll_wait;
mod pwait2;
mod run_delay;
mod sleep_flag;
mod worker_threads;

pub use cpu_topology::cpu_topology;
pub use epoll_wait::{EpollWait, EventWaker, TOKEN_MAX};
pub use worker_threads::WorkerThreads;
