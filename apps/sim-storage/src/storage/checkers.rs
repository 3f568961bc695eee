//! Checkers of disks.
//!
//! These checkers receive limits, the array's capacity and the demands of disks. They use neither
//! tags, budgets nor queue depths, and do not query schedulers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use suimon_quantity::Time;
use suimon_sim_kernel::{Checker, SECOND_NS, Violations};
use suimon_storage_qos::Limits;

use crate::cluster::{CheckerParameters, Clock, ClusterFact, NodeLimit};
use crate::storage::facts::Fact;

/// Tolerance of a maximum, as time in ns: over any window, a disk may exceed its maximum by the
/// operations of 20 ms (80 ms with a minimum) and one request, as guaranteed by
/// `policy/storage_qos`.
const CATCH_UP_NS: i128 = 20_000_000;
const CATCH_UP_WITH_MINIMUM_NS: i128 = 80_000_000;
/// Evaluation window of a minimum in ns.
const JUDGED_NS: u64 = 5 * SECOND_NS;
/// Time in ns after a change or fault before a minimum is evaluated.
const GRACE_NS: u64 = 2 * SECOND_NS;
/// Smallest percentage of a minimum that must be delivered, with one request of tolerance at each
/// end of the window.
const MET_PERCENT: u64 = 98;
/// Longest idle time of the array in ns while requests wait for it.
const IDLE_NS: u64 = SECOND_NS / 10;

/// Checks that over any window no disk exceeds its maximum, measured by its node's clock.
pub(crate) struct MaximumChecker {
    disks: BTreeMap<u32, Carried>,
    /// Clock of each disk's node.
    clocks: Vec<Clock>,
}

impl MaximumChecker {
    pub(crate) const fn new(clocks: Vec<Clock>) -> Self {
        Self { disks: BTreeMap::new(), clocks }
    }
}

#[derive(Default)]
struct Carried {
    /// Maximum in normalised operations per second; 0 for none.
    max: i128,
    catch_up_ns: i128,
    /// Dispatched operations times 10⁹.
    sum: i128,
    /// Smallest difference so far between the dispatched operations and those that the maximum
    /// permitted, times 10⁹. `None` before the first request.
    least: Option<i128>,
    largest: i128,
}

impl Checker<Fact> for MaximumChecker {
    fn observe(&mut self, now: Time, fact: &Fact, complaints: &mut Violations) {
        match *fact {
            Fact::Limits { disk, limits } => {
                let max = limits.max_iops.map_or(0, |max| i128::from(max.per_second()));
                let catch_up_ns = limits.min_iops.map_or(CATCH_UP_NS, |_| CATCH_UP_WITH_MINIMUM_NS);
                let disk = self.disks.entry(disk).or_default();
                if (disk.max, disk.catch_up_ns) != (max, catch_up_ns) {
                    *disk = Carried { max, catch_up_ns, ..Carried::default() };
                }
            }
            Fact::Dispatched { disk, cost, .. } => {
                let Some(limited_disk) = self.disks.get_mut(&disk).filter(|disk| disk.max > 0)
                else {
                    return;
                };
                let clock = self.clocks.get(disk as usize).copied().unwrap_or_default();
                let carried = limited_disk.max * i128::from(clock.local_time(now).as_ns());
                let before = limited_disk.sum - carried;
                let lowest = limited_disk.least.unwrap_or(before).min(before);
                let second = i128::from(SECOND_NS);
                limited_disk.sum += i128::from(cost) * second;
                limited_disk.largest = limited_disk.largest.max(i128::from(cost) * second);
                limited_disk.least = Some(lowest);
                let excess_sum = limited_disk.sum - carried - lowest;
                let allowed =
                    limited_disk.max * limited_disk.catch_up_ns + limited_disk.largest + second;
                if excess_sum > allowed {
                    let excess = (excess_sum - allowed) / second;
                    let complaint =
                        format!("disk {disk}: {excess} operations above its {}", limited_disk.max);
                    complaints.add(now, "maximum", complaint);
                    limited_disk.least = None;
                }
            }
            _ => {}
        }
    }
}

/// Tolerance of a node's limit, as time in ns: unused capacity of 20 ms may be used later.
const UNUSED_TOLERANCE_NS: i128 = 20_000_000;

/// Checks that over any window a node does not exceed its limit by more than the tolerance and one
/// request of each disk.
pub(crate) struct NodeLimitChecker {
    disks: Vec<u32>,
    /// Permitted excess, in operations times 10⁹.
    allowed: i128,
    nodes: BTreeMap<u32, LimitedNode>,
}

#[derive(Default)]
struct LimitedNode {
    to: NodeLimit,
    at: u64,
    carried: i128,
    sum: i128,
    least: i128,
}

impl LimitedNode {
    /// Adds the operations that the limit permitted up to the time `now` in ns.
    fn pass(&mut self, now: u64) {
        while self.at < now {
            let until =
                self.to.next_change_after(self.at).map_or(now, |change_at| change_at.min(now));
            self.carried += i128::from(self.to.iops_at(self.at)) * i128::from(until - self.at);
            self.at = until;
        }
    }
}

impl NodeLimitChecker {
    pub(crate) fn new(locations: &CheckerParameters) -> Self {
        let max_capacity =
            i128::from(locations.capacities.iter().copied().max().unwrap_or_default());
        let requests = i128::from(locations.request_cost_max)
            * locations.disk_locations.len() as i128
            * i128::from(SECOND_NS);
        let disks = locations.disk_locations.iter().map(|(node, _)| *node).collect();
        Self {
            disks,
            allowed: max_capacity * UNUSED_TOLERANCE_NS + requests,
            nodes: BTreeMap::new(),
        }
    }
}

impl Checker<Fact> for NodeLimitChecker {
    fn observe(&mut self, now: Time, fact: &Fact, complaints: &mut Violations) {
        match *fact {
            Fact::Cluster(ClusterFact::LimitSet { node, to: limit, .. }) => {
                let node_state = self.nodes.entry(node).or_default();
                node_state.pass(now.as_ns());
                node_state.to = limit;
            }
            Fact::Dispatched { disk, cost, .. } => {
                let node = self.disks[disk as usize];
                let node_state = self.nodes.entry(node).or_default();
                node_state.pass(now.as_ns());
                node_state.least = node_state.least.min(node_state.sum - node_state.carried);
                node_state.sum += i128::from(cost) * i128::from(SECOND_NS);
                let excess_sum = node_state.sum - node_state.carried - node_state.least;
                if excess_sum > self.allowed {
                    let excess = (excess_sum - self.allowed) / i128::from(SECOND_NS);
                    let complaint = format!("node {node}: {excess} operations above its limit");
                    complaints.add(now, "within", complaint);
                    node_state.least = node_state.sum - node_state.carried;
                }
            }
            _ => {}
        }
    }
}

/// Checks that requests of a disk are dispatched in order of submission, each once, and that each
/// completion belongs to a dispatched request.
#[derive(Default)]
pub(crate) struct DispatchOrderChecker {
    waiting: BTreeMap<u32, VecDeque<u32>>,
    sent: BTreeSet<u32>,
}

impl Checker<Fact> for DispatchOrderChecker {
    fn observe(&mut self, now: Time, fact: &Fact, complaints: &mut Violations) {
        match *fact {
            Fact::Submitted { disk, tag, .. } => {
                self.waiting.entry(disk).or_default().push_back(tag);
            }
            Fact::Dispatched { disk, tag, .. } => {
                let first = self.waiting.get_mut(&disk).and_then(VecDeque::pop_front);
                if first != Some(tag) {
                    let complaint =
                        format!("disk {disk}: request {tag} was dispatched before {first:?}");
                    complaints.add(now, "order", complaint);
                }
                self.sent.insert(tag);
            }
            Fact::Completed { disk, tag, .. } if !self.sent.remove(&tag) => {
                let complaint =
                    format!("disk {disk}: request {tag} was completed without submission");
                complaints.add(now, "order", complaint);
            }
            _ => {}
        }
    }
}

/// Checks that no request of a disk without a maximum is queued while the array is idle, and that
/// schedulers request no deadlines in the past.
#[derive(Default)]
pub(crate) struct WorkConservationChecker {
    /// For each disk: number of queued requests, and true if the disk has a maximum.
    waiting: BTreeMap<u32, (u64, bool)>,
    in_array: u64,
    since: Option<u64>,
    disturbed_until: u64,
}

impl Checker<Fact> for WorkConservationChecker {
    fn observe(&mut self, now: Time, fact: &Fact, complaints: &mut Violations) {
        let now_ns = now.as_ns();
        if let Some(since) = self.since.take() {
            let since = since.max(self.disturbed_until);
            if now_ns > since.saturating_add(IDLE_NS) {
                let ms = (now_ns - since) / 1_000_000;
                complaints.add(
                    now,
                    "idle",
                    format!("requests were queued for {ms} ms while the array was idle"),
                );
            } else {
                self.since = Some(since);
            }
        }
        match *fact {
            Fact::Limits { disk, limits } => {
                self.waiting.entry(disk).or_default().1 = limits.max_iops.is_some();
            }
            Fact::Submitted { disk, .. } => self.waiting.entry(disk).or_default().0 += 1,
            Fact::Dispatched { disk, .. } => {
                let waiting = self.waiting.entry(disk).or_default();
                waiting.0 = waiting.0.saturating_sub(1);
                self.in_array += 1;
            }
            Fact::Completed { .. } => self.in_array = self.in_array.saturating_sub(1),
            Fact::Disturbed { until_ns } => {
                self.disturbed_until = self.disturbed_until.max(until_ns);
            }
            Fact::DeadlineInPast { node, by_ns } => {
                let complaint = format!("node {node} waits for a time that was {by_ns} ns ago");
                complaints.add(now, "idle", complaint);
            }
            _ => {}
        }
        let is_idle =
            self.in_array == 0 && self.waiting.values().any(|(queued, max)| *queued > 0 && !max);
        self.since = is_idle.then(|| self.since.unwrap_or(now_ns));
    }
}

/// Checks that a disk with unlimited demand gets its minimum, provided that the sum of minimums is
/// within the reservable capacity and no fault has occurred recently.
pub(crate) struct MinimumChecker {
    /// Reservable capacity in normalised operations per second.
    promisable: u64,
    /// Time in ns after a fault within which minimums are not evaluated.
    recovery_ns: u64,
    disks: BTreeMap<u32, UnmetDemand>,
    window: u64,
    quiet_since: u64,
}

#[derive(Default)]
struct UnmetDemand {
    limits: Limits,
    wants: bool,
    delivered: u64,
    largest: u64,
}

impl MinimumChecker {
    /// Returns a checker for an array with this capacity in normalised operations per second, of
    /// which 90 % are reservable. Nothing is evaluated for `recovery_s` after a fault.
    pub(crate) fn new(capability: u64, recovery_s: u64) -> Self {
        let promisable = capability * 90 / 100;
        let recovery_ns = recovery_s * SECOND_NS;
        Self { promisable, recovery_ns, disks: BTreeMap::new(), window: 0, quiet_since: 0 }
    }

    fn judge(&mut self, now: Time, complaints: &mut Violations) {
        let length = now.as_ns() - self.window;
        let is_quiet = self.quiet_since + GRACE_NS <= self.window;
        let min =
            |disk_state: &UnmetDemand| disk_state.limits.min_iops.map_or(0, |min| min.per_second());
        let sum_of_minimums: u64 = self.disks.values().map(min).sum();
        for (disk, demand) in &mut self.disks {
            let delivered = std::mem::take(&mut demand.delivered);
            if !is_quiet || sum_of_minimums > self.promisable || !demand.wants {
                continue;
            }
            let guaranteed = u128::from(min(demand)) * u128::from(length) / u128::from(SECOND_NS);
            complaints.checks += u64::from(guaranteed > 0);
            let min_delivered = (guaranteed * u128::from(MET_PERCENT) / 100) as u64;
            if delivered + 2 * demand.largest < min_delivered {
                let complaint = format!(
                    "disk {disk}: {delivered} operations delivered, {guaranteed} guaranteed"
                );
                complaints.add(now, "minimum", complaint);
            }
        }
        self.window = now.as_ns();
    }
}

impl Checker<Fact> for MinimumChecker {
    fn observe(&mut self, now: Time, fact: &Fact, complaints: &mut Violations) {
        if now.as_ns() >= self.window + JUDGED_NS {
            self.judge(now, complaints);
        }
        match *fact {
            Fact::Limits { disk, limits } => {
                self.disks.entry(disk).or_default().limits = limits;
                self.quiet_since = self.quiet_since.max(now.as_ns());
            }
            Fact::Demand { disk, all: has_all_demand } => {
                self.disks.entry(disk).or_default().wants = has_all_demand;
                self.quiet_since = self.quiet_since.max(now.as_ns());
            }
            Fact::Disturbed { until_ns } => {
                let quiet = (until_ns + self.recovery_ns).saturating_sub(GRACE_NS);
                self.quiet_since = self.quiet_since.max(quiet);
            }
            Fact::Completed { disk, cost, .. } => {
                let disk = self.disks.entry(disk).or_default();
                disk.delivered += u64::from(cost);
                disk.largest = disk.largest.max(cost.into());
            }
            _ => {}
        }
    }
}
