//! Processors' threads: where they run, their clock and their one wait.
//!
//! Implements [`suimon_ports::ProcessorRuntime`], [`suimon_ports::Wait`] and
//! [`suimon_ports::Waker`] on Linux: `sched_setaffinity`, epoll, an eventfd and
//! `CLOCK_BOOTTIME`.
//!
//! What it does not do: it knows no queue and no frame, schedules nothing and
//! keeps no list of the threads it started.
//!
//! Beside that, [`cpu_places`] tells which CPUs are threads of one core and on which NUMA
//! node they are.
//!
//! Lifecycle: [`ProcessorThreads::start`] makes a thread, pins it, gives it an
//! [`EpollWait`] and runs the body; the caller keeps the waker and the joiner.
//! The waker may outlive the thread, then it does nothing.
//!
//! Invariants
//! - A wake-up is never lost, and costs a system call only while the processor
//!   sleeps (`sleep_flag.rs` has the argument and its model check).
//! - A wait never returns before its deadline for no reason that the caller gave
//!   it, one late echo of a wake-up aside, and never oversleeps by the
//!   kernel's default timer slack.
//! - No allocation after start-up, except when `ready` must grow.
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod clock;
mod cpu_places;
mod epoll_wait;
mod processor_threads;
mod pwait2;
mod run_delay;
mod sleep_flag;

pub use cpu_places::cpu_places;
pub use epoll_wait::{EpollWait, EventWaker, TOKEN_MAX};
pub use processor_threads::ProcessorThreads;
