//! Capacity of a store or policy, and the upper bounds of the rates that nodes may use of it.

use std::collections::BTreeMap;

use suimon_quantity::Time;

use crate::NodeId;
use crate::account::{Account, GrantHeader};
use crate::grant::NodeShare;

/// Accounts of all nodes for one divided capacity: that of a store, or the maximum of a policy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) accounts: BTreeMap<NodeId, Account>,
}

/// Capacity left for new grants such that the sum stays within the limit.
///
/// The sum is evaluated at three times: now, when all leases have ended and all nodes use their
/// fallback shares, and when the first node without recent contact may change to its fallback
/// share. Between these times no node may use more than at the earlier one, because leases only
/// end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remaining {
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
    pub(crate) leased: u64,
    /// Bound of [`NodeShare::reserved_iops`].
    pub(crate) reserved: u64,
    /// Bound of [`NodeShare::fallback_iops`].
    pub(crate) fallback: u64,
}

/// Returns `target` with each of its three rates limited to its bound.
pub(crate) fn fit(target: &NodeShare, bounds: ShareBounds) -> NodeShare {
    NodeShare {
        leased_iops: target.leased_iops.min(bounds.leased),
        reserved_iops: target.reserved_iops.min(bounds.reserved),
        fallback_iops: target.fallback_iops.min(bounds.fallback),
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
    ) -> Remaining {
        let with_fallback = self.accounts.iter().filter(|(_, account)| account.fallback() > 0);
        let fallback_at = with_fallback.filter_map(|(node, _)| fallback_from(*node)).min();
        let fallback_at = fallback_at.map(|fallback_at| fallback_at.max(now));
        let mut remaining =
            Remaining { limit, now, fallback_at, sum_now: 0, sum_then: 0, sum_end: 0 };
        for (node, account) in &self.accounts {
            remaining.sum_now = remaining.sum_now.saturating_add(account.total_at(now));
            let at_fallback = remaining.total_at_fallback(account, fallback_from(*node).is_some());
            remaining.sum_then = remaining.sum_then.saturating_add(at_fallback);
            remaining.sum_end = remaining.sum_end.saturating_add(account.end());
        }
        remaining
    }
}

impl Remaining {
    fn total_at_fallback(&self, account: &Account, is_late: bool) -> u64 {
        let Some(fallback_at) = self.fallback_at else { return 0 };
        let fallback = if is_late { account.fallback() } else { 0 };
        account.total_at(fallback_at).max(fallback)
    }

    /// Returns the bounds of the next grant to the node with this account: the capacity that the
    /// other nodes cannot use. `is_late` is true if the node may change to its fallback share
    /// during the lease.
    ///
    /// An account is an upper bound. If all accounts together exceed the limit, a node does not
    /// have all that its account contains, so granting that amount could be an increase. Only the
    /// amount it certainly has may be granted again.
    pub(crate) fn for_node(&self, account: &Account, is_late: bool) -> ShareBounds {
        let current = account.total_at(self.now);
        let mut max = current.saturating_add(self.limit).saturating_sub(self.sum_now);
        if self.fallback_at.is_some() {
            let at_fallback = self.total_at_fallback(account, is_late);
            max = max.min(at_fallback.saturating_add(self.limit).saturating_sub(self.sum_then));
        }
        let assumed_use = account.reserved_min();
        let leased = max.max(assumed_use);
        let end = account.end().saturating_add(self.limit).saturating_sub(self.sum_end);
        // A node that may use its fallback share now needs the capacity now.
        let fallback = if is_late { end.min(leased) } else { end };
        ShareBounds { leased, reserved: end.min(leased).max(assumed_use), fallback }
    }

    /// Records a grant of `share` in the account and deducts it from the remaining capacity. The
    /// caller must have limited `share` to [`Remaining::for_node`]. Returns the share with the
    /// totals that the next leader needs.
    pub(crate) fn grant(
        &mut self,
        account: &mut Account,
        is_late: bool,
        unacknowledged: GrantHeader,
        share: NodeShare,
    ) -> NodeShare {
        let before =
            (account.total_at(self.now), self.total_at_fallback(account, is_late), account.end());
        let share = account.add_grant(self.now, unacknowledged, share);
        let after =
            (account.total_at(self.now), self.total_at_fallback(account, is_late), account.end());
        self.sum_now = self.sum_now.saturating_add(after.0).saturating_sub(before.0);
        self.sum_then = self.sum_then.saturating_add(after.1).saturating_sub(before.1);
        self.sum_end = self.sum_end.saturating_add(after.2).saturating_sub(before.2);
        share
    }
}
