use suimon_image::testing::MemoryFile;

use super::*;
use crate::Guid;
use crate::fields::PAGE_BYTES;
use crate::log::entry::{EntrySpec, encode};

const GUID: Guid = Guid::new(7);
const TARGET_OFFSET: u64 = MB;
const SECTORS: usize = 256;
/// File offset of the first page that the log entries change.
const TARGET: u64 = 2 * MB;

fn header() -> Header {
    let log = ByteRange::new(TARGET_OFFSET, MB).unwrap();
    let guid = Guid::NIL;
    let (file_write, data_write) = (guid, guid);
    Header { sequence: 1, file_write, data_write, log_guid: GUID, log_version: 0, log }
}

/// Returns a log entry that fills `pages` pages from [`TARGET`] on with `byte`.
fn entry(sequence: u64, tail: usize, pages: u64, byte: u8) -> Vec<u8> {
    let spec = EntrySpec {
        guid: GUID,
        sequence,
        tail_offset: (tail * PAGE_LEN) as u32,
        flushed_file_len: 2 * MB,
        last_file_len: 4 * MB,
    };
    let pages: Vec<_> =
        (0..pages).map(|index| (TARGET + index * PAGE_BYTES, Box::new([byte; PAGE_LEN]))).collect();
    encode(&spec, &pages)
}

/// Returns a file whose log contains entries at these sectors.
fn file(entries: &[(usize, Vec<u8>)]) -> MemoryFile {
    let mut bytes = vec![0; 3 * MB as usize];
    for (start, entry) in entries {
        for (index, sector) in entry.chunks(PAGE_LEN).enumerate() {
            let offset = TARGET_OFFSET as usize + (start + index) % SECTORS * PAGE_LEN;
            bytes[offset..offset + PAGE_LEN].copy_from_slice(sector);
        }
    }
    MemoryFile::new(bytes)
}

/// Returns the first byte of each page that replay changes, in order.
fn active_entries(entries: &[(usize, Vec<u8>)]) -> Result<Vec<u8>, ImageError> {
    let replay = read_log(&file(entries), 3 * MB, &header())?;
    Ok(replay
        .changes
        .iter()
        .map(|change| match change {
            LogChange::Page { bytes, .. } => bytes[0],
            LogChange::Zero(_) => 0,
        })
        .collect())
}

#[test]
fn latest_complete_sequence_is_selected() {
    // An entry of two pages has three sectors, of one page two.
    let at_the_end = [(SECTORS - 1, entry(9, SECTORS - 1, 2, 3))];
    assert_eq!(active_entries(&at_the_end).unwrap(), [3, 3], "over the log's end");
    let two = [(0, entry(4, 0, 1, 1)), (2, entry(5, 0, 1, 2))];
    assert_eq!(active_entries(&two).unwrap(), [1, 2], "from the tail on");
    let alone = [(0, entry(4, 0, 1, 1)), (2, entry(5, 2, 1, 2))];
    assert_eq!(active_entries(&alone).unwrap(), [2], "the tail is the entry itself");
    let apart = [(0, entry(4, 0, 1, 1)), (9, entry(5, 0, 1, 2))];
    assert_eq!(active_entries(&apart).unwrap(), [1], "a gap before the tail is reached");
    let leap = [(0, entry(4, 0, 1, 1)), (2, entry(6, 0, 1, 2))];
    assert_eq!(active_entries(&leap).unwrap(), [1], "numbers follow one another");
    let newer = [(0, entry(4, 0, 1, 1)), (9, entry(8, 9, 1, 2)), (20, entry(7, 20, 1, 3))];
    assert_eq!(active_entries(&newer).unwrap(), [2]);
}

#[test]
fn a_torn_entry_ends_the_sequence() {
    for torn in 0..3 {
        let mut second = entry(5, 0, 2, 2);
        second[torn * PAGE_LEN + 100] ^= 1;
        assert_eq!(
            active_entries(&[(0, entry(4, 0, 1, 1)), (2, second.clone())]).unwrap(),
            [1],
            "{torn}"
        );
        let error = active_entries(&[(2, second)]).unwrap_err();
        assert_eq!((error.field, error.offset), ("log", TARGET_OFFSET));
    }
    assert_eq!(active_entries(&[]).unwrap(), [], "nothing was ever written");
}

#[test]
fn pages_include_leading_and_trailing_bytes() {
    let mut page = [9; PAGE_LEN];
    page[..8].copy_from_slice(b"leading!");
    page[PAGE_LEN - 4..].copy_from_slice(b"last");
    let spec = EntrySpec {
        guid: GUID,
        sequence: u64::from(u32::MAX) + 5,
        tail_offset: 0,
        flushed_file_len: 0,
        last_file_len: 3 * MB,
    };
    let bytes = encode(&spec, &[(TARGET, Box::new(page))]);
    let replay = read_log(&file(&[(0, bytes)]), 3 * MB, &header()).unwrap();
    let [LogChange::Page { range, bytes }] = replay.changes.as_slice() else {
        panic!("{replay:?}")
    };
    assert_eq!((range.offset(), bytes.as_slice()), (TARGET, page.as_slice()));
}

#[test]
fn unreplayable_logs_are_rejected() {
    let short = read_log(&file(&[(0, entry(4, 0, 1, 1))]), MB * 2 - 1, &header()).unwrap_err();
    assert_eq!(short.field, "log");
    let spec = EntrySpec {
        guid: GUID,
        sequence: 4,
        tail_offset: 0,
        flushed_file_len: 2 * MB,
        last_file_len: 4 * MB,
    };
    let page = Box::new([1; PAGE_LEN]);
    for offset in [0, 64 << 10, TARGET_OFFSET, TARGET_OFFSET + MB - PAGE_BYTES, 4 * MB, TARGET + 1]
    {
        let error = active_entries(&[(0, encode(&spec, &[(offset, page.clone())]))]).unwrap_err();
        assert_eq!((error.field, error.offset), ("LogEntry", TARGET_OFFSET), "{offset}");
    }
    let promised = EntrySpec { flushed_file_len: 5 * MB, ..spec };
    let error = active_entries(&[(0, encode(&promised, &[]))]).unwrap_err();
    assert_eq!(error.field, "LogEntryHeader.FlushedFileOffset");
}
