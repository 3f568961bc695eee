//! Closes of descriptors that may block, performed in separate threads.

use core::mem::ManuallyDrop;
use core::time::Duration;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Function that performs one queued close.
type PendingClose = Box<dyn FnOnce() + Send>;

/// Queue of values whose drop may block because it closes descriptors. At most a fixed number of
/// threads drop them. The queue is not limited; the caller bounds the number of values. Clones
/// share the queue.
#[derive(Clone)]
pub struct CloseQueue(Arc<Inner>);

struct Inner {
    threads_max: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    queued: VecDeque<PendingClose>,
    /// Number of threads that run or are being started.
    threads: usize,
    /// Number of closes in progress, each in a thread of its own.
    closing: usize,
}

impl State {
    fn count(&self) -> usize {
        self.queued.len() + self.closing
    }
}

impl CloseQueue {
    /// Creates a queue whose closes are performed by at most `threads_max` threads at once.
    #[must_use]
    pub fn new(threads_max: usize) -> Self {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Self(Arc::new(Inner { threads_max, state, changed }))
    }

    /// Returns the number of closes that are queued or in progress. If an earlier thread could not
    /// be started, tries again.
    #[must_use]
    pub fn pending_count(&self) -> usize {
        self.start(spawn_thread);
        self.0.state().count()
    }

    /// Blocks until all closes have completed, or `limit` has passed. Returns false in the latter
    /// case. If an earlier thread could not be started, tries again.
    #[must_use]
    pub fn wait(&self, limit: Duration) -> bool {
        self.start(spawn_thread);
        let state = self.0.state();
        let waited = self.0.changed.wait_timeout_while(state, limit, |state| state.count() > 0);
        waited.is_ok_and(|(state, _)| state.count() == 0)
    }

    /// Drops a value in another thread. If no thread can be started, the value remains queued until
    /// a later call of any function of this type.
    pub fn close<T: Send + 'static>(&self, values: T) {
        self.queue(values);
        self.start(spawn_thread);
    }

    fn queue<T: Send + 'static>(&self, values: T) {
        // The values of a close that is never performed are not dropped by another thread either.
        let values = ManuallyDrop::new(values);
        let close = move || drop(ManuallyDrop::into_inner(values));
        self.0.state().queued.push_back(Box::new(close));
    }

    /// Starts with `spawn` the threads that are missing for queued closes.
    fn start(&self, spawn: impl Fn(PendingClose) -> io::Result<()>) {
        let mut state = self.0.state();
        let free = self.0.threads_max.saturating_sub(state.threads);
        // Each of these threads takes a queued close next.
        let idle = state.threads.saturating_sub(state.closing);
        let new_threads = free.min(state.queued.len().saturating_sub(idle));
        state.threads += new_threads;
        drop(state);
        for started in 0..new_threads {
            let inner = Arc::clone(&self.0);
            if spawn(Box::new(move || inner.run())).is_err() {
                self.0.state().threads -= new_threads - started;
                return;
            }
        }
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Performs queued closes until the queue is empty.
    fn run(&self) {
        loop {
            let mut state = self.state();
            let Some(close) = state.queued.pop_front() else {
                state.threads -= 1;
                return;
            };
            state.closing += 1;
            drop(state);
            // A panic, which the hook reports, must not prevent later closes.
            let _ = catch_unwind(AssertUnwindSafe(close));
            self.state().closing -= 1;
            self.changed.notify_all();
        }
    }
}

/// Performs closes for which no thread could be started, because no later call can start one.
impl Drop for Inner {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let queued = core::mem::take(&mut state.queued);
        if !queued.is_empty() {
            // Without a thread, the values remain open: their close may block.
            let _ = spawn_thread(Box::new(move || queued.into_iter().for_each(|close| close())));
        }
    }
}

fn spawn_thread(run: PendingClose) -> io::Result<()> {
    std::thread::Builder::new().name("close".to_owned()).spawn(run).map(drop)
}

/// Queue with one thread.
impl Default for CloseQueue {
    fn default() -> Self {
        Self::new(1)
    }
}

impl fmt::Debug for CloseQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closes").field("count", &self.0.state().count()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(90);

    /// Value whose drop sends its number, and then blocks until the receiver gets a message.
    struct Blocking(Sender<u32>, u32, Receiver<()>);

    impl Drop for Blocking {
        fn drop(&mut self) {
            self.0.send(self.1).unwrap();
            let _ = self.2.recv();
        }
    }

    #[test]
    fn closes_are_counted_from_the_queue_on_and_only_so_many_block_at_once() {
        let closes = CloseQueue::new(2);
        let (started, begins) = channel();
        let mut releases = Vec::new();
        for number in 0..5 {
            let (release, released) = channel();
            releases.push(release);
            closes.close(Blocking(started.clone(), number, released));
        }
        assert_eq!(closes.pending_count(), 5);
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
        assert_eq!(closes.pending_count(), 0);
    }

    /// Returns a value whose drop sends its number and does not block.
    fn value(started: &Sender<u32>, number: u32) -> Blocking {
        let (_, released) = channel();
        Blocking(started.clone(), number, released)
    }

    fn refuse(_: PendingClose) -> io::Result<()> {
        Err(io::ErrorKind::OutOfMemory.into())
    }

    #[test]
    fn closes_without_a_thread_remain_queued_and_a_later_call_starts_them() {
        let later_calls: [fn(&CloseQueue); 2] =
            [|closes| assert!(closes.wait(LIMIT)), |closes| assert!(closes.pending_count() <= 2)];
        for call in later_calls {
            let closes = CloseQueue::new(8);
            let (started, begins) = channel();
            closes.queue(value(&started, 0));
            closes.start(refuse);
            closes.queue(value(&started, 1));
            closes.start(refuse);
            assert!(begins.try_recv().is_err());
            call(&closes);
            let mut numbers = [(); 2].map(|()| begins.recv_timeout(LIMIT).unwrap());
            numbers.sort_unstable();
            assert_eq!(numbers, [0, 1]);
            assert!(closes.wait(LIMIT));
        }
    }

    /// A VM's last connection owns the only queue, so that both are dropped together.
    #[test]
    fn closes_without_a_thread_are_performed_when_their_owner_is_dropped() {
        let closes = CloseQueue::new(8);
        let (started, begins) = channel();
        closes.queue(value(&started, 0));
        closes.start(refuse);
        drop(closes);
        assert_eq!(begins.recv_timeout(LIMIT), Ok(0));
    }

    #[test]
    fn each_close_needs_one_thread() {
        let closes = CloseQueue::new(8);
        let (started_sender, begins) = channel();
        let started = RefCell::new(Vec::new());
        for number in 0..3 {
            closes.queue(value(&started_sender, number));
            closes.start(|run| {
                started.borrow_mut().push(run);
                Ok(())
            });
        }
        let started = started.into_inner();
        assert_eq!(started.len(), 3);
        started.into_iter().for_each(|run| run());
        assert_eq!(begins.try_iter().collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(closes.pending_count(), 0);
    }
}
