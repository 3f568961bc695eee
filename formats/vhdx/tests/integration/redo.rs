//! Recovery of VHDX images after the process was killed.

use proptest::prelude::*;
use suimon_image::testing::MemoryFile;
use suimon_image::{ByteRange, ImageFile, MetadataChange, RedoChanges};
use suimon_vhdx::Vhdx;

use crate::redo_bench::{Format, Request, after_one_write, requests, survives};
use crate::support::*;

const DISK: u64 = 4 * MB + 4096;

struct VhdxBench;

impl Format for VhdxBench {
    type Image = Vhdx;

    fn open(&self, file: &MemoryFile) -> Vhdx {
        Vhdx::open(file, &guids(1)).unwrap()
    }

    fn reopen(&self, file: &MemoryFile, redo: &RedoChanges) -> Vhdx {
        Vhdx::open_with_redo(file, &guids(2), redo).unwrap()
    }

    fn read_parent(&self, range: ByteRange, bytes: &mut [u8]) {
        read_parent(range, bytes);
    }

    fn redone_as(&self) -> [u8; 16] {
        guids(2).file_write.to_stored_bytes()
    }
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn acknowledged_writes_survive_a_kill(requests in requests(DISK)) {
        survives(&VhdxBench, &created(&dynamic(DISK)), &requests);
    }

    #[test]
    fn acknowledged_writes_to_a_child_survive_a_kill(requests in requests(DISK)) {
        survives(&VhdxBench, &created(&child(DISK)), &requests);
    }
}

#[test]
fn requests_that_wrap_around_blocks_are_redone() {
    let requests = [
        Request::Write { at: 255, units: 2 },
        Request::Discard { at: 0, units: 256 },
        Request::Write { at: 10, units: 300 },
        Request::Flush,
        Request::Write { at: 1024, units: 1 },
    ];
    survives(&VhdxBench, &created(&dynamic(DISK)), &requests);
    survives(&VhdxBench, &created(&child(DISK)), &requests);
}

#[test]
fn redo_is_rejected_after_another_program_opened_the_image() {
    let (bytes, redo) = after_one_write(&VhdxBench, &created(&dynamic(DISK)));
    let other = MemoryFile::new(bytes);
    Vhdx::open(&other, &guids(9)).unwrap().close(&other).unwrap();
    let before = other.bytes();
    let error = Vhdx::open_with_redo(&other, &guids(2), &redo).unwrap_err();
    assert_eq!(error.field, "Header.FileWriteGuid");
    assert!(error.to_string().contains("another program"), "{error}");
    assert!(other.bytes() == before);
}

#[test]
fn undefined_entry_bits_are_ignored() {
    // Unallocated blocks as other programs may store them: with reserved bits and an offset, and
    // with the unmapped state of version 0.95.
    for raw in [0xffff_ffff_ffff_fff8_u64, 3 | 0x8000_0000, 5] {
        let file = created(&dynamic(DISK));
        file.write_at(3 * MB, &raw.to_le_bytes()).unwrap();
        let (bytes, redo) = after_one_write(&VhdxBench, &file);
        let file = MemoryFile::new(bytes);
        let image = Vhdx::open_with_redo(&file, &guids(2), &redo).unwrap();
        assert_eq!(content(image, &file)[3 * 4096..5 * 4096], [2; 2 * 4096], "{raw:#x}");
    }
}

#[test]
fn redo_rejects_changes_outside_metadata() {
    for offset in [0, 64 << 10, 3 * MB, 5 * MB] {
        let (bytes, mut redo) = after_one_write(&VhdxBench, &created(&child(DISK)));
        redo.changes.push(MetadataChange::fill(range(offset, 8), 0));
        let file = MemoryFile::new(bytes);
        let before = file.bytes();
        let error = Vhdx::open_with_redo(&file, &guids(2), &redo).unwrap_err();
        assert_eq!((error.field, error.offset), ("redo", offset));
        assert!(file.bytes() == before);
    }
}
