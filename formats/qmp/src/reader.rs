//! From bytes to messages, line by line.

use serde_json::Value;
use thiserror::Error;

use crate::lines::{Lines, TooLong};
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
    lines: Lines,
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
            self.lines.handle_bytes(bytes);
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
        self.next_message().inspect_err(|error| {
            self.error = Some(error.clone());
            self.lines = Lines::default();
        })
    }

    fn next_message(&mut self) -> Result<Option<Message>, ReadError> {
        loop {
            let offset = self.lines.offset();
            let line = self.lines.poll_line(LINE_BYTES_MAX);
            let line =
                line.map_err(|TooLong| ReadError { offset, kind: ReadErrorKind::TooLong })?;
            match line {
                None => return Ok(None),
                Some((_, [])) => {}
                Some((offset, line)) => {
                    return read(line).map(Some).map_err(|kind| ReadError { offset, kind });
                }
            }
        }
    }
}

fn read(line: &[u8]) -> Result<Message, ReadErrorKind> {
    let value: Value =
        serde_json::from_slice(line).map_err(|error| ReadErrorKind::NotJson(error.to_string()))?;
    Message::read(value).map_err(ReadErrorKind::NotQmp)
}
