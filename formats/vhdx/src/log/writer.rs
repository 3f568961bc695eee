//! Writing of log entries, such that the log contains a valid entry after a crash at any time.

use suimon_image::{ByteRange, Step};

use crate::Guid;
use crate::fields::{PAGE_BYTES, to_usize};
use crate::log::entry::{EntrySpec, Page, descriptor_sectors, encode};

/// Maximum length of an entry in sectors, independent of the length of the log.
const ENTRY_SECTORS_MAX: u64 = 1024;
/// Length of an entry with one page, in sectors.
const ENTRY_SECTORS_MIN: u64 = 2;

/// Position and sequence of the next log entry.
///
/// Each entry can be replayed on its own: before it is written, all changes of earlier entries are
/// durable in place. The previous entry must stay valid until the new one is durable; an entry
/// therefore uses at most a quarter of the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogWriter {
    log: ByteRange,
    guid: Guid,
    sequence: u64,
    /// Position of the next entry, in sectors of the log.
    next: u64,
    /// Number of sectors before `next` that must not be overwritten.
    protected_sectors: u64,
}

impl LogWriter {
    /// Creates a writer for a log without entries that have the LogGuid `guid`.
    pub(crate) fn new(log: ByteRange, guid: Guid) -> Self {
        Self { log, guid, sequence: 1, next: 0, protected_sectors: 0 }
    }

    fn sectors(&self) -> u64 {
        self.log.len() / PAGE_BYTES
    }

    /// Returns the maximum number of pages of the next entry.
    pub(crate) fn pages_max(&self) -> usize {
        let free = self.sectors().saturating_sub(self.protected_sectors) / 2;
        let sectors = free.min(self.sectors() / 4).clamp(ENTRY_SECTORS_MIN, ENTRY_SECTORS_MAX);
        let pages = to_usize(sectors) - 1;
        pages + 1 - descriptor_sectors(pages)
    }

    /// Appends to `steps` the writes of one entry that contains as many of `pages` as fit. Returns
    /// their number.
    pub(crate) fn append_entry(
        &mut self,
        pages: &[Page],
        flushed_file_len: u64,
        last_file_len: u64,
        steps: &mut Vec<Step>,
    ) -> usize {
        let count = pages.len().min(self.pages_max());
        let start = self.next * PAGE_BYTES;
        let spec = EntrySpec {
            guid: self.guid,
            sequence: self.sequence,
            // The length of the log was read from a 32-bit field.
            tail_offset: u32::try_from(start).unwrap_or(0),
            flushed_file_len,
            last_file_len,
        };
        let mut bytes = encode(&spec, pages.get(..count).unwrap_or_default());
        let sectors = bytes.len() as u64 / PAGE_BYTES;
        let rest = bytes.split_off(bytes.len().min(to_usize(self.log.len() - start)));
        steps.push(Step::Write { offset: self.log.offset().saturating_add(start), bytes });
        if !rest.is_empty() {
            steps.push(Step::Write { offset: self.log.offset(), bytes: rest });
        }
        self.sequence = self.sequence.saturating_add(1);
        self.next = (self.next + sectors) % self.sectors();
        self.protected_sectors = sectors;
        count
    }

    /// Continues behind the last durable entry; `earlier` is the state of the writer after that
    /// entry. Later entries may or may not have been written, so their sequence numbers are not
    /// used again.
    pub(crate) fn rewind_to(&mut self, earlier: &Self) {
        *self = Self { sequence: self.sequence, ..*earlier };
    }
}
