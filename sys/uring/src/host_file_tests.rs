//! Tests that files behave as a plain array of bytes, with any alignment.

use proptest::prelude::*;
use suimon_image::{FileError, ImageFile};
use suimon_ports::{DiskFile, FileTime};

use crate::{FileAccess, HostFile};

/// Creates a directory on a file system with direct I/O: TMPDIR, or /var/tmp, which is on a disk,
/// unlike /tmp on some systems.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(std::env::var_os("TMPDIR").unwrap_or_else(|| "/var/tmp".into())).unwrap()
}

#[derive(Clone, Debug)]
enum Change {
    Write(u64, Vec<u8>),
    Zero(u64, u64),
    SetLen(u64),
}

fn change() -> impl Strategy<Value = Change> {
    let offsets = 0..20_000_u64;
    prop_oneof![
        4 => (offsets.clone(), proptest::collection::vec(1..=u8::MAX, 1..6000))
            .prop_map(|(offsets, bytes)| Change::Write(offsets, bytes)),
        1 => (offsets.clone(), 0..9000_u64).prop_map(|(offsets, len)| Change::Zero(offsets, len)),
        1 => offsets.prop_map(Change::SetLen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn a_file_is_an_array_of_bytes(
        changes in proptest::collection::vec(change(), 1..12),
        unit in prop::sample::select(vec![1_u32, 512, 4096]),
    ) {
        let folder = folder();
        let file = HostFile::open(&folder.path().join("image"), FileAccess::Create, unit).unwrap();
        let mut model = Vec::new();
        for change in changes {
            match change {
                Change::Write(offset, bytes) => {
                    file.write_at(offset, &bytes).unwrap();
                    let end = offset as usize + bytes.len();
                    if model.len() < end {
                        model.resize(end, 0);
                    }
                    model[offset as usize..end].copy_from_slice(&bytes);
                }
                Change::Zero(offset, len) => {
                    file.zero(offset, len).unwrap();
                    let end = model.len().min((offset + len) as usize);
                    if let Some(zeroed) = model.get_mut(offset as usize..end) {
                        zeroed.fill(0);
                    }
                }
                Change::SetLen(len) => {
                    file.set_len(len).unwrap();
                    model.resize(len as usize, 0);
                }
            }
            prop_assert_eq!(file.len().unwrap(), model.len() as u64);
        }
        file.flush().unwrap();
        let mut content = vec![9; model.len()];
        file.read_at(0, &mut content).unwrap();
        prop_assert!(content == model);
    }
}

#[test]
fn a_read_behind_the_end_reports_the_file_size() {
    let folder = folder();
    let file = HostFile::open(&folder.path().join("image"), FileAccess::Create, 512).unwrap();
    file.write_at(0, &[1; 700]).unwrap();
    match file.read_at(600, &mut [0; 200]) {
        Err(FileError::BeyondEnd { len: 700, offset: 600 }) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn units_that_do_not_fit_the_image_go_through_the_page_cache() {
    let folder = folder();
    let path = folder.path().join("image");
    let cached = HostFile::open(&path, FileAccess::Create, 4096).unwrap();
    // Not every file system supports direct I/O.
    assert_eq!(
        cached.properties().is_direct,
        cached.properties().alignment > 1,
        "{:?}",
        cached.properties()
    );
    let odd = HostFile::open(&path, FileAccess::Write, 1).unwrap();
    assert!(
        !odd.properties().is_direct && odd.properties().alignment == 1,
        "{:?}",
        odd.properties()
    );
}

#[test]
fn missing_existing_and_irregular_files_are_refused() {
    let folder = folder();
    let path = folder.path().join("image");
    let kind =
        |path: &std::path::Path, access| HostFile::open(path, access, 512).unwrap_err().kind();
    assert_eq!(kind(&path, FileAccess::Read), std::io::ErrorKind::NotFound);
    HostFile::open(&path, FileAccess::Create, 512).unwrap();
    assert_eq!(kind(&path, FileAccess::Create), std::io::ErrorKind::AlreadyExists);
    assert_eq!(kind(folder.path(), FileAccess::Read), std::io::ErrorKind::InvalidInput);
    // No process has the other end open; a blocking open would never return.
    let fifo = folder.path().join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    assert_eq!(kind(&fifo, FileAccess::Read), std::io::ErrorKind::InvalidInput);
}

#[test]
fn reading_an_image_writes_down_no_time_of_access() {
    let folder = folder();
    let file = HostFile::open(&folder.path().join("image"), FileAccess::Create, 512).unwrap();
    let flags = rustix::fs::fcntl_getfl(&file).unwrap();
    assert!(flags.contains(rustix::fs::OFlags::NOATIME), "{flags:?}");
}

/// Differencing VHDs identify their parent by its modification time.
#[test]
fn opening_for_writing_keeps_the_time_of_the_last_change() {
    let memory = tempfile::tempdir_in("/dev/shm").ok();
    for folder in memory.into_iter().chain([folder()]) {
        let path = folder.path().join("image");
        drop(HostFile::open(&path, FileAccess::Create, 512).unwrap());
        let file = HostFile::open(&path, FileAccess::Write, 512).unwrap();
        let time = FileTime { unix_s: 1_000_000_000, ns: 123_456_789 };
        file.set_modified(time).unwrap();
        assert_eq!(file.modified().unwrap(), time);
        drop(file);
        let file = HostFile::open(&path, FileAccess::Write, 512).unwrap();
        assert_eq!(file.modified().unwrap(), time);
        assert!(file.properties().can_punch_holes);
        file.write_at(0, &[1; 512]).unwrap();
        assert_ne!(file.modified().unwrap(), time);
    }
}
