//! What a store is seen to do.
//!
//! Nodes that could do more, and whose requests wait for the store while it takes longer than it
//! did, show that it does all it can. What it does then is what there is to share, for now. It
//! never carries a promise: what is reserved stays reserved.

use core::time::Duration;
use std::collections::VecDeque;

use suimon_quantity::Time;

use crate::Capability;

/// So often it is looked at.
pub(crate) const LOOKED_EVERY: Duration = Duration::from_secs(1);
/// What was delivered within so long is proved.
const PROVED: Duration = Duration::from_secs(10);
/// After it has been lowered it is left alone for so long.
const HOLD: Duration = Duration::from_secs(10);
/// So many looks in a row have to agree before it is lowered.
const LOOKS: u32 = 3;
/// Above so many percent of what it took at best, the store is full.
const FULL_PERCENT: u64 = 150;
/// So long the store does too little, or enough again, before it is told.
const TOLD_AFTER: Duration = Duration::from_secs(10);
/// Below so many percent of what it can do it does too little.
const LOW_PERCENT: u64 = 95;

/// What all nodes together saw.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) delivered: u64,
    /// What those may do that wait for the store, and what they got.
    pub(crate) waiting_may: u64,
    pub(crate) waiting_got: u64,
    /// Somebody waits for a grant.
    pub(crate) wants_more: bool,
    /// The mean, by what was delivered; 0: nothing was.
    pub(crate) latency_ns: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Estimate {
    capability: Capability,
    iops: u64,
    /// What was there to share, and what was delivered, lately.
    proved: VecDeque<(Time, u64, u64)>,
    best_latency_ns: u64,
    looks: u32,
    held_until: Time,
    looked: Time,
    /// Since when it is otherwise than was told.
    since: Option<Time>,
    is_low: bool,
}

impl Estimate {
    pub(crate) fn new(now: Time, capability: Capability, proved: u64) -> Self {
        let iops = match capability {
            Capability::Declared(iops) => iops,
            Capability::Measured(iops) => iops.max(proved),
        };
        Self {
            capability,
            iops,
            proved: VecDeque::new(),
            best_latency_ns: u64::MAX,
            looks: 0,
            held_until: now,
            looked: now,
            since: None,
            is_low: false,
        }
    }

    pub(crate) fn set_capability(&mut self, capability: Capability) {
        self.capability = capability;
        self.iops = capability.iops();
        self.looks = 0;
    }

    pub(crate) const fn capability(&self) -> Capability {
        self.capability
    }

    /// What there is to share.
    pub(crate) const fn iops(&self) -> u64 {
        self.iops
    }

    /// What all nodes together may do at most: what there was to share lately. What is given goes
    /// by [`Estimate::iops`], and reaches that when leases have ended or nodes have heard.
    pub(crate) fn bound(&self) -> u64 {
        let lately = self.proved.iter().map(|(_, iops, _)| *iops).max().unwrap_or_default();
        self.capability.iops().max(self.iops).max(lately)
    }

    pub(crate) fn next_look(&self) -> Time {
        self.looked + LOOKED_EVERY
    }

    /// Whether it does less than it can do, and that is news.
    pub(crate) fn look(&mut self, now: Time, seen: Seen) -> Option<bool> {
        self.looked = now;
        self.proved.retain(|(at, ..)| now.since(*at) < PROVED);
        self.proved.push_back((now, self.iops, seen.delivered));
        let proved = self.proved.iter().map(|(.., iops)| *iops).max().unwrap_or_default();
        if seen.latency_ns > 0 {
            self.best_latency_ns = self.best_latency_ns.min(seen.latency_ns);
        }
        let is_slow = seen.latency_ns / FULL_PERCENT * 100 > self.best_latency_ns;
        let falls_short = u128::from(seen.waiting_got) * 100
            < u128::from(seen.waiting_may) * u128::from(LOW_PERCENT);
        if is_slow && falls_short {
            self.looks += 1;
            if self.looks >= LOOKS {
                self.lower(now, seen.delivered, proved);
            }
        } else {
            self.looks = 0;
            self.raise(now, seen, proved);
        }
        self.judge(now)
    }

    fn lower(&mut self, now: Time, delivered: u64, proved: u64) {
        let aim = delivered.saturating_add(delivered / 16).max(proved);
        let next = aim.max(self.iops.saturating_sub(self.iops / 8));
        if next < self.iops {
            self.iops = next;
            self.held_until = now + HOLD;
        }
    }

    fn raise(&mut self, now: Time, seen: Seen, proved: u64) {
        let known = self.capability.iops();
        let step = (known / 32).max(1);
        let most = match self.capability {
            Capability::Declared(iops) => iops,
            // What was seen, and a step beyond while somebody wants it.
            Capability::Measured(iops) if seen.wants_more => iops.max(proved.saturating_add(step)),
            Capability::Measured(iops) => iops.max(proved),
        };
        if now >= self.held_until {
            self.iops = self.iops.saturating_add(step);
        }
        self.iops = self.iops.max(proved).min(most);
    }

    fn judge(&mut self, now: Time) -> Option<bool> {
        let is_low = self.iops < self.capability.iops() / 100 * LOW_PERCENT;
        if is_low == self.is_low {
            self.since = None;
            return None;
        }
        let since = *self.since.get_or_insert(now);
        if now.since(since) < TOLD_AFTER {
            return None;
        }
        self.since = None;
        self.is_low = is_low;
        Some(is_low)
    }
}
