//! Parsing of QMP messages, line by line.

use serde_json::Value;
use thiserror::Error;

use crate::line_buffer::{LineBuffer, LineTooLong, has_few_values};
use crate::message::QmpMessage;

/// Maximum length of a line in bytes, including the line end. The longest responses to the commands
/// of this crate, lists of properties and of CPUs, have some tens of kilobytes.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// Violation of QMP in a received line. The connection is unusable afterwards.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("invalid QMP data from QEMU at byte {offset}: {kind}")]
pub struct QmpReadError {
    /// Offset of the invalid line in the stream, in bytes.
    pub offset: u64,
    /// Kind of violation in the line.
    pub kind: ReadErrorKind,
}

/// Kind of violation of QMP.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadErrorKind {
    /// The line exceeds [`LINE_BYTES_MAX`].
    #[error("a line longer than {LINE_BYTES_MAX} bytes")]
    TooLong,
    /// The line has more values than any response of QEMU.
    #[error("a line with too many JSON values")]
    TooManyValues,
    /// The line is not valid JSON.
    #[error("not JSON ({0})")]
    NotJson(String),
    /// The line is JSON but not a QMP message.
    #[error("{0}")]
    NotQmp(&'static str),
}

/// Parser of QMP messages, which receives the bytes of a connection in any pieces.
#[derive(Clone, Debug, Default)]
pub struct QmpReader {
    lines: LineBuffer,
    error: Option<QmpReadError>,
}

impl QmpReader {
    /// Creates a reader for a new connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends received bytes. Poll all messages before appending more: the buffer then contains at
    /// most one incomplete line and the bytes received last.
    pub fn handle_bytes(&mut self, bytes: &[u8]) {
        if self.error.is_none() {
            self.lines.handle_bytes(bytes);
        }
    }

    /// Returns the next message; `None` if it is incomplete.
    ///
    /// # Errors
    ///
    /// The input violates QMP; later calls return the same error.
    pub fn poll_message(&mut self) -> Result<Option<QmpMessage>, QmpReadError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        self.next_message().inspect_err(|error| {
            self.error = Some(error.clone());
            self.lines = LineBuffer::default();
        })
    }

    fn next_message(&mut self) -> Result<Option<QmpMessage>, QmpReadError> {
        loop {
            let offset = self.lines.offset();
            let line = self.lines.poll_line(LINE_BYTES_MAX);
            let line =
                line.map_err(|LineTooLong| QmpReadError { offset, kind: ReadErrorKind::TooLong })?;
            match line {
                None => return Ok(None),
                Some((_, [])) => {}
                Some((offset, line)) => {
                    return read(line).map(Some).map_err(|kind| QmpReadError { offset, kind });
                }
            }
        }
    }
}

fn read(line: &[u8]) -> Result<QmpMessage, ReadErrorKind> {
    if !has_few_values(line) {
        return Err(ReadErrorKind::TooManyValues);
    }
    let value: Value =
        serde_json::from_slice(line).map_err(|error| ReadErrorKind::NotJson(error.to_string()))?;
    QmpMessage::read(value).map_err(ReadErrorKind::NotQmp)
}
