//! What may be done at a time.

use serde::{Deserialize, Serialize};

use crate::Time;

/// What may be done from now on, without anybody who says anything: whoever admits
/// requests looks at it with each, so that a thread that stood still does not go on by what
/// was true before. Rates are per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cap {
    /// So much until then.
    pub leased: Option<(u64, Time)>,
    /// So much at least, always.
    pub reserved_iops: u64,
    /// So much from then on.
    pub late: Option<(u64, Time)>,
}

impl Cap {
    /// Normalised operations per second that may be done at a time.
    pub fn iops_at(&self, now: Time) -> u64 {
        let leased = self.leased.filter(|(_, until)| now < *until).map_or(0, |(iops, _)| iops);
        let late = self.late.filter(|(_, from)| now >= *from).map_or(0, |(iops, _)| iops);
        leased.max(late).max(self.reserved_iops)
    }

    /// When it is next something else.
    pub fn changes_at(&self, now: Time) -> Option<Time> {
        let until = self.leased.map(|(_, until)| until);
        let from = self.late.map(|(_, from)| from);
        until.into_iter().chain(from).filter(|at| *at > now).min()
    }
}
