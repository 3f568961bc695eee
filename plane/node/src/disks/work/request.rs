//! Requested operation on a disk's file.

use serde::{Deserialize, Serialize};
use suimon_contract::{ConvertDiskRequest, SnapshotDiskRequest};

/// Operation on a disk's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskFileJob {
    /// Checks the image for damage.
    Check,
    /// Returns unused space of the file to the store.
    Compact,
    /// Copies the disk to another file.
    Convert(ConvertDiskRequest),
    /// Preserves the present contents in the file, and continues with a child of it.
    Snapshot(SnapshotDiskRequest),
    /// Writes the contents into the parent, and continues with the parent.
    Merge,
    /// Closes the images of the disk, and opens them again after a failed flush.
    Reopen,
}

impl DiskFileJob {
    /// Returns the name of the operation, such as `check` or `compact`.
    #[must_use]
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Compact => "compact",
            Self::Convert(_) => "convert",
            Self::Snapshot(_) => "snapshot",
            Self::Merge => "merge",
            Self::Reopen => "reopen",
        }
    }

    /// Returns true if the disk is out of service during the operation.
    pub(super) const fn needs_exclusive_use(&self) -> bool {
        !matches!(self, Self::Snapshot(_) | Self::Reopen)
    }
}
