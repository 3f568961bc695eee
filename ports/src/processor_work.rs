//! What else a processor does beside switching frames.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use suimon_quantity::{ProcessorId, Time};

use crate::{Wait, Waker};

/// Tokens from here on are of a processor's other work.
const FIRST_TOKEN: u64 = 1 << 63;

/// Descriptors that a processor watches for its other work.
pub struct Watches<'a>(&'a mut dyn Wait);

impl<'a> Watches<'a> {
    /// Those of a processor with this wait.
    pub fn new(wait: &'a mut dyn Wait) -> Self {
        Self(wait)
    }

    /// Watches a descriptor for readability, of which [`ProcessorWork::wake`] tells by
    /// `token`.
    ///
    /// # Errors
    /// The errno of the system call.
    pub fn watch(&mut self, fd: BorrowedFd<'_>, token: u32) -> io::Result<()> {
        self.0.watch(fd, FIRST_TOKEN | u64::from(token))
    }

    /// The time now, for work that has taken some since its round began.
    #[must_use]
    pub fn now(&self) -> Time {
        self.0.now()
    }

    /// Stops watching. Unknown descriptors are ignored.
    pub fn unwatch(&mut self, fd: BorrowedFd<'_>) {
        self.0.unwatch(fd);
    }

    /// The other work's token that came out of a [`Wait::wait`] as `token`; `None` if it is
    /// not the other work's.
    pub fn token(token: u64) -> Option<u32> {
        u32::try_from(token.checked_sub(FIRST_TOKEN)?).ok()
    }
}

/// What a processor's other work waits for, which decides how long polling for it is worth it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expects {
    /// Nothing that polling finds sooner than a wake-up does.
    Nothing,
    /// More of what came a moment ago, perhaps.
    More,
    /// Answers, which are sure to come.
    Answers,
}

/// Work that a processor does on its thread in turn with its frames: it is polled once in
/// each round, and the processor sleeps only when it says that everything waits.
pub trait ProcessorWork: Send {
    /// Does what can be done without waiting; whether that was anything. Costs next to
    /// nothing when there is nothing to do. `is_busy`: the processor's last round moved
    /// something, so that what is polled in vain takes time from others.
    fn poll(&mut self, now: Time, is_busy: bool, watches: &mut Watches<'_>) -> bool;

    /// The processor's thread was runnable and did not run for `span`, which has just ended. Called
    /// before [`ProcessorWork::poll`].
    fn handle_unscheduled(&mut self, _span: Duration) {}

    /// A watched descriptor is readable.
    fn wake(&mut self, token: u32);

    /// Whether a descriptor is watched for something that a busy processor has to look for
    /// from time to time.
    fn is_waiting(&self) -> bool;

    /// What may come in a moment that polling finds at once.
    fn expects(&self) -> Expects;

    /// Asks for wake-ups. `true`: everything waits, and the processor may sleep until a
    /// watched descriptor is readable, its waker is called or the deadline has passed.
    fn arm(&mut self) -> bool;

    /// When there is something to do although nothing wakes the processor.
    fn next_deadline(&self) -> Option<Time>;
}

/// Where processors' other work comes from.
pub trait ProcessorWorks: Send + Sync {
    /// The work of a processor that is about to start. `waker` wakes it.
    fn begin(&self, processor: ProcessorId, waker: Arc<dyn Waker>) -> Box<dyn ProcessorWork>;

    /// These processors are about to stop: returns when whatever they work on is with
    /// others.
    fn retire(&self, processors: &[ProcessorId]);

    /// All processors have stopped.
    fn end(&self);
}

/// Frames are all that processors work on.
pub struct NoOtherWork;

impl ProcessorWorks for NoOtherWork {
    fn begin(&self, _processor: ProcessorId, _waker: Arc<dyn Waker>) -> Box<dyn ProcessorWork> {
        Box::new(Self)
    }

    fn retire(&self, _processors: &[ProcessorId]) {}

    fn end(&self) {}
}

impl ProcessorWork for NoOtherWork {
    fn poll(&mut self, _now: Time, _is_busy: bool, _watches: &mut Watches<'_>) -> bool {
        false
    }

    fn wake(&mut self, _token: u32) {}

    fn is_waiting(&self) -> bool {
        false
    }

    fn expects(&self) -> Expects {
        Expects::Nothing
    }

    fn arm(&mut self) -> bool {
        true
    }

    fn next_deadline(&self) -> Option<Time> {
        None
    }
}
