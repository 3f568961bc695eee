//! Polling of the ingress queues in one round, and processing of a batch.

use suimon_ports::ServedDevice;

use super::{EMPTY_POLLS_MAX, WorkerLoop};
use crate::owned::{Readiness, watch_fault};
use crate::stage::Stage;
use crate::stage_clock::IngressEgressTimes;

impl WorkerLoop {
    pub(super) fn poll_sources(&mut self) -> bool {
        let mut had_frames = false;
        for index in 0..self.sources.active_count() {
            let Some(token) = self.sources.active_token(index) else { break };
            let Some(source) = self.sources.get_mut(token) else { continue };
            match source.source.readiness {
                Readiness::Polling => {}
                Readiness::Waiting => continue,
                Readiness::Throttled(deadline) if self.now < deadline => continue,
                Readiness::Throttled(_) => {
                    source.source.readiness = Readiness::Polling;
                    if let Err(error) =
                        self.wait.watch(source.source.source.wake_fd(), token as u64)
                    {
                        let fault = watch_fault(&error);
                        self.abandon(token, fault);
                        continue;
                    }
                }
            }
            had_frames |= self.poll_source(token);
        }
        self.sources.remove_waiting_from_active();
        had_frames
    }

    /// Receives one batch from one queue and forwards it. Returns true if there were frames.
    fn poll_source(&mut self, token: usize) -> bool {
        let published = self.engine.published();
        let Some(source) = self.sources.get_mut(token) else { return false };
        let owned = &mut source.source;
        let port = owned.ingress.and_then(|ingress| published.ports.get(ingress.slot.index()));
        let bandwidth = port.and_then(|port| port.bandwidth_limit.as_ref());
        if let Some(limit) = bandwidth {
            if let Err(deadline) = limit.check(self.now) {
                owned.source.disarm();
                self.wait.unwatch(owned.source.wake_fd());
                owned.readiness = Readiness::Throttled(deadline);
                return false;
            }
        }
        self.batch.clear();
        self.link.round_progress.served_device.set(ServedDevice::Port(owned.id.port));
        let outcome = owned.source.receive(&mut self.batch);
        let frames = self.batch.len();
        if frames > 0 {
            source.empty_polls = 0;
            let bytes = self.batch.total_bytes();
            owned.count(frames as u64, bytes as u64);
            self.link.counters.batches.add(1);
            self.link.counters.frames.add(frames as u64);
            if let Some(limit) = bandwidth {
                // A batch is far smaller than 2^32 bytes.
                limit.charge(self.now, bytes as u32);
            }
            if let Some(ingress) = owned.ingress {
                let before = self.stages.ingress_egress_times();
                let mut probe = self.stages.probe(&*self.wait);
                self.engine.handle_batch(self.now, ingress, &mut self.batch, &mut probe);
                self.charge(token, (frames as u64, bytes as u64), before);
            }
            if self.batch.has_tails() {
                self.release(token);
            }
        } else if outcome.is_ok() {
            source.empty_polls += u32::from(self.has_moved);
            if owned.source.is_polled_by_fd() || source.empty_polls > EMPTY_POLLS_MAX {
                source.empty_polls = 0;
                self.sources.arm(token);
            }
            self.mark(Stage::Poll);
        }
        if let Err(fault) = outcome {
            self.abandon(token, fault);
        }
        frames > 0
    }

    /// Charges the queue for the batch, and updates its cost estimate if this round is timed.
    /// `before`: times of this round before the batch.
    fn charge(
        &mut self,
        token: usize,
        (frames, bytes): (u64, u64),
        before: Option<IngressEgressTimes>,
    ) {
        let Some(source) = self.sources.get_mut(token) else { return };
        let cost = &source.source.cost;
        let is_all_posted = !self.engine.needs_flush();
        let ledger = self.engine.accounting();
        ledger.charge_ingress(cost, frames, bytes);
        if let (Some(before), Some(after)) = (before, self.stages.ingress_egress_times()) {
            let posted_ns = if is_all_posted { after.egress_ns - before.egress_ns } else { 0 };
            let ns = after.ingress_ns - before.ingress_ns;
            ledger.update_ingress_estimate(cost, (frames, bytes), ns, posted_ns);
        }
    }

    /// Releases the buffers of a processed batch: no tail is in use any more, and the source may
    /// return their memory to the guest.
    fn release(&mut self, token: usize) {
        self.batch.clear();
        if let Some(source) = self.sources.get_mut(token) {
            source.source.source.release();
        }
        self.mark(Stage::Notify);
    }
}
