//! Time as a test says it is, on real threads.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use suimon_ports::{Placement, ProcessorBody, ProcessorJoin, ProcessorRuntime, Wait, Waker};
use suimon_quantity::Time;
use suimon_wait::ProcessorThreads;

type Now = Arc<dyn Fn() -> Time + Send + Sync>;
type GiveWay = Arc<dyn Fn() + Send + Sync>;
type Pass = Arc<dyn Fn(Time) + Send + Sync>;

/// Threads whose clock is the test's. They sleep until something happens to their
/// descriptors or they are woken, however soon they wanted to be back: a deadline on
/// such a clock says nothing of when the test will have it pass.
#[derive(Clone)]
pub struct OnClock {
    now: Now,
    give_way: GiveWay,
    /// Makes time pass until a deadline, if waits for one are to end by it.
    pass: Option<Pass>,
    /// The kernel's number of the thread that started last.
    thread: Arc<AtomicU64>,
}

impl OnClock {
    /// Threads that are told this time whenever they ask, as is everybody else. A
    /// processor asks once in each round, and before and after it gives way to others.
    pub fn new(now: impl Fn() -> Time + Send + Sync + 'static) -> Self {
        let (now, give_way) = (Arc::new(now), Arc::new(|| {}));
        Self { now, give_way, pass: None, thread: Arc::default() }
    }

    /// The same, where this is done whenever a thread gives way to others.
    #[must_use]
    pub fn giving_way(self, give_way: impl Fn() + Send + Sync + 'static) -> Self {
        Self { give_way: Arc::new(give_way), ..self }
    }

    /// Returns the same threads, except that a wait for a deadline does not block: `pass` makes time
    /// pass until then.
    #[must_use]
    pub fn passing(self, pass: impl Fn(Time) + Send + Sync + 'static) -> Self {
        Self { pass: Some(Arc::new(pass)), ..self }
    }

    /// Whether the thread that started last waits in the kernel, so that nothing is
    /// left for it to do.
    pub fn is_at_rest(&self) -> bool {
        let path = format!("/proc/self/task/{}/stat", self.thread.load(Ordering::SeqCst));
        std::fs::read_to_string(path).is_ok_and(|stat| stat.contains(") S "))
    }
}

impl ProcessorRuntime for OnClock {
    fn start(
        &self,
        name: &str,
        placement: Placement,
        body: ProcessorBody,
    ) -> io::Result<(Arc<dyn Waker>, ProcessorJoin)> {
        let Self { now, give_way, pass, thread } = self.clone();
        let on_clock = move |wait| {
            let id = rustix::thread::gettid().as_raw_nonzero().get();
            thread.store(id.unsigned_abs().into(), Ordering::SeqCst);
            body(Box::new(WaitOnClock { wait, now, give_way, pass }));
        };
        ProcessorThreads.start(name, placement, Box::new(on_clock))
    }

    fn cpus(&self) -> Vec<u16> {
        ProcessorThreads.cpus()
    }

    fn now(&self) -> Time {
        (self.now)()
    }
}

struct WaitOnClock {
    wait: Box<dyn Wait>,
    now: Now,
    give_way: GiveWay,
    pass: Option<Pass>,
}

impl Wait for WaitOnClock {
    fn watch(&mut self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        self.wait.watch(fd, token)
    }

    fn unwatch(&mut self, fd: BorrowedFd<'_>) {
        self.wait.unwatch(fd);
    }

    fn wait(&mut self, until: Option<Time>, ready: &mut Vec<u64>) -> io::Result<()> {
        if let (Some(pass), Some(until)) = (&self.pass, until.filter(|at| *at != Time::NEVER)) {
            pass(until);
            return self.wait.wait(None, ready);
        }
        self.wait.wait(until.map(|_| Time::NEVER), ready)
    }

    fn give_way(&mut self) {
        (self.give_way)();
    }

    fn now(&self) -> Time {
        (self.now)()
    }

    fn cpu_time(&self) -> Duration {
        self.wait.cpu_time()
    }
}
