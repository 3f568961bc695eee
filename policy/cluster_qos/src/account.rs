//! What a node may believe to have been given, at worst.

use suimon_quantity::Time;

use crate::GrantId;
use crate::grant::{Grant, Share};

/// A grant to which a node may still adhere.
#[derive(Clone, Copy, Debug)]
struct Entry {
    id: GrantId,
    /// Of the report that it answers: a node that was started since does not take it.
    incarnation: u64,
    leased: u64,
    /// On the leader's clock, when the lease has ended wherever the grant was heard.
    expires: Time,
    reserved: u64,
    late: u64,
}

/// What of a grant is not a share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given {
    pub(crate) id: GrantId,
    pub(crate) incarnation: u64,
    pub(crate) expires: Time,
}

/// All grants to which one node may still adhere: those that it heard last and those that it may
/// have heard since.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    entries: Vec<Entry>,
}

impl Account {
    /// What an earlier leader gave, from its last record. Nobody knows when: the lease is counted
    /// as if it were given now.
    pub(crate) fn inherited(grant: &Grant, share: &Share, expires: Time) -> Self {
        let id = grant.id;
        // What was given before the last is told by the last.
        let before = GrantId { number: id.number.saturating_sub(1), ..id };
        let held = Entry {
            id: before,
            // Nobody knows.
            incarnation: u64::MAX,
            leased: share.leased_held_iops,
            expires,
            reserved: share.reserved_held_iops,
            late: share.late_held_iops,
        };
        let last = Entry {
            id,
            incarnation: grant.answers.incarnation,
            leased: share.leased_iops,
            expires,
            reserved: share.reserved_iops,
            late: share.late_iops,
        };
        Self { entries: vec![held, last] }
    }

    /// A node says that it has so much without end.
    pub(crate) fn confess(&mut self, reserved: u64) {
        let id = self.entries.last().map_or_else(GrantId::default, |entry| entry.id);
        let incarnation = u64::MAX;
        let entry = Entry { id, incarnation, leased: 0, expires: Time::ZERO, reserved, late: 0 };
        self.entries.push(entry);
    }

    /// Notes what is given now, and says what the record for the next leader is.
    pub(crate) fn give(&mut self, now: Time, given: Given, share: Share) -> Share {
        let Given { id, incarnation, expires } = given;
        let Share { leased_iops: leased, reserved_iops: reserved, late_iops: late, .. } = share;
        self.forget_leases(now);
        self.entries.push(Entry { id, incarnation, leased, expires, reserved, late });
        Share {
            leased_held_iops: self.leased(now),
            reserved_held_iops: self.reserved(),
            late_held_iops: self.late(),
            ..share
        }
    }

    /// The node heard this grant and never goes back to an earlier one.
    pub(crate) fn acknowledge(&mut self, heard: GrantId) {
        self.entries.retain(|entry| entry.id >= heard);
    }

    /// The node was started anew: it has no lease of before.
    pub(crate) fn restart(&mut self, incarnation: u64) {
        for entry in self.entries.iter_mut().filter(|entry| entry.incarnation < incarnation) {
            entry.expires = Time::ZERO;
        }
    }

    /// Whose leases have ended is one entry, so that memory is bounded.
    fn forget_leases(&mut self, now: Time) {
        let mut ended: Option<Entry> = None;
        self.entries.retain(|entry| {
            if entry.expires > now {
                return true;
            }
            let sum = ended.get_or_insert(*entry);
            sum.id = sum.id.max(entry.id);
            sum.reserved = sum.reserved.max(entry.reserved);
            sum.late = sum.late.max(entry.late);
            false
        });
        if let Some(mut sum) = ended {
            (sum.leased, sum.expires) = (0, Time::ZERO);
            self.entries.insert(0, sum);
        }
    }

    fn most(&self, of: impl Fn(&Entry) -> u64) -> u64 {
        self.entries.iter().map(of).max().unwrap_or_default()
    }

    /// The most that a lease lets it do then.
    pub(crate) fn leased(&self, then: Time) -> u64 {
        self.most(|entry| if entry.expires > then { entry.leased } else { 0 })
    }

    /// The most that it may do without one.
    pub(crate) fn reserved(&self) -> u64 {
        self.most(|entry| entry.reserved)
    }

    /// What it has without a lease at least.
    pub(crate) fn surely_reserved(&self) -> u64 {
        self.entries.iter().map(|entry| entry.reserved).min().unwrap_or_default()
    }

    /// The most that it may go over to after long.
    pub(crate) fn late(&self) -> u64 {
        self.most(|entry| entry.late)
    }

    /// The most that it may do when all leases have ended.
    pub(crate) fn end(&self) -> u64 {
        self.reserved().max(self.late())
    }

    /// The most that it may do then, but for what it may go over to after long.
    pub(crate) fn held(&self, then: Time) -> u64 {
        self.leased(then).max(self.reserved())
    }

    /// What it had leased when it made its last report: the first it may still adhere to is the one that
    /// it had heard.
    pub(crate) fn heard_leased(&self) -> u64 {
        self.entries.first().map_or(0, |entry| entry.leased)
    }

    /// What it was given last.
    pub(crate) fn last(&self) -> Share {
        self.entries.last().map_or_else(Share::default, |entry| Share {
            leased_iops: entry.leased,
            reserved_iops: entry.reserved,
            late_iops: entry.late,
            ..Share::default()
        })
    }

    /// When it may next do less without having said so.
    pub(crate) fn next_expiry(&self, now: Time) -> Option<Time> {
        self.entries.iter().map(|entry| entry.expires).filter(|at| *at > now).min()
    }
}
