//! Redo record of one open image.

use std::fs::{self, File};
use std::io::{self, IoSlice};
use std::path::PathBuf;

use rustix::io::{Errno, ReadWriteFlags};
use suimon_image::MetadataChange;
use suimon_ports::RedoRecord;

use crate::entry::{ENTRY_BYTES, Entry};
use crate::header::{ABANDONED, FIRST_AT, HEADER_BYTES, encode_first_entry};

/// Record of an image that is open for writing.
#[derive(Debug)]
pub(crate) struct FileRecord {
    file: File,
    path: PathBuf,
    capacity: u64,
    first: u64,
    next: u64,
    /// Buffer for encoded entries; empty between calls.
    bytes: Vec<u8>,
}

impl FileRecord {
    /// Returns the record of a file that contains its header and no entries. `capacity` is the
    /// maximum number of entries.
    pub(crate) fn new(file: File, path: PathBuf, capacity: u32) -> Self {
        Self { file, path, capacity: capacity.into(), first: 0, next: 0, bytes: Vec::new() }
    }

    /// Writes encoded entries, the first of which has the number `first`. Entries before and after
    /// the wrap-around of the ring need separate writes.
    fn write(&self, first: u64, bytes: &[u8]) -> io::Result<()> {
        let to_end = (self.capacity - first % self.capacity) as usize * ENTRY_BYTES;
        let (end, beginning) = bytes.split_at(to_end.min(bytes.len()));
        self.write_all_at(end, entry_offset(first % self.capacity))?;
        if beginning.is_empty() { Ok(()) } else { self.write_all_at(beginning, entry_offset(0)) }
    }

    /// Writes all bytes with `pwritev2`, the only positional write that a confined worker may call
    /// (`sys/confine`).
    fn write_all_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            let parts = [IoSlice::new(bytes)];
            let written =
                match rustix::io::pwritev2(&self.file, &parts, offset, ReadWriteFlags::empty()) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Err(Errno::INTR) => 0,
                    other => other?,
                };
            bytes = bytes.get(written..).unwrap_or_default();
            offset += written as u64;
        }
        Ok(())
    }
}

/// Returns the offset in bytes of the entry at a slot (entry number modulo capacity).
pub(crate) fn entry_offset(slot: u64) -> u64 {
    HEADER_BYTES as u64 + slot * ENTRY_BYTES as u64
}

impl RedoRecord for FileRecord {
    fn append(&mut self, changes: &[MetadataChange], file_len: u64) -> io::Result<bool> {
        let count = changes.len() as u64;
        if self.next - self.first + count > self.capacity {
            return Ok(false);
        }
        let mut bytes = core::mem::take(&mut self.bytes);
        bytes.clear();
        for (number, change) in (self.next..).zip(changes) {
            bytes.extend(Entry { number, file_len, change: *change }.encode());
        }
        let result = self.write(self.next, &bytes);
        self.bytes = bytes;
        result?;
        self.next += count;
        Ok(true)
    }

    fn capacity_changes(&self) -> u64 {
        self.capacity
    }

    fn next_change_number(&self) -> u64 {
        self.next
    }

    fn truncate_before(&mut self, before: u64) -> io::Result<()> {
        let before = before.clamp(self.first, self.next);
        self.write_all_at(&encode_first_entry(before), FIRST_AT)?;
        self.first = before;
        Ok(())
    }

    fn abandon(&mut self) -> io::Result<()> {
        self.write_all_at(&encode_first_entry(ABANDONED), FIRST_AT)
    }

    fn remove(self: Box<Self>) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}
