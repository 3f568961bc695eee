//! Measured effects of moves.

use serde::{Deserialize, Serialize};
use suimon_quantity::{QueueId, WorkerId};

use crate::thresholds::EFFECT_MEASUREMENTS;
use crate::{Load, Move, MoveLoads, MoveReason};

/// Predicted and measured effect of a move. The measured one includes simultaneous moves and load
/// changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveEffect {
    /// Queue that was moved.
    pub queue: QueueId,
    /// Worker that serviced the queue before.
    pub from: WorkerId,
    /// Worker that services the queue now.
    pub to: WorkerId,
    /// Loads predicted when the move was decided.
    pub predicted: MoveLoads,
    /// Measured loads: those before the move at the time of the decision, those after the move as
    /// the mean of several measurements after it was carried out.
    pub measured: MoveLoads,
}

/// Move whose effect is still being measured.
#[derive(Clone, Debug)]
pub(crate) struct PendingEffect {
    effect: MoveEffect,
    is_carried_out: bool,
    /// True once the measurement during which the queue moved is over: that one covers both
    /// workers.
    is_first_past: bool,
    measurements: u32,
    from_sum: Load,
    to_sum: Load,
    /// Load of the queue before the move, if it was moved for a larger share of a saturated worker.
    load_before: Option<Load>,
    queue_load_sum: Load,
}

impl PendingEffect {
    pub(crate) fn new(decided: &Move, from_before: Load, to_before: Load, took: Load) -> Self {
        let measured = MoveLoads { from_before, to_before, ..MoveLoads::default() };
        let Move { queue, from, to, predicted, reason } = *decided;
        let is_to_get_more =
            matches!(reason, MoveReason::Overloaded { is_worker_saturated: true, .. });
        Self {
            effect: MoveEffect { queue, from, to, predicted, measured },
            is_carried_out: false,
            is_first_past: false,
            measurements: 0,
            from_sum: Load::ZERO,
            to_sum: Load::ZERO,
            load_before: is_to_get_more.then_some(took),
            queue_load_sum: Load::ZERO,
        }
    }

    pub(crate) fn handle_carried_out(&mut self) {
        self.is_carried_out = true;
    }

    /// Processes one measurement: `busy` returns the total load of a worker, `load` is the load of
    /// the queue. Returns the effect after [`EFFECT_MEASUREMENTS`] measurements, `None` before.
    pub(crate) fn handle_measured(
        &mut self,
        busy: impl Fn(WorkerId) -> Load,
        load: Load,
    ) -> Option<MoveEffect> {
        if !self.is_carried_out {
            return None;
        }
        if !self.is_first_past {
            self.is_first_past = true;
            return None;
        }
        self.measurements += 1;
        self.from_sum = self.from_sum + busy(self.effect.from);
        self.to_sum = self.to_sum + busy(self.effect.to);
        self.queue_load_sum = self.queue_load_sum + load;
        if self.measurements < EFFECT_MEASUREMENTS {
            return None;
        }
        self.effect.measured.from_after = Load::from_ppm(self.from_sum.ppm() / self.measurements);
        self.effect.measured.to_after = Load::from_ppm(self.to_sum.ppm() / self.measurements);
        Some(self.effect)
    }

    /// Returns true if the queue was moved for a larger share and got a smaller one.
    pub(crate) fn has_unequal_shares(&self) -> bool {
        let mean_load = Load::from_ppm(self.queue_load_sum.ppm() / self.measurements.max(1));
        self.load_before.is_some_and(|took| mean_load < took)
    }
}
