//! Commits: writes to an image file that its format requires, in order.

use crate::{ByteRange, FileError, ImageFile};

/// One operation on the file. Steps are executed in order, except that consecutive ones may be in
/// flight together ([`Step::may_run_concurrently`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write bytes at an offset, extending the file if necessary.
    Write {
        /// Offset in the file, in bytes.
        offset: u64,
        /// Data to write to the file.
        bytes: Vec<u8>,
    },
    /// Extend the file to at least `len`. Space may be preallocated up to the new end if the store
    /// has ample free space.
    Extend {
        /// New length of the file in bytes.
        len: u64,
        /// End of the region that will be written soon, in bytes; at most `len`. Its space is
        /// allocated if the store has it. Space beyond it may be a hole.
        required_len: u64,
    },
    /// Zero a range, deallocating it where the file system supports it.
    Zero(ByteRange),
    /// Make all previous writes durable.
    Flush,
    /// Marker without an operation: when all steps before it have succeeded, the changes of the
    /// commit survive a crash, and flush requests that wait for the commit can complete.
    DurableMarker,
}

/// Steps that make changes of an image durable. They are executed in order; after a failed step no
/// further step is started, and the commit ends when none is in flight.
/// [`crate::Image::handle_commit`] receives the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Steps in order, exactly one of them [`Step::DurableMarker`].
    pub steps: Vec<Step>,
}

impl Commit {
    /// Executes the steps sequentially; blocks until done.
    ///
    /// # Errors
    /// Fails with the first failed step.
    pub fn execute(&self, file: &dyn ImageFile) -> Result<(), FailedStep> {
        for (completed, step) in self.steps.iter().enumerate() {
            step.execute(file).map_err(|error| FailedStep { completed_steps: completed, error })?;
        }
        Ok(())
    }
}

impl Step {
    /// Returns true if this step and the next one may be in flight together and take effect in any
    /// order: both write, or both zero. Any other step begins when all earlier steps have ended,
    /// and ends before later steps begin.
    #[must_use]
    pub const fn may_run_concurrently(&self, next: &Self) -> bool {
        matches!(
            (self, next),
            (Self::Write { .. }, Self::Write { .. }) | (Self::Zero(_), Self::Zero(_))
        )
    }

    fn execute(&self, file: &dyn ImageFile) -> Result<(), FileError> {
        match self {
            Self::Write { offset, bytes } => file.write_at(*offset, bytes),
            Self::Extend { len, .. } if file.len()? < *len => file.set_len(*len),
            Self::Extend { .. } | Self::DurableMarker => Ok(()),
            Self::Zero(range) => file.zero(range.offset(), range.len()),
            Self::Flush => file.flush(),
        }
    }
}

/// Failure of a step of a commit.
#[derive(Debug)]
pub struct FailedStep {
    /// Number of steps before the failed one, all of which succeeded.
    pub completed_steps: usize,
    /// Error of the file operation.
    pub error: FileError,
}

impl FailedStep {
    /// Returns the outcome to pass to [`crate::Image::handle_commit`].
    pub const fn outcome(&self) -> CommitOutcome {
        CommitOutcome::Failed { completed_steps: self.completed_steps }
    }
}

/// Result of executing a commit's steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitOutcome {
    /// Every step of the commit succeeded.
    Done,
    /// A step failed. The changes remain uncommitted and are part of the next commit.
    Failed {
        /// Number of steps before the first one that failed, [`Step::DurableMarker`] included.
        /// Steps behind it that [may overlap](Step::may_overlap) with it may have succeeded or not.
        completed_steps: usize,
    },
}
