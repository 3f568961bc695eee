//! File of a recording.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use anyhow::{Context, Result};
use suimon_recording::{
    BLOCK_HEADER_BYTES, FILE_HEADER_BYTES, Record, check_file_header, decode_block_header,
    decode_records, verify_block_body,
};

/// Recording that is read block by block.
pub(crate) struct Recording<R> {
    from: R,
    offset: u64,
    /// Offset in the file of an incomplete block at the end; `None` if the file ends with a
    /// complete block.
    pub(crate) truncated_at: Option<u64>,
}

impl Recording<BufReader<File>> {
    /// Opens the file of a recording.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let path_text = || format!("{}", path.display());
        let file = File::open(path).with_context(path_text)?;
        Self::new(BufReader::new(file)).with_context(path_text)
    }
}

impl<R: Read> Recording<R> {
    /// Reads the header of a recording.
    pub(crate) fn new(mut input: R) -> Result<Self> {
        let mut header = Vec::new();
        input.by_ref().take(FILE_HEADER_BYTES as u64).read_to_end(&mut header)?;
        check_file_header(&header)?;
        Ok(Self { from: input, offset: FILE_HEADER_BYTES as u64, truncated_at: None })
    }

    /// Calls `see` with the offset in the file and the record, for each record.
    ///
    /// # Errors
    /// The file cannot be read or is damaged, or `see` failed.
    pub(crate) fn for_each(
        &mut self,
        mut see: impl FnMut(u64, Record<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut body = Vec::new();
        while self.next_block(&mut body)? {
            let block_offset = self.offset - body.len() as u64;
            for record in decode_records(&body, block_offset) {
                let (record_offset, record) = record?;
                see(record_offset, record)?;
            }
        }
        Ok(())
    }

    /// Reads the body of the next block into `body`. Returns false at the end of the file.
    fn next_block(&mut self, body: &mut Vec<u8>) -> Result<bool> {
        body.clear();
        let block_offset = self.offset;
        let mut header = [0; BLOCK_HEADER_BYTES];
        match self.fill(&mut header)? {
            0 => return Ok(false),
            BLOCK_HEADER_BYTES => {}
            _ => {
                self.truncated_at = Some(block_offset);
                return Ok(false);
            }
        }
        let header = decode_block_header(header, block_offset)?;
        let length = u64::from(header.length);
        // `take` allocates only as much memory as the file has bytes, whatever length the block
        // states.
        if self.from.by_ref().take(length).read_to_end(body)? as u64 != length {
            self.truncated_at = Some(block_offset);
            body.clear();
            return Ok(false);
        }
        verify_block_body(header, body, block_offset)?;
        self.offset = block_offset + BLOCK_HEADER_BYTES as u64 + length;
        Ok(true)
    }

    fn fill(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.from.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}
