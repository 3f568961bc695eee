//! State of the periodic check for idle disks with uncommitted metadata.

use suimon_quantity::Time;

/// State of the periodic check for idle disks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdleCheck {
    /// True if a disk may have uncommitted metadata, so that the check is due.
    pub(crate) is_pending: bool,
    pub(crate) checked_at: Time,
}

/// Period in which a disk was not written to: its start, as observed by a check.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WriteIdlePeriod {
    pub(crate) since: Option<Time>,
    /// Number of changes of the disk that had completed at the start of the period.
    pub(crate) changes_at_start: u64,
}
