//! What moves did.

use serde::{Deserialize, Serialize};
use suimon_quantity::{ProcessorId, QueueId};

use crate::marks::EFFECT_MEASUREMENTS;
use crate::{Figures, Load, Move, Reason};

/// What was measured before a move and after it. Other moves at the same time, and a load
/// that changes, are in it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// The queue.
    pub queue: QueueId,
    /// Its owner before.
    pub from: ProcessorId,
    /// Its owner after.
    pub to: ProcessorId,
    /// What had been expected.
    pub predicted: Figures,
    /// What was measured: before, when the move was decided; after, as the mean of some
    /// measurements after it was carried out.
    pub measured: Figures,
}

/// A move whose effect is not known yet.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    effect: Effect,
    is_carried_out: bool,
    /// A queue that moved within a measurement was partly at either processor.
    is_first_past: bool,
    measurements: u32,
    from_sum: Load,
    to_sum: Load,
    /// What the queue took before, if it was moved to get more.
    took: Option<Load>,
    takes_sum: Load,
}

impl Watch {
    pub(crate) fn new(of: &Move, from_before: Load, to_before: Load, took: Load) -> Self {
        let measured = Figures { from_before, to_before, ..Figures::default() };
        let Move { queue, from, to, predicted, reason } = *of;
        let is_to_get_more = matches!(reason, Reason::Overloaded { saturated: true, .. });
        Self {
            effect: Effect { queue, from, to, predicted, measured },
            is_carried_out: false,
            is_first_past: false,
            measurements: 0,
            from_sum: Load::ZERO,
            to_sum: Load::ZERO,
            took: is_to_get_more.then_some(took),
            takes_sum: Load::ZERO,
        }
    }

    pub(crate) fn handle_carried_out(&mut self) {
        self.is_carried_out = true;
    }

    /// Something was measured; `busy` says how busy a processor was, and the queue took
    /// `takes`. Returns the effect when it is known.
    pub(crate) fn handle_measured(
        &mut self,
        busy: impl Fn(ProcessorId) -> Load,
        takes: Load,
    ) -> Option<Effect> {
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
        self.takes_sum = self.takes_sum + takes;
        if self.measurements < EFFECT_MEASUREMENTS {
            return None;
        }
        self.effect.measured.from_after = Load::from_ppm(self.from_sum.ppm() / self.measurements);
        self.effect.measured.to_after = Load::from_ppm(self.to_sum.ppm() / self.measurements);
        Some(self.effect)
    }

    /// Whether the queue was moved to get more and gets less.
    pub(crate) fn disappoints(&self) -> bool {
        let takes = Load::from_ppm(self.takes_sum.ppm() / self.measurements.max(1));
        self.took.is_some_and(|took| takes < took)
    }
}
