//! Evaluation of a minimum: whether the operations that completed while requests were queued meet
//! it.

use core::time::Duration;

use suimon_quantity::Time;

use crate::history::FlowTotals;

/// Number of samples of the evaluation window: five seconds.
const SAMPLES: usize = 10;
/// Permitted shortfall as a percentage of the minimum.
const TOLERANCE_PERCENT: u128 = 2;

#[derive(Clone, Debug, Default)]
pub(crate) struct MinimumMonitor {
    samples: [(Time, FlowTotals); SAMPLES],
    taken: usize,
    /// Start of the current shortfall, and the counters at that time; `None` if the minimum is met.
    unmet: Option<(Time, FlowTotals)>,
    is_reported: bool,
}

/// Change of a minimum's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MinimumChange {
    /// The minimum has been unmet for `lasting`, a time in which these numbers of operations were
    /// guaranteed, demanded and delivered.
    Unmet {
        lasting: Duration,
        guaranteed_operations: u64,
        demanded_operations: u64,
        delivered_operations: u64,
    },
    /// The minimum is met again after it was unmet for `lasted` and [`MinimumChange::Unmet`] was
    /// returned.
    Met { lasted: Duration },
}

impl MinimumMonitor {
    /// Takes a sample and evaluates the last five seconds. `cost_max` is the cost of the largest
    /// recent request; a shortfall of two such requests is tolerated. `told_after` is the time for
    /// which the minimum must be unmet before it is reported. Returns a change to report, if any.
    pub(crate) fn sample(
        &mut self,
        now: Time,
        totals: &FlowTotals,
        cost_max: u32,
        told_after: Duration,
    ) -> Option<MinimumChange> {
        // The shortfall began no later than at the previous sample.
        let previous = self.samples.get(self.taken.wrapping_sub(1) % SAMPLES).copied()?;
        let slot = self.samples.get_mut(self.taken % SAMPLES)?;
        let (start, before) = core::mem::replace(slot, (now, *totals));
        self.taken += 1;
        if self.taken <= SAMPLES {
            return None;
        }
        let guaranteed =
            u128::from(totals.guaranteed_operations.wrapping_sub(before.guaranteed_operations));
        let delivered =
            u128::from(totals.delivered_operations.wrapping_sub(before.delivered_operations));
        let busy_ns = totals.busy_ns.wrapping_sub(before.busy_ns);
        let window_ns = now.as_ns().saturating_sub(start.as_ns());
        let has_backlog = u128::from(busy_ns) * 2 > u128::from(window_ns);
        let missing = guaranteed * (100 - TOLERANCE_PERCENT) / 100;
        let is_unmet = has_backlog && delivered + 2 * u128::from(cost_max) < missing;
        if !is_unmet {
            let (start, _) = self.unmet.take()?;
            let was_told = core::mem::take(&mut self.is_reported);
            return was_told.then(|| MinimumChange::Met { lasted: now.since(start) });
        }
        let (start, before) = *self.unmet.get_or_insert(previous);
        let lasting = now.since(start);
        if self.is_reported || lasting < told_after {
            return None;
        }
        self.is_reported = true;
        Some(MinimumChange::Unmet {
            lasting,
            guaranteed_operations: totals
                .guaranteed_operations
                .wrapping_sub(before.guaranteed_operations),
            demanded_operations: totals
                .demanded_operations
                .wrapping_sub(before.demanded_operations),
            delivered_operations: totals
                .delivered_operations
                .wrapping_sub(before.delivered_operations),
        })
    }
}
