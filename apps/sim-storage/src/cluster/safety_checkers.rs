//! Safety properties of a cluster, checked against the limits of nodes.
//!
//! These checkers are given the capacity of stores and the duration of leases only. They use
//! neither accounts nor the state of members or allocators.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use suimon_cluster_qos::Parameters;
use suimon_quantity::Time;
use suimon_sim_kernel::{Checker, Complaints};

use crate::cluster::facts::{AsClusterFact, ClusterFact, NodeLimit};

/// Checks that the sum of all nodes' limits on a store never exceeds its capacity, including nodes
/// that are paused, disconnected or have just started.
pub(crate) struct Caps {
    stores: Vec<StoreLimits>,
}

#[derive(Clone, Debug)]
struct StoreLimits {
    capacity: u64,
    limits: BTreeMap<u32, NodeLimit>,
    /// Times at which the limit of a node rises without a message.
    rises: BTreeSet<(u64, u32)>,
}

impl Caps {
    pub(crate) fn new(capabilities: &[u64]) -> Self {
        let of = |capability: &u64| StoreLimits {
            capacity: *capability,
            limits: BTreeMap::new(),
            rises: BTreeSet::new(),
        };
        Self { stores: capabilities.iter().map(of).collect() }
    }
}

impl StoreLimits {
    fn judge(&self, store: u32, ns: u64, complaints: &mut Complaints) {
        let sum: u64 = self.limits.values().map(|held| held.iops_at(ns)).sum();
        if sum > self.capacity {
            let caps = self.limits.iter().map(|(node, held)| (*node, held.iops_at(ns)));
            let caps: Vec<(u32, u64)> = caps.filter(|(_, iops)| *iops > 0).take(16).collect();
            let can = self.capacity;
            let what = format!(
                "store {store}: the caps of all nodes, {sum} IOPS, exceed the capacity of {can} \
                 IOPS: {caps:?}"
            );
            complaints.add(Time::from_ns(ns), "caps", what);
        }
    }

    /// Checks every time up to `now` at which a limit rose without a message.
    fn pass(&mut self, store: u32, now: u64, complaints: &mut Complaints) {
        while let Some((at, node)) = self.rises.first().copied().filter(|(at, _)| *at <= now) {
            self.rises.remove(&(at, node));
            self.judge(store, at, complaints);
        }
    }
}

impl<F: AsClusterFact> Checker<F> for Caps {
    fn observe(&mut self, now: Time, fact: &F, complaints: &mut Complaints) {
        let Some(ClusterFact::LimitSet { node, store, to }) = fact.cluster() else { return };
        let of = &mut self.stores[*store as usize];
        of.pass(*store, now.as_ns(), complaints);
        let before = of.limits.insert(*node, *to);
        if let Some(before) = before.filter(|before| before.late_iops > 0) {
            of.rises.remove(&(before.late_from_ns, *node));
        }
        if to.late_iops > 0 && to.late_from_ns > now.as_ns() {
            of.rises.insert((to.late_from_ns, *node));
        }
        let was = before.map_or(0, |before| before.iops_at(now.as_ns()));
        if to.iops_at(now.as_ns()) > was {
            complaints.judged += 1;
            of.judge(*store, now.as_ns(), complaints);
        }
    }

    fn end(&mut self, now: Time, complaints: &mut Complaints) {
        for (store, of) in (0..).zip(&mut self.stores) {
            of.pass(store, now.as_ns(), complaints);
        }
    }
}

/// Largest number of recent reports remembered per node.
const MADE_MAX: usize = 64;

/// Report: incarnation and number, and the time of its creation.
type Made = ((u64, u64), u64);

/// Checks that every lease is safe. A lease must expire within its duration from the creation of
/// the report that it answers, independent of the delay of the grant. No node may return to an
/// earlier grant. No grant may be written in a term after one was written in a later term.
pub(crate) struct Leases {
    /// Longest duration of a lease on the slowest permitted clock, in ns.
    longest_ns: u64,
    made: BTreeMap<(u32, u32), VecDeque<Made>>,
    taken: BTreeMap<(u32, u32), (u64, (u64, u64))>,
    written: BTreeMap<u32, u64>,
}

impl Leases {
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

impl<F: AsClusterFact> Checker<F> for Leases {
    fn observe(&mut self, now: Time, fact: &F, complaints: &mut Complaints) {
        match fact.cluster() {
            Some(ClusterFact::Made { node, store, incarnation, number }) => {
                let made = self.made.entry((*node, *store)).or_default();
                if made.len() == MADE_MAX {
                    made.pop_front();
                }
                made.push_back(((*incarnation, *number), now.as_ns()));
            }
            Some(ClusterFact::Took { node, store, incarnation, number, grant, until_ns }) => {
                let of = (*node, *store);
                let last = self.taken.insert(of, (*incarnation, *grant));
                if last.is_some_and(|(start, before)| start == *incarnation && before >= *grant) {
                    let what = format!(
                        "node {node}, store {store}: grant {grant:?} was received after {last:?}"
                    );
                    complaints.add(now, "leases", what);
                }
                if *until_ns == 0 {
                    return;
                }
                let made = self.made.get(&of).into_iter().flatten();
                let mut made = made.filter(|(id, _)| *id == (*incarnation, *number)).map(|of| of.1);
                let most = made.next_back().map_or(0, |made| made + self.longest_ns);
                if *until_ns > most {
                    let late = (*until_ns - most) / 1_000_000;
                    let what = format!("node {node}, store {store}: a lease is {late} ms too long");
                    complaints.add(now, "leases", what);
                }
            }
            Some(ClusterFact::Written { store, term, .. }) => {
                let last = self.written.entry(*store).or_default();
                if *term < *last {
                    let what = format!(
                        "store {store}: a write of term {term} was accepted after term {last}"
                    );
                    complaints.add(now, "leases", what);
                }
                *last = *term;
            }
            _ => {}
        }
    }
}
