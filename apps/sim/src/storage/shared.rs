//! A node's side of a store that other nodes use too: what it is held to, and what it tells the cluster.
//!
//! The scheduler of `policy/storage_qos` knows of no cap. So requests are withheld before they come to it, in the
//! plainest way: the next goes whose disk's minimum is due first, or else, while the node may do more, whose disk
//! was served least for its weight. What a request counts as is charged when it goes, and what was not
//! used of the cap is kept for 20 ms. A minimum that is due does not wait for the cap, which is never less than all
//! minimums: a disk with one request at a time could not make up for that. A minimum is kept here from when what
//! is reserved for the node covers it and all others: else one that the leader does not know of yet would be
//! kept at the cost of those that it promised.

use std::collections::{BTreeMap, VecDeque};

use suimon_cluster_qos::{DiskKey, DiskLoad};
use suimon_quantity::Time;
use suimon_storage_qos::Limits;

use crate::cluster::{HeldTo, Plant};
use crate::kernel::SECOND;
use crate::storage::node::Node;

/// So long what was not used of a cap is kept.
pub(crate) const KEPT_NS: i128 = 20_000_000;
/// For so long a minimum that is late may make up.
pub(crate) const OWED_NS: u64 = SECOND / 20;
/// Virtual time of an operation at weight 1.
const SHARE: u64 = 1 << 20;

/// A disk on a node.
#[derive(Clone, Debug, Default)]
struct Disk {
    limits: Limits,
    /// Its minimum, as far as it is covered.
    min: u64,
    /// Requests that are withheld, with what each counts as.
    withheld: VecDeque<(u32, u32)>,
    /// When its minimum lets the next go.
    due_ns: u64,
    served: u64,
    /// Since the cluster was last told: what was asked for and answered, and whether something was
    /// withheld.
    asked: u64,
    answered: u64,
    waited: bool,
}

/// A store that is shared, on one node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared {
    disks: BTreeMap<u32, Disk>,
    to: HeldTo,
    /// Operations that may go, times 10⁹, as of a time.
    may: i128,
    at: u64,
    served: u64,
    withheld: u32,
    latency_ns: u64,
    requests: u64,
    told: u64,
}

impl Shared {
    /// A disk has these limits.
    pub(crate) fn limit(&mut self, disk: u32, limits: Limits) {
        let of = self.disks.entry(disk).or_default();
        of.limits = limits;
        of.min = of.min.min(minimum(&limits));
        self.cover();
    }

    /// Keeps minimums that are covered.
    fn cover(&mut self) {
        let asked: u64 = self.disks.values().map(|of| minimum(&of.limits)).sum();
        if asked <= self.to.reserved_iops {
            self.disks.values_mut().for_each(|of| of.min = minimum(&of.limits));
        }
    }

    /// Whether something is withheld that no maximum of its own holds.
    pub(crate) fn withholds(&self) -> bool {
        let is_it = |of: &Disk| !of.withheld.is_empty() && of.limits.max_iops.is_none();
        self.withheld > 0 && self.disks.values().any(is_it)
    }

    /// A disk's request came.
    pub(crate) fn withhold(&mut self, disk: u32, tag: u32, cost: u32) {
        let of = self.disks.entry(disk).or_default();
        of.asked += u64::from(cost);
        of.withheld.push_back((tag, cost));
        if of.withheld.len() == 1 {
            of.served = of.served.max(self.served);
        }
        self.withheld += 1;
    }

    /// A disk's request was answered.
    pub(crate) fn answered(&mut self, disk: u32, cost: u32, latency_ns: u64) {
        self.disks.entry(disk).or_default().answered += u64::from(cost);
        self.latency_ns += latency_ns;
        self.requests += 1;
    }

    /// The node is held to this.
    pub(crate) fn hold(&mut self, now: Time, to: HeldTo) {
        self.pass(now.as_ns());
        self.to = to;
        self.cover();
    }

    /// Counts what may go by now.
    fn pass(&mut self, now: u64) {
        while self.at < now {
            let until = self.to.changes_after(self.at).map_or(now, |at| at.min(now));
            let rate = i128::from(self.to.iops_at(self.at));
            let more = rate * i128::from(until - self.at);
            self.may = (self.may + more).min(rate * KEPT_NS);
            self.at = until;
        }
    }

    /// The next request that may go: its disk and tag.
    pub(crate) fn next(&mut self, now: Time) -> Option<(u32, u32)> {
        if self.withheld == 0 {
            return None;
        }
        let now_ns = now.as_ns();
        self.pass(now_ns);
        let waiting = || self.disks.iter().filter(|(_, of)| !of.withheld.is_empty());
        let due = waiting().filter(|(_, of)| of.min > 0 && of.due_ns <= now_ns);
        let due = due.min_by_key(|(disk, of)| (of.due_ns, **disk)).map(|(disk, _)| *disk);
        if due.is_none() && self.may <= 0 {
            let waits = self.disks.values_mut().filter(|of| !of.withheld.is_empty());
            waits.for_each(|of| of.waited = true);
            return None;
        }
        let least =
            || waiting().min_by_key(|(disk, of)| (of.served, **disk)).map(|(disk, _)| *disk);
        let disk = due.or_else(least)?;
        let of = self.disks.get_mut(&disk)?;
        let (tag, cost) = of.withheld.pop_front()?;
        self.withheld -= 1;
        self.may -= i128::from(cost) * i128::from(SECOND);
        self.served = self.served.max(of.served);
        of.served += u64::from(cost) * SHARE / u64::from(of.limits.weight.number()).max(1);
        if let Some(ns) = (u64::from(cost) * SECOND).checked_div(of.min) {
            // What was done early puts it off by this request at most.
            of.due_ns = of.due_ns.clamp(now_ns.saturating_sub(OWED_NS), now_ns) + ns;
        }
        Some((disk, tag))
    }

    /// When something may go although nothing comes.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        if self.withheld == 0 {
            return None;
        }
        let changes = self.to.changes_after(self.at);
        let rate = i128::from(self.to.iops_at(self.at));
        let opens = (rate > 0).then(|| self.at + ((1 - self.may).max(1) / rate) as u64 + 1);
        let owed = self.disks.values().filter(|of| of.min > 0 && !of.withheld.is_empty());
        let owed = owed.map(|of| of.due_ns).min();
        opens.into_iter().chain(changes).chain(owed).min().map(Time::from_ns)
    }

    /// What all disks did since this was last asked, and the mean latency.
    fn loads(&mut self, now: Time, waits_for_store: bool, into: &mut Vec<DiskLoad>) -> u64 {
        let ns = (now.as_ns() - self.told).max(1);
        self.told = now.as_ns();
        let rate = |of: u64| (u128::from(of) * u128::from(SECOND) / u128::from(ns)) as u64;
        for (disk, of) in &mut self.disks {
            let waited = std::mem::take(&mut of.waited) || !of.withheld.is_empty();
            into.push(DiskLoad {
                disk: DiskKey(u64::from(*disk)),
                policy: None,
                min_iops: minimum(&of.limits),
                max_iops: of.limits.max_iops.map(|max| max.per_second()),
                fallback_iops: None,
                weight: u32::from(of.limits.weight.number()),
                demanded_iops: rate(std::mem::take(&mut of.asked)),
                delivered_iops: rate(std::mem::take(&mut of.answered)),
                waits_for_grant: waited,
                waits_for_store: waits_for_store && !waited,
            });
        }
        let (latency, requests) = (self.latency_ns, self.requests);
        (self.latency_ns, self.requests) = (0, 0);
        latency / requests.max(1)
    }
}

fn minimum(limits: &Limits) -> u64 {
    limits.min_iops.map_or(0, |min| min.per_second())
}

/// The nodes of a run, as the cluster sees them. There is one store.
pub(crate) struct SharedStore<'n>(pub(crate) &'n mut [Node]);

impl Plant for SharedStore<'_> {
    fn loads(&mut self, now: Time, node: u32, _store: u32, into: &mut Vec<DiskLoad>) -> u64 {
        let of = &mut self.0[node as usize];
        let waits = of.waiting > 0;
        of.shared.as_mut().map_or(0, |shared| shared.loads(now, waits, into))
    }

    fn hold(&mut self, now: Time, node: u32, _store: u32, to: HeldTo) {
        if let Some(shared) = &mut self.0[node as usize].shared {
            shared.hold(now, to);
        }
    }

    fn stop(&mut self, _now: Time, node: u32, until: Time) {
        let of = &mut self.0[node as usize];
        of.still_until = of.still_until.max(until);
    }
}
