//! What is scheduled: a disk with limits of its own, or all disks of a shared policy.

use core::time::Duration;

use suimon_quantity::{Iops, Time};

use crate::gate::Gate;
use crate::heap::Heap;
use crate::history::{Entitled, FlowTotals, Turns};
use crate::meter::Meter;
use crate::minimum::Minimum;
use crate::pace::Fine;
use crate::records::Units;
use crate::{Holder, Limits, PolicyPart, WaitCause};

/// Virtual time that an operation takes at weight 1.
const SHARE_ONE: u32 = 1 << 24;
/// By so many operations a disk may be ahead of its share because of its minimum: what
/// it was owed is not held against it for longer.
const AHEAD_MAX: u32 = 256;

/// For so many seconds nobody is held back for a minimum which that did not help: at first, and
/// at most when it did not help again and again. A device that was slow for a moment has its
/// minimums back after about as long as that took; one that cannot do what was promised loses
/// little by being asked.
const FUTILE_S: u8 = 2;
const FUTILE_S_MAX: u8 = 30;

/// Longest busy time that is carried over from a worker's report to the next: messages are delayed by
/// different times.
const EXCESS_MAX_NS: u64 = 10_000_000;

/// In which of the store's orders a flow is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Listed {
    pub(crate) held: bool,
    pub(crate) due: bool,
    pub(crate) shares: bool,
}

/// In the order in which it lies in memory: what each request needs first, by cache lines.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Flow {
    pub(crate) minimum: Option<Minimum>,
    /// When its maximums let the next request go.
    opens: Time,
    /// Up to where it is served, in the store's virtual time.
    pub(crate) served: u64,
    pub(crate) waiting: u32,
    pub(crate) in_flight: u32,
    /// What its largest request counted as lately.
    pub(crate) cost_max: u32,
    /// The maximum that it waits for.
    pub(crate) held_by: Option<WaitCause>,
    pub(crate) listed: Listed,

    maximum: Option<Meter>,
    bandwidth: Option<Meter>,

    /// Normalised operations, and how long it was busy up to `since`. They wrap.
    pub(crate) demanded: u64,
    pub(crate) delivered: u64,
    busy_ns: u64,
    /// Since when it is busy, as far as that is not in `busy_ns`; or idle.
    pub(crate) since: Time,
    pub(crate) member_time: u64,
    /// Requests of it that were dispatched for its minimum, before a flow whose turn it was. Wraps.
    pub(crate) minimum_turns: u64,
    /// Virtual time of one operation.
    share: u32,
    /// Whether other disks may be in it.
    pub(crate) is_shared: bool,
    /// Whether it is held to more than a maximum and a bandwidth.
    has_more_limits: bool,
    /// Whether it is, or lately was, behind.
    is_late: bool,
    /// Its disks that have requests waiting, by what they were served; or its only one.
    pub(crate) members: Heap,

    /// Since when it is behind although nobody else is served.
    pub(crate) behind_since: Option<Time>,
    /// For so many seconds nobody was held back for it when that last did not help; 0: it was
    /// not behind since.
    pub(crate) futile_s: u8,
    /// Until then nobody is held back for its minimum, because it did not help.
    pub(crate) futile_until: Time,
    peak: Option<Meter>,
    entitled: Entitled,
    pub(crate) limits: Limits,
    /// The minimum that is metered.
    kept: Option<Iops>,
    /// Whose it is; `None`: there is nothing here.
    pub(crate) holder: Option<Holder>,
    /// The minimum that its holder has, whatever part of it is this node's.
    own_min: Option<Iops>,
    /// Whether that is only a part of a policy that spans nodes, and what holds it to it.
    has_part: bool,
    part: Option<Box<Gate>>,
    /// True if workers that borrow account for its busy time.
    is_lent: bool,
    /// When a worker last reported busy time, and what of that exceeded the time since the report before.
    reported: Time,
    excess_ns: u64,
}

impl Flow {
    pub(crate) fn configure(&mut self, holder: Holder, limits: Limits, clock: Fine, now: Time) {
        let max = limits.max_iops.map(|rate| rate.per_second());
        let burst = limits.burst.filter(|_| max.is_some());
        let extra = burst.map_or(0, |burst| {
            let above = burst.iops.per_second().saturating_sub(max.unwrap_or_default());
            above.saturating_mul(burst.seconds.into())
        });
        let peak = burst.map(|burst| burst.iops.per_second());
        let bandwidth = limits.max_bandwidth.map(|rate| rate.bytes_per_second());
        let catch_up = limits.catch_up();
        self.maximum = metered(self.maximum, max, extra, catch_up, now);
        self.peak = metered(self.peak, peak, 0, catch_up, now);
        self.bandwidth = metered(self.bandwidth, bandwidth, 0, catch_up, now);
        self.reopen();
        if self.holder != Some(holder) {
            self.keep(None, clock);
        }
        self.share = SHARE_ONE / u32::from(limits.weight.number());
        (self.limits, self.own_min) = (limits, limits.min_iops);
        self.is_shared = matches!(holder, Holder::Policy(_));
        self.holder = Some(holder);
    }

    /// This minimum is kept from now on. What is owed of a part stays owed when there is more or less
    /// of it.
    fn keep(&mut self, min: Option<Iops>, clock: Fine) {
        if self.kept == min {
            return;
        }
        self.kept = min;
        let before = self.minimum.filter(|_| self.has_part);
        self.minimum = min.map(|rate| {
            before.map_or_else(|| Minimum::new(rate, clock), |before| before.retuned(rate))
        });
        if before.is_none() {
            self.forget_lateness();
            self.futile_until = Time::ZERO;
        }
    }

    /// Its disks have this part of the policy from now on; `None`: all of it, as its limits are. It is
    /// told with each change of limits, too.
    pub(crate) fn set_part(&mut self, now: Time, clock: Fine, part: Option<PolicyPart>) {
        self.limits.min_iops = part.map_or(self.own_min, |part| Iops::new(part.min_iops));
        self.has_part |= part.is_some();
        self.keep(self.limits.min_iops, clock);
        self.has_part = part.is_some();
        match part.and_then(|part| part.max) {
            Some(cap) => self.part.get_or_insert_default().set(now, Some(cap)),
            None => self.part = None,
        }
        self.reopen();
    }

    /// When its maximums let the next request go, as far as that is known now.
    #[inline]
    pub(crate) fn opens(&mut self, now: Time) -> Time {
        if self.has_more_limits && self.opens <= now {
            self.look_at_part(now);
        }
        self.opens
    }

    /// Finds out whether its part of a policy lets something go.
    #[cold]
    fn look_at_part(&mut self, now: Time) {
        let Some(part) = &mut self.part else { return };
        if !part.is_open(now) {
            self.opens = self.opens.max(part.closed_until().unwrap_or(Time::ZERO));
        }
    }

    /// Which of its maximums is the last to let the next request go.
    pub(crate) fn held_last_by(&self) -> WaitCause {
        let operations = [self.maximum, self.peak].into_iter().flatten();
        let operations = operations.map(|meter| meter.opens()).max().unwrap_or(Time::ZERO);
        if self.is_shared {
            WaitCause::SharedPolicy
        } else if self.bandwidth.is_some_and(|meter| meter.opens() > operations) {
            WaitCause::OwnBandwidth
        } else {
            WaitCause::OwnMaximum
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
        self.opens = opens;
    }

    #[inline(never)]
    fn charge_more_limits(&mut self, now: Time, cost: u32) -> Time {
        if let Some(part) = &mut self.part {
            part.charge(cost);
        }
        self.peak.as_mut().map_or(Time::ZERO, |meter| meter.charge(now, cost))
    }

    /// Charges the maximums, if they let another request go after that. Whether they do.
    #[inline]
    pub(crate) fn charge_maximums_if_open(&mut self, now: Time, cost: u32, bytes: u32) -> bool {
        // Below a cap each may be the last.
        if self.part.is_some() {
            return false;
        }
        let before = (self.maximum, self.peak, self.bandwidth, self.opens);
        self.charge_maximums(now, cost, bytes);
        let is_open = self.opens <= now;
        if !is_open {
            (self.maximum, self.peak, self.bandwidth, self.opens) = before;
        }
        is_open
    }

    /// Finds out anew when its maximums let the next request go.
    fn reopen(&mut self) {
        let meters = [self.maximum, self.peak, self.bandwidth].into_iter().flatten();
        self.opens = meters.map(|meter| meter.opens()).max().unwrap_or(Time::ZERO);
        self.has_more_limits = self.peak.is_some() || self.part.is_some();
    }

    /// Takes back what was charged and was not done.
    pub(crate) fn take_back(&mut self, units: Units) {
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
            minimum.refund(units.cost);
        }
        self.served = self.served.saturating_sub(self.span(units.cost));
    }

    /// Virtual time of what counts as so much.
    #[inline]
    fn span(&self, cost: u32) -> u64 {
        u64::from(self.share) * u64::from(cost)
    }

    /// Moves its place by what it is served; `virtual_time` bounds how far ahead of the
    /// others its minimum may bring it.
    #[inline]
    pub(crate) fn charge_share(&mut self, cost: u32, virtual_time: u64, was_due: bool) {
        let before = self.served;
        self.served = before.saturating_add(self.span(cost));
        if was_due {
            let most = virtual_time.saturating_add(self.span(AHEAD_MAX));
            self.served = self.served.min(before.max(most));
        }
    }

    /// It has something in the queue or in the device from now on, or nothing any more.
    #[inline]
    pub(crate) const fn is_busy(&self) -> bool {
        self.waiting > 0 || self.in_flight > 0
    }

    /// It is behind although nobody else is served; since when.
    pub(crate) fn handle_late(&mut self, now: Time) -> Time {
        self.is_late = true;
        *self.behind_since.get_or_insert(now)
    }

    /// It is not behind.
    #[inline]
    pub(crate) fn handle_in_time(&mut self) {
        if self.is_late {
            self.forget_lateness();
        }
    }

    #[cold]
    fn forget_lateness(&mut self) {
        (self.behind_since, self.futile_s, self.is_late) = (None, 0, false);
    }

    /// That nobody else was served did not help its minimum.
    #[cold]
    pub(crate) fn handle_futile(&mut self, now: Time) {
        let seconds = self.futile_s.saturating_mul(2).clamp(FUTILE_S, FUTILE_S_MAX);
        self.futile_until = now + Duration::from_secs(seconds.into());
        (self.behind_since, self.futile_s) = (None, seconds);
    }

    /// How long it was busy, up to now.
    pub(crate) fn busy_ns(&self, now: Time) -> u64 {
        let since = now.as_ns().saturating_sub(self.since.as_ns());
        self.busy_ns.wrapping_add(if self.is_busy() && !self.is_lent { since } else { 0 })
    }

    /// Has its busy time accounted by workers from now on, or here.
    pub(crate) fn set_lent(&mut self, now: Time, is_lent: bool) {
        if self.is_lent != is_lent {
            self.account_busy(now);
            self.since = if self.is_busy() { now } else { self.since };
            (self.is_lent, self.reported, self.excess_ns) = (is_lent, now, 0);
        }
    }

    /// Adds busy time that a worker reports. Times of several workers overlap: together they are no
    /// longer than the time since the report before.
    pub(crate) fn add_busy(&mut self, now: Time, busy_ns: u64) {
        let elapsed_ns = now.ns_since(core::mem::replace(&mut self.reported, now));
        let all_ns = self.excess_ns.saturating_add(busy_ns);
        let ns = all_ns.min(elapsed_ns);
        self.excess_ns = (all_ns - ns).min(EXCESS_MAX_NS);
        self.busy_ns = self.busy_ns.wrapping_add(ns);
    }

    /// Adds to how long it was busy, up to now.
    #[inline]
    pub(crate) fn account_busy(&mut self, now: Time) {
        if self.is_busy() && !self.is_lent {
            self.busy_ns = self.busy_ns.wrapping_add(now.ns_since(self.since));
            self.since = now;
        }
    }

    /// Adds to what it is entitled to by the minimum that it has up to now.
    pub(crate) fn account_entitled(&mut self, now: Time) {
        self.account_busy(now);
        self.entitled.reckon(self.limits.min_iops, self.busy_ns);
    }

    /// What it did, with what it was entitled to while it was busy.
    pub(crate) fn totals(&self) -> FlowTotals {
        let mut entitled = self.entitled;
        entitled.reckon(self.limits.min_iops, self.busy_ns);
        let Self { demanded, delivered, busy_ns, .. } = *self;
        let turns = Turns::default();
        FlowTotals { entitled: entitled.operations, demanded, delivered, busy_ns, turns }
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
        Some(old) => old.retuned(rate, extra, catch_up, now),
        None => Meter::new(rate, extra, catch_up),
    })
}
