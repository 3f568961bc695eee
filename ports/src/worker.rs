//! Worker threads: placement, clock and their only blocking call.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use suimon_quantity::Time;

/// Wakes a worker from its [`WaitSet`]. Cheap if the worker is not asleep.
pub trait Waker: Send + Sync {
    /// Makes the worker's current or next [`WaitSet::wait`] return. A wake-up is never lost.
    fn wake(&self);
}

/// The only blocking call of a worker (epoll).
pub trait WaitSet: Send {
    /// Registers a descriptor for readability. [`WaitSet::wait`] reports it by `token`, which must
    /// be unique among the registered descriptors.
    ///
    /// # Errors
    /// Error of the system call.
    fn watch(&mut self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()>;

    /// Unregisters a descriptor. Unknown descriptors are ignored.
    fn unwatch(&mut self, fd: BorrowedFd<'_>);

    /// Appends the tokens of readable descriptors to `ready`. With `deadline` = `Some(t)`, blocks
    /// until a descriptor is readable, the waker is called, the thread is interrupted (for example
    /// by a completion in its io_uring) or `t` has passed. With `None`, does not block.
    ///
    /// # Errors
    /// Error of the system call.
    fn wait(&mut self, deadline: Option<Time>, ready: &mut Vec<u64>) -> io::Result<()>;

    /// Yields the CPU to other runnable threads, if there are any.
    fn yield_now(&mut self);

    /// Returns the current time of the clock shared by all workers.
    fn now(&self) -> Time;

    /// Returns the CPU time used by this thread. May be called on the owning thread only.
    fn cpu_time(&self) -> core::time::Duration;

    /// Returns the time for which this thread was runnable but not running (run queue delay); zero
    /// if the system does not account for it. May be called on the owning thread only. Makes a
    /// system call.
    fn run_delay(&self) -> core::time::Duration {
        core::time::Duration::ZERO
    }
}

/// Function that a device's thread runs first, to drop the privileges it does not need. If it fails
/// the thread must end.
pub type ThreadInit = Arc<dyn Fn() -> io::Result<()> + Send + Sync>;

/// Main function of a worker thread.
pub type WorkerMain = Box<dyn FnOnce(Box<dyn WaitSet>) + Send>;

/// Function that blocks until a worker thread has ended.
pub type WorkerJoin = Box<dyn FnOnce() + Send>;

/// CPU placement of a worker thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuAffinity {
    /// Pinned to this logical CPU.
    Pinned(u16),
    /// On any CPU that the process may use. The kernel may select another CPU at each wake-up; an
    /// awake CPU has a shorter wake-up latency.
    Floating,
}

impl CpuAffinity {
    /// Returns the CPU the thread is pinned to; `None` if it floats.
    pub const fn cpu(self) -> Option<u16> {
        match self {
            Self::Pinned(cpu) => Some(cpu),
            Self::Floating => None,
        }
    }
}

impl From<u16> for CpuAffinity {
    fn from(cpu: u16) -> Self {
        Self::Pinned(cpu)
    }
}

impl fmt::Display for CpuAffinity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pinned(cpu) => write!(f, "CPU {cpu}"),
            Self::Floating => f.write_str("any CPU"),
        }
    }
}

/// Topology of a logical CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTopology {
    /// Number of the logical CPU.
    pub cpu: u16,
    /// Physical core, numbered uniquely on the host. Sibling threads have the same core.
    pub core: u32,
    /// NUMA node; 0 on a host without NUMA.
    pub numa_node: u16,
}

/// Starts the threads of workers.
pub trait WorkerRuntime: Send + Sync {
    /// Starts a thread named `name` that runs `body` with a new [`WaitSet`]. Returns the waker of
    /// that wait, and a function that joins the thread.
    ///
    /// # Errors
    /// Fails if the CPU of `placement` does not exist or is not permitted, or if no thread can be
    /// created.
    fn start(
        &self,
        name: &str,
        placement: CpuAffinity,
        body: WorkerMain,
    ) -> io::Result<(Arc<dyn Waker>, WorkerJoin)>;

    /// Returns the logical CPUs that this process may run on, in ascending order.
    fn allowed_cpus(&self) -> Vec<u16>;

    /// Returns the current time of the clock shared by all workers.
    fn now(&self) -> Time;
}
