//! The threads of the teams, from start to end.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::driver::{TeamDriver, Turn};
use super::work::work;
use crate::shared::Shared;

/// What may wait for the worker: the events of so many turns, and one socket for each member.
const JOBS_WAITING: usize = 4096;

/// The threads. They end when this is stopped or dropped.
pub(crate) struct TeamThreads {
    shared: Arc<Shared>,
    running: Vec<JoinHandle<()>>,
}

impl TeamThreads {
    /// # Errors
    /// No thread could be made.
    pub(crate) fn start(shared: &Arc<Shared>, retry_first: Duration) -> io::Result<Self> {
        let (jobs, receiver) = sync_channel(JOBS_WAITING);
        let mut driver = TeamDriver::new(shared.clone(), retry_first, jobs);
        let mut threads = Self { shared: shared.clone(), running: Vec::new() };
        threads.spawn("suimon-team", move || {
            let mut woke = BTreeSet::new();
            while let Turn::Until(due) = driver.turn(&woke) {
                woke = driver.wait(due);
            }
        })?;
        let worker = shared.clone();
        threads.spawn("suimon-team-wrk", move || work(&worker, &receiver))?;
        Ok(threads)
    }

    fn spawn(&mut self, name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let teller = DefectTeller(self.shared.clone());
        let thread = Builder::new().name(name.to_owned()).spawn(move || {
            let _teller = teller;
            body();
        })?;
        self.running.push(thread);
        Ok(())
    }

    /// Tells partners that we leave, and ends the threads.
    pub(crate) fn stop(&mut self) {
        self.shared.teams.inbox().stop = true;
        self.shared.teams.wake.wake();
        // The worker ends when the first one, which asks it, has ended.
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

/// Tells of a thread that dies of a defect: without it, a failed member would go on to
/// be sent frames, so the daemon cannot go on either.
struct DefectTeller(Arc<Shared>);

impl Drop for DefectTeller {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.listener.handle_end();
        }
    }
}
