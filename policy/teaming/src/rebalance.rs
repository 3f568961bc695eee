//! Load-based assignment of flow buckets to members (algorithm `Dynamic`).

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::MemberSlot;
use crate::distribution::BUCKETS;
use crate::item_assignment::Weights;
use crate::slots::{PerSlot, SlotSet};

/// Interval of load measurements: short enough to follow a load within a few seconds, long enough
/// to contain many round trips of a flow.
pub const REBALANCE_PERIOD: Duration = Duration::from_secs(1);

/// Number of bytes per period over all members below which no bucket is moved.
const LOAD_MIN_BYTES: u64 = 1 << 20;
/// Load of the busiest member, in percent of the mean, from which buckets are moved.
const START_PERCENT: u128 = 110;
/// Load of the busiest member, in percent of the mean, below which moving stops.
const STOP_PERCENT: u128 = 103;
/// Maximum number of buckets moved in one period.
const MOVES_MAX: usize = BUCKETS / 16;
/// Number of periods for which a moved bucket stays, so that buckets do not follow a fluctuating
/// load.
const PINNED_PERIODS: u8 = 8;
/// Number of periods after which a bucket whose frames have not paused, and so still leave by the
/// previous member, is assigned to that member again.
const MOVE_TIMEOUT_PERIODS: u8 = 2;

/// Traffic of a bucket in one period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketLoad {
    /// Bytes that the bucket carried.
    pub bytes: u64,
    /// Member by which the last frame left ([`FlowletState::member`]); `None` if there was no
    /// frame.
    ///
    /// [`FlowletState::member`]: crate::FlowletState::member
    pub member: Option<MemberSlot>,
}

/// Rebalancing state of a bucket.
#[derive(Clone, Copy, Debug, Default)]
struct BucketState {
    /// Traffic in bytes per period, smoothed over about four periods.
    load: u64,
    /// Number of periods for which the bucket must not be moved.
    pinned_periods: u8,
    /// Number of periods for which frames of the bucket have left by a member other than its
    /// target.
    pending_periods: u8,
}

/// Load-based rebalancing: moves buckets from busy members to less busy ones.
#[derive(Clone, Debug)]
pub(crate) struct Rebalancer {
    buckets: Box<[BucketState]>,
}

impl Default for Rebalancer {
    fn default() -> Self {
        Self { buckets: vec![BucketState::default(); BUCKETS].into_boxed_slice() }
    }
}

impl Rebalancer {
    /// Processes the traffic of each bucket in the last period, and updates `assignment`, the
    /// target member by bucket. `weights` are the capacities of the active members.
    pub(crate) fn handle_period(
        &mut self,
        loads: &[BucketLoad; BUCKETS],
        assignment: &mut [MemberSlot; BUCKETS],
        active: SlotSet,
        weights: &Weights,
    ) {
        let mut totals = PerSlot::<u64>::default();
        for ((memory, load), slot) in self.buckets.iter_mut().zip(loads).zip(assignment.iter_mut())
        {
            memory.observe(load, slot, active);
            let total = totals.at_mut(*slot);
            *total = total.saturating_add(memory.load);
        }
        let is_busy = totals.iter().map(|(_, total)| u128::from(*total)).sum::<u128>()
            >= u128::from(LOAD_MIN_BYTES);
        if is_busy && is_uneven(&totals, active, weights, START_PERCENT) {
            self.even_out(&mut totals, assignment, active, weights);
        }
    }

    fn even_out(
        &mut self,
        totals: &mut PerSlot<u64>,
        assignment: &mut [MemberSlot; BUCKETS],
        active: SlotSet,
        weights: &Weights,
    ) {
        for _ in 0..MOVES_MAX {
            let pair = extremes(totals, active, weights);
            let Some((from, to)) = pair.filter(|(from, to)| from != to) else { return };
            let Some(bucket) = self.best(from, to, totals, assignment, weights) else { return };
            let (Some(memory), Some(slot)) =
                (self.buckets.get_mut(bucket), assignment.get_mut(bucket))
            else {
                return;
            };
            *slot = to;
            memory.pinned_periods = PINNED_PERIODS;
            *totals.at_mut(from) = totals.at(from).saturating_sub(memory.load);
            *totals.at_mut(to) = totals.at(to).saturating_add(memory.load);
            if !is_uneven(totals, active, weights, STOP_PERCENT) {
                return;
            }
        }
    }

    /// Returns the bucket of member `from` whose move to `to` balances the two best; `None` if no
    /// move helps. This is the largest that does not make `to` the busier one, otherwise the
    /// smallest that leaves `to` at least 10 % less busy than `from` is now. A bucket that alone
    /// makes its member the busiest is not moved, because the move would only shift the overload.
    fn best(
        &self,
        from: MemberSlot,
        to: MemberSlot,
        totals: &PerSlot<u64>,
        assignment: &[MemberSlot; BUCKETS],
        weights: &Weights,
    ) -> Option<usize> {
        let busy = (u128::from(*totals.at(from)), u128::from(*weights.at(from)));
        let idle = (u128::from(*totals.at(to)), u128::from(*weights.at(to)));
        // Condition for balance: (busy.0 − ideal) / busy.1 = (idle.0 + ideal) / idle.1
        let difference = (busy.0 * idle.1).saturating_sub(idle.0 * busy.1);
        let ideal = difference.checked_div(busy.1 + idle.1).unwrap_or_default();
        let movable = self
            .buckets
            .iter()
            .zip(assignment)
            .enumerate()
            .filter(|(_, (memory, slot))| **slot == from && memory.is_movable())
            .map(|(bucket, (memory, _))| (u128::from(memory.load), bucket));
        let fitting = movable.clone().filter(|(load, _)| *load <= ideal).max();
        let helps = |load: u128| (idle.0 + load) * busy.1 * 10 <= busy.0 * idle.1 * 9;
        let bucket = fitting.or_else(|| movable.filter(|(load, _)| helps(*load)).min());
        bucket.map(|(_, bucket)| bucket)
    }
}

impl BucketState {
    fn observe(&mut self, load: &BucketLoad, assigned: &mut MemberSlot, active: SlotSet) {
        // Scaled before the addition and rounded up, so that the sum does not overflow and a small
        // load does not decay to zero immediately.
        self.load = (self.load / 4 * 3).saturating_add((load.bytes / 4).max(load.bytes.min(1)));
        self.pinned_periods = self.pinned_periods.saturating_sub(1);
        let other_member = load.member.filter(|slot| *slot != *assigned && active.contains(*slot));
        let Some(actual) = other_member.filter(|_| load.bytes > 0) else {
            self.pending_periods = 0;
            return;
        };
        self.pending_periods += 1;
        if self.pending_periods >= MOVE_TIMEOUT_PERIODS {
            *assigned = actual;
            self.pending_periods = 0;
            self.pinned_periods = PINNED_PERIODS;
        }
    }

    fn is_movable(&self) -> bool {
        self.pinned_periods == 0 && self.pending_periods == 0 && self.load > 0
    }
}

/// Returns the active members with the highest and the lowest load per capacity, the first among
/// equals; `None` without active members.
fn extremes(
    totals: &PerSlot<u64>,
    active: SlotSet,
    weights: &Weights,
) -> Option<(MemberSlot, MemberSlot)> {
    let is_busier = |a: MemberSlot, b: MemberSlot| {
        u128::from(*totals.at(a)) * u128::from(*weights.at(b))
            > u128::from(*totals.at(b)) * u128::from(*weights.at(a))
    };
    let busiest =
        active.iter().reduce(|best, slot| if is_busier(slot, best) { slot } else { best });
    let idlest = active.iter().reduce(|best, slot| if is_busier(best, slot) { slot } else { best });
    busiest.zip(idlest)
}

/// Returns true if the load per capacity of the busiest member is at least `percent` of the mean
/// over all active members.
fn is_uneven(totals: &PerSlot<u64>, active: SlotSet, weights: &Weights, percent: u128) -> bool {
    let Some((busiest, _)) = extremes(totals, active, weights) else { return false };
    let sum: u128 = active.iter().map(|slot| u128::from(*totals.at(slot))).sum();
    let capacity: u128 = active.iter().map(|slot| u128::from(*weights.at(slot))).sum();
    // The factors are below 2^64, 2^37 and about 2^7, so the products fit into 128 bits.
    u128::from(*totals.at(busiest)) * capacity * 100
        >= sum * u128::from(*weights.at(busiest)) * percent
}

#[cfg(test)]
#[path = "rebalance_tests.rs"]
mod tests;
