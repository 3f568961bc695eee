//! The clocks by which flows are served, and what moves them.

use suimon_quantity::Time;

use crate::disk::Disk;
use crate::flow::Flow;
use crate::pace::{Fine, fine};
use crate::records::Units;

/// Virtual times start again before they end.
const VIRTUAL_MAX: u64 = 1 << 62;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clocks {
    /// What whoever was served last by weight had been served before.
    pub(crate) virtual_time: u64,
    /// How far the reservation clock is behind time.
    pub(crate) lost: Fine,
}

impl Clocks {
    /// The reservation clock.
    #[inline]
    pub(crate) fn reservation(&self, now: Time) -> Fine {
        fine(now).saturating_sub(self.lost)
    }

    /// Whether virtual time must start again.
    #[inline]
    pub(crate) const fn is_long(&self) -> bool {
        self.virtual_time > VIRTUAL_MAX
    }

    /// Accounts for a request that goes to the device now.
    #[inline]
    pub(crate) fn start(
        &mut self,
        now: Time,
        disk: &mut Disk,
        flow: &mut Flow,
        units: Units,
        is_due: bool,
    ) {
        let clock = self.reservation(now);
        let cost = units.cost;
        flow.cost_max = flow.cost_max.max(cost);
        flow.charge_maximums(now, cost, units.bytes);
        flow.served = flow.served.max(self.virtual_time);
        if !is_due {
            self.virtual_time = flow.served;
        }
        flow.charge_share(cost, self.virtual_time, is_due);
        if let Some(minimum) = &mut flow.minimum {
            if is_due {
                // All that is owed and cannot be made up for is forgotten for all alike.
                let most = minimum.kept().saturating_mul(2);
                self.lost += minimum.lag(clock).saturating_sub(most);
            }
            minimum.charge(clock, cost);
        }
        disk.in_flight += 1;
        flow.in_flight += 1;
    }
}
