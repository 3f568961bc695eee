//! In-memory file that logs all changes.

use std::cell::RefCell;

use super::FileContent;
use crate::{FileError, ImageFile};

/// One logged change of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoggedChange {
    /// Bytes were written.
    Write {
        /// Offset in the file, in bytes.
        offset: u64,
        /// Data written to the file.
        bytes: Vec<u8>,
    },
    /// The length of the file was set, in bytes.
    SetLen(u64),
    /// A range was zeroed.
    Zero {
        /// Offset in the file, in bytes.
        offset: u64,
        /// Length in bytes.
        len: u64,
    },
    /// All earlier changes became durable.
    Flush,
}

#[derive(Clone, Debug, Default)]
struct State {
    content: FileContent,
    ops: Vec<LoggedChange>,
}

/// File in memory. The log contains the changes since creation or since [`MemoryFile::clear_log`].
#[derive(Clone, Debug, Default)]
pub struct MemoryFile {
    state: RefCell<State>,
}

impl MemoryFile {
    /// Creates a file with these contents.
    #[must_use]
    pub fn new(content: impl Into<FileContent>) -> Self {
        Self { state: RefCell::new(State { content: content.into(), ops: Vec::new() }) }
    }

    /// Returns the file's contents as bytes.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.state.borrow().content.to_vec()
    }

    /// Returns the file's contents.
    #[must_use]
    pub fn content(&self) -> FileContent {
        self.state.borrow().content.clone()
    }

    /// Returns `len` bytes from an offset in bytes, with zeros beyond the end of the file.
    #[must_use]
    pub fn read_padded(&self, offset: u64, len: usize) -> Vec<u8> {
        self.state.borrow().content.read_padded(to_usize(offset), len)
    }

    /// Returns the logged changes.
    #[must_use]
    pub fn log(&self) -> Vec<LoggedChange> {
        self.state.borrow().ops.clone()
    }

    /// Clears the log; the contents are unchanged.
    pub fn clear_log(&self) {
        self.state.borrow_mut().ops.clear();
    }

    fn change(&self, op: LoggedChange) {
        let mut state = self.state.borrow_mut();
        apply(&mut state.content, &op);
        state.ops.push(op);
    }
}

/// Applies one logged change to the contents of a file.
pub(super) fn apply(content: &mut FileContent, op: &LoggedChange) {
    match op {
        LoggedChange::Write { offset, bytes } => content.write(to_usize(*offset), bytes),
        LoggedChange::SetLen(len) => content.resize(to_usize(*len)),
        LoggedChange::Zero { offset, len } => content.zero(to_usize(*offset), to_usize(*len)),
        LoggedChange::Flush => {}
    }
}

fn to_usize(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

impl ImageFile for MemoryFile {
    fn len(&self) -> Result<u64, FileError> {
        Ok(self.state.borrow().content.len() as u64)
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), FileError> {
        let content = &self.state.borrow().content;
        let start = to_usize(offset);
        let len = content.len();
        if start.checked_add(bytes.len()).is_none_or(|end| end > len) {
            let len = len as u64;
            return Err(FileError::BeyondEnd { len, offset: offset.max(len) });
        }
        bytes.fill(0);
        content.read(start, bytes);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        self.change(LoggedChange::Write { offset, bytes: bytes.to_vec() });
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<(), FileError> {
        self.change(LoggedChange::SetLen(len));
        Ok(())
    }

    fn zero(&self, offset: u64, len: u64) -> Result<(), FileError> {
        self.change(LoggedChange::Zero { offset, len });
        Ok(())
    }

    fn flush(&self) -> Result<(), FileError> {
        self.change(LoggedChange::Flush);
        Ok(())
    }
}
