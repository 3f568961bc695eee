//! Work on disks that nobody serves meanwhile, in steps that somebody drives.
//!
//! - [`CheckJob`]: looks for damage, leaks and bytes that cannot be read; [`repair`]: does
//!   what can be done about it.
//! - [`resize`]: gives a disk more bytes.
//! - [`CopyJob`]: compacts a disk, or converts it into another format or kind.
//! - [`snapshot`]: makes a child with which the disk goes on.
//! - [`MergeJob`]: writes what a child has into its parent.
//!
//! What it does not do: it takes no disk out of service and changes no configuration, and
//! has no thread. Whoever serves a disk closes it before and opens it after.
//!
//! Life of a job
//! ```text
//! begin ──► step ──► step ──► … ──► done
//!             ├── dropped: what was begun is taken back
//!             └── checkpoint, left or killed ──► begin, from there ──► step ──► …
//! ```
//!
//! Invariants
//! - A step moves at most [`STEP_BYTES`] of payload, or looks at 64 stretches of the disk
//!   that have none.
//! - Whatever is interrupted, by a crash or by dropping the job, the disk opens and has its
//!   content.
//! - Compacting, converting and merging go on from a [`Checkpoint`], with what was made until
//!   then, unless what they read was changed since: then they begin anew. Checks do so always.

#[cfg(test)]
mod chain_tests;
mod check;
mod checkpoint;
mod copy;
#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod kind_tests;
mod made_image;
mod merge;
#[cfg(test)]
mod redoing_tests;
mod resize;
#[cfg(test)]
mod resume_tests;
pub(crate) mod still_disk;
#[cfg(test)]
mod tests;

pub use check::{CheckFinding, CheckJob, CheckReport, repair};
pub use checkpoint::{Checkpoint, SourceFile};
pub use copy::CopyJob;
pub use merge::{MergeJob, recover_merges};
pub use resize::{resize, snapshot};

use crate::images::DiskError;

/// Bytes of payload that a step moves at most.
pub const STEP_BYTES: u64 = 4 << 20;

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobProgress {
    /// Bytes of the disk, or of its files, that are done.
    pub done_bytes: u64,
    /// Of how many.
    pub total_bytes: u64,
    /// Whether all is done; no step follows.
    pub is_done: bool,
}

/// Work in steps. Dropped before it is done, it takes back what it had begun.
pub trait DiskJob: Send {
    /// Does some of the work.
    ///
    /// # Errors
    /// It cannot go on: the job is to be dropped. The disk is as before. If the store is full
    /// ([`DiskError::is_full`]) the step can be repeated instead when there is space.
    fn step(&mut self) -> Result<JobProgress, DiskError>;

    /// Makes durable what was done, and says from where the job can go on. `None`: it begins
    /// anew.
    ///
    /// # Errors
    /// The store cannot be written: the job is to be dropped. The disk is as before. If the store
    /// is full the job can go on instead, and is at its last checkpoint.
    fn checkpoint(&mut self, now_unix_s: u64) -> Result<Option<Checkpoint>, DiskError>;

    /// It will go on from its last checkpoint, and is dropped until then: what was begun
    /// stays.
    fn leave(&mut self) {}
}
