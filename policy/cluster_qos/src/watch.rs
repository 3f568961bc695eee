//! Detection of unmet minimums and of stores below their capacity.

use core::time::Duration;
use std::collections::VecDeque;

use suimon_quantity::Time;

use crate::allocator::{Allocator, AllocatorAction, LeaderState};
use crate::estimate::Observation;
use crate::load::is_met;
use crate::notice::{
    DISKS_OVER_GUARANTEE_MAX, DiskBelowMinimum, Notice, OverGuaranteeDisk, UnmetMinimumCause,
};
use crate::unmet_minimums::UnmetMinimum;
use crate::{DiskKey, NodeId, Parameters};

/// Time for which a minimum must be unmet before it is reported.
pub const UNMET_REPORT_DELAY: Duration = Duration::from_secs(60);

impl Allocator {
    /// Returns the minimums that are unmet at present, each with the disks that got more than their
    /// guaranteed rate. Empty if this node is not the leader.
    pub fn unmet_minimums(&self) -> Vec<DiskBelowMinimum> {
        let Some(leader_state) = &self.leader_state else { return Vec::new() };
        let unmet = leader_state.unmet_minimums.minimums.iter();
        unmet
            .map(|((node, disk), minimum)| leader_state.explain(self.now, *node, *disk, minimum))
            .collect()
    }

    /// Returns the estimated capacity that is divided among all nodes, in normalised operations per
    /// second; `None` if this node is not the leader.
    pub fn store_limit_iops(&self) -> Option<u64> {
        self.leader_state.as_ref().map(|leader_state| leader_state.estimate.iops())
    }

    /// Returns the upper bound of the rates that all nodes together may use now, whichever grants
    /// they have received, in normalised operations per second; `None` if this node is not the
    /// leader.
    pub fn rate_bound_iops(&self) -> Option<u64> {
        let leader_state = self.leader_state.as_ref()?;
        let accounts = leader_state.store_ledger.accounts.values();
        Some(accounts.fold(0, |sum, account| sum.saturating_add(account.iops_max_at(self.now))))
    }
}

impl LeaderState {
    /// Evaluates the recent reports of all nodes: updates the capacity estimate and queues notices
    /// of low capacity, silent nodes and unmet minimums. Called once per
    /// [`EVALUATION_INTERVAL`](crate::estimate::EVALUATION_INTERVAL).
    pub(crate) fn evaluate_reports(
        &mut self,
        terms: &Parameters,
        now: Time,
        actions: &mut VecDeque<AllocatorAction>,
    ) {
        let mut notices = Vec::new();
        let observation = self.observe(terms, now);
        if let Some(is_low) = self.estimate.evaluate(now, observation) {
            let silent = self.nodes.iter().filter(|(_, state)| state.is_silent);
            notices.push(if is_low {
                Notice::ExternalLoad {
                    delivered_iops: observation.delivered_iops,
                    capacity_iops: self.estimate.capacity().iops(),
                    external_users: self.external_users.iter().cloned().collect(),
                    silent_nodes: silent.map(|(node, _)| *node).collect(),
                }
            } else {
                Notice::ExternalLoadEnded
            });
        }
        // A node is silent only if this leader has been in office at least this long.
        let timeout = terms.idle_report_interval * 2 + terms.lease;
        for (node, state) in &mut self.nodes {
            let last_report =
                state.report.as_ref().map_or(self.elected_at, |(_, received_at)| *received_at);
            if !state.is_silent && now.since(last_report) > timeout {
                state.is_silent = true;
                let account = self.store_ledger.accounts.get(node);
                let reserved_iops =
                    account.map_or(0, crate::account::GrantAccount::reserved_iops_max);
                notices.push(Notice::NodeSilent { node: *node, reserved_iops });
            }
        }
        let due = self.unmet_minimums.minimums.iter_mut();
        let due = due.filter(|(_, minimum)| {
            !minimum.is_reported && now.since(minimum.since) >= UNMET_REPORT_DELAY
        });
        let due: Vec<_> = due
            .map(|((node, disk), minimum)| {
                minimum.is_reported = true;
                (*node, *disk, *minimum)
            })
            .collect();
        for (node, disk, minimum) in due {
            notices.push(Notice::MinimumUnmet(self.explain(now, node, disk, &minimum)));
        }
        actions.extend(notices.into_iter().map(|notice| AllocatorAction::Notify { notice }));
        self.is_round_due = true;
    }

    fn observe(&self, terms: &Parameters, now: Time) -> Observation {
        let mut observation = Observation::default();
        let mut latencies = 0_u128;
        for (node, _, report) in self.nodes_with_current_report(terms, now) {
            let load = &report.load;
            observation.delivered_iops =
                observation.delivered_iops.saturating_add(load.delivered_iops);
            latencies += u128::from(load.latency_ns) * u128::from(load.delivered_iops);
            let allowed = self
                .store_ledger
                .accounts
                .get(&node)
                .map_or(0, |account| account.newest_share().leased_iops);
            if load.waits_for_store {
                observation.saturated_share_iops =
                    observation.saturated_share_iops.saturating_add(allowed);
                observation.saturated_delivered_iops =
                    observation.saturated_delivered_iops.saturating_add(load.delivered_iops);
            }
            observation.is_limited_by_grant |= load.demand_iops > allowed && !load.waits_for_store;
        }
        let mean = latencies / u128::from(observation.delivered_iops.max(1));
        observation.latency_ns = u64::try_from(mean).unwrap_or(u64::MAX);
        observation
    }

    fn explain(
        &self,
        now: Time,
        node: NodeId,
        disk: DiskKey,
        minimum: &UnmetMinimum,
    ) -> DiskBelowMinimum {
        let named_disk = minimum.last_entry;
        let mut aggressors: Vec<OverGuaranteeDisk> = self
            .nodes
            .iter()
            .filter_map(|(node, state)| {
                Some((*node, &state.report.as_ref()?.0.disks_over_guarantee))
            })
            .flat_map(|(node, largest)| largest.iter().map(move |named_disk| (node, named_disk)))
            .map(|(node, named_disk)| OverGuaranteeDisk {
                node,
                disk: named_disk.disk,
                delivered_iops: named_disk.delivered_iops,
                guaranteed_iops: named_disk.guaranteed_iops,
            })
            .collect();
        aggressors.sort_by_key(|aggressor| {
            let excess = aggressor.delivered_iops.saturating_sub(aggressor.guaranteed_iops);
            (core::cmp::Reverse(excess), aggressor.node, aggressor.disk)
        });
        aggressors.truncate(DISKS_OVER_GUARANTEE_MAX);
        DiskBelowMinimum {
            node,
            disk,
            unmet_for: now.since(minimum.since),
            guaranteed_iops: named_disk.guaranteed_iops,
            demand_iops: named_disk.demand_iops,
            delivered_iops: named_disk.delivered_iops,
            cause: self.cause(node),
            disks_over_guarantee: aggressors,
        }
    }

    fn cause(&self, node: NodeId) -> UnmetMinimumCause {
        let state = self.nodes.get(&node);
        let load = state.and_then(|state| state.report.as_ref()).map(|(report, _)| report.load);
        let load = load.unwrap_or_default();
        let allowed = self.store_ledger.accounts.get(&node).map_or(0, |account| {
            let last = account.newest_share();
            last.leased_iops.max(last.reserved_iops)
        });
        if state.is_some_and(|state| state.refused.is_some()) {
            UnmetMinimumCause::NotAdmitted
        } else if allowed < load.guaranteed_iops {
            UnmetMinimumCause::OtherNodes
        } else if is_met(load.delivered_iops, allowed) {
            UnmetMinimumCause::OtherDisksOnNode
        } else if self.estimate.iops() < self.estimate.capacity().iops() {
            UnmetMinimumCause::ExternalLoad
        } else {
            UnmetMinimumCause::StoreLatency
        }
    }
}
