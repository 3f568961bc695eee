//! Detection of unmet minimums and of stores below their capacity.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use suimon_quantity::Time;

use crate::allocator::{Allocator, AllocatorAction, Office};
use crate::estimate::Seen;
use crate::load::{NAMED_MAX, NamedDisk, Report, is_met};
use crate::notice::{AGGRESSORS_MAX, Aggressor, Cause, Notice, Unmet};
use crate::{DiskKey, NodeId, Terms};

/// Time for which a minimum must be unmet before it is reported.
pub const TOLD_AFTER: Duration = Duration::from_secs(60);

/// Maximum number of unmet minimums that are kept per node.
const LACKS_MAX: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Lack {
    since: Time,
    last: NamedDisk,
    is_told: bool,
}

/// Unmet minimums by node and disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lacks {
    lacks: BTreeMap<(NodeId, DiskKey), Lack>,
}

impl Lacks {
    /// Processes the unmet minimums in a report and returns notices for those now met.
    ///
    /// A report with [`NAMED_MAX`] unmet minimums may leave out others, so that nothing is known of those
    /// that it does not name.
    pub(crate) fn hear(&mut self, now: Time, report: &Report) -> Vec<Notice> {
        let node = report.node;
        let named: Vec<&NamedDisk> = report.unmet.iter().take(NAMED_MAX).collect();
        let is_complete = named.len() < NAMED_MAX;
        let mut met = Vec::new();
        self.lacks.retain(|(of, disk), lack| {
            let stays =
                *of != node || !is_complete || named.iter().any(|unmet| unmet.disk == *disk);
            if !stays && lack.is_told {
                met.push(Notice::MinimumMet { node, disk: *disk });
            }
            stays
        });
        let mut room = LACKS_MAX.saturating_sub(self.of_node(node));
        for unmet in named {
            match self.lacks.get_mut(&(node, unmet.disk)) {
                Some(lack) => lack.last = *unmet,
                None if room > 0 => {
                    let new = Lack { since: now, last: *unmet, is_told: false };
                    self.lacks.insert((node, unmet.disk), new);
                    room -= 1;
                }
                None => {}
            }
        }
        met
    }

    fn of_node(&self, node: NodeId) -> usize {
        self.lacks.keys().filter(|(of, _)| *of == node).count()
    }

    pub(crate) fn forget(&mut self, node: NodeId) {
        self.lacks.retain(|(of, _), _| *of != node);
    }
}

impl Allocator {
    /// Returns the minimums unmet at present, with the disks that cause it.
    pub fn unmet(&self) -> Vec<Unmet> {
        let Some(office) = &self.office else { return Vec::new() };
        let lacks = office.lacks.lacks.iter();
        lacks.map(|((node, disk), lack)| office.explain(self.now, *node, *disk, lack)).collect()
    }

    /// Returns the rate of all nodes together; `None` if this node is not the leader.
    pub fn limit_iops(&self) -> Option<u64> {
        self.office.as_ref().map(|office| office.estimate.iops())
    }

    /// Returns the upper bound of the current rates of all nodes, for any set of received grants.
    pub fn held_iops(&self) -> Option<u64> {
        let office = self.office.as_ref()?;
        let accounts = office.store.accounts.values();
        Some(accounts.fold(0, |sum, account| sum.saturating_add(account.held(self.now))))
    }
}

impl Office {
    /// Evaluates the reports of all nodes. Called periodically.
    pub(crate) fn look(
        &mut self,
        terms: &Terms,
        now: Time,
        actions: &mut VecDeque<AllocatorAction>,
    ) {
        let mut notices = Vec::new();
        let seen = self.seen(terms, now);
        if let Some(is_low) = self.estimate.look(now, seen) {
            let silent = self.nodes.iter().filter(|(_, state)| state.is_silent);
            notices.push(if is_low {
                Notice::ForeignLoad {
                    delivered_iops: seen.delivered,
                    capability_iops: self.estimate.capability().iops(),
                    strangers: self.strangers.values().cloned().collect(),
                    silent: silent.map(|(node, _)| *node).collect(),
                }
            } else {
                Notice::ForeignLoadGone
            });
        }
        // The leader must have been in office for this time.
        let patience = terms.idle_every * 2 + terms.lease;
        for (node, state) in &mut self.nodes {
            let heard = state.report.as_ref().map_or(self.elected, |(_, at)| *at);
            if !state.is_silent && now.since(heard) > patience {
                state.is_silent = true;
                let account = self.store.accounts.get(node);
                let reserved_iops = account.map_or(0, crate::account::Account::reserved);
                notices.push(Notice::NodeSilent { node: *node, reserved_iops });
            }
        }
        let due = self.lacks.lacks.iter_mut();
        let due = due.filter(|(_, lack)| !lack.is_told && now.since(lack.since) >= TOLD_AFTER);
        let due: Vec<_> = due
            .map(|((node, disk), lack)| {
                lack.is_told = true;
                (*node, *disk, *lack)
            })
            .collect();
        for (node, disk, lack) in due {
            notices.push(Notice::MinimumUnmet(self.explain(now, node, disk, &lack)));
        }
        actions.extend(notices.into_iter().map(|notice| AllocatorAction::Tell { notice }));
        self.is_due = true;
    }

    fn seen(&self, terms: &Terms, now: Time) -> Seen {
        let mut seen = Seen::default();
        let mut latencies = 0_u128;
        for (node, _, report) in self.current(terms, now) {
            let load = &report.load;
            seen.delivered = seen.delivered.saturating_add(load.delivered_iops);
            latencies += u128::from(load.latency_ns) * u128::from(load.delivered_iops);
            let may =
                self.store.accounts.get(&node).map_or(0, |account| account.last().leased_iops);
            if load.waits_for_store {
                seen.waiting_may = seen.waiting_may.saturating_add(may);
                seen.waiting_got = seen.waiting_got.saturating_add(load.delivered_iops);
            }
            seen.wants_more |= load.wanted_iops > may && !load.waits_for_store;
        }
        let mean = latencies / u128::from(seen.delivered.max(1));
        seen.latency_ns = u64::try_from(mean).unwrap_or(u64::MAX);
        seen
    }

    fn explain(&self, now: Time, node: NodeId, disk: DiskKey, lack: &Lack) -> Unmet {
        let named = lack.last;
        let mut aggressors: Vec<Aggressor> = self
            .nodes
            .iter()
            .filter_map(|(node, state)| Some((*node, &state.report.as_ref()?.0.largest)))
            .flat_map(|(node, largest)| largest.iter().map(move |named| (node, named)))
            .map(|(node, named)| Aggressor {
                node,
                disk: named.disk,
                delivered_iops: named.delivered_iops,
                entitled_iops: named.entitled_iops,
            })
            .collect();
        aggressors.sort_by_key(|by| {
            let beyond = by.delivered_iops.saturating_sub(by.entitled_iops);
            (core::cmp::Reverse(beyond), by.node, by.disk)
        });
        aggressors.truncate(AGGRESSORS_MAX);
        Unmet {
            node,
            disk,
            lasting: now.since(lack.since),
            entitled_iops: named.entitled_iops,
            demanded_iops: named.demanded_iops,
            delivered_iops: named.delivered_iops,
            cause: self.cause(node),
            aggressors,
        }
    }

    fn cause(&self, node: NodeId) -> Cause {
        let state = self.nodes.get(&node);
        let load = state.and_then(|state| state.report.as_ref()).map(|(report, _)| report.load);
        let load = load.unwrap_or_default();
        let may = self.store.accounts.get(&node).map_or(0, |account| {
            let last = account.last();
            last.leased_iops.max(last.reserved_iops)
        });
        if state.is_some_and(|state| state.refused.is_some()) {
            Cause::NotAdmitted
        } else if may < load.entitled_iops {
            Cause::OtherNodes
        } else if is_met(load.delivered_iops, may) {
            Cause::OwnNode
        } else if self.estimate.iops() < self.estimate.capability().iops() {
            Cause::ForeignLoad
        } else {
            Cause::StoreLatency
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(1);

    fn report(disks: &[u64]) -> Report {
        let unmet = disks.iter().map(|disk| NamedDisk {
            disk: DiskKey(*disk),
            entitled_iops: 100,
            demanded_iops: 100,
            delivered_iops: 0,
        });
        Report { unmet: unmet.collect(), ..Report::empty(NODE) }
    }

    #[test]
    fn a_full_report_says_nothing_of_the_minimums_that_it_does_not_name() {
        let mut lacks = Lacks::default();
        let now = Time::default();
        assert!(lacks.hear(now, &report(&[1, 2, 3])).is_empty());
        lacks.lacks.values_mut().for_each(|lack| lack.is_told = true);
        let full: Vec<u64> = (2..10).collect();
        assert!(lacks.hear(now, &report(&full)).is_empty(), "disk 1 may still be unmet");
        assert_eq!(lacks.of_node(NODE), 9);
        let met = lacks.hear(now, &report(&[2]));
        let disks = [1, 3].map(|disk| Notice::MinimumMet { node: NODE, disk: DiskKey(disk) });
        assert_eq!(met, disks);
    }

    #[test]
    fn unmet_minimums_of_a_node_are_bounded() {
        let mut lacks = Lacks::default();
        for first in (0..1000).step_by(8) {
            let disks: Vec<u64> = (first..first + 8).collect();
            lacks.hear(Time::default(), &report(&disks));
        }
        let many: Vec<u64> = (5000..6000).collect();
        lacks.hear(Time::default(), &report(&many));
        assert_eq!(lacks.of_node(NODE), LACKS_MAX);
    }

    #[test]
    fn rates_of_any_size_are_compared() {
        assert!(is_met(u64::MAX, u64::MAX) && !is_met(u64::MAX / 2, u64::MAX));
    }
}
