//! Clocks that determine the order in which flows are served: a virtual time for weights, and a
//! reservation clock for minimums.

use suimon_quantity::Time;

use crate::disk::Disk;
use crate::flow::Flow;
use crate::queued_requests::RequestCharge;
use crate::run::RequestRun;
use crate::unit_time::{FixedNs, fixed_from_time};

/// Virtual time from which all virtual times are reset to avoid an overflow.
const VIRTUAL_MAX: u64 = 1 << 62;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clocks {
    /// Virtual time of the flow that was last served by weight, before that service.
    pub(crate) virtual_time: u64,
    /// Time by which the reservation clock is behind real time, because the store could not deliver
    /// all minimums.
    pub(crate) reservation_lag: FixedNs,
}

impl Clocks {
    /// Returns the value of the reservation clock at `now`.
    #[inline]
    pub(crate) fn reservation_clock(&self, now: Time) -> FixedNs {
        fixed_from_time(now).saturating_sub(self.reservation_lag)
    }

    /// Returns true if virtual time must be reset.
    #[inline]
    pub(crate) const fn needs_virtual_time_reset(&self) -> bool {
        self.virtual_time > VIRTUAL_MAX
    }

    /// Accounts for a run of requests that are dispatched now, of a flow whose minimum is not due.
    /// Returns false, without a change, if the run would use up a maximum. The caller then submits
    /// each request separately.
    #[inline]
    pub(crate) fn account_run(
        &mut self,
        now: Time,
        disk: &mut Disk,
        flow: &mut Flow,
        run: RequestRun,
    ) -> bool {
        let clock = self.reservation_clock(now);
        if !flow.charge_maximums_if_open(now, run.total_charge.cost, run.total_charge.bytes) {
            return false;
        }
        let demanded = u64::from(run.total_charge.cost);
        disk.totals.demanded_operations = disk.totals.demanded_operations.wrapping_add(demanded);
        flow.demanded_operations = flow.demanded_operations.wrapping_add(demanded);
        flow.cost_max = flow.cost_max.max(run.charge_per_request.cost);
        flow.served_virtual_time = flow.served_virtual_time.max(self.virtual_time);
        flow.charge_share(
            run.total_charge.cost - run.charge_per_request.cost,
            self.virtual_time,
            false,
        );
        self.virtual_time = flow.served_virtual_time;
        flow.charge_share(run.charge_per_request.cost, self.virtual_time, false);
        if let Some(minimum) = &mut flow.minimum {
            minimum.charge_early(clock, run.charge_per_request.cost);
        }
        disk.in_flight += run.requests;
        flow.in_flight += run.requests;
        true
    }

    /// Accounts for a request that is dispatched now without having been queued; see
    /// [`Clocks::account_dispatch`]. Not inlined, to keep the caller small.
    #[inline(never)]
    pub(crate) fn account_immediate_dispatch(
        &mut self,
        now: Time,
        disk: &mut Disk,
        flow: &mut Flow,
        units: RequestCharge,
        is_due: bool,
    ) {
        let clock = self.reservation_clock(now);
        self.account_dispatch((now, clock), disk, flow, units, is_due);
    }

    /// Accounts for a request that is dispatched now; `clock` is the value of the reservation
    /// clock. `is_due` is true if the minimum of its flow is due.
    #[inline(always)]
    pub(crate) fn account_dispatch(
        &mut self,
        (now, clock): (Time, FixedNs),
        disk: &mut Disk,
        flow: &mut Flow,
        units: RequestCharge,
        is_due: bool,
    ) {
        let cost = units.cost;
        flow.cost_max = flow.cost_max.max(cost);
        flow.charge_maximums(now, cost, units.bytes);
        flow.served_virtual_time = flow.served_virtual_time.max(self.virtual_time);
        if !is_due {
            self.virtual_time = flow.served_virtual_time;
        }
        flow.charge_share(cost, self.virtual_time, is_due);
        if let Some(minimum) = &mut flow.minimum {
            if is_due {
                // Operations owed beyond the catch-up time are dropped equally for all flows.
                let max = minimum.lag_max().saturating_mul(2);
                self.reservation_lag += minimum.lag(clock).saturating_sub(max);
            }
            minimum.charge(clock, cost);
        }
        disk.in_flight += 1;
        flow.in_flight += 1;
    }
}
