//! Rate limits that change at known times.

use serde::{Deserialize, Serialize};

use crate::Time;

/// Rate limit that changes at times known in advance, so that it holds without further messages.
/// The admission check evaluates it for each request, so that a thread resuming after a pause does
/// not apply an expired limit. The limit is the maximum of the rates that apply at the time. Rates
/// are in normalised operations per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedRateLimit {
    /// Leased rate, and the time at which the lease expires; `None` without a lease.
    #[serde(rename = "leased")]
    pub leased_iops_until: Option<(u64, Time)>,
    /// Reserved rate, which applies at any time.
    pub reserved_iops: u64,
    /// Rate that applies from a later time on, and that time.
    #[serde(rename = "late")]
    pub next_iops_from: Option<(u64, Time)>,
}

impl TimedRateLimit {
    /// Returns the limit at a time, in normalised operations per second.
    pub fn iops_at(&self, now: Time) -> u64 {
        let leased =
            self.leased_iops_until.filter(|(_, expiry)| now < *expiry).map_or(0, |(iops, _)| iops);
        let later =
            self.next_iops_from.filter(|(_, start)| now >= *start).map_or(0, |(iops, _)| iops);
        leased.max(later).max(self.reserved_iops)
    }

    /// Returns the next time at which the limit changes; `None` if it does not.
    pub fn next_change_after(&self, now: Time) -> Option<Time> {
        let expiry = self.leased_iops_until.map(|(_, expiry)| expiry);
        let start = self.next_iops_from.map(|(_, start)| start);
        expiry.into_iter().chain(start).filter(|time| *time > now).min()
    }
}
