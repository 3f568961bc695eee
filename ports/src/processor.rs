//! Processors: threads, where they run, their clock and their one wait.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use suimon_quantity::Time;

/// Wakes a processor out of its [`Wait`]. Cheap if it is not asleep.
pub trait Waker: Send + Sync {
    /// Makes the processor's present or next [`Wait::wait`] return. Never lost.
    fn wake(&self);
}

/// The one place where a processor sleeps.
pub trait Wait: Send {
    /// Watches a descriptor for readability. `token` comes back from `wait`;
    /// a token is in use once at a time.
    ///
    /// # Errors
    /// The errno of the system call.
    fn watch(&mut self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()>;

    /// Stops watching. Unknown descriptors are ignored.
    fn unwatch(&mut self, fd: BorrowedFd<'_>);

    /// Appends the tokens of readable descriptors to `ready`. With
    /// `until` = `Some(t)` it sleeps until something is readable, the waker is
    /// called, the thread is interrupted, as by an answer in its ring, or `t` has
    /// passed; with `None` it only looks.
    ///
    /// # Errors
    /// The errno of the system call.
    fn wait(&mut self, until: Option<Time>, ready: &mut Vec<u64>) -> io::Result<()>;

    /// Lets other threads run that wait for this thread's CPU, if there are any.
    fn give_way(&mut self);

    /// Now, on the clock that all processors share.
    fn now(&self) -> Time;

    /// CPU time this thread has used so far. Only the owning thread may ask.
    fn cpu_time(&self) -> core::time::Duration;

    /// Time in which this thread was runnable and did not run, because others had its CPU; zero where
    /// the system does not count it. Only the owning thread may ask. Costs a system call.
    fn run_delay(&self) -> core::time::Duration {
        core::time::Duration::ZERO
    }
}

/// What a thread of a device does before anything else, on that thread: it gives up
/// what it does not need. If that fails the thread must not go on.
pub type ThreadStart = Arc<dyn Fn() -> io::Result<()> + Send + Sync>;

/// What a processor's thread runs.
pub type ProcessorBody = Box<dyn FnOnce(Box<dyn Wait>) + Send>;

/// Waits until a processor's thread has ended.
pub type ProcessorJoin = Box<dyn FnOnce() + Send>;

/// Where a processor's thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// On this logical CPU and no other.
    Pinned(u16),
    /// On any that the process may use. The kernel chooses, and may choose anew when the
    /// thread wakes up: a CPU that is awake answers sooner than one that is not.
    Floating,
}

impl Placement {
    /// The CPU it is pinned to.
    pub const fn cpu(self) -> Option<u16> {
        match self {
            Self::Pinned(cpu) => Some(cpu),
            Self::Floating => None,
        }
    }
}

impl From<u16> for Placement {
    fn from(cpu: u16) -> Self {
        Self::Pinned(cpu)
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pinned(cpu) => write!(f, "CPU {cpu}"),
            Self::Floating => f.write_str("any CPU"),
        }
    }
}

/// Where a logical CPU is in the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuPlace {
    /// The CPU.
    pub cpu: u16,
    /// The core that it is a thread of, by a number that no other core of the host has.
    pub core: u32,
    /// The NUMA node that it is on; 0 on a host without.
    pub numa_node: u16,
}

/// Where processors come from.
pub trait ProcessorRuntime: Send + Sync {
    /// Starts a thread named `name` that runs `body` with a wait of its own. Returns
    /// the waker of that wait, and a function that joins the thread.
    ///
    /// # Errors
    /// The CPU of `placement` does not exist or may not be used, or no thread could be
    /// made.
    fn start(
        &self,
        name: &str,
        placement: Placement,
        body: ProcessorBody,
    ) -> io::Result<(Arc<dyn Waker>, ProcessorJoin)>;

    /// The logical CPUs this process may run on, ascending.
    fn cpus(&self) -> Vec<u16>;

    /// Now, on the clock that all processors share.
    fn now(&self) -> Time;
}
