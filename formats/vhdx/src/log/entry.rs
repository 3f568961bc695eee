//! Log entries ([MS-VHDX] 2.3.1): header, descriptors, data sectors.
//!
//! Each sector starts with a signature of its type, so that valid entries cannot overlap.

use suimon_image::ByteRange;

use crate::Guid;
use crate::fields::{
    FILE_MB_MAX, MB, PAGE_BYTES, PAGE_LEN, bytes_at, put, store_checksum, to_usize, u32_at, u64_at,
};
use crate::replayed_view::LogChange;

/// Metadata page: file offset in bytes and contents.
pub(crate) type Page = (u64, Box<[u8; PAGE_LEN]>);

const HEADER_LEN: usize = 64;
const DESCRIPTOR_LEN: usize = 32;
const CHECKSUM_AT: usize = 4;
/// Number of leading bytes of a page that the descriptor contains instead of the data sector. It
/// also contains the last 4 bytes.
const LEADING: usize = 8;
const TRAILING_AT: usize = PAGE_LEN - 4;

/// Log entry with a valid checksum. Sectors are those of the log.
#[derive(Clone, Debug)]
pub(crate) struct LogEntry {
    /// First sector of the entry, as an index within the log.
    pub start_sector: usize,
    /// Number of sectors of the entry.
    pub sector_count: usize,
    /// First sector of the earliest entry that must be replayed together with this one, as an index
    /// within the log.
    pub tail_sector: usize,
    pub sequence: u64,
    pub flushed_file_len: u64,
    pub last_file_len: u64,
    descriptors: usize,
}

/// Returns the number of log sectors that the header and `descriptors` descriptors occupy.
pub(crate) fn descriptor_sectors(descriptors: usize) -> usize {
    descriptors.saturating_mul(DESCRIPTOR_LEN).saturating_add(HEADER_LEN).div_ceil(PAGE_LEN)
}

/// Returns a sector of the log, which is a ring buffer: indices wrap.
fn sector(log: &[u8], index: usize) -> &[u8] {
    let count = (log.len() / PAGE_LEN).max(1);
    let offset = index % count * PAGE_LEN;
    log.get(offset..offset + PAGE_LEN).unwrap_or_default()
}

impl LogEntry {
    /// Decodes the entry that starts at sector `start` of the log; `None` if there is no valid
    /// entry with the LogGuid `guid`.
    pub(crate) fn parse(log: &[u8], start: usize, guid: Guid) -> Option<Self> {
        let header = sector(log, start);
        if bytes_at(header, 0) != *b"loge" || bytes_at(header, 32) != guid.to_stored_bytes() {
            return None;
        }
        let len = u64::from(u32_at(header, 8));
        let tail = u64::from(u32_at(header, 12));
        let log_len = log.len() as u64;
        if len == 0
            || len % PAGE_BYTES != 0
            || len > log_len
            || tail % PAGE_BYTES != 0
            || tail >= log_len
        {
            return None;
        }
        let entry = Self {
            start_sector: start,
            sector_count: to_usize(len / PAGE_BYTES),
            tail_sector: to_usize(tail / PAGE_BYTES),
            sequence: u64_at(header, 16),
            flushed_file_len: u64_at(header, 48),
            last_file_len: u64_at(header, 56),
            descriptors: u32_at(header, 24) as usize,
        };
        let lengths = [entry.flushed_file_len, entry.last_file_len];
        let is_whole = entry.sequence != 0
            && lengths.iter().all(|len| len % MB == 0 && *len <= FILE_MB_MAX * MB)
            && entry.has_its_sectors(log)
            && entry.checksum(log) == u32_at(header, CHECKSUM_AT);
        is_whole.then_some(entry)
    }

    /// Returns true if descriptors and data sectors have the sequence number of the header and
    /// belong to this entry.
    fn has_its_sectors(&self, log: &[u8]) -> bool {
        let first_page = descriptor_sectors(self.descriptors);
        if first_page > self.sector_count {
            return false;
        }
        let mut pages = 0;
        for index in 0..self.descriptors {
            let descriptor = self.descriptor(log, index);
            let is_page = bytes_at(descriptor, 0) == *b"desc";
            if !is_page && bytes_at(descriptor, 0) != *b"zero"
                || u64_at(descriptor, 24) != self.sequence
            {
                return false;
            }
            pages += usize::from(is_page);
        }
        first_page + pages == self.sector_count
            && (first_page..self.sector_count).all(|index| {
                let page = sector(log, self.start_sector + index);
                let sequence =
                    u64::from(u32_at(page, 4)) << 32 | u64::from(u32_at(page, TRAILING_AT));
                bytes_at(page, 0) == *b"data" && sequence == self.sequence
            })
    }

    fn descriptor<'a>(&self, log: &'a [u8], index: usize) -> &'a [u8] {
        let offset = HEADER_LEN + index * DESCRIPTOR_LEN;
        let sector = sector(log, self.start_sector + offset / PAGE_LEN);
        sector
            .get(offset % PAGE_LEN..)
            .and_then(|rest| rest.get(..DESCRIPTOR_LEN))
            .unwrap_or_default()
    }

    fn checksum(&self, log: &[u8]) -> u32 {
        let first = crate::fields::checksum(sector(log, self.start_sector), CHECKSUM_AT);
        (1..self.sector_count).fold(first, |crc, index| {
            crc32c::crc32c_append(crc, sector(log, self.start_sector + index))
        })
    }

    /// Returns the changes that the entry contains; `None` if they are invalid: not in whole pages,
    /// or beyond the file length that the entry states.
    pub(crate) fn decode_changes(&self, log: &[u8]) -> Option<Vec<LogChange>> {
        let mut page = descriptor_sectors(self.descriptors);
        let mut changes = Vec::with_capacity(self.descriptors);
        for index in 0..self.descriptors {
            let descriptor = self.descriptor(log, index);
            let is_page = bytes_at(descriptor, 0) == *b"desc";
            let len = if is_page { PAGE_BYTES } else { u64_at(descriptor, 8) };
            let range = ByteRange::new(u64_at(descriptor, 16), len)?;
            if !range.is_aligned(PAGE_BYTES) || !range.is_within(self.last_file_len) {
                return None;
            }
            if !is_page {
                changes.push(LogChange::Zero(range));
                continue;
            }
            let mut bytes =
                Box::new(bytes_at::<PAGE_LEN>(sector(log, self.start_sector + page), 0));
            put(bytes.as_mut_slice(), 0, &bytes_at::<LEADING>(descriptor, 8));
            put(bytes.as_mut_slice(), TRAILING_AT, &bytes_at::<4>(descriptor, 4));
            changes.push(LogChange::Page { range, bytes });
            page += 1;
        }
        Some(changes)
    }
}

/// Header fields of a new entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntrySpec {
    pub guid: Guid,
    pub sequence: u64,
    /// Offset in the log, in bytes, of the first entry to be replayed together with this one.
    pub tail_offset: u32,
    pub flushed_file_len: u64,
    pub last_file_len: u64,
}

/// Encodes an entry that contains `pages`.
pub(crate) fn encode(spec: &EntrySpec, pages: &[Page]) -> Vec<u8> {
    let first_page = descriptor_sectors(pages.len());
    let mut bytes = vec![0; (first_page + pages.len()) * PAGE_LEN];
    put(&mut bytes, 0, b"loge");
    // Entries are limited to some megabytes.
    let len = u32::try_from(bytes.len()).unwrap_or(0);
    put(&mut bytes, 8, &len.to_le_bytes());
    put(&mut bytes, 12, &spec.tail_offset.to_le_bytes());
    put(&mut bytes, 16, &spec.sequence.to_le_bytes());
    put(&mut bytes, 24, &u32::try_from(pages.len()).unwrap_or(0).to_le_bytes());
    put(&mut bytes, 32, &spec.guid.to_stored_bytes());
    put(&mut bytes, 48, &spec.flushed_file_len.to_le_bytes());
    put(&mut bytes, 56, &spec.last_file_len.to_le_bytes());
    let sequence = spec.sequence.to_le_bytes();
    let [low, high] = [bytes_at::<4>(&sequence, 0), bytes_at::<4>(&sequence, 4)];
    for (index, (offset, page)) in pages.iter().enumerate() {
        let at = HEADER_LEN + index * DESCRIPTOR_LEN;
        put(&mut bytes, at, b"desc");
        put(&mut bytes, at + 4, &bytes_at::<4>(page.as_slice(), TRAILING_AT));
        put(&mut bytes, at + 8, &bytes_at::<LEADING>(page.as_slice(), 0));
        put(&mut bytes, at + 16, &offset.to_le_bytes());
        put(&mut bytes, at + 24, &sequence);
        let at = (first_page + index) * PAGE_LEN;
        put(&mut bytes, at, page.as_slice());
        put(&mut bytes, at, b"data");
        put(&mut bytes, at + 4, &high);
        put(&mut bytes, at + TRAILING_AT, &low);
    }
    store_checksum(&mut bytes, CHECKSUM_AT);
    bytes
}
