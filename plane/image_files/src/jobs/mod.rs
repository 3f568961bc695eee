//! Jobs on disks that are not in service, performed in steps by the caller.
//!
//! - [`CheckJob`] searches for damage, leaks and unreadable bytes; [`repair`] repairs what can be
//!   repaired.
//! - [`resize`] extends a disk.
//! - [`CopyJob`] compacts a disk, or converts it to another format or kind.
//! - [`snapshot`] creates a child with which the disk continues.
//! - [`MergeJob`] writes the content of a child to its parent.
//!
//! The jobs take no disk out of service, change no configuration, and have no threads. The caller
//! closes a disk before a job and opens it afterwards.
//!
//! Life cycle of a job
//! ```text
//! begin ──► step ──► step ──► … ──► done
//!             ├── dropped: partial work is removed
//!             └── checkpoint, left or killed ──► begin, from there ──► step ──► …
//! ```
//!
//! Invariants
//! - A step transfers at most [`STEP_BYTES`] of payload, or checks 64 ranges of the disk without
//!   payload.
//! - After any interruption, by a crash or by dropping the job, the disk opens and has its content.
//! - Compaction, conversion and merge continue from a [`Checkpoint`] with the content copied so
//!   far. If their sources have changed since, they start from the beginning. Checks always do.

#[cfg(test)]
mod chain_tests;
mod check;
mod checkpoint;
mod copy;
#[cfg(test)]
mod crash_tests;
mod draft_image;
#[cfg(test)]
mod kind_tests;
mod merge;
pub(crate) mod offline_disk;
#[cfg(test)]
mod redoing_tests;
mod resize;
#[cfg(test)]
mod resume_tests;
#[cfg(test)]
mod tests;

pub use check::{CheckFinding, CheckJob, CheckReport, repair};
pub use checkpoint::{Checkpoint, SourceFile};
pub use copy::CopyJob;
pub use merge::{MergeJob, recover_merges};
pub use resize::{resize, snapshot};

use crate::DiskError;

/// Maximum number of bytes of payload transferred per step.
pub const STEP_BYTES: u64 = 4 << 20;

/// Progress of a job in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobProgress {
    /// Completed bytes of the disk or of its files.
    pub done_bytes: u64,
    /// Bytes of the whole job.
    pub total_bytes: u64,
    /// True if the job is done; no step follows.
    pub is_done: bool,
}

/// Job performed in steps. A job that is dropped before it is done reverts its work.
pub trait DiskJob: Send {
    /// Performs a step.
    ///
    /// # Errors
    /// The job cannot continue and must be dropped; the disk is unchanged. If the store is full
    /// ([`DiskError::is_full`]), the step may be repeated instead when there is space.
    fn step(&mut self) -> Result<JobProgress, DiskError>;

    /// Makes the completed work durable, and returns the position from which the job can be
    /// continued. `None`: it starts from the beginning.
    ///
    /// # Errors
    /// The store cannot be written and the job must be dropped; the disk is unchanged. If the store
    /// is full, the job may continue instead, with its last checkpoint.
    fn checkpoint(&mut self, now_unix_s: u64) -> Result<Option<Checkpoint>, DiskError>;

    /// Prepares for a later continuation from the last checkpoint: dropping the job then keeps its
    /// incomplete files.
    fn keep_for_resume(&mut self) {}
}
