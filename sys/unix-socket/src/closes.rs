//! Closes that may block, in threads of their own.

use core::mem::ManuallyDrop;
use core::time::Duration;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Close that waits for a thread.
type PendingClose = Box<dyn FnOnce() + Send>;

/// Closes of values whose last close may block. A bounded number of threads performs them; further
/// ones are queued. The caller bounds the number of values. Clones refer to the same closes.
#[derive(Clone)]
pub struct Closes(Arc<Inner>);

struct Inner {
    threads_max: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    queued: VecDeque<PendingClose>,
    threads: usize,
    /// Closes that have not ended, including queued ones.
    count: usize,
}

impl Closes {
    /// Creates a queue for which at most `threads_max` threads perform closes at once.
    #[must_use]
    pub fn new(threads_max: usize) -> Self {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Self(Arc::new(Inner { threads_max, state, changed }))
    }

    /// Returns the number of closes that have not ended, including those that are queued for a
    /// thread.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.state().count
    }

    /// Waits until all closes have ended, which takes as long as the start of a thread unless a
    /// peer delays one. Returns false after `limit`.
    #[must_use]
    pub fn wait(&self, limit: Duration) -> bool {
        let state = self.0.state();
        let waited = self.0.changed.wait_timeout_while(state, limit, |state| state.count > 0);
        waited.is_ok_and(|(state, _)| state.count == 0)
    }

    /// Drops values in a thread of their own. If the host has no thread left, this happens after a
    /// later call.
    pub fn close<T: Send + 'static>(&self, values: T) {
        self.close_with(values, |run| {
            std::thread::Builder::new().name("close".to_owned()).spawn(run).map(drop)
        });
    }

    fn close_with<T: Send + 'static>(
        &self,
        values: T,
        spawn: impl Fn(PendingClose) -> io::Result<()>,
    ) {
        // The values of a close that is never performed are not dropped by another thread either.
        let values = ManuallyDrop::new(values);
        let mut state = self.0.state();
        state.count += 1;
        state.queued.push_back(Box::new(move || drop(ManuallyDrop::into_inner(values))));
        let free = self.0.threads_max.saturating_sub(state.threads);
        let needed = free.min(state.queued.len());
        state.threads += needed;
        drop(state);
        for started in 0..needed {
            let inner = Arc::clone(&self.0);
            if spawn(Box::new(move || inner.run())).is_err() {
                self.0.state().threads -= needed - started;
                return;
            }
        }
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Performs queued closes until there is none.
    fn run(&self) {
        loop {
            let mut state = self.state();
            let Some(close) = state.queued.pop_front() else {
                state.threads -= 1;
                return;
            };
            drop(state);
            close();
            self.state().count -= 1;
            self.changed.notify_all();
        }
    }
}

/// One close at a time.
impl Default for Closes {
    fn default() -> Self {
        Self::new(1)
    }
}

impl fmt::Debug for Closes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closes").field("count", &self.count()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(90);

    /// Value whose drop reports its beginning, and blocks until it is released.
    struct Blocking(Sender<u32>, u32, Receiver<()>);

    impl Drop for Blocking {
        fn drop(&mut self) {
            self.0.send(self.1).unwrap();
            let _ = self.2.recv();
        }
    }

    #[test]
    fn closes_are_counted_from_the_queue_on_and_only_so_many_block_at_once() {
        let closes = Closes::new(2);
        let (begun, begins) = channel();
        let mut releases = Vec::new();
        for number in 0..5 {
            let (release, released) = channel();
            releases.push(release);
            closes.close(Blocking(begun.clone(), number, released));
        }
        assert_eq!(closes.count(), 5);
        let mut first = [(); 2].map(|()| begins.recv_timeout(LIMIT).unwrap());
        first.sort_unstable();
        assert_eq!(first, [0, 1]);
        assert!(!closes.wait(Duration::from_millis(50)));
        assert!(begins.try_recv().is_err(), "a third close has begun");
        // Each close that ends makes room for the next one.
        for number in 2..5 {
            drop(releases.remove(0));
            assert_eq!(begins.recv_timeout(LIMIT), Ok(number));
        }
        drop(releases);
        assert!(closes.wait(LIMIT));
        assert_eq!(closes.count(), 0);
    }

    #[test]
    fn closes_without_a_thread_remain_queued_and_a_later_call_starts_them() {
        let closes = Closes::new(8);
        let (begun, begins) = channel();
        let value = |number| {
            let (release, released) = channel();
            drop(release);
            Blocking(begun.clone(), number, released)
        };
        closes.close_with(value(0), |_| Err(io::ErrorKind::OutOfMemory.into()));
        assert!(begins.try_recv().is_err());
        assert_eq!(closes.count(), 1);
        let started = RefCell::new(Vec::new());
        closes.close_with(value(1), |run| {
            started.borrow_mut().push(run);
            Ok(())
        });
        assert_eq!(closes.count(), 2);
        started.into_inner().into_iter().for_each(|run| run());
        assert_eq!(begins.try_iter().collect::<Vec<_>>(), [0, 1]);
        assert_eq!(closes.count(), 0);
    }
}
