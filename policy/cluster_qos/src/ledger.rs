//! Capacity of a store or policy, and the upper bounds of the rates that nodes may use of it.

use std::collections::BTreeMap;

use suimon_quantity::Time;

use crate::NodeId;
use crate::account::{GrantAccount, GrantHeader};
use crate::grant::NodeShare;

/// Accounts of all nodes for one divided capacity: that of a store, or the maximum of a policy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) accounts: BTreeMap<NodeId, GrantAccount>,
}

/// Capacity left for new grants such that the sum stays within the limit.
///
/// The sum is evaluated at three times: now, when all leases have ended and all nodes use their
/// fallback shares, and when the first node without recent contact may change to its fallback
/// share. Between these times no node may use more than at the earlier one, because leases only
/// end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemainingCapacity {
    limit: u64,
    now: Time,
    fallback_at: Option<Time>,
    sum_now: u64,
    sum_then: u64,
    /// Sum of the rates after all leases have ended, including fallback rates.
    sum_end: u64,
}

/// Upper bounds of the rates in the next grant to one node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShareBounds {
    /// Bound of [`NodeShare::leased_iops`].
    pub(crate) leased_iops: u64,
    /// Bound of [`NodeShare::reserved_iops`].
    pub(crate) reserved_iops: u64,
    /// Bound of [`NodeShare::fallback_iops`].
    pub(crate) fallback_iops: u64,
}

/// Returns `target` with each of its three rates limited to its bound.
pub(crate) fn limit_share(target: &NodeShare, bounds: ShareBounds) -> NodeShare {
    NodeShare {
        leased_iops: target.leased_iops.min(bounds.leased_iops),
        reserved_iops: target.reserved_iops.min(bounds.reserved_iops),
        fallback_iops: target.fallback_iops.min(bounds.fallback_iops),
        ..NodeShare::default()
    }
}

impl Ledger {
    /// Returns the capacity that is not used by the accounts, `limit` being the total.
    /// `fallback_from` returns when a node may change to its fallback share, or `None` if that is
    /// not before the end of a lease given now.
    pub(crate) fn remaining(
        &self,
        limit: u64,
        now: Time,
        fallback_from: impl Fn(NodeId) -> Option<Time>,
    ) -> RemainingCapacity {
        let with_fallback =
            self.accounts.iter().filter(|(_, account)| account.fallback_iops_max() > 0);
        let fallback_at = with_fallback.filter_map(|(node, _)| fallback_from(*node)).min();
        let fallback_at = fallback_at.map(|fallback_at| fallback_at.max(now));
        let mut remaining =
            RemainingCapacity { limit, now, fallback_at, sum_now: 0, sum_then: 0, sum_end: 0 };
        for (node, account) in &self.accounts {
            remaining.sum_now = remaining.sum_now.saturating_add(account.iops_max_at(now));
            let at_fallback = remaining.total_at_fallback(account, fallback_from(*node).is_some());
            remaining.sum_then = remaining.sum_then.saturating_add(at_fallback);
            remaining.sum_end = remaining.sum_end.saturating_add(account.iops_max_after_leases());
        }
        remaining
    }
}

impl RemainingCapacity {
    fn total_at_fallback(&self, account: &GrantAccount, is_late: bool) -> u64 {
        let Some(fallback_at) = self.fallback_at else { return 0 };
        let fallback = if is_late { account.fallback_iops_max() } else { 0 };
        account.iops_max_at(fallback_at).max(fallback)
    }

    /// Returns the bounds of the next grant to the node with this account: the capacity that the
    /// other nodes cannot use. `is_late` is true if the node may change to its fallback share
    /// during the lease.
    ///
    /// An account is an upper bound. If all accounts together exceed the limit, a node does not
    /// have all that its account contains, so granting that amount could be an increase. Only the
    /// amount it certainly has may be granted again.
    pub(crate) fn share_bounds(&self, account: &GrantAccount, is_late: bool) -> ShareBounds {
        let current = account.iops_max_at(self.now);
        let mut max = current.saturating_add(self.limit).saturating_sub(self.sum_now);
        if self.fallback_at.is_some() {
            let at_fallback = self.total_at_fallback(account, is_late);
            max = max.min(at_fallback.saturating_add(self.limit).saturating_sub(self.sum_then));
        }
        let assumed_use = account.reserved_iops_min();
        let leased = max.max(assumed_use);
        let end =
            account.iops_max_after_leases().saturating_add(self.limit).saturating_sub(self.sum_end);
        // A node that may use its fallback share now needs the capacity now.
        let fallback = if is_late { end.min(leased) } else { end };
        ShareBounds {
            leased_iops: leased,
            reserved_iops: end.min(leased).max(assumed_use),
            fallback_iops: fallback,
        }
    }

    /// Records a grant of `share` in the account and deducts it from the remaining capacity. The
    /// caller must have limited `share` to [`RemainingCapacity::share_bounds`]. Returns the share
    /// with the totals that the next leader needs.
    pub(crate) fn grant(
        &mut self,
        account: &mut GrantAccount,
        is_late: bool,
        unacknowledged: GrantHeader,
        share: NodeShare,
    ) -> NodeShare {
        let before = (
            account.iops_max_at(self.now),
            self.total_at_fallback(account, is_late),
            account.iops_max_after_leases(),
        );
        let share = account.add_grant(self.now, unacknowledged, share);
        let after = (
            account.iops_max_at(self.now),
            self.total_at_fallback(account, is_late),
            account.iops_max_after_leases(),
        );
        self.sum_now = self.sum_now.saturating_add(after.0).saturating_sub(before.0);
        self.sum_then = self.sum_then.saturating_add(after.1).saturating_sub(before.1);
        self.sum_end = self.sum_end.saturating_add(after.2).saturating_sub(before.2);
        share
    }
}
