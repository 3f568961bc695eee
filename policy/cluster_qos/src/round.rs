//! Round of the leader: admits reservations, calculates target shares and issues grants.

use std::collections::{BTreeMap, VecDeque};

use suimon_quantity::Time;

use crate::account::{GrantAccount, GrantHeader};
use crate::allocator::{AllocatorAction, LeaderState};
use crate::divide::{Claimant, WeightedDemand, divide};
use crate::grant::{NodeGrant, NodeShare, PolicyShare, TargetShares};
use crate::ledger::{RemainingCapacity, limit_share};
use crate::load::{LoadReport, PROTOCOL_VERSION};
use crate::node_state::NodeState;
use crate::notice::Notice;
use crate::policy_shares::PolicyPlan;
use crate::{AdmissionCheck, GrantId, NodeId, Parameters, PolicyKey, WEIGHTED_DEMANDS_MAX};

/// Factor by which the leased share of a node may grow from one report to the next.
const GROWTH_FACTOR: u64 = 4;
/// Divisor of the capacity that gives the minimum growth of a node's share per report.
const STEP_DIVISOR: u64 = 32;

/// Demand of a node beyond its reservation.
#[derive(Clone, Debug)]
struct NodeDemand {
    claims: Vec<WeightedDemand>,
    /// Part of the node's admitted reservation that its demand within minimums does not use; its
    /// other disks can use it.
    unused_reserved: u64,
    /// Maximum spare capacity for the node in the first pass of [`divide_spare`], in normalised
    /// operations per second.
    assumed_use: u64,
}

impl NodeDemand {
    /// Derives the demand from a report. `before` is the leased share in effect when the node made
    /// the report; `min` is the lower bound of the assumed use.
    fn from_report(state: &NodeState, report: &LoadReport, before: u64, min: u64) -> Self {
        // Based on the total share: the reservation alone does not indicate the demand.
        let assumed_use =
            before.saturating_mul(GROWTH_FACTOR).saturating_sub(state.admitted).max(min);
        if state.refused.is_some() {
            // The node's scheduler does not divide by weight alone, so the demands of single disks
            // do not determine their throughput.
            let demand_iops = report.load.demand_iops.saturating_sub(state.admitted);
            let claim = WeightedDemand { demand_iops, weight: report.load.weight };
            return Self { claims: vec![claim], unused_reserved: 0, assumed_use };
        }
        let demand = &report.demand;
        Self {
            claims: demand.beyond_minimums.iter().copied().take(WEIGHTED_DEMANDS_MAX).collect(),
            unused_reserved: state.admitted.saturating_sub(demand.within_minimums_iops),
            assumed_use,
        }
    }
}

/// Divides spare capacity among nodes and returns their shares in the same order. A saturated node
/// reports that its demand is higher than its share, but not by how much; often it is little. In a
/// first pass each node gets at most its assumed use; the second pass divides the rest among nodes
/// with further demand. Otherwise half of the spare capacity would be unused by a node with a small
/// demand until its next report.
fn divide_spare(spare: u64, demands: &[NodeDemand]) -> Vec<u64> {
    let first: Vec<Claimant<'_>> = demands
        .iter()
        .map(|demand| Claimant {
            other_supply_iops: demand.unused_reserved,
            share_max: demand.assumed_use,
            ..Claimant::new(&demand.claims)
        })
        .collect();
    let guaranteed = divide(spare, &first);
    let second: Vec<Claimant<'_>> = first
        .iter()
        .zip(&guaranteed)
        .map(|(claimant, guaranteed)| Claimant {
            share_min: *guaranteed,
            share_max: u64::MAX,
            ..*claimant
        })
        .collect();
    divide(spare, &second)
}

impl LeaderState {
    /// Runs one round: admits reservations, calculates target shares, and queues one write with the
    /// grants, which are limited to the capacity that no other node may still use.
    pub(crate) fn run_round(
        &mut self,
        terms: &Parameters,
        now: Time,
        actions: &mut VecDeque<AllocatorAction>,
    ) {
        (self.is_round_due, self.has_pending_demand, self.last_round) = (false, false, Some(now));
        self.drop_unused_policies();
        self.admit(terms, actions);
        let fallback_times = self.fallback_times(terms, now);
        let targets = self.targets(terms, now, &fallback_times);
        let policies: BTreeMap<PolicyKey, PolicyPlan> = self
            .known_policies()
            .into_iter()
            .map(|policy| (policy, self.policy_plan(policy, terms, now)))
            .collect();
        let fallback_from = |node: NodeId| fallback_times.get(&node).copied();
        let mut remaining =
            self.store_ledger.remaining(self.estimate.iops_upper_bound(), now, fallback_from);
        let mut rooms: BTreeMap<PolicyKey, RemainingCapacity> = BTreeMap::new();
        for policy in policies.keys() {
            let max = self.policies.get(policy).and_then(|limits| limits.max_iops);
            let ledger = self.policy_ledgers.entry(*policy).or_default();
            rooms.insert(*policy, ledger.remaining(max.unwrap_or_default(), now, |_| None));
        }
        let mut grants = Vec::new();
        for node in self.order(now, &targets) {
            let Some(target) = targets.get(&node) else { continue };
            let is_late = fallback_times.contains_key(&node);
            let Some(state) = self.nodes.get(&node) else { continue };
            let Some((report, _)) = &state.report else { continue };
            let (answers, refused) = (report.id, state.refused.map(|(_, promises)| promises));
            let id = GrantId { term: self.term, number: self.next_grant_number };
            let expires = now + terms.max_elapsed(terms.lease);
            let header = GrantHeader { id, incarnation: answers.incarnation, expires };
            let account = self.store_ledger.accounts.entry(node).or_default();
            let max = remaining.share_bounds(account, is_late);
            let share = limit_share(target, max);
            self.has_pending_demand |= share.leased_iops < target.leased_iops
                || share.reserved_iops < target.reserved_iops;
            let store = remaining.grant(account, is_late, header, share);
            let mut shares = Vec::new();
            for (policy, plan) in &policies {
                let policy_max =
                    self.grant_policy(*policy, node, plan, rooms.get_mut(policy), header);
                let min_iops = plan.minimums.get(&node).copied().unwrap_or_default();
                shares.extend(policy_max.map(|max| PolicyShare { policy: *policy, min_iops, max }));
            }
            self.next_grant_number += 1;
            if let Some(state) = self.nodes.get_mut(&node) {
                state.record_grant(id, now, answers);
            }
            let grant = NodeGrant {
                version: PROTOCOL_VERSION,
                id,
                answered_report: answers,
                granted_at: now,
                lease: terms.lease,
                store_limit_iops: self.estimate.iops(),
                store,
                policies: shares,
                refusal: refused,
            };
            grants.push((node, grant));
        }
        let forgotten: Vec<NodeId> = core::mem::take(&mut self.removed_nodes).into_iter().collect();
        if !grants.is_empty() || !forgotten.is_empty() {
            self.is_writing = true;
            actions.push_back(AllocatorAction::Write {
                term: self.term,
                grants,
                removed_nodes: forgotten,
            });
        }
    }

    /// Returns the times at which nodes without recent contact may change to their fallback shares,
    /// if before the end of a lease given now.
    pub(crate) fn fallback_times(&self, terms: &Parameters, now: Time) -> BTreeMap<NodeId, Time> {
        let limit = now + terms.max_elapsed(terms.lease);
        let fallback_start = |state: &NodeState| {
            let start = state
                .acknowledged_at
                .map(|granted_at| granted_at + terms.min_elapsed(terms.fallback_after));
            start.unwrap_or(now).max(now)
        };
        let times = self.nodes.iter().map(|(node, state)| (*node, fallback_start(state)));
        times.filter(|(_, start)| *start <= limit).collect()
    }

    /// Admits or rejects the reservations and fallback shares that nodes request, within the
    /// capacity. Queues [`Notice::ReservationRefused`] for a new rejection.
    fn admit(&mut self, terms: &Parameters, actions: &mut VecDeque<AllocatorAction>) {
        let shares = self.policy_minimums_by_node();
        let capability = self.estimate.capacity();
        let mut demands = Vec::new();
        for (node, state) in &mut self.nodes {
            let Some((report, _)) = &state.report else { continue };
            let floor = if report.load.disks == 0 { 0 } else { terms.base_reservation_iops };
            let shared = shares.get(node).copied().unwrap_or_default();
            let demand = report.load.minimums_iops.saturating_add(floor).saturating_add(shared);
            if demand <= state.admitted {
                (state.admitted, state.refused) = (demand, None);
            } else {
                demands.push((*node, demand));
            }
            let fallback_iops = report.load.fallback_iops.unwrap_or_default();
            state.admitted_fallback = fallback_iops.min(state.admitted_fallback);
        }
        let mut promised: u64 = self
            .nodes
            .values()
            .fold(0, |sum, state| sum.saturating_add(state.admitted.max(state.admitted_fallback)));
        for (node, demand) in demands {
            let Some(state) = self.nodes.get_mut(&node) else { continue };
            let requested_iops = demand - state.admitted.max(state.admitted_fallback).min(demand);
            let promises =
                AdmissionCheck { guaranteed_iops: promised, requested_iops, capacity: capability };
            if promises.is_admissible() {
                promised = promised.saturating_add(requested_iops);
                (state.admitted, state.refused) = (demand, None);
            } else if state
                .refused
                .replace((demand, promises))
                .is_none_or(|(previous, _)| previous != demand)
            {
                let notice = Notice::ReservationRefused { node, admission: promises };
                actions.push_back(AllocatorAction::Notify { notice });
            }
        }
        // Fallback shares are admitted last, because they are not guaranteed.
        for state in self.nodes.values_mut() {
            let Some((report, _)) = &state.report else { continue };
            let fallback_iops = report.load.fallback_iops.unwrap_or_default();
            let admitted = state.admitted.max(state.admitted_fallback);
            let requested_iops = fallback_iops.saturating_sub(admitted);
            let promises =
                AdmissionCheck { guaranteed_iops: promised, requested_iops, capacity: capability };
            if fallback_iops > state.admitted_fallback && promises.is_admissible() {
                promised = promised.saturating_add(requested_iops);
                state.admitted_fallback = fallback_iops;
            }
        }
    }

    fn targets(
        &self,
        terms: &Parameters,
        now: Time,
        fallback_times: &BTreeMap<NodeId, Time>,
    ) -> TargetShares {
        let mut base = 0_u64;
        let min = self.estimate.iops() / STEP_DIVISOR;
        let mut claims: Vec<(NodeId, NodeDemand)> = Vec::new();
        let mut targets = TargetShares::new();
        for (node, state) in &self.nodes {
            let target = NodeShare {
                leased_iops: state.admitted,
                reserved_iops: state.admitted,
                fallback_iops: state.admitted_fallback,
                ..NodeShare::default()
            };
            targets.insert(*node, target);
            let account = self.store_ledger.accounts.get(node);
            let (reserved, late_held) = account.map_or((0, 0), |account| {
                (account.reserved_iops_max(), account.fallback_iops_max())
            });
            // A node without a recent report keeps its reservation and may change to its fallback
            // share.
            let Some(report) = state.current(now, terms.lease) else {
                let fallback = if fallback_times.contains_key(node) { late_held } else { 0 };
                base = base.saturating_add(reserved.max(state.admitted).max(fallback));
                continue;
            };
            base = base.saturating_add(state.admitted);
            if !report.applies_leases {
                continue;
            }
            // Grants since then are excluded: their effect has not been reported yet.
            let before = account.map_or(0, GrantAccount::acknowledged_leased_iops);
            claims.push((*node, NodeDemand::from_report(state, report, before, min)));
        }
        let spare = self.estimate.iops().saturating_sub(base);
        let (nodes, demands): (Vec<NodeId>, Vec<NodeDemand>) = claims.into_iter().unzip();
        for (node, share) in nodes.iter().zip(divide_spare(spare, &demands)) {
            if let Some(target) = targets.get_mut(node) {
                target.leased_iops = target.leased_iops.saturating_add(share);
            }
        }
        targets
    }

    /// Returns the nodes that get a grant in this round, those with a decrease first.
    fn order(&self, now: Time, targets: &TargetShares) -> Vec<NodeId> {
        let mut order = Vec::new();
        for (node, target) in targets {
            let Some(state) = self.nodes.get(node) else { continue };
            let Some((report, _)) = &state.report else { continue };
            let empty = GrantAccount::default();
            let account = self.store_ledger.accounts.get(node).unwrap_or(&empty);
            let (last, leased) = (account.newest_share(), account.leased_iops_max(now));
            // A report answered before gets another grant only if the share differs considerably
            // from the target.
            let is_far = differs(last.leased_iops, target.leased_iops) && leased > 0
                || last.reserved_iops != target.reserved_iops;
            let is_new = state.last_answered_report.is_none_or(|report_id| report_id < report.id);
            if is_new || is_far {
                let is_more = target.leased_iops > leased;
                let is_promise = target.reserved_iops > account.reserved_iops_max();
                order.push((is_more, !is_promise, *node));
            }
        }
        order.sort_unstable();
        order.into_iter().map(|(_, _, node)| node).collect()
    }

    /// Returns each node whose last report is recent enough for a lease, with its state and report.
    pub(crate) fn nodes_with_current_report<'a>(
        &'a self,
        terms: &Parameters,
        now: Time,
    ) -> impl Iterator<Item = (NodeId, &'a NodeState, &'a LoadReport)> {
        let lease = terms.lease;
        self.nodes.iter().filter_map(move |(node, state)| {
            state.current(now, lease).map(|report| (*node, state, report))
        })
    }
}

/// Returns true if `new` differs from `old` by more than an eighth.
fn differs(old: u64, new: u64) -> bool {
    old.abs_diff(new) > old.max(new) / 8
}
