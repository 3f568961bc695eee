//! Parsing of frames from a byte stream.
//!
//! QEMU sends each frame as its length in 4 bytes, big-endian, followed by the frame, and receives
//! the same (`net/stream.c`, `net_stream_receive`; `net/net.c`, `net_fill_rstate`).

use thiserror::Error;

/// Size of a frame's length field in bytes.
pub const LENGTH_BYTES: usize = 4;

/// Longest frame in bytes that QEMU sends or accepts (`NET_BUFSIZE`, `include/net/net.h`). It
/// exceeds the switch's maximum: such a frame is read from the stream and dropped.
pub const STREAM_FRAME_BYTES_MAX: usize = 4096 + 65_536;

/// Size of a reader's buffer in bytes: more than the longest frame, and many usual ones.
const ROOM_BYTES: usize = 128 * 1024;

/// Reason why the stream contains no further frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FramingError {
    /// Frame of length 0.
    #[error("stream of QEMU: frame length 0 is outside of 1 to {STREAM_FRAME_BYTES_MAX}")]
    Empty,
    /// Frame longer than QEMU sends. The start of the next frame is unknown.
    #[error("stream of QEMU: frame length {bytes} is outside of 1 to {STREAM_FRAME_BYTES_MAX}")]
    TooLong {
        /// Length field of the frame.
        bytes: u32,
    },
}

/// Buffer of received bytes that returns them frame by frame.
#[derive(Debug)]
pub struct FrameReader {
    capacity: Box<[u8]>,
    /// Index of the first byte that was not returned yet.
    start: usize,
    /// Index after the last received byte; at least `start`, at most the length of the buffer.
    end: usize,
}

impl FrameReader {
    /// Creates a reader without buffered bytes.
    pub fn new() -> Self {
        Self { capacity: vec![0; ROOM_BYTES].into_boxed_slice(), start: 0, end: 0 }
    }

    /// Returns the space for the next received bytes: at least one byte if
    /// [`FrameReader::next_frame`] returned `None`.
    pub fn space_mut(&mut self) -> &mut [u8] {
        if self.start > 0 {
            self.capacity.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        self.capacity.get_mut(self.end..).unwrap_or_default()
    }

    /// Records that `bytes` bytes were written to the start of [`FrameReader::space_mut`]; more
    /// than its length are ignored.
    pub fn advance(&mut self, bytes: usize) {
        self.end = self.end.saturating_add(bytes).min(self.capacity.len());
    }

    /// Returns the next frame and removes it from the buffer; `None` until all of it was received.
    ///
    /// # Errors
    /// The frame's length is invalid. Every later call returns the same error.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, FramingError> {
        let Some(bytes) = self.length()? else { return Ok(None) };
        let begin = self.start + LENGTH_BYTES;
        let Some(end) = begin.checked_add(bytes).filter(|end| *end <= self.end) else {
            return Ok(None);
        };
        self.start = end;
        Ok(self.capacity.get(begin..end))
    }

    /// Returns true if [`FrameReader::next_frame`] would return a frame or an error.
    pub fn is_ready(&self) -> bool {
        match self.length() {
            Ok(Some(bytes)) => self.end - self.start >= LENGTH_BYTES + bytes,
            Ok(None) => false,
            Err(_) => true,
        }
    }

    /// Returns the length of the next frame in bytes; `None` if its length field was not received
    /// completely.
    fn length(&self) -> Result<Option<usize>, FramingError> {
        let received = self.capacity.get(self.start..self.end);
        let Some(length) = received.and_then(<[u8]>::first_chunk::<LENGTH_BYTES>) else {
            return Ok(None);
        };
        match u32::from_be_bytes(*length) {
            0 => Err(FramingError::Empty),
            bytes if bytes as usize > STREAM_FRAME_BYTES_MAX => {
                Err(FramingError::TooLong { bytes })
            }
            bytes => Ok(Some(bytes as usize)),
        }
    }
}

impl Default for FrameReader {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
#[path = "framing_tests.rs"]
mod tests;
