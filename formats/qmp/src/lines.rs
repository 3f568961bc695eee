//! Lines out of bytes that come in pieces.

/// What came and was not handed out, which is never more than a line and the last piece.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    /// What came of lines that were not handed out, behind `taken` bytes that were.
    bytes: Vec<u8>,
    taken: usize,
    /// Bytes from `taken` on that hold no end of a line.
    searched: usize,
    /// Bytes that were handed out.
    offset: u64,
}

/// A line has no end within the bytes that it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Lines {
    pub(crate) fn handle_bytes(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Bytes before the next line.
    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    /// The next line, if all of it has come, without its end and without white space around it,
    /// and where it begins.
    pub(crate) fn poll_line(&mut self, bytes_max: usize) -> Result<Option<(u64, &[u8])>, TooLong> {
        let rest = self.bytes.get(self.taken..).unwrap_or_default();
        let unseen = rest.get(self.searched..).unwrap_or_default();
        let Some(end) = unseen.iter().position(|byte| *byte == b'\n') else {
            self.searched = rest.len();
            return if rest.len() >= bytes_max { Err(TooLong) } else { Ok(None) };
        };
        let length = self.searched + end + 1;
        if length > bytes_max {
            return Err(TooLong);
        }
        let (from, offset) = (self.taken, self.offset);
        self.taken += length;
        self.offset += length as u64;
        self.searched = 0;
        let line = self.bytes.get(from..self.taken).unwrap_or_default();
        Ok(Some((offset, line.trim_ascii())))
    }
}
