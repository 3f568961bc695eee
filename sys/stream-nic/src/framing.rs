//! Frames out of a stream of bytes.
//!
//! QEMU writes a frame's length in 4 bytes, big-endian, and then the frame, and reads the same
//! (`net/stream.c`, `net_stream_receive`; `net/net.c`, `net_fill_rstate`).

use thiserror::Error;

/// Bytes in which a frame's length is told.
pub const LENGTH_BYTES: usize = 4;

/// The longest frame that QEMU sends or takes (`NET_BUFSIZE`, `include/net/net.h`). It is more
/// than the switch carries: such a frame can be taken from the stream, and is dropped.
pub const STREAM_FRAME_BYTES_MAX: usize = 4096 + 65_536;

/// Bytes that a reader has room for: more than the longest frame, and many usual ones.
const ROOM_BYTES: usize = 128 * 1024;

/// Why there are no more frames in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FramingError {
    /// A frame without bytes.
    #[error("the length of a frame is 0")]
    Empty,
    /// A frame that no QEMU sends. What follows cannot be told from its bytes.
    #[error(
        "the length of a frame is {bytes} bytes; at most {STREAM_FRAME_BYTES_MAX} are possible"
    )]
    TooLong {
        /// The length told.
        bytes: u32,
    },
}

/// The bytes of a stream that were received and not yet taken.
#[derive(Debug)]
pub struct Reader {
    room: Box<[u8]>,
    /// What was received and not taken lies from here …
    start: usize,
    /// … to before here. Never before `start`, never behind the room.
    end: usize,
}

impl Reader {
    /// A reader of which nothing is known.
    pub fn new() -> Self {
        Self { room: vec![0; ROOM_BYTES].into_boxed_slice(), start: 0, end: 0 }
    }

    /// Where the stream's next bytes go. It has room for at least one byte as long as
    /// [`Reader::next_frame`] has nothing to give.
    pub fn space_mut(&mut self) -> &mut [u8] {
        if self.start > 0 {
            self.room.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        self.room.get_mut(self.end..).unwrap_or_default()
    }

    /// So many bytes were put into [`Reader::space_mut`], from its beginning; at most as many as
    /// it has.
    pub fn advance(&mut self, bytes: usize) {
        self.end = self.end.saturating_add(bytes).min(self.room.len());
    }

    /// Takes the next frame; `None` until all of it was received.
    ///
    /// # Errors
    /// There is no frame of that length. It stays so.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, FramingError> {
        let Some(bytes) = self.length()? else { return Ok(None) };
        let begin = self.start + LENGTH_BYTES;
        let Some(end) = begin.checked_add(bytes).filter(|end| *end <= self.end) else {
            return Ok(None);
        };
        self.start = end;
        Ok(self.room.get(begin..end))
    }

    /// Whether [`Reader::next_frame`] has a frame, or an error.
    pub fn is_ready(&self) -> bool {
        match self.length() {
            Ok(Some(bytes)) => self.end - self.start >= LENGTH_BYTES + bytes,
            Ok(None) => false,
            Err(_) => true,
        }
    }

    /// The length of the frame that comes next, if it was received.
    fn length(&self) -> Result<Option<usize>, FramingError> {
        let received = self.room.get(self.start..self.end);
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

impl Default for Reader {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
#[path = "framing_tests.rs"]
mod tests;
