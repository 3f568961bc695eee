use std::os::unix::fs::{PermissionsExt, symlink};

use proptest::prelude::*;
use rustix::fs::{FileType, Mode};
use suimon_image::ByteRange;

use super::*;

const OPENED: ImageIdentity = ImageIdentity { write_id: [7; 16], file_len: 1 << 20 };

fn records() -> (tempfile::TempDir, FileRecords) {
    let folder = tempfile::tempdir().unwrap();
    let records = FileRecords::open(&folder.path().join("redo")).unwrap();
    (folder, records)
}

fn change(number: u64) -> MetadataChange {
    if number % 3 == 0 {
        MetadataChange::fill(ByteRange::new(number * 512, 64).unwrap(), number as u8)
    } else {
        MetadataChange::entry(number * 8, number.to_le_bytes(), (number + 1).to_le_bytes())
    }
}

fn changes(numbers: std::ops::Range<u64>) -> Vec<MetadataChange> {
    numbers.map(change).collect()
}

#[test]
fn records_are_loaded_by_another_process_until_they_are_removed() {
    let (_folder, records) = records();
    assert!(records.load("8-77").unwrap().is_none());
    let mut record = records.create("8-77", OPENED).unwrap();
    assert!(records.load("8-77").unwrap().is_none(), "nothing is to be redone");
    assert!(record.append(&changes(0..5), 3 << 20).unwrap());
    assert!(record.append(&changes(5..6), 2 << 20).unwrap());
    // Simulates a killed process.
    core::mem::forget(record);
    let redo = records.load("8-77").unwrap().unwrap();
    assert_eq!(redo.changes, changes(0..6));
    assert_eq!(redo.identity_at_open, ImageIdentity { file_len: 3 << 20, ..OPENED });
    assert_ne!(redo.new_write_id, [0; 16]);
    // A repeated redo uses the same identity.
    assert_eq!(records.load("8-77").unwrap().unwrap().new_write_id, redo.new_write_id);
    let record = records.create("8-77", OPENED).unwrap();
    assert!(records.load("8-77").unwrap().is_none());
    record.remove().unwrap();
    assert_eq!(fs::read_dir(&records.folder).unwrap().count(), 0);
}

#[test]
fn a_record_of_another_boot_is_ignored_and_removed() {
    let (_folder, records) = records();
    records.create("a", OPENED).unwrap().append(&changes(0..5), 0).unwrap();
    assert!(records.after_a_boot().load("a").unwrap().is_none());
    assert!(records.load("a").unwrap().is_none());
    assert_eq!(fs::read_dir(&records.folder).unwrap().count(), 0);
}

#[test]
fn stale_files_are_removed_when_the_records_are_opened() {
    let (_folder, records) = records();
    let mut retained = records.create("kept", OPENED).unwrap();
    retained.append(&changes(0..1), 0).unwrap();
    drop(records.after_a_boot().create("other-boot", OPENED).unwrap());
    fs::write(records.folder.join("half.new"), "a process was killed here").unwrap();
    drop(records.create("empty", OPENED).unwrap());
    let mut abandoned = records.create("abandoned", OPENED).unwrap();
    abandoned.append(&changes(0..1), 0).unwrap();
    abandoned.abandon().unwrap();
    assert!(records.load("abandoned").unwrap().is_none());
    let reopened = FileRecords::open(&records.folder).unwrap();
    // A file that cannot be removed does not prevent the removal of others.
    fs::create_dir(records.folder.join("folder.new")).unwrap();
    assert!(reopened.remove_stale_records().is_err());
    fs::remove_dir(records.folder.join("folder.new")).unwrap();
    let names: Vec<_> =
        fs::read_dir(&reopened.folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["kept.redo"]);
    assert_eq!(reopened.load("kept").unwrap().unwrap().changes, changes(0..1));
}

#[test]
fn a_folder_or_record_that_others_may_have_made_is_refused() {
    let (folder, records) = records();
    fs::set_permissions(&records.folder, fs::Permissions::from_mode(0o770)).unwrap();
    let error = FileRecords::open(&records.folder).unwrap_err();
    assert!(error.to_string().contains("mode 700"), "{error}");
    fs::set_permissions(&records.folder, fs::Permissions::from_mode(0o700)).unwrap();
    let link = folder.path().join("link");
    symlink(&records.folder, &link).unwrap();
    FileRecords::open(&link).unwrap_err();
    let other = folder.path().join("other");
    fs::write(&other, [0; 500]).unwrap();
    symlink(&other, records.path("a").unwrap()).unwrap();
    assert!(records.load("a").is_err());
    drop(records.create("a", OPENED).unwrap());
    assert_eq!(fs::read(&other).unwrap(), [0; 500]);
}

/// Tools that change an image while no daemon runs detect records of any user's directory, and
/// change none.
#[test]
fn pending_records_are_found_in_a_folder_of_any_owner_and_kept() {
    let (folder, records) = records();
    let find = |key: &str| FileRecords::find_pending(&records.folder, key);
    assert_eq!(FileRecords::find_pending(&folder.path().join("nothing"), "a").unwrap(), None);
    drop(records.create("empty", OPENED).unwrap());
    records.create("a", OPENED).unwrap().append(&changes(0..5), 0).unwrap();
    let before = fs::read(records.path("a").unwrap()).unwrap();
    fs::set_permissions(&records.folder, fs::Permissions::from_mode(0o777)).unwrap();
    std::os::unix::fs::chown(&records.folder, Some(12345), Some(12345)).ok();
    assert_eq!(find("a").unwrap(), Some(records.path("a").unwrap()));
    assert_eq!((find("empty").unwrap(), find("b").unwrap()), (None, None));
    assert_eq!(fs::read(records.path("a").unwrap()).unwrap(), before);
    fs::write(records.path("damaged").unwrap(), "not a redo record").unwrap();
    assert!(find("damaged").is_err());
    let other = folder.path().join("file");
    fs::write(&other, "").unwrap();
    assert!(FileRecords::find_pending(&other, "a").is_err());
    assert!(FileRecords::find_pending(&other.join("below"), "a").is_err());
}

#[test]
fn a_damaged_entry_does_not_hide_those_behind_it() {
    let (_folder, records) = records();
    let mut record = records.create("a", OPENED).unwrap();
    record.append(&changes(0..9), 0).unwrap();
    record.truncate_before(2).unwrap();
    let path = records.path("a").unwrap();
    let complete = fs::read(&path).unwrap();
    let flipped = |index: usize| {
        let mut bytes = complete.clone();
        bytes[index] ^= 1;
        fs::write(&path, bytes).unwrap();
        records.load("a")
    };
    for entry in 2..8 {
        let error = flipped(entry_offset(entry) as usize + 20).unwrap_err();
        assert!(error.to_string().contains("damaged"), "{entry}: {error}");
    }
    // The last entry may have been in the middle of a write, and those before the first one are not
    // needed.
    assert_eq!(flipped(entry_offset(8) as usize + 20).unwrap().unwrap().changes, changes(2..8));
    assert_eq!(flipped(entry_offset(1) as usize + 20).unwrap().unwrap().changes, changes(2..9));
    for index in 64..80 {
        assert!(flipped(index).is_err(), "{index}");
    }
}

/// A record that another version wrote is kept: it contains completed writes.
#[test]
fn a_record_of_another_version_is_refused_and_kept() {
    let (_folder, records) = records();
    records.create("a", OPENED).unwrap().append(&changes(0..5), 0).unwrap();
    let path = records.path("a").unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[8] = 2;
    fs::write(&path, &bytes).unwrap();
    for error in [
        records.load("a").unwrap_err(),
        FileRecords::find_pending(&records.folder, "a").unwrap_err(),
    ] {
        assert!(error.to_string().contains("version 2 of the format"), "{error}");
        assert!(error.to_string().contains("install the version"), "{error}");
    }
    records.remove_stale_records().unwrap();
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

/// An entry that this version cannot decode is not taken for the end of the record, not even if no
/// entry follows it.
#[test]
fn an_entry_of_an_unknown_kind_is_not_the_end_of_a_record() {
    let (_folder, records) = records();
    let mut record = records.create("a", OPENED).unwrap();
    record.append(&changes(0..5), 0).unwrap();
    let path = records.path("a").unwrap();
    let complete = fs::read(&path).unwrap();
    for entry in 0..5 {
        let mut bytes = complete.clone();
        let start = entry_offset(entry) as usize;
        // Field `kind`.
        bytes[start + 28..start + 32].copy_from_slice(&0x200_u32.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[start..start + 60]).to_le_bytes();
        bytes[start + 60..start + 64].copy_from_slice(&checksum);
        fs::write(&path, &bytes).unwrap();
        let error = records.load("a").unwrap_err();
        assert!(error.to_string().contains("install the version"), "{entry}: {error}");
        records.remove_stale_records().unwrap();
        assert_eq!(fs::read(&path).unwrap(), bytes, "{entry}");
    }
    // Entries that are truncated are not decoded.
    record.truncate_before(5).unwrap();
    assert!(records.load("a").unwrap().is_none());
}

#[test]
fn a_fifo_is_not_a_record_and_does_not_block() {
    let (_folder, records) = records();
    let fifo = records.path("a").unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).unwrap();
    records.remove_stale_records().unwrap();
    assert!(records.load("a").is_err());
    drop(records.create("a", OPENED).unwrap());
    assert!(fs::metadata(&fifo).unwrap().is_file());
}

#[test]
fn nothing_remains_if_a_record_cannot_be_created() {
    let (_folder, records) = records();
    // A directory occupies the path of the record.
    fs::create_dir(records.path("a").unwrap()).unwrap();
    assert!(records.create("a", OPENED).is_err());
    assert_eq!(fs::read_dir(&records.folder).unwrap().count(), 1);
}

#[test]
fn a_full_record_keeps_nothing_more_until_something_is_forgotten() {
    let (_folder, records) = records();
    let mut record = records.create("a", OPENED).unwrap();
    let space = u64::from(ROOM);
    assert!(record.append(&changes(0..space), 0).unwrap());
    assert!(!record.append(&changes(space..space + 1), 0).unwrap());
    assert_eq!(record.next_change_number(), space);
    record.truncate_before(10).unwrap();
    assert!(!record.append(&changes(space..space + 11), 0).unwrap());
    assert!(record.append(&changes(space..space + 10), 0).unwrap());
    assert_eq!(records.load("a").unwrap().unwrap().changes, changes(10..space + 10));
    // The size is bounded.
    let file = records.path("a").unwrap();
    assert_eq!(fs::metadata(file).unwrap().len(), entry_offset(space));
}

#[test]
fn invalid_records_and_keys_are_errors() {
    let (_folder, records) = records();
    fs::write(records.path("a").unwrap(), [0; 500]).unwrap();
    let error = records.load("a").unwrap_err();
    assert!(error.to_string().contains("a.redo is not a redo record"), "{error}");
    fs::write(records.path("a").unwrap(), "short").unwrap();
    assert!(records.load("a").is_err());
    for key in ["", "../a", "a/b", "a.b", &"a".repeat(200)] {
        assert!(records.load(key).is_err(), "{key}");
        assert!(records.create(key, OPENED).is_err(), "{key}");
    }
}

proptest! {
    /// A random sequence of appends and truncations, of any length, at every position of the ring.
    #[test]
    fn a_record_is_a_queue(steps in prop::collection::vec((any::<bool>(), 1_u64..400), 1..60)) {
        let (_folder, records) = records();
        let mut record = records.create("a", OPENED).unwrap();
        let (mut first, mut next) = (0, 0);
        for (is_kept, count) in steps {
            if is_kept {
                let has_room = next - first + count <= u64::from(ROOM);
                prop_assert_eq!(record.append(&changes(next..next + count), 0).unwrap(), has_room);
                next += if has_room { count } else { 0 };
            } else {
                first = (first + count).min(next);
                record.truncate_before(first).unwrap();
            }
            let loaded = records.load("a").unwrap().map_or(Vec::new(), |redo| redo.changes);
            prop_assert!(loaded == changes(first..next), "{first}..{next}");
        }
    }
}
