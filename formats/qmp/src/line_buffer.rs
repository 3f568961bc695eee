//! Splitting of a byte stream into lines.

/// Buffer of received bytes: at most one incomplete line and the bytes received last.
#[derive(Clone, Debug, Default)]
pub(crate) struct LineBuffer {
    /// Received bytes. The first `taken` bytes have already been returned as lines.
    bytes: Vec<u8>,
    consumed: usize,
    /// Number of bytes after `taken` that are known to contain no line end.
    searched: usize,
    /// Number of bytes returned as lines since the start of the stream.
    offset: u64,
}

/// Maximum number of JSON objects in a line. A parsed object has several hundred bytes of memory,
/// however short its text is. The list of 4096 CPUs has two per CPU.
const OBJECTS_MAX: usize = 16_384;
/// Maximum number of separators in a line, which is about the number of JSON values.
const VALUES_MAX: usize = 131_072;

/// Returns true if a line has so few values that the memory of the parsed line is bounded to some
/// tens of MiB.
pub(crate) fn has_few_values(line: &[u8]) -> bool {
    let (mut objects, mut values) = (0_usize, 0_usize);
    for byte in line {
        objects += usize::from(*byte == b'{');
        values += usize::from(matches!(byte, b',' | b'[' | b':'));
    }
    objects <= OBJECTS_MAX && values <= VALUES_MAX
}

/// Error: a line exceeds the length limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineTooLong;

impl LineBuffer {
    pub(crate) fn handle_bytes(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.consumed);
        self.consumed = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the stream offset of the next line, in bytes.
    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the next complete line, without white space at its ends, and its stream offset in
    /// bytes; `None` if there is none.
    ///
    /// # Errors
    ///
    /// The line exceeds `bytes_max` bytes.
    pub(crate) fn poll_line(
        &mut self,
        bytes_max: usize,
    ) -> Result<Option<(u64, &[u8])>, LineTooLong> {
        let unread = self.bytes.get(self.consumed..).unwrap_or_default();
        let unseen = unread.get(self.searched..).unwrap_or_default();
        let Some(end) = unseen.iter().position(|byte| *byte == b'\n') else {
            self.searched = unread.len();
            return if unread.len() >= bytes_max { Err(LineTooLong) } else { Ok(None) };
        };
        let length = self.searched + end + 1;
        if length > bytes_max {
            return Err(LineTooLong);
        }
        let (start, offset) = (self.consumed, self.offset);
        self.consumed += length;
        self.offset += length as u64;
        self.searched = 0;
        let line = self.bytes.get(start..self.consumed).unwrap_or_default();
        Ok(Some((offset, line.trim_ascii())))
    }
}
