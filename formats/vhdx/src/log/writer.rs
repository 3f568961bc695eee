//! Writes entries of the log so that a crash at any time leaves one that counts.

use suimon_image::{ByteRange, Step};

use crate::Guid;
use crate::fields::{PAGE, PAGE_LEN, to_usize};
use crate::log::entry::{EntrySpec, descriptor_sectors, encode};

/// A page of metadata: where it belongs in the file, and what is there.
pub(crate) type Page = (u64, Box<[u8; PAGE_LEN]>);

/// Entries are no longer than this, however long the log is.
const ENTRY_SECTORS_MAX: u64 = 1024;
/// An entry of one page.
const ENTRY_SECTORS_MIN: u64 = 2;

/// Where the next entry goes.
///
/// Each entry is replayed alone: before it is written, all that earlier ones changed is
/// in its place and durable. The one before it must stay whole until it is durable, so
/// no entry has more than a quarter of the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer {
    log: ByteRange,
    guid: Guid,
    sequence: u64,
    /// In sectors of the log.
    next: u64,
    /// Sectors before `next` that must stay as they are.
    kept: u64,
}

impl Writer {
    /// Of a log that has no entry with this GUID.
    pub(crate) fn new(log: ByteRange, guid: Guid) -> Self {
        Self { log, guid, sequence: 1, next: 0, kept: 0 }
    }

    fn sectors(&self) -> u64 {
        self.log.len() / PAGE
    }

    /// How many pages the next entry can have.
    fn pages_max(&self) -> usize {
        // If entry after entry fails, the log fills up with what may or may not count.
        // Then there is no better place than the oldest of them.
        let free = self.sectors().saturating_sub(self.kept) / 2;
        let sectors = free.min(self.sectors() / 4).clamp(ENTRY_SECTORS_MIN, ENTRY_SECTORS_MAX);
        let pages = to_usize(sectors) - 1;
        pages + 1 - descriptor_sectors(pages)
    }

    /// The steps that write one entry with the first of `pages`, and how many it has.
    pub(crate) fn write(
        &mut self,
        pages: &[Page],
        flushed_file_len: u64,
        last_file_len: u64,
        steps: &mut Vec<Step>,
    ) -> usize {
        let count = pages.len().min(self.pages_max());
        let start = self.next * PAGE;
        let spec = EntrySpec {
            guid: self.guid,
            sequence: self.sequence,
            // The log's length was read from 32 bits.
            tail: u32::try_from(start).unwrap_or(0),
            flushed_file_len,
            last_file_len,
        };
        let mut bytes = encode(&spec, pages.get(..count).unwrap_or_default());
        let sectors = bytes.len() as u64 / PAGE;
        let rest = bytes.split_off(bytes.len().min(to_usize(self.log.len() - start)));
        steps.push(Step::Write { offset: self.log.offset().saturating_add(start), bytes });
        if !rest.is_empty() {
            steps.push(Step::Write { offset: self.log.offset(), bytes: rest });
        }
        self.sequence = self.sequence.saturating_add(1);
        self.next = (self.next + sectors) % self.sectors();
        self.kept = sectors;
        count
    }

    /// Entries from `before` on may or may not have been written: all of them stay.
    pub(crate) fn handle_failure(&mut self, before: &Self) {
        let written = (self.next + self.sectors() - before.next) % self.sectors();
        self.kept = before.kept.saturating_add(written);
    }
}
