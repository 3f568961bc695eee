//! Processing of load measurements.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_quantity::{Time, WorkerId};

use crate::spec::VmqMode;
use crate::thresholds::MEASUREMENT_PERIOD_MIN;
use crate::{Load, Measurements, Move, MoveEffect, Vmq};

/// Moves and effects that result from one call of [`Vmq::observe`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObserveResult {
    /// Queues to move. The caller reports each outcome with [`Vmq::handle_moved`].
    pub moves: Vec<Move>,
    /// Effects of earlier moves that have been measured completely.
    pub effects: Vec<MoveEffect>,
}

impl Vmq {
    /// Processes measurements and decides moves. Call it about four times a second; measurements of
    /// less than [`MEASUREMENT_PERIOD_MIN`] are added up until they reach it.
    pub fn observe(&mut self, measurements: &Measurements, now: Time) -> ObserveResult {
        self.add_up(measurements);
        if self.period < MEASUREMENT_PERIOD_MIN {
            return ObserveResult::default();
        }
        self.take_measured();
        let mut moves = self.vacate_disallowed_workers(now);
        if self.spec.enabled && self.spec.mode == VmqMode::Dynamic {
            self.pack_delay.handle_time(now);
            self.record_hot_workers(now);
            let shed = self.shed(now);
            if !shed.is_empty() {
                self.pack_delay.handle_shed(now);
            }
            self.update_emptiable_since(now);
            if shed.is_empty() && moves.is_empty() {
                moves = self.pack(now);
            }
            moves.extend(shed);
        }
        ObserveResult { moves, effects: self.take_effects() }
    }

    fn add_up(&mut self, measurements: &Measurements) {
        self.period = self.period.saturating_add(measurements.period);
        for measured in &measurements.queues {
            if let Some(queue) = self.queues.get_mut(&measured.queue) {
                queue.busy_ns = queue.busy_ns.saturating_add(measured.busy_ns);
            }
        }
        for measured in &measurements.workers {
            if let Some(worker_state) = self.workers.get_mut(&measured.worker) {
                worker_state.busy_ns = worker_state.busy_ns.saturating_add(measured.busy_ns);
            }
        }
    }

    fn take_measured(&mut self) {
        let period = core::mem::take(&mut self.period);
        for queue in self.queues.values_mut() {
            let busy_ns = core::mem::take(&mut queue.busy_ns);
            queue.load.push(Load::from_busy_time(busy_ns, period));
            if queue.moving_from.is_none() {
                queue.measurement_count = queue.measurement_count.saturating_add(1);
            }
        }
        for (id, worker_state) in &mut self.workers {
            worker_state
                .busy
                .push(Load::from_busy_time(core::mem::take(&mut worker_state.busy_ns), period));
            let queues = self.queues.values().filter(|queue| queue.worker == *id);
            let queue_load: Load = queues.map(|queue| queue.load.latest()).sum();
            // An unknown load is assumed to be unchanged.
            if worker_state.has_queue_changes {
                worker_state.other_load.push(worker_state.other_load.latest());
            } else {
                worker_state.other_load.push(worker_state.busy.latest() - queue_load);
            }
        }
        self.note_disturbed();
    }

    /// Marks the workers of queues in transit: their load of other work is unknown in the next
    /// measurement.
    fn note_disturbed(&mut self) {
        for worker_state in self.workers.values_mut() {
            worker_state.has_queue_changes = false;
        }
        for queue in self.queues.values() {
            let Some(from) = queue.moving_from else { continue };
            for id in [from, queue.worker] {
                if let Some(worker_state) = self.workers.get_mut(&id) {
                    worker_state.has_queue_changes = true;
                }
            }
        }
    }

    fn take_effects(&mut self) -> Vec<MoveEffect> {
        let Self { workers, queues, .. } = self;
        let busy = |id: WorkerId| {
            workers.get(&id).map_or(Load::ZERO, |worker_state| worker_state.busy.latest())
        };
        let mut effects = Vec::new();
        let mut disappointing = Vec::new();
        self.pending_effects.retain(|queue, watch| {
            let queue_load = queues.get(queue).map_or(Load::ZERO, |record| record.load.latest());
            let Some(effect) = watch.handle_measured(busy, queue_load) else { return true };
            effects.push(effect);
            if watch.has_unequal_shares() {
                disappointing.push(effect.to);
            }
            false
        });
        for id in disappointing {
            if let Some(worker_state) = self.workers.get_mut(&id) {
                worker_state.has_unequal_shares = true;
            }
        }
        effects
    }

    /// Returns the time for which it must be possible to empty a worker before it is emptied. It
    /// grows after wrong decisions, see [`PACK_DELAY_MIN`](crate::thresholds::PACK_DELAY_MIN).
    pub const fn pack_delay(&self) -> Duration {
        self.pack_delay.delay()
    }
}
