//! Sleep of a worker, and check of descriptors without sleep.

use suimon_ports::{ExpectedInput, TaskDescriptors};
use suimon_quantity::Time;

use super::{SLEEP_MAX, WorkerLoop};
use crate::owned::Readiness;

impl WorkerLoop {
    pub(super) fn sleep(&mut self) {
        self.account();
        self.engine.forwarder().sweep_expired(self.now);
        self.link.counters.sleeps.add(1);
        let deadline = self.next_deadline();
        self.now = self.wait.now();
        // Rounds that moved frames are not followed by a sleep.
        self.stages.end_round(self.now, false);
        self.engine.accounting().divide_pending_time();
        self.stages.publish(&self.link.counters.stages, true);
        let expects = self.work.expected_input();
        self.link.round_progress.end_round();
        self.wait_until(Some(deadline));
        self.now = self.wait.now();
        self.link.round_progress.begin_round(self.now);
        self.has_slept_in_flight |= expects == ExpectedInput::Completions;
        self.stages.end_sleep(self.now);
        self.stages.publish(&self.link.counters.stages, false);
        self.wake_ready();
    }

    fn next_deadline(&self) -> Time {
        let throttled = self.sources.iter_active().filter_map(|owned| match owned.readiness {
            Readiness::Throttled(deadline) => Some(deadline),
            _ => None,
        });
        let ageing = self.engine.next_deadline();
        throttled
            .chain(ageing)
            .chain(self.work.next_deadline())
            .min()
            .unwrap_or(Time::NEVER)
            .min(self.now + SLEEP_MAX)
    }

    /// Checks descriptors without blocking and serves the readable queues.
    pub(super) fn poll_descriptors(&mut self) {
        self.wait_until(None);
        self.wake_ready();
    }

    /// Determines the queues whose descriptors are readable. Blocks until one is, at most until
    /// `deadline`; `None` does not block.
    fn wait_until(&mut self, deadline: Option<Time>) {
        self.ready.clear();
        if let Err(error) = self.wait.wait(deadline, &mut self.ready) {
            tracing::error!(worker = %self.link.id, %error, "cannot poll queues");
        }
    }

    fn wake_ready(&mut self) {
        self.descriptors_checked_at = self.now;
        for token in &self.ready {
            match TaskDescriptors::task_token(*token) {
                Some(token) => self.work.handle_readable(token),
                None => self.sources.wake(usize::try_from(*token).unwrap_or(usize::MAX)),
            }
        }
    }
}
