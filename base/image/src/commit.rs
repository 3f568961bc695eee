//! What a format wants written, in which order.

use crate::{ByteRange, FileError, ImageFile};

/// One thing to do with the file. The next is begun when it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write these bytes at this offset; the file grows if it must.
    Write {
        /// Where in the file.
        offset: u64,
        /// What.
        bytes: Vec<u8>,
    },
    /// Make the file this long, if it is shorter. Space may be allocated ahead up to the new end if
    /// the store has plenty.
    Extend {
        /// New length in bytes.
        len: u64,
        /// End of the part that will be written soon, in bytes; at most `len`. Its space is
        /// allocated if the store has it. Everything behind it may be a hole.
        needed: u64,
    },
    /// Make a range read as zeros, and give its space back where the file system can.
    Zero(ByteRange),
    /// Make everything that was written so far durable.
    Flush,
    /// Nothing is to be done. What this commit is about survives a crash from here on;
    /// who waits for it can be told.
    Durable,
}

/// Steps that make changes of an image durable. All are done in order; if one fails, none
/// behind it is begun, and [`crate::Image::handle_commit`] is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// In order; exactly one of them is [`Step::Durable`].
    pub steps: Vec<Step>,
}

impl Commit {
    /// Does all steps, one after the other, and waits for each.
    ///
    /// # Errors
    /// A step failed; none behind it was begun.
    pub fn carry_out(&self, file: &dyn ImageFile) -> Result<(), FileError> {
        for step in &self.steps {
            match step {
                Step::Write { offset, bytes } => file.write_at(*offset, bytes)?,
                Step::Extend { len, .. } if file.len()? < *len => file.set_len(*len)?,
                Step::Extend { .. } | Step::Durable => {}
                Step::Zero(range) => file.zero(range.offset(), range.len())?,
                Step::Flush => file.flush()?,
            }
        }
        Ok(())
    }
}

/// What came of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitOutcome {
    /// All steps were done.
    Done,
    /// A step failed. Its changes are still to be made durable; the next commit has them.
    Failed,
}
