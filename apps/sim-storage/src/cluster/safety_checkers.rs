//! Safety properties of a cluster, checked with the limits of nodes.
//!
//! These checkers know only the capacity of stores and the duration of leases. They use neither the
//! accounts nor the state of members or allocators.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use suimon_cluster_qos::Parameters;
use suimon_quantity::Time;
use suimon_sim_kernel::{Checker, Violations};

use crate::cluster::facts::{AsClusterFact, ClusterFact, NodeLimit};

/// Checks that the sum of all nodes' limits on a store never exceeds its capacity, including nodes
/// that are paused, disconnected or have just started.
pub(crate) struct CapacityChecker {
    stores: Vec<StoreLimits>,
}

#[derive(Clone, Debug)]
struct StoreLimits {
    capacity: u64,
    limits: BTreeMap<u32, NodeLimit>,
    /// Times in ns at which the limit of a node rises without a message, with the node.
    rises: BTreeSet<(u64, u32)>,
}

impl CapacityChecker {
    pub(crate) fn new(capabilities: &[u64]) -> Self {
        let store_limits = |capability: &u64| StoreLimits {
            capacity: *capability,
            limits: BTreeMap::new(),
            rises: BTreeSet::new(),
        };
        Self { stores: capabilities.iter().map(store_limits).collect() }
    }
}

impl StoreLimits {
    fn judge(&self, store: u32, ns: u64, complaints: &mut Violations) {
        let sum: u64 = self.limits.values().map(|limit| limit.iops_at(ns)).sum();
        if sum > self.capacity {
            let caps = self.limits.iter().map(|(node, limit)| (*node, limit.iops_at(ns)));
            let caps: Vec<(u32, u64)> = caps.filter(|(_, iops)| *iops > 0).take(16).collect();
            let capacity = self.capacity;
            let complaint = format!(
                "store {store}: the caps of all nodes, {sum} IOPS, exceed the capacity of \
                 {capacity} IOPS: {caps:?}"
            );
            complaints.add(Time::from_ns(ns), "caps", complaint);
        }
    }

    /// Checks every time up to `now` at which a limit rose without a message.
    fn pass(&mut self, store: u32, now: u64, complaints: &mut Violations) {
        while let Some((rise_at, node)) =
            self.rises.first().copied().filter(|(rise_at, _)| *rise_at <= now)
        {
            self.rises.remove(&(rise_at, node));
            self.judge(store, rise_at, complaints);
        }
    }
}

impl<F: AsClusterFact> Checker<F> for CapacityChecker {
    fn observe(&mut self, now: Time, fact: &F, complaints: &mut Violations) {
        let Some(ClusterFact::LimitSet { node, store, to: limit }) = fact.as_cluster_fact() else {
            return;
        };
        let store_limits = &mut self.stores[*store as usize];
        store_limits.pass(*store, now.as_ns(), complaints);
        let before = store_limits.limits.insert(*node, *limit);
        if let Some(before) = before.filter(|before| before.fallback_iops > 0) {
            store_limits.rises.remove(&(before.fallback_from_ns, *node));
        }
        if limit.fallback_iops > 0 && limit.fallback_from_ns > now.as_ns() {
            store_limits.rises.insert((limit.fallback_from_ns, *node));
        }
        let previous_iops = before.map_or(0, |before| before.iops_at(now.as_ns()));
        if limit.iops_at(now.as_ns()) > previous_iops {
            complaints.checks += 1;
            store_limits.judge(*store, now.as_ns(), complaints);
        }
    }

    fn end(&mut self, now: Time, complaints: &mut Violations) {
        for (store, store_limits) in (0..).zip(&mut self.stores) {
            store_limits.pass(store, now.as_ns(), complaints);
        }
    }
}

/// Largest number of recent reports that are kept per node and store.
const MADE_MAX: usize = 64;

/// Report: its incarnation and number, and the time of its creation in ns.
type Made = ((u64, u64), u64);

/// Checks that every lease is safe. A lease must expire within its duration from the creation of
/// the report that it answers, independent of the delay of the grant. No node may return to an
/// earlier grant. No grant may be written in a term after one was written in a later term.
pub(crate) struct LeaseChecker {
    /// Longest duration of a lease in ns, measured by the slowest permitted clock.
    longest_ns: u64,
    made: BTreeMap<(u32, u32), VecDeque<Made>>,
    taken: BTreeMap<(u32, u32), (u64, (u64, u64))>,
    written: BTreeMap<u32, u64>,
}

impl LeaseChecker {
    pub(crate) fn new(terms: &Parameters) -> Self {
        let span = terms.lease.max(Duration::from_millis(1)).as_nanos();
        let slower = span * u128::from(terms.drift_ppm) / 1_000_000;
        Self {
            longest_ns: u64::try_from(span + slower).unwrap_or(u64::MAX),
            made: BTreeMap::new(),
            taken: BTreeMap::new(),
            written: BTreeMap::new(),
        }
    }
}

impl<F: AsClusterFact> Checker<F> for LeaseChecker {
    fn observe(&mut self, now: Time, fact: &F, complaints: &mut Violations) {
        match fact.as_cluster_fact() {
            Some(ClusterFact::ReportCreated { node, store, incarnation, number }) => {
                let made_grants = self.made.entry((*node, *store)).or_default();
                if made_grants.len() == MADE_MAX {
                    made_grants.pop_front();
                }
                made_grants.push_back(((*incarnation, *number), now.as_ns()));
            }
            Some(ClusterFact::GrantReceived {
                node,
                store,
                incarnation,
                number,
                grant,
                until_ns,
            }) => {
                let key = (*node, *store);
                let last = self.taken.insert(key, (*incarnation, *grant));
                if last.is_some_and(|(start, before)| start == *incarnation && before >= *grant) {
                    let complaint = format!(
                        "node {node}, store {store}: grant {grant:?} was received after {last:?}"
                    );
                    complaints.add(now, "leases", complaint);
                }
                if *until_ns == 0 {
                    return;
                }
                let made_grants = self.made.get(&key).into_iter().flatten();
                let mut made_grants = made_grants
                    .filter(|(id, _)| *id == (*incarnation, *number))
                    .map(|grant| grant.1);
                let latest_end =
                    made_grants.next_back().map_or(0, |made_at| made_at + self.longest_ns);
                if *until_ns > latest_end {
                    let excess_ms = (*until_ns - latest_end) / 1_000_000;
                    let complaint =
                        format!("node {node}, store {store}: a lease is {excess_ms} ms too long");
                    complaints.add(now, "leases", complaint);
                }
            }
            Some(ClusterFact::GrantsWritten { store, term, .. }) => {
                let last = self.written.entry(*store).or_default();
                if *term < *last {
                    let complaint = format!(
                        "store {store}: a write of term {term} was accepted after term {last}"
                    );
                    complaints.add(now, "leases", complaint);
                }
                *last = *term;
            }
            _ => {}
        }
    }
}
