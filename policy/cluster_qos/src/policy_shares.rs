//! Policies with disks on several nodes.
//!
//! The minimum of a policy is divided equally among the reservations of the nodes with its disks,
//! so that it counts once; in operation it is distributed by demand. The maximum is granted like a
//! store's capacity: half of it, or the minimum if larger, indefinitely in equal parts, the rest by
//! lease and demand.

use std::collections::{BTreeMap, BTreeSet};

use suimon_quantity::Time;

use crate::account::GrantHeader;
use crate::allocator::LeaderState;
use crate::divide::{Claimant, WeightedDemand, divide};
use crate::grant::{NodeShare, TargetShares};
use crate::ledger::{RemainingCapacity, limit_share};
use crate::{NodeId, Parameters, PolicyKey};

/// Target shares of one policy, by node, for one round.
pub(crate) struct PolicyPlan {
    /// Target shares of the policy's maximum, by node.
    targets: TargetShares,
    /// Parts of the policy's minimum, by node, divided by demand, in normalised operations per
    /// second.
    pub(crate) minimums: BTreeMap<NodeId, u64>,
    /// Nodes whose last report contains disks of the policy.
    users: BTreeSet<NodeId>,
    /// True if the policy has a maximum. An unknown policy has a maximum of 0.
    has_max: bool,
}

impl LeaderState {
    /// Returns the existing policies and deleted ones of which a node may still apply a share.
    pub(crate) fn known_policies(&self) -> BTreeSet<PolicyKey> {
        self.policies.keys().chain(self.policy_ledgers.keys()).copied().collect()
    }

    pub(crate) fn drop_unused_policies(&mut self) {
        let unused: Vec<PolicyKey> = self
            .policies_in_removal
            .iter()
            .copied()
            .filter(|policy| self.nodes_with_policy(*policy).next().is_none())
            .collect();
        for policy in unused {
            self.policies_in_removal.remove(&policy);
            self.policies.remove(&policy);
        }
        let policies = &self.policies;
        self.policy_ledgers.retain(|policy, ledger| {
            let is_there = policies.contains_key(policy);
            let has_some = |account: &crate::account::GrantAccount| {
                account.reserved_iops_max() > 0 || account.next_expiry(Time::ZERO).is_some()
            };
            is_there || ledger.accounts.values().any(has_some)
        });
    }

    /// Returns the sum of policy minimums to reserve on each node: each minimum divided equally
    /// among the nodes with disks of the policy.
    pub(crate) fn policy_minimums_by_node(&self) -> BTreeMap<NodeId, u64> {
        let mut shares = BTreeMap::<NodeId, u64>::new();
        for (policy, limits) in &self.policies {
            for (node, share) in self.equally(*policy, limits.min_iops) {
                let sum = shares.entry(node).or_default();
                *sum = sum.saturating_add(share);
            }
        }
        shares
    }

    /// Divides `total` equally among the nodes with disks of a policy; the remainder goes to the
    /// first ones.
    fn equally(&self, policy: PolicyKey, total: u64) -> Vec<(NodeId, u64)> {
        let nodes: Vec<NodeId> = self.nodes_with_policy(policy).collect();
        let count = u64::try_from(nodes.len()).unwrap_or(u64::MAX).max(1);
        let share = |index: u64| total / count + u64::from(index < total % count);
        nodes.iter().copied().zip((0..count).map(share)).collect()
    }

    /// Calculates the target shares of a policy from the reported demands.
    pub(crate) fn policy_plan(
        &self,
        policy: PolicyKey,
        terms: &Parameters,
        now: Time,
    ) -> PolicyPlan {
        let limits = self.policies.get(&policy).copied().unwrap_or_default();
        let mut claims: Vec<(NodeId, WeightedDemand)> = Vec::new();
        for (node, _, report) in self.nodes_with_current_report(terms, now) {
            let claim = report
                .policy_load(policy)
                .map(|load| WeightedDemand { demand_iops: load.demand_iops, weight: load.weight });
            claims.extend(claim.map(|claim| (node, claim)));
        }
        let claimant = |claim| Claimant::new(std::slice::from_ref(claim));
        let claimants: Vec<_> = claims.iter().map(|(_, claim)| claimant(claim)).collect();
        let nodes = claims.iter().map(|(node, _)| *node);
        let minimums = nodes.clone().zip(divide(limits.min_iops, &claimants)).collect();
        let users = self.nodes_with_policy(policy).collect();
        let has_max = self.policies.get(&policy).is_none_or(|limits| limits.max_iops.is_some());
        let mut plan = PolicyPlan { targets: TargetShares::new(), minimums, users, has_max };
        let Some(max) = limits.max_iops else { return plan };
        let targets = &mut plan.targets;
        let fixed = (max / 2).max(limits.min_iops).min(max);
        let mut remaining = max;
        for (node, share) in self.equally(policy, fixed) {
            let target =
                NodeShare { leased_iops: share, reserved_iops: share, ..NodeShare::default() };
            targets.insert(node, target);
            remaining -= share;
        }
        let beyond_minimums: Vec<_> = claims
            .iter()
            .map(|(node, claim)| {
                let has = targets.get(node).map_or(0, |target| target.reserved_iops);
                Claimant { other_supply_iops: has, ..claimant(claim) }
            })
            .collect();
        for (node, share) in nodes.zip(divide(remaining, &beyond_minimums)) {
            if let Some(target) = targets.get_mut(&node) {
                target.leased_iops = target.leased_iops.saturating_add(share);
            }
        }
        plan
    }

    /// Grants a node its share of a policy's maximum. Returns `None` if the node has no disks of
    /// the policy and may apply no share of it, and `Some(None)` if the policy has no maximum. The
    /// share of a policy that does not exist is 0.
    pub(crate) fn grant_policy(
        &mut self,
        policy: PolicyKey,
        node: NodeId,
        plan: &PolicyPlan,
        remaining: Option<&mut RemainingCapacity>,
        header: GrantHeader,
    ) -> Option<Option<NodeShare>> {
        let is_there = plan.users.contains(&node);
        if !plan.has_max {
            // The policy's maximum was removed; earlier shares of it are irrelevant, although nodes
            // may still apply them.
            self.policy_ledgers.remove(&policy);
            return is_there.then_some(None);
        }
        let ledger = self.policy_ledgers.entry(policy).or_default();
        if !is_there && !ledger.accounts.contains_key(&node) {
            return None;
        }
        let account = ledger.accounts.entry(node).or_default();
        let target = plan.targets.get(&node).copied().unwrap_or_default();
        let remaining = remaining?;
        let share = limit_share(&target, remaining.share_bounds(account, false));
        self.has_pending_demand |= share.leased_iops < target.leased_iops;
        let granted = remaining.grant(account, false, header, share);
        if !is_there
            && account.iops_max_at(header.expires) == 0
            && granted.leased_outstanding_iops == 0
        {
            ledger.accounts.remove(&node);
        }
        Some(Some(granted))
    }
}
