//! What was promised of disks, held against what happens.
//!
//! These know limits, the array's capability and what disks ask for. They know nothing of tags,
//! budgets or depths, and ask no scheduler.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use suimon_quantity::Time;
use suimon_storage_qos::Limits;

use crate::cluster::{Clock, ClusterFact, HeldTo, Place};
use crate::kernel::{Checker, Complaints, SECOND};
use crate::storage::facts::Fact;

/// So much of a maximum may be made up for: over any window a disk does what its maximum comes to
/// in the window and 20 ms (80 ms beside a minimum), and one request (as `policy/storage_qos`
/// promises).
const CATCH_UP_NS: i128 = 20_000_000;
const CATCH_UP_WITH_MINIMUM_NS: i128 = 80_000_000;
/// A minimum is judged over so long.
const JUDGED_NS: u64 = 5 * SECOND;
/// From so long after a change on.
const GRACE_NS: u64 = 2 * SECOND;
/// So much of a minimum is delivered at least, beside one request at either end.
const MET_PERCENT: u64 = 98;
/// The array is not left idle for longer while somebody waits for it.
const IDLE_NS: u64 = SECOND / 10;

/// Over any window no disk is let do more than its maximum, as its node's clock counts.
pub(crate) struct Maximum {
    disks: BTreeMap<u32, Carried>,
    /// The clock of each disk's node.
    clocks: Vec<Clock>,
}

impl Maximum {
    pub(crate) const fn new(clocks: Vec<Clock>) -> Self {
        Self { disks: BTreeMap::new(), clocks }
    }
}

#[derive(Default)]
struct Carried {
    /// Per second; 0: no maximum.
    max: i128,
    catch_up_ns: i128,
    /// Operations that were let go, times 10⁹.
    sum: i128,
    /// The least of what was let go by then less what the maximum carried until then.
    least: Option<i128>,
    largest: i128,
}

impl Checker<Fact> for Maximum {
    fn hear(&mut self, now: Time, fact: &Fact, complaints: &mut Complaints) {
        match *fact {
            Fact::Limits { disk, limits } => {
                let max = limits.max_iops.map_or(0, |max| i128::from(max.per_second()));
                let catch_up_ns = limits.min_iops.map_or(CATCH_UP_NS, |_| CATCH_UP_WITH_MINIMUM_NS);
                let of = self.disks.entry(disk).or_default();
                if (of.max, of.catch_up_ns) != (max, catch_up_ns) {
                    *of = Carried { max, catch_up_ns, ..Carried::default() };
                }
            }
            Fact::LetGo { disk, cost, .. } => {
                let Some(of) = self.disks.get_mut(&disk).filter(|of| of.max > 0) else { return };
                let clock = self.clocks.get(disk as usize).copied().unwrap_or_default();
                let carried = of.max * i128::from(clock.at(now).as_ns());
                let before = of.sum - carried;
                let least = of.least.unwrap_or(before).min(before);
                let second = i128::from(SECOND);
                of.sum += i128::from(cost) * second;
                of.largest = of.largest.max(i128::from(cost) * second);
                of.least = Some(least);
                let above = of.sum - carried - least;
                let allowed = of.max * of.catch_up_ns + of.largest + second;
                if above > allowed {
                    let excess = (above - allowed) / second;
                    let what = format!("disk {disk}: {excess} operations above its {}", of.max);
                    complaints.add(now, "maximum", what);
                    of.least = None;
                }
            }
            _ => {}
        }
    }
}

/// So long what was not used of what a node is held to may be made up for.
const KEPT_NS: i128 = 20_000_000;

/// Over any window a node lets go no more than it is held to, beside what it may make up for and a request of
/// each disk.
pub(crate) struct Within {
    disks: Vec<u32>,
    /// What may be beyond.
    allowed: i128,
    nodes: BTreeMap<u32, HeldNode>,
}

#[derive(Default)]
struct HeldNode {
    to: HeldTo,
    at: u64,
    carried: i128,
    sum: i128,
    least: i128,
}

impl HeldNode {
    /// Adds up what may be let go by now.
    fn pass(&mut self, now: u64) {
        while self.at < now {
            let until = self.to.changes_after(self.at).map_or(now, |at| at.min(now));
            self.carried += i128::from(self.to.iops_at(self.at)) * i128::from(until - self.at);
            self.at = until;
        }
    }
}

impl Within {
    pub(crate) fn new(place: &Place) -> Self {
        let most = i128::from(place.capabilities.iter().copied().max().unwrap_or_default());
        let requests = i128::from(place.largest) * place.disks.len() as i128 * i128::from(SECOND);
        let disks = place.disks.iter().map(|(node, _)| *node).collect();
        Self { disks, allowed: most * KEPT_NS + requests, nodes: BTreeMap::new() }
    }
}

impl Checker<Fact> for Within {
    fn hear(&mut self, now: Time, fact: &Fact, complaints: &mut Complaints) {
        match *fact {
            Fact::Cluster(ClusterFact::Held { node, to, .. }) => {
                let of = self.nodes.entry(node).or_default();
                of.pass(now.as_ns());
                of.to = to;
            }
            Fact::LetGo { disk, cost, .. } => {
                let node = self.disks[disk as usize];
                let of = self.nodes.entry(node).or_default();
                of.pass(now.as_ns());
                of.least = of.least.min(of.sum - of.carried);
                of.sum += i128::from(cost) * i128::from(SECOND);
                let above = of.sum - of.carried - of.least;
                if above > self.allowed {
                    let excess = (above - self.allowed) / i128::from(SECOND);
                    let what = format!("node {node}: {excess} operations above what it is held to");
                    complaints.add(now, "within", what);
                    of.least = of.sum - of.carried;
                }
            }
            _ => {}
        }
    }
}

/// Requests of a disk go in the order in which they were asked for, each once, and each answer
/// is one of a request that went.
#[derive(Default)]
pub(crate) struct Order {
    waiting: BTreeMap<u32, VecDeque<u32>>,
    sent: BTreeSet<u32>,
}

impl Checker<Fact> for Order {
    fn hear(&mut self, now: Time, fact: &Fact, complaints: &mut Complaints) {
        match *fact {
            Fact::Asked { disk, tag, .. } => self.waiting.entry(disk).or_default().push_back(tag),
            Fact::LetGo { disk, tag, .. } => {
                let first = self.waiting.get_mut(&disk).and_then(VecDeque::pop_front);
                if first != Some(tag) {
                    let what = format!("disk {disk}: request {tag} went before {first:?}");
                    complaints.add(now, "order", what);
                }
                self.sent.insert(tag);
            }
            Fact::Answered { disk, tag, .. } if !self.sent.remove(&tag) => {
                let what = format!("disk {disk}: {tag} was answered and not sent");
                complaints.add(now, "order", what);
            }
            _ => {}
        }
    }
}

/// Who waits is not held up while the array has nothing to do, and timers are set for the
/// future.
#[derive(Default)]
pub(crate) struct Idle {
    /// Requests that wait, of disks without a maximum.
    waiting: BTreeMap<u32, (u64, bool)>,
    in_array: u64,
    since: Option<u64>,
    disturbed_until: u64,
}

impl Checker<Fact> for Idle {
    fn hear(&mut self, now: Time, fact: &Fact, complaints: &mut Complaints) {
        let now_ns = now.as_ns();
        if let Some(since) = self.since.take() {
            let since = since.max(self.disturbed_until);
            if now_ns > since.saturating_add(IDLE_NS) {
                let ms = (now_ns - since) / 1_000_000;
                complaints.add(now, "idle", format!("requests waited {ms} ms for an idle array"));
            } else {
                self.since = Some(since);
            }
        }
        match *fact {
            Fact::Limits { disk, limits } => {
                self.waiting.entry(disk).or_default().1 = limits.max_iops.is_some();
            }
            Fact::Asked { disk, .. } => self.waiting.entry(disk).or_default().0 += 1,
            Fact::LetGo { disk, .. } => {
                let of = self.waiting.entry(disk).or_default();
                of.0 = of.0.saturating_sub(1);
                self.in_array += 1;
            }
            Fact::Answered { .. } => self.in_array = self.in_array.saturating_sub(1),
            Fact::Disturbed { until_ns } => {
                self.disturbed_until = self.disturbed_until.max(until_ns);
            }
            Fact::WokenInThePast { node, by_ns } => {
                let what = format!("node {node} waits for a time {by_ns} ns ago");
                complaints.add(now, "idle", what);
            }
            _ => {}
        }
        let is_idle = self.in_array == 0 && self.waiting.values().any(|(of, max)| *of > 0 && !max);
        self.since = is_idle.then(|| self.since.unwrap_or(now_ns));
    }
}

/// A disk that asks for all it can get gets its minimum, if all minimums together are what may
/// be promised, and nothing disturbs it.
pub(crate) struct Minimum {
    /// What may be promised, in normalised operations per second.
    promisable: u64,
    /// From so long after a fault on it is judged.
    recovery_ns: u64,
    disks: BTreeMap<u32, Owed>,
    window: u64,
    quiet_since: u64,
}

#[derive(Default)]
struct Owed {
    limits: Limits,
    wants: bool,
    delivered: u64,
    largest: u64,
}

impl Minimum {
    /// Of an array that can do `capability` normalised operations per second: 90 % of that may
    /// be promised. After a fault nothing is judged for `recovery_s`.
    pub(crate) fn new(capability: u64, recovery_s: u64) -> Self {
        let promisable = capability * 90 / 100;
        let recovery_ns = recovery_s * SECOND;
        Self { promisable, recovery_ns, disks: BTreeMap::new(), window: 0, quiet_since: 0 }
    }

    fn judge(&mut self, now: Time, complaints: &mut Complaints) {
        let length = now.as_ns() - self.window;
        let is_quiet = self.quiet_since + GRACE_NS <= self.window;
        let min = |of: &Owed| of.limits.min_iops.map_or(0, |min| min.per_second());
        let promised: u64 = self.disks.values().map(min).sum();
        for (disk, of) in &mut self.disks {
            let delivered = std::mem::take(&mut of.delivered);
            if !is_quiet || promised > self.promisable || !of.wants {
                continue;
            }
            let owed = u128::from(min(of)) * u128::from(length) / u128::from(SECOND);
            complaints.judged += u64::from(owed > 0);
            let least = (owed * u128::from(MET_PERCENT) / 100) as u64;
            if delivered + 2 * of.largest < least {
                let what = format!("disk {disk}: {delivered} operations where {owed} are owed");
                complaints.add(now, "minimum", what);
            }
        }
        self.window = now.as_ns();
    }
}

impl Checker<Fact> for Minimum {
    fn hear(&mut self, now: Time, fact: &Fact, complaints: &mut Complaints) {
        if now.as_ns() >= self.window + JUDGED_NS {
            self.judge(now, complaints);
        }
        match *fact {
            Fact::Limits { disk, limits } => {
                self.disks.entry(disk).or_default().limits = limits;
                self.quiet_since = self.quiet_since.max(now.as_ns());
            }
            Fact::Wants { disk, all } => {
                self.disks.entry(disk).or_default().wants = all;
                self.quiet_since = self.quiet_since.max(now.as_ns());
            }
            Fact::Disturbed { until_ns } => {
                let quiet = (until_ns + self.recovery_ns).saturating_sub(GRACE_NS);
                self.quiet_since = self.quiet_since.max(quiet);
            }
            Fact::Answered { disk, cost, .. } => {
                let of = self.disks.entry(disk).or_default();
                of.delivered += u64::from(cost);
                of.largest = of.largest.max(cost.into());
            }
            _ => {}
        }
    }
}
