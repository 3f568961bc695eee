//! Start and end of the team threads.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::driver::{PollResult, TeamDriver};
use super::job::run_worker;
use crate::shared::Shared;

/// Capacity of the worker's queue: jobs of some thousand iterations of the team thread, and one
/// socket per member.
const JOBS_WAITING: usize = 4096;

/// Team threads. [`Self::stop`] or dropping this value ends them.
pub(crate) struct TeamThreads {
    shared: Arc<Shared>,
    running: Vec<JoinHandle<()>>,
}

impl TeamThreads {
    /// Starts the threads.
    ///
    /// # Errors
    /// Fails if no thread can be created.
    pub(crate) fn start(shared: &Arc<Shared>, retry_first: Duration) -> io::Result<Self> {
        let (jobs, receiver) = sync_channel(JOBS_WAITING);
        let mut driver = TeamDriver::new(shared.clone(), retry_first, jobs);
        let mut threads = Self { shared: shared.clone(), running: Vec::new() };
        threads.spawn("suimon-team", move || {
            let mut readable = BTreeSet::new();
            while let PollResult::Until(due) = driver.poll(&readable) {
                readable = driver.wait(due);
            }
        })?;
        let worker = shared.clone();
        threads.spawn("suimon-team-wrk", move || run_worker(&worker, &receiver))?;
        Ok(threads)
    }

    fn spawn(&mut self, name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let teller = PanicGuard(self.shared.clone());
        let thread = Builder::new().name(name.to_owned()).spawn(move || {
            let _teller = teller;
            body();
        })?;
        self.running.push(thread);
        Ok(())
    }

    /// Sends the last LACPDUs to partners, ends the threads and waits for them.
    pub(crate) fn stop(&mut self) {
        self.shared.teams.inbox().is_stop_requested = true;
        self.shared.teams.wake.wake();
        // The worker ends when the team thread has dropped its end of the queue.
        for thread in self.running.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the teams panicked");
            }
        }
    }
}

impl Drop for TeamThreads {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Ends the daemon if a team thread panics: otherwise frames would be sent to failed members.
struct PanicGuard(Arc<Shared>);

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.listener.handle_end();
        }
    }
}
