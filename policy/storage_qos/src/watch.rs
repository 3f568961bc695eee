//! Whether a minimum is met, judged by what completed while there was a backlog.

use core::time::Duration;

use suimon_quantity::Time;

use crate::history::FlowTotals;

/// It is judged over so many samples: five seconds.
const SAMPLES: usize = 10;
/// By so many percent it may be missed.
const TOLERANCE_PERCENT: u128 = 2;

#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    samples: [(Time, FlowTotals); SAMPLES],
    taken: usize,
    /// Since when it is not met, and what had been done then.
    unmet: Option<(Time, FlowTotals)>,
    is_told: bool,
}

/// What has been found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// It is not met for so long, and this was done meanwhile.
    Unmet { lasting: Duration, entitled: u64, demanded: u64, delivered: u64 },
    /// It was told that it is not met, and it is met.
    Met { lasted: Duration },
}

impl Watch {
    /// `cost_max`: what its largest request counts as; two of them may always be missing.
    pub(crate) fn sample(
        &mut self,
        now: Time,
        totals: &FlowTotals,
        cost_max: u32,
        told_after: Duration,
    ) -> Option<Finding> {
        // Not met since the sample before this one, at the latest.
        let previous = self.samples.get(self.taken.wrapping_sub(1) % SAMPLES).copied()?;
        let slot = self.samples.get_mut(self.taken % SAMPLES)?;
        let (since, before) = core::mem::replace(slot, (now, *totals));
        self.taken += 1;
        if self.taken <= SAMPLES {
            return None;
        }
        let entitled = u128::from(totals.entitled.wrapping_sub(before.entitled));
        let delivered = u128::from(totals.delivered.wrapping_sub(before.delivered));
        let busy_ns = totals.busy_ns.wrapping_sub(before.busy_ns);
        let window_ns = now.as_ns().saturating_sub(since.as_ns());
        let has_backlog = u128::from(busy_ns) * 2 > u128::from(window_ns);
        let missing = entitled * (100 - TOLERANCE_PERCENT) / 100;
        let is_unmet = has_backlog && delivered + 2 * u128::from(cost_max) < missing;
        if !is_unmet {
            let (since, _) = self.unmet.take()?;
            let was_told = core::mem::take(&mut self.is_told);
            return was_told.then(|| Finding::Met { lasted: now.since(since) });
        }
        let (since, before) = *self.unmet.get_or_insert(previous);
        let lasting = now.since(since);
        if self.is_told || lasting < told_after {
            return None;
        }
        self.is_told = true;
        Some(Finding::Unmet {
            lasting,
            entitled: totals.entitled.wrapping_sub(before.entitled),
            demanded: totals.demanded.wrapping_sub(before.demanded),
            delivered: totals.delivered.wrapping_sub(before.delivered),
        })
    }
}
