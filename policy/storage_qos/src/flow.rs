//! Flow: the unit of scheduling. A flow is either a disk with its own limits or all disks of a
//! shared policy.

use core::time::Duration;

use suimon_quantity::{Iops, Time};

use crate::cap_meter::CapMeter;
use crate::heap::Heap;
use crate::history::{DispatchCounters, FlowTotals, GuaranteedCounter};
use crate::meter::Meter;
use crate::minimum::MinimumMeter;
use crate::queued_requests::RequestCharge;
use crate::unit_time::FixedNs;
use crate::{Limits, LimitsOwner, PolicyShare, QueueCause};

/// Increase of a flow's virtual time for one operation at weight 1.
const SHARE_ONE: u32 = 1 << 24;
/// Number of operations by which a flow's service may exceed its weighted share because of its
/// minimum. Service beyond that is not charged to its share.
const AHEAD_MAX: u32 = 256;

/// Seconds for which the scheduler stops holding back other flows for a minimum after holding back
/// had no effect: the first time, and after repeated failures. The first interval is about as long
/// as the failed attempt, so that a short slowdown of the device suspends minimums only for a short
/// time. The longest interval limits the throughput that a store with too low a capacity loses by
/// repeated attempts.
const SUSPENDED_S: u8 = 2;
const FUTILE_S_MAX: u8 = 30;

/// Maximum busy time carried over from one worker's report to the next, because messages have
/// different delays.
const EXCESS_MAX_NS: u64 = 10_000_000;

/// Which of the scheduler's orders list the flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OrderMembership {
    pub(crate) in_throttled: bool,
    pub(crate) in_due: bool,
    pub(crate) in_weight_order: bool,
}

/// Flow in the scheduler: limits, meters and counters. The field order is the memory layout: fields
/// that each request needs are first.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Flow {
    pub(crate) minimum: Option<MinimumMeter>,
    /// Time from which the maximums permit the next request.
    permitted_at: Time,
    /// Virtual time of the store up to which the flow has been served by weight.
    pub(crate) served_virtual_time: u64,
    pub(crate) waiting: u32,
    pub(crate) in_flight: u32,
    /// Largest cost of a recent request, in operations. Decays at each sample.
    pub(crate) cost_max: u32,
    /// Maximum that currently delays the flow's requests; `None` if none does.
    pub(crate) throttled_by: Option<QueueCause>,
    pub(crate) order_membership: OrderMembership,

    maximum: Option<Meter>,
    bandwidth: Option<Meter>,

    /// Normalised operations that the clients demanded. Wraps.
    pub(crate) demanded_operations: u64,
    /// Normalised operations that were delivered. Wraps.
    pub(crate) delivered_operations: u64,
    /// Time in nanoseconds, up to `busy_or_idle_since`, in which the flow had requests. Wraps.
    busy_ns: u64,
    /// Start of the busy time that `busy_ns` does not contain yet, or start of the idle time.
    pub(crate) busy_or_idle_since: Time,
    pub(crate) member_virtual_time: u64,
    /// Number of requests dispatched for the flow's minimum although another flow was first by
    /// weight. Wraps.
    pub(crate) minimum_dispatches: u64,
    /// Increase of the flow's virtual time for one operation; inversely proportional to the weight.
    share: u32,
    /// True if several disks may be members.
    pub(crate) is_shared: bool,
    /// True if the flow has a burst rate or a share of a policy that spans nodes, in addition to
    /// one maximum of operations and one of bandwidth.
    has_more_limits: bool,
    /// True if the flow was behind its minimum at the last check.
    is_late: bool,
    /// Disks with queued requests, ordered by the service they received; or the flow's only disk.
    pub(crate) members: Heap,

    /// Time since which the flow has been behind its minimum although other flows are held back;
    /// `None` if it is not behind.
    pub(crate) behind_since: Option<Time>,
    /// Seconds for which holding back was last suspended because it had no effect. 0 if the flow
    /// has met its minimum since.
    pub(crate) hold_back_suspension_s: u8,
    /// Time until which no other flow is held back for this minimum, because that had no effect
    /// before.
    pub(crate) hold_back_suspended_until: Time,
    peak: Option<Meter>,
    guaranteed: GuaranteedCounter,
    pub(crate) limits: Limits,
    /// Minimum that `minimum` applies.
    metered_minimum: Option<Iops>,
    /// Disk or policy that owns the limits; `None` for a free slot.
    pub(crate) owner: Option<LimitsOwner>,
    /// Configured minimum of the disk or policy, before it is divided among nodes.
    own_min: Option<Iops>,
    /// True if this node has only a share of the limits, of a policy that spans nodes.
    has_part: bool,
    /// Meter that limits the flow to this node's share of the policy's maximum.
    part: Option<Box<CapMeter>>,
    /// True if workers that borrow account for the flow's busy time.
    is_lent: bool,
    /// Time of the last report of busy time.
    reported: Time,
    /// Reported busy time in excess of the time since the report before, in nanoseconds, at most
    /// [`EXCESS_MAX_NS`].
    excess_ns: u64,
    /// Busy time in nanoseconds of the flow's disks in the report that is being processed.
    pub(crate) reported_busy_ns: u64,
}

impl Flow {
    pub(crate) fn configure(
        &mut self,
        holder: LimitsOwner,
        limits: Limits,
        clock: FixedNs,
        now: Time,
    ) {
        let max = limits.max_iops.map(|rate| rate.per_second());
        let burst = limits.burst.filter(|_| max.is_some());
        let extra = burst.map_or(0, |burst| {
            let excess = burst.iops.per_second().saturating_sub(max.unwrap_or_default());
            excess.saturating_mul(burst.seconds.into())
        });
        let peak = burst.map(|burst| burst.iops.per_second());
        let bandwidth = limits.max_bandwidth.map(|rate| rate.bytes_per_second());
        let catch_up = limits.catch_up_window();
        self.maximum = metered(self.maximum, max, extra, catch_up, now);
        self.peak = metered(self.peak, peak, 0, catch_up, now);
        self.bandwidth = metered(self.bandwidth, bandwidth, 0, catch_up, now);
        self.reopen();
        if self.owner != Some(holder) {
            self.set_metered_minimum(None, clock);
        }
        self.share = SHARE_ONE / u32::from(limits.weight.number());
        (self.limits, self.own_min) = (limits, limits.min_iops);
        self.is_shared = matches!(holder, LimitsOwner::Policy(_));
        self.owner = Some(holder);
    }

    /// Returns a flow without owner and limits that has the same number of requests in flight.
    pub(crate) fn without_owner(&self, now: Time) -> Self {
        Self { in_flight: self.in_flight, busy_or_idle_since: now, ..Self::default() }
    }

    /// Sets the minimum that `minimum` applies. If this node has only a share of a policy,
    /// operations that are owed remain owed when the share changes.
    fn set_metered_minimum(&mut self, min: Option<Iops>, clock: FixedNs) {
        if self.metered_minimum == min {
            return;
        }
        self.metered_minimum = min;
        let before = self.minimum.filter(|_| self.has_part);
        self.minimum = min.map(|rate| {
            before.map_or_else(|| MinimumMeter::new(rate, clock), |before| before.with_rate(rate))
        });
        if before.is_none() {
            self.forget_lateness();
            self.hold_back_suspended_until = Time::ZERO;
        }
    }

    /// Sets this node's share of the policy; `None` if the limits apply to this node alone. Must
    /// also be called after each change of limits.
    pub(crate) fn set_policy_share(
        &mut self,
        now: Time,
        clock: FixedNs,
        part: Option<PolicyShare>,
    ) {
        self.limits.min_iops = part.map_or(self.own_min, |part| Iops::new(part.min_iops));
        self.has_part |= part.is_some();
        self.set_metered_minimum(self.limits.min_iops, clock);
        self.has_part = part.is_some();
        match part.and_then(|part| part.max) {
            Some(cap) => self.part.get_or_insert_default().set_cap(now, Some(cap)),
            None => self.part = None,
        }
        self.reopen();
    }

    /// Returns the time from which the maximums permit the next request.
    #[inline]
    pub(crate) fn permitted_at(&mut self, now: Time) -> Time {
        if self.has_more_limits && self.permitted_at <= now {
            self.look_at_part(now);
        }
        self.permitted_at
    }

    /// Delays the next request if this node's share of the policy is used up.
    #[cold]
    fn look_at_part(&mut self, now: Time) {
        let Some(part) = &mut self.part else { return };
        if !part.is_open(now) {
            self.permitted_at = self.permitted_at.max(part.closed_until().unwrap_or(Time::ZERO));
        }
    }

    /// Returns the cause of queueing that corresponds to the maximum which delays the next request
    /// longest.
    pub(crate) fn longest_throttle_cause(&self) -> QueueCause {
        let operations = [self.maximum, self.peak].into_iter().flatten();
        let operations =
            operations.map(|meter| meter.next_permitted_at()).max().unwrap_or(Time::ZERO);
        if self.is_shared {
            QueueCause::SharedPolicy
        } else if self.bandwidth.is_some_and(|meter| meter.next_permitted_at() > operations) {
            QueueCause::OwnBandwidth
        } else {
            QueueCause::OwnMaximum
        }
    }

    #[inline]
    pub(crate) fn charge_maximums(&mut self, now: Time, cost: u32, bytes: u32) {
        let mut opens = Time::ZERO;
        if let Some(meter) = &mut self.maximum {
            opens = meter.charge(now, cost);
        }
        if let Some(meter) = &mut self.bandwidth {
            opens = opens.max(meter.charge(now, bytes));
        }
        if self.has_more_limits {
            opens = opens.max(self.charge_more_limits(now, cost));
        }
        self.permitted_at = opens;
    }

    #[inline(never)]
    fn charge_more_limits(&mut self, now: Time, cost: u32) -> Time {
        if let Some(part) = &mut self.part {
            part.charge(cost);
        }
        self.peak.as_mut().map_or(Time::ZERO, |meter| meter.charge(now, cost))
    }

    /// Charges `cost` operations and `bytes` bytes to the maximums, if they permit a further
    /// request afterwards. Returns true if they were charged.
    #[inline]
    pub(crate) fn charge_maximums_if_open(&mut self, now: Time, cost: u32, bytes: u32) -> bool {
        // If the node has a share of a policy, each request may be the last permitted one.
        if self.part.is_some() {
            return false;
        }
        let before = (self.maximum, self.peak, self.bandwidth, self.permitted_at);
        self.charge_maximums(now, cost, bytes);
        let is_open = self.permitted_at <= now;
        if !is_open {
            (self.maximum, self.peak, self.bandwidth, self.permitted_at) = before;
        }
        is_open
    }

    /// Recomputes the time from which the maximums permit the next request.
    fn reopen(&mut self) {
        let meters = [self.maximum, self.peak, self.bandwidth].into_iter().flatten();
        self.permitted_at =
            meters.map(|meter| meter.next_permitted_at()).max().unwrap_or(Time::ZERO);
        self.has_more_limits = self.peak.is_some() || self.part.is_some();
    }

    /// Refunds `units` that were charged for operations which were not performed; `clock` is the
    /// value of the reservation clock.
    pub(crate) fn refund(&mut self, clock: FixedNs, units: RequestCharge) {
        for meter in [&mut self.maximum, &mut self.peak].into_iter().flatten() {
            meter.refund(units.cost);
        }
        if let Some(meter) = &mut self.bandwidth {
            meter.refund(units.bytes);
        }
        if let Some(part) = &mut self.part {
            part.refund(units.cost);
        }
        self.reopen();
        if let Some(minimum) = &mut self.minimum {
            minimum.refund(clock, units.cost);
        }
        self.served_virtual_time = self.served_virtual_time.saturating_sub(self.span(units.cost));
    }

    /// Returns the increase of virtual time for `cost` operations.
    #[inline]
    fn span(&self, cost: u32) -> u64 {
        u64::from(self.share) * u64::from(cost)
    }

    /// Advances the flow's virtual time by `cost` operations. If the minimum was due (`was_due`),
    /// the lead over `virtual_time` is bounded: service because of the minimum beyond it is not
    /// charged.
    #[inline]
    pub(crate) fn charge_share(&mut self, cost: u32, virtual_time: u64, was_due: bool) {
        let before = self.served_virtual_time;
        self.served_virtual_time = before.saturating_add(self.span(cost));
        if was_due {
            let max = virtual_time.saturating_add(self.span(AHEAD_MAX));
            self.served_virtual_time = self.served_virtual_time.min(before.max(max));
        }
    }

    /// Returns true if the flow has queued or in-flight requests.
    #[inline]
    pub(crate) const fn is_busy(&self) -> bool {
        self.waiting > 0 || self.in_flight > 0
    }

    /// Records that the flow is behind its minimum although other flows are held back for it.
    /// Returns the time since which this has been the case.
    pub(crate) fn record_behind_minimum(&mut self, now: Time) -> Time {
        self.is_late = true;
        *self.behind_since.get_or_insert(now)
    }

    /// Records that the flow is not behind its minimum.
    #[inline]
    pub(crate) fn record_minimum_met(&mut self) {
        if self.is_late {
            self.forget_lateness();
        }
    }

    #[cold]
    fn forget_lateness(&mut self) {
        (self.behind_since, self.hold_back_suspension_s, self.is_late) = (None, 0, false);
    }

    /// Records that holding back other flows had no effect on the minimum, and suspends it for this
    /// flow.
    #[cold]
    pub(crate) fn suspend_hold_back(&mut self, now: Time) {
        let seconds =
            self.hold_back_suspension_s.saturating_mul(2).clamp(SUSPENDED_S, FUTILE_S_MAX);
        self.hold_back_suspended_until = now + Duration::from_secs(seconds.into());
        (self.behind_since, self.hold_back_suspension_s) = (None, seconds);
    }

    /// Returns the time up to `now`, in nanoseconds, in which the flow had requests.
    pub(crate) fn busy_ns(&self, now: Time) -> u64 {
        let elapsed = now.as_ns().saturating_sub(self.busy_or_idle_since.as_ns());
        self.busy_ns.wrapping_add(if self.is_busy() && !self.is_lent { elapsed } else { 0 })
    }

    /// Switches between accounting of busy time by workers and by the scheduler.
    pub(crate) fn set_accounted_by_workers(&mut self, now: Time, is_lent: bool) {
        if self.is_lent != is_lent {
            self.account_busy_time(now);
            self.busy_or_idle_since = if self.is_busy() { now } else { self.busy_or_idle_since };
            (self.is_lent, self.reported, self.excess_ns) = (is_lent, now, 0);
        }
    }

    /// Adds busy time that a worker has reported. Times of several workers overlap, so the sum is
    /// limited to the time since the previous report.
    pub(crate) fn add_busy_time(&mut self, now: Time, busy_ns: u64) {
        let elapsed_ns = now.ns_since(core::mem::replace(&mut self.reported, now));
        let all_ns = self.excess_ns.saturating_add(busy_ns);
        let ns = all_ns.min(elapsed_ns);
        self.excess_ns = (all_ns - ns).min(EXCESS_MAX_NS);
        self.busy_ns = self.busy_ns.wrapping_add(ns);
    }

    /// Adds the time up to `now` to the busy time, if the flow has requests and the scheduler
    /// accounts for it.
    #[inline]
    pub(crate) fn account_busy_time(&mut self, now: Time) {
        if self.is_busy() && !self.is_lent {
            self.busy_ns = self.busy_ns.wrapping_add(now.ns_since(self.busy_or_idle_since));
            self.busy_or_idle_since = now;
        }
    }

    /// Adds the operations that the current minimum guarantees for the busy time up to `now`. Must
    /// be called before the minimum changes.
    pub(crate) fn account_guaranteed(&mut self, now: Time) {
        self.account_busy_time(now);
        self.guaranteed.update(self.limits.min_iops, self.busy_ns);
    }

    /// Returns the counters, including the operations guaranteed to the flow while it was busy.
    pub(crate) fn totals(&self) -> FlowTotals {
        let mut guaranteed = self.guaranteed;
        guaranteed.update(self.limits.min_iops, self.busy_ns);
        let Self {
            demanded_operations: demanded, delivered_operations: delivered, busy_ns, ..
        } = *self;
        let rounds = DispatchCounters::default();
        FlowTotals {
            guaranteed_operations: guaranteed.operations,
            demanded_operations: demanded,
            delivered_operations: delivered,
            busy_ns,
            dispatch_counters: rounds,
        }
    }
}

fn metered(
    old: Option<Meter>,
    rate: Option<u64>,
    extra: u64,
    catch_up: Duration,
    now: Time,
) -> Option<Meter> {
    let rate = rate?;
    Some(match old {
        Some(old) => old.with_rate(rate, extra, catch_up, now),
        None => Meter::new(rate, extra, catch_up),
    })
}
