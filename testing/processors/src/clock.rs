//! Worker threads whose clock is set by the test.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use suimon_ports::{CpuAffinity, WaitSet, Waker, WorkerJoin, WorkerMain, WorkerRuntime};
use suimon_quantity::Time;
use suimon_wait::WorkerThreads;

type Now = Arc<dyn Fn() -> Time + Send + Sync>;
type Yield = Arc<dyn Fn() + Send + Sync>;
type Pass = Arc<dyn Fn(Time) + Send + Sync>;

/// Starts real threads that read a clock of the test. A wait ends when a descriptor is readable or
/// the thread is woken, and ignores its deadline, because the real time at which the test advances
/// its clock to the deadline is unknown; see [`TestClockRuntime::with_clock_advance`].
#[derive(Clone)]
pub struct TestClockRuntime {
    now: Now,
    give_way: Yield,
    /// Function that advances the clock to a deadline, if waits with a deadline do not block;
    /// otherwise `None`.
    pass: Option<Pass>,
    /// Kernel thread ID of the thread started last.
    thread: Arc<AtomicU64>,
}

impl TestClockRuntime {
    /// Returns a runtime whose threads, like all other callers, read the time from `now`. A worker
    /// reads the clock once per round, and before and after it yields the CPU.
    pub fn new(now: impl Fn() -> Time + Send + Sync + 'static) -> Self {
        let (now, give_way) = (Arc::new(now), Arc::new(|| {}));
        Self { now, give_way, pass: None, thread: Arc::default() }
    }

    /// Returns the same runtime with `give_way` called each time a thread yields the CPU.
    #[must_use]
    pub fn with_yield(self, give_way: impl Fn() + Send + Sync + 'static) -> Self {
        Self { give_way: Arc::new(give_way), ..self }
    }

    /// Returns the same runtime in which a wait with a deadline does not block: `pass` is called to
    /// advance the clock to the deadline.
    #[must_use]
    pub fn with_clock_advance(self, pass: impl Fn(Time) + Send + Sync + 'static) -> Self {
        Self { pass: Some(Arc::new(pass)), ..self }
    }

    /// Returns whether the thread started last is sleeping in the kernel, which means that it has
    /// no work left.
    pub fn is_sleeping(&self) -> bool {
        let path = format!("/proc/self/task/{}/stat", self.thread.load(Ordering::SeqCst));
        std::fs::read_to_string(path).is_ok_and(|stat| stat.contains(") S "))
    }
}

impl WorkerRuntime for TestClockRuntime {
    fn start(
        &self,
        name: &str,
        placement: CpuAffinity,
        body: WorkerMain,
    ) -> io::Result<(Arc<dyn Waker>, WorkerJoin)> {
        let Self { now, give_way, pass, thread } = self.clone();
        let on_clock = move |wait| {
            let id = rustix::thread::gettid().as_raw_nonzero().get();
            thread.store(id.unsigned_abs().into(), Ordering::SeqCst);
            body(Box::new(WaitOnClock { wait, now, give_way, pass }));
        };
        WorkerThreads.start(name, placement, Box::new(on_clock))
    }

    fn allowed_cpus(&self) -> Vec<u16> {
        WorkerThreads.allowed_cpus()
    }

    fn now(&self) -> Time {
        (self.now)()
    }
}

struct WaitOnClock {
    wait: Box<dyn WaitSet>,
    now: Now,
    give_way: Yield,
    pass: Option<Pass>,
}

impl WaitSet for WaitOnClock {
    fn watch(&mut self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        self.wait.watch(fd, token)
    }

    fn unwatch(&mut self, fd: BorrowedFd<'_>) {
        self.wait.unwatch(fd);
    }

    fn wait(&mut self, until: Option<Time>, ready: &mut Vec<u64>) -> io::Result<()> {
        if let (Some(pass), Some(until)) =
            (&self.pass, until.filter(|deadline| *deadline != Time::NEVER))
        {
            pass(until);
            return self.wait.wait(None, ready);
        }
        self.wait.wait(until.map(|_| Time::NEVER), ready)
    }

    fn yield_now(&mut self) {
        (self.give_way)();
    }

    fn now(&self) -> Time {
        (self.now)()
    }

    fn cpu_time(&self) -> Duration {
        self.wait.cpu_time()
    }
}
