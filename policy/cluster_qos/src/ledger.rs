//! What there is, and who may have how much of it, at worst.

use std::collections::BTreeMap;

use suimon_quantity::Time;

use crate::NodeId;
use crate::account::{Account, Given};
use crate::grant::Share;

/// Something of which nodes have shares: a store, or the maximum of a policy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) accounts: BTreeMap<NodeId, Account>,
}

/// What the next grants may give so that the sum stays below the limit.
///
/// It is looked at three moments: now; when all leases have ended and all nodes have gone over to what
/// they may do late; and when the first of those nodes that have not been heard of
/// for long goes over to that. Between them no node may do more than at the
/// earlier, because leases only end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    limit: u64,
    now: Time,
    then: Option<Time>,
    sum_now: u64,
    sum_then: u64,
    /// What nodes may have without any lease, all late.
    sum_end: u64,
}

/// What a node may be given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Most {
    /// For a lease's time.
    pub(crate) leased: u64,
    /// Without end.
    pub(crate) reserved: u64,
    /// When it has heard nothing for long.
    pub(crate) late: u64,
}

impl Ledger {
    /// Sums up who has what. `late_from`: when a node may go over to its late share, if that
    /// comes before a lease that is given now has ended.
    pub(crate) fn room(
        &self,
        limit: u64,
        now: Time,
        late_from: impl Fn(NodeId) -> Option<Time>,
    ) -> Room {
        let late = self.accounts.iter().filter(|(_, account)| account.late() > 0);
        let then = late.filter_map(|(node, _)| late_from(*node)).min();
        let then = then.map(|then| then.max(now));
        let mut room = Room { limit, now, then, sum_now: 0, sum_then: 0, sum_end: 0 };
        for (node, account) in &self.accounts {
            room.sum_now = room.sum_now.saturating_add(account.held(now));
            let held = room.held_then(account, late_from(*node).is_some());
            room.sum_then = room.sum_then.saturating_add(held);
            room.sum_end = room.sum_end.saturating_add(account.end());
        }
        room
    }
}

impl Room {
    fn held_then(&self, account: &Account, is_late: bool) -> u64 {
        let Some(then) = self.then else { return 0 };
        let late = if is_late { account.late() } else { 0 };
        account.held(then).max(late)
    }

    /// How much a node may be given in all: what others cannot have.
    ///
    /// An account is the worst case. Where all accounts together are above the limit, a node does not
    /// have all that its account says, so giving that again may be giving more. What it surely
    /// has it may be given again.
    pub(crate) fn for_node(&self, account: &Account, is_late: bool) -> Most {
        let held = account.held(self.now);
        let mut most = held.saturating_add(self.limit).saturating_sub(self.sum_now);
        if self.then.is_some() {
            let held = self.held_then(account, is_late);
            most = most.min(held.saturating_add(self.limit).saturating_sub(self.sum_then));
        }
        let surely = account.surely_reserved();
        let leased = most.max(surely);
        let end = account.end().saturating_add(self.limit).saturating_sub(self.sum_end);
        // One that may be late now needs the room now.
        let late = if is_late { end.min(leased) } else { end };
        Most { leased, reserved: end.min(leased).max(surely), late }
    }

    /// Gives a node a share, which it must have room for; the record.
    pub(crate) fn give(
        &mut self,
        account: &mut Account,
        is_late: bool,
        given: Given,
        share: Share,
    ) -> Share {
        let before = (account.held(self.now), self.held_then(account, is_late), account.end());
        let share = account.give(self.now, given, share);
        let after = (account.held(self.now), self.held_then(account, is_late), account.end());
        self.sum_now = self.sum_now.saturating_add(after.0).saturating_sub(before.0);
        self.sum_then = self.sum_then.saturating_add(after.1).saturating_sub(before.1);
        self.sum_end = self.sum_end.saturating_add(after.2).saturating_sub(before.2);
        share
    }
}
