//! Leader's record of the grants that one node may still apply, and the resulting upper bounds of
//! the node's rate. Rates are in normalised operations per second.

use suimon_quantity::Time;

use crate::GrantId;
use crate::grant::{NodeGrant, NodeShare};

/// Grant, or several merged grants, that a node may still apply.
#[derive(Clone, Copy, Debug)]
struct Entry {
    id: GrantId,
    /// Incarnation of the node's daemon in the report that the grant answers. A later incarnation
    /// does not accept the grant; `u64::MAX`: unknown.
    incarnation: u64,
    leased: u64,
    /// Time on the leader's clock by which the lease has ended on the node, whenever the grant was
    /// received.
    expires: Time,
    reserved: u64,
    fallback: u64,
}

impl Entry {
    /// Returns an entry without rates for a reservation that no grant explains, reported after the
    /// grant `id`.
    const fn unaccounted(id: GrantId) -> Self {
        let (incarnation, expires) = (u64::MAX, Time::ZERO);
        Self { id, incarnation, leased: 0, expires, reserved: 0, fallback: 0 }
    }

    /// Returns true if the entry is a reservation that no grant explains.
    fn is_unaccounted(&self) -> bool {
        (self.incarnation, self.expires, self.leased, self.fallback) == (u64::MAX, Time::ZERO, 0, 0)
    }
}

/// Identifier, node incarnation and lease expiry of a grant that is being recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GrantHeader {
    pub(crate) id: GrantId,
    pub(crate) incarnation: u64,
    pub(crate) expires: Time,
}

/// Grants that one node may still apply: the last one acknowledged and all later ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct GrantAccount {
    entries: Vec<Entry>,
}

impl GrantAccount {
    /// Creates the account from the last grant record of an earlier leader. The time of that grant
    /// is unknown, so its lease is counted from the election.
    pub(crate) fn from_record(grant: &NodeGrant, share: &NodeShare, expires: Time) -> Self {
        let id = grant.id;
        // The last record contains the totals of the grants before it.
        let before = GrantId { number: id.number.saturating_sub(1), ..id };
        let current = Entry {
            id: before,
            // The incarnation is unknown; restarts must not end the lease early.
            incarnation: u64::MAX,
            leased: share.leased_outstanding_iops,
            expires,
            reserved: share.reserved_outstanding_iops,
            fallback: share.fallback_outstanding_iops,
        };
        let last = Entry {
            id,
            incarnation: grant.answered_report.incarnation,
            leased: share.leased_iops,
            expires,
            reserved: share.reserved_iops,
            fallback: share.fallback_iops,
        };
        Self { entries: vec![current, last] }
    }

    /// Adds an entry for a reservation of `reserved` that the node reports and that exceeds all
    /// recorded grants, so that it counts in the upper bounds. Replaces such an entry of an earlier
    /// report after the same grant, because the node never returns to a smaller one of them.
    pub(crate) fn add_unrecorded_reservation(&mut self, reserved: u64) {
        if let Some(last) = self.entries.last_mut().filter(|entry| entry.is_unaccounted()) {
            last.reserved = reserved;
            return;
        }
        let id = self.entries.last().map_or_else(GrantId::default, |entry| entry.id);
        self.entries.push(Entry { reserved, ..Entry::unaccounted(id) });
    }

    /// Adds a grant of `share`. Returns `share` with its `*_held_iops` fields set to the largest
    /// rates of all entries, which the next leader needs.
    pub(crate) fn add_grant(
        &mut self,
        now: Time,
        header: GrantHeader,
        share: NodeShare,
    ) -> NodeShare {
        let GrantHeader { id, incarnation, expires } = header;
        let NodeShare {
            leased_iops: leased, reserved_iops: reserved, fallback_iops: fallback, ..
        } = share;
        self.forget_leases(now);
        self.entries.push(Entry { id, incarnation, leased, expires, reserved, fallback });
        NodeShare {
            leased_outstanding_iops: self.leased_iops_max(now),
            reserved_outstanding_iops: self.reserved_iops_max(),
            fallback_outstanding_iops: self.fallback_iops_max(),
            ..share
        }
    }

    /// Removes the grants before `grant_id`, which the node acknowledged. A node never returns to
    /// an earlier grant.
    pub(crate) fn acknowledge(&mut self, grant_id: GrantId) {
        self.entries.retain(|entry| entry.id >= grant_id);
    }

    /// Ends the leases of grants to earlier incarnations of the node, which the restarted node does
    /// not apply.
    pub(crate) fn handle_node_restart(&mut self, incarnation: u64) {
        for entry in self.entries.iter_mut().filter(|entry| entry.incarnation < incarnation) {
            entry.expires = Time::ZERO;
        }
    }

    /// Merges all entries whose leases have ended into one without a lease, to bound the memory.
    fn forget_leases(&mut self, now: Time) {
        let mut expired: Option<Entry> = None;
        self.entries.retain(|entry| {
            if entry.expires > now {
                return true;
            }
            let sum = expired.get_or_insert(*entry);
            sum.id = sum.id.max(entry.id);
            sum.reserved = sum.reserved.max(entry.reserved);
            sum.fallback = sum.fallback.max(entry.fallback);
            false
        });
        if let Some(mut sum) = expired {
            (sum.leased, sum.expires) = (0, Time::ZERO);
            self.entries.insert(0, sum);
        }
    }

    fn largest(&self, value_of: impl Fn(&Entry) -> u64) -> u64 {
        self.entries.iter().map(value_of).max().unwrap_or_default()
    }

    /// Returns the largest leased rate among the grants whose leases are still in force at `time`.
    pub(crate) fn leased_iops_max(&self, time: Time) -> u64 {
        self.largest(|entry| if entry.expires > time { entry.leased } else { 0 })
    }

    /// Returns the largest reserved rate of all entries. Reserved rates apply without a lease.
    pub(crate) fn reserved_iops_max(&self) -> u64 {
        self.largest(|entry| entry.reserved)
    }

    /// Returns the smallest reserved rate of all entries: whichever grant the node applies, it may
    /// use at least this.
    pub(crate) fn reserved_iops_min(&self) -> u64 {
        self.entries.iter().map(|entry| entry.reserved).min().unwrap_or_default()
    }

    /// Returns the largest fallback rate of all entries.
    pub(crate) fn fallback_iops_max(&self) -> u64 {
        self.largest(|entry| entry.fallback)
    }

    /// Returns the largest rate that the node may use once all leases have ended, including its
    /// fallback rate.
    pub(crate) fn iops_max_after_leases(&self) -> u64 {
        self.reserved_iops_max().max(self.fallback_iops_max())
    }

    /// Returns the largest rate that the node may use at `time`, excluding its fallback rate.
    pub(crate) fn iops_max_at(&self, time: Time) -> u64 {
        self.leased_iops_max(time).max(self.reserved_iops_max())
    }

    /// Returns the leased rate of the first entry: that of the grant which the node's last report
    /// acknowledged.
    pub(crate) fn acknowledged_leased_iops(&self) -> u64 {
        self.entries.first().map_or(0, |entry| entry.leased)
    }

    /// Returns the share of the newest grant, with all `*_held_iops` 0; all rates are 0 if there is
    /// none.
    pub(crate) fn newest_share(&self) -> NodeShare {
        self.entries.last().map_or_else(NodeShare::default, |entry| NodeShare {
            leased_iops: entry.leased,
            reserved_iops: entry.reserved,
            fallback_iops: entry.fallback,
            ..NodeShare::default()
        })
    }

    /// Returns the first lease expiry after `now`, or `None` if no lease ends later.
    pub(crate) fn next_expiry(&self, now: Time) -> Option<Time> {
        self.entries.iter().map(|entry| entry.expires).filter(|expiry| *expiry > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node can report a higher reservation with each report, between two grants.
    #[test]
    fn reservations_that_no_grant_explains_are_one_entry() {
        let mut account = GrantAccount::default();
        for reserved in 1..=1000 {
            account.add_unrecorded_reservation(reserved);
        }
        assert_eq!((account.entries.len(), account.reserved_iops_max()), (1, 1000));
        let header = GrantHeader {
            id: GrantId { number: 7, ..GrantId::default() },
            incarnation: 1,
            expires: Time::from_ns(1_000_000_000),
        };
        let share = NodeShare { leased_iops: 50, reserved_iops: 20, ..NodeShare::default() };
        account.add_grant(Time::ZERO, header, share);
        for reserved in 1001..=2000 {
            account.add_unrecorded_reservation(reserved);
        }
        assert_eq!((account.entries.len(), account.reserved_iops_max()), (3, 2000));
        // The grant stays, because the node may apply it.
        assert_eq!((account.reserved_iops_min(), account.leased_iops_max(Time::ZERO)), (20, 50));
    }
}
