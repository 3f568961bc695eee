//! From bytes to messages, line by line.

use serde_json::Value;
use thiserror::Error;

use crate::message::Message;

/// Bytes of the longest line, its end included. QEMU's longest answers here, lists of properties
/// and of CPUs, have some tens of kilobytes.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// Where what came is no QMP, after which the connection is of no use.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("QEMU's words are no QMP from byte {offset} on: {kind}")]
pub struct ReadError {
    /// Bytes that came before the line.
    pub offset: u64,
    /// What is wrong with it.
    pub kind: ReadErrorKind,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadErrorKind {
    /// It has no end within [`LINE_BYTES_MAX`].
    #[error("a line longer than {LINE_BYTES_MAX} bytes")]
    TooLong,
    /// It is no JSON.
    #[error("no JSON ({0})")]
    NotJson(String),
    /// It is JSON that QMP does not have.
    #[error("{0}")]
    NotQmp(&'static str),
}

/// Takes what came and gives messages.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    /// What came of lines that were not handed out, behind `taken` bytes that were.
    bytes: Vec<u8>,
    taken: usize,
    /// Bytes from `taken` on that hold no end of a line.
    searched: usize,
    /// Bytes that were handed out.
    offset: u64,
    error: Option<ReadError>,
}

impl Reader {
    /// A reader at the beginning of a connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes what came. All messages should be polled before more is handed over: what is kept
    /// is that, and at most one line.
    pub fn handle_bytes(&mut self, bytes: &[u8]) {
        if self.error.is_none() {
            self.bytes.drain(..self.taken);
            self.taken = 0;
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// The next message, if all of it has come.
    ///
    /// # Errors
    /// What came is no QMP; all later calls say the same.
    pub fn poll_message(&mut self) -> Result<Option<Message>, ReadError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let polled = self.next_message();
        polled.map_err(|kind| {
            let error = ReadError { offset: self.offset, kind };
            self.error = Some(error.clone());
            (self.bytes, self.taken, self.searched) = (Vec::new(), 0, 0);
            error
        })
    }

    fn next_message(&mut self) -> Result<Option<Message>, ReadErrorKind> {
        loop {
            let rest = self.bytes.get(self.taken..).unwrap_or_default();
            let unseen = rest.get(self.searched..).unwrap_or_default();
            let Some(end) = unseen.iter().position(|byte| *byte == b'\n') else {
                self.searched = rest.len();
                let is_too_long = rest.len() >= LINE_BYTES_MAX;
                return if is_too_long { Err(ReadErrorKind::TooLong) } else { Ok(None) };
            };
            let length = self.searched + end + 1;
            let line = rest.get(..length).unwrap_or_default();
            if length > LINE_BYTES_MAX {
                return Err(ReadErrorKind::TooLong);
            }
            let line = line.trim_ascii();
            let message = if line.is_empty() { None } else { Some(read(line)?) };
            self.taken += length;
            self.offset += length as u64;
            self.searched = 0;
            if message.is_some() {
                return Ok(message);
            }
        }
    }
}

fn read(line: &[u8]) -> Result<Message, ReadErrorKind> {
    let value: Value =
        serde_json::from_slice(line).map_err(|error| ReadErrorKind::NotJson(error.to_string()))?;
    Message::read(value).map_err(ReadErrorKind::NotQmp)
}
