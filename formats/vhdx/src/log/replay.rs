//! Selection of the valid log entries, and their changes ([MS-VHDX] 2.3.2, 2.3.3).

use std::collections::BTreeMap;

use suimon_image::{ByteRange, ImageError, ImageFault, ImageFile};

use crate::fields::{MB, PAGE_LEN, to_usize, u32_at};
use crate::header::Header;
use crate::log::LogEntry;
use crate::replayed_view::LogChange;

/// Maximum length in bytes of a log that is replayed. The log is read into memory for opening. Its
/// changes need at most the same amount of memory.
const LOG_BYTES_MAX: u64 = 64 * MB;

/// Changes in the log, which must be applied before other structures are read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Replay {
    pub changes: Vec<LogChange>,
    /// Minimum length of the file after replay, in bytes.
    pub file_len: u64,
    pub entry_count: usize,
}

/// Reads the log and returns its changes. Time and memory are linear in its length.
///
/// # Errors
///
/// The log is damaged or too long, or the file cannot be read.
pub(crate) fn read_log(
    file: &dyn ImageFile,
    file_len: u64,
    header: &Header,
) -> Result<Replay, ImageError> {
    let offset = header.log.offset();
    if header.log_guid.is_nil() {
        return Ok(Replay::default());
    }
    if header.log_version != 0 {
        let what = format!("version {} of the log", header.log_version);
        return Err(ImageError::new(
            "Header.LogVersion",
            offset,
            ImageFault::Unsupported { feature: what },
        ));
    }
    if header.log.len() > LOG_BYTES_MAX {
        let allowed = "at most 64 MB of a log that must be replayed";
        let fault = ImageFault::InvalidValue { value: header.log.len(), allowed };
        return Err(ImageError::new("Header.LogLength", offset, fault));
    }
    if !header.log.is_within(file_len) {
        return Err(ImageError::new("log", offset, ImageFault::Truncated { file_len }));
    }
    let mut log = vec![0; to_usize(header.log.len())];
    file.read_at(offset, &mut log).map_err(|error| ImageError::new("log", offset, error))?;
    let entries: BTreeMap<usize, LogEntry> = (0..log.len() / PAGE_LEN)
        .filter_map(|sector| Some((sector, LogEntry::parse(&log, sector, header.log_guid)?)))
        .collect();
    if entries.is_empty() && !has_newer_entry(&log, header) {
        // The header was written, but no log entry followed.
        return Ok(Replay::default());
    }
    let sequence = active(&entries, log.len() / PAGE_LEN);
    let Some(head) = sequence.last() else {
        let allowed = "a log with complete entries; restore the image, or its log is lost";
        let fault = ImageFault::InvalidValue { value: entries.len() as u64, allowed };
        return Err(ImageError::new("log", offset, fault));
    };
    if head.flushed_file_len > file_len {
        let offset = offset + (head.start_sector * PAGE_LEN) as u64;
        let fault = ImageFault::Truncated { file_len };
        return Err(ImageError::new("LogEntryHeader.FlushedFileOffset", offset, fault));
    }
    let mut replay = Replay { file_len, entry_count: sequence.len(), changes: Vec::new() };
    for entry in sequence {
        let offset = offset + (entry.start_sector * PAGE_LEN) as u64;
        let changes = entry
            .decode_changes(&log)
            .filter(|changes| changes.iter().all(|change| is_loggable(change.range(), header.log)));
        let Some(changes) = changes else {
            let allowed = "changes of whole pages outside of the headers and the log";
            let fault = ImageFault::InvalidValue { value: entry.sequence, allowed };
            return Err(ImageError::new("LogEntry", offset, fault));
        };
        replay.changes.extend(changes);
        replay.file_len = replay.file_len.max(entry.last_file_len);
    }
    Ok(replay)
}

/// Returns true if log entries may change `range` of the file: region tables and the file behind
/// them, except for the log itself.
fn is_loggable(range: ByteRange, log: ByteRange) -> bool {
    let is_apart = range.end() <= log.offset() || log.end() <= range.offset();
    is_apart && range.offset() >= crate::region::REGION_TABLE_OFFSETS[0]
}

/// Returns true if the log contains the beginning of an entry that was written after the header.
fn has_newer_entry(log: &[u8], header: &Header) -> bool {
    log.chunks_exact(PAGE_LEN).any(|sector| {
        u32_at(sector, 0) == u32::from_le_bytes(*b"loge")
            && sector.get(32..48) == Some(header.log_guid.to_stored_bytes().as_slice())
    })
}

/// Returns the entries of the active sequence. Candidates are sequences of entries without gaps
/// that contain the tail of their last entry. The candidate with the highest last sequence number
/// is active.
fn active(entries: &BTreeMap<usize, LogEntry>, sectors: usize) -> Vec<&LogEntry> {
    let next_of = |entry: &LogEntry| {
        let next = entries.get(&((entry.start_sector + entry.sector_count) % sectors.max(1)))?;
        (Some(next.sequence) == entry.sequence.checked_add(1)).then_some(next)
    };
    // Entries do not overlap and sequence numbers increase, so each entry belongs to exactly one
    // run.
    let mut firsts: BTreeMap<usize, &LogEntry> =
        entries.iter().map(|(start, entry)| (*start, entry)).collect();
    for entry in entries.values() {
        if let Some(next) = next_of(entry) {
            firsts.remove(&next.start_sector);
        }
    }
    let mut best: Vec<&LogEntry> = Vec::new();
    for first in firsts.into_values() {
        let run: Vec<&LogEntry> =
            core::iter::successors(Some(first), |entry| next_of(entry)).collect();
        let indices: BTreeMap<usize, usize> =
            run.iter().enumerate().map(|(index, entry)| (entry.start_sector, index)).collect();
        let head = run.iter().enumerate().rev().find_map(|(index, entry)| {
            let tail = indices.get(&entry.tail_sector).copied().filter(|tail| *tail <= index)?;
            run.get(tail..=index)
        });
        let Some(head) = head else { continue };
        let latest = |run: &[&LogEntry]| run.last().map(|entry| entry.sequence);
        if latest(head) > latest(&best) {
            best = head.to_vec();
        }
    }
    best
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
