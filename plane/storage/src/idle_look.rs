//! State of the check for idle disks.

use suimon_quantity::Time;

/// State of the check for idle disks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdleCheck {
    /// True if a disk may have uncommitted metadata.
    pub(crate) is_pending: bool,
    pub(crate) looked: Time,
}

/// Start of a period in which a disk was not written to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WriteIdle {
    pub(crate) since: Option<Time>,
    /// Number of changes of the disk that had completed at that time.
    pub(crate) changes: u64,
}
