//! In-memory file that logs all changes.

use std::cell::RefCell;

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
    bytes: Vec<u8>,
    ops: Vec<LoggedChange>,
}

/// In-memory file. The log contains the changes since creation or since [`MemoryFile::clear_log`].
#[derive(Clone, Debug, Default)]
pub struct MemoryFile {
    state: RefCell<State>,
}

impl MemoryFile {
    /// Creates a file with these contents.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { state: RefCell::new(State { bytes, ops: Vec::new() }) }
    }

    /// Returns a copy of the file's contents.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.state.borrow().bytes.clone()
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
        apply(&mut state.bytes, &op);
        state.ops.push(op);
    }
}

/// Applies one change to the bytes of a file.
pub(super) fn apply(bytes: &mut Vec<u8>, op: &LoggedChange) {
    match op {
        LoggedChange::Write { offset, bytes: new } => {
            let start = to_usize(*offset);
            let end = start.saturating_add(new.len());
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            if let Some(place) = bytes.get_mut(start..end) {
                place.copy_from_slice(new);
            }
        }
        LoggedChange::SetLen(len) => bytes.resize(to_usize(*len), 0),
        LoggedChange::Zero { offset, len } => {
            let end = to_usize(offset.saturating_add(*len)).min(bytes.len());
            if let Some(place) = bytes.get_mut(to_usize(*offset)..end) {
                place.fill(0);
            }
        }
        LoggedChange::Flush => {}
    }
}

fn to_usize(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

impl ImageFile for MemoryFile {
    fn len(&self) -> Result<u64, FileError> {
        Ok(self.state.borrow().bytes.len() as u64)
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), FileError> {
        let state = self.state.borrow();
        let start = to_usize(offset);
        let found = state.bytes.get(start..start.saturating_add(bytes.len()));
        let len = state.bytes.len() as u64;
        bytes.copy_from_slice(found.ok_or(FileError::End { len, offset: offset.max(len) })?);
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
