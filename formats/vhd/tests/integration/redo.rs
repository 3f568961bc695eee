//! Recovery of VHD images after the process was killed.

use proptest::prelude::*;
use suimon_image::testing::MemoryFile;
use suimon_image::{ByteRange, ImageFault, MetadataChange, RedoChanges};
use suimon_vhd::{Access, OpenOptions, SizeSource, Vhd};

use crate::redo_bench::{Format, after_one_write, requests, survives};
use crate::support::{differencing, disk_on, dynamic, open, payload, read_parent};

const DISK: u64 = 2 << 20;
const BLOCK: u32 = 128 << 10;

struct VhdBench;

impl Format for VhdBench {
    type Image = Vhd;

    fn open(&self, file: &MemoryFile) -> Vhd {
        open(file, Access::Write).unwrap()
    }

    fn reopen(&self, file: &MemoryFile, redo: &RedoChanges) -> Vhd {
        reopen(file, redo).unwrap()
    }

    fn read_parent(&self, range: ByteRange, bytes: &mut [u8]) {
        read_parent(range, bytes);
    }

    fn redone_as(&self) -> [u8; 16] {
        [0; 16]
    }
}

fn reopen(file: &MemoryFile, redo: &RedoChanges) -> Result<Vhd, suimon_image::ImageError> {
    let options = OpenOptions { access: Access::Write, size: SizeSource::Creator };
    Vhd::open_with_redo(file, options, redo)
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn acknowledged_writes_survive_a_kill(requests in requests(DISK)) {
        survives(&VhdBench, &dynamic(BLOCK, DISK), &requests);
    }

    #[test]
    fn acknowledged_writes_to_a_child_survive_a_kill(requests in requests(DISK)) {
        survives(&VhdBench, &differencing(BLOCK, DISK), &requests);
    }
}

#[test]
fn redo_is_rejected_after_writes_of_another_program() {
    // Another block occupies the sector, and additionally the same block has another sector.
    // Reallocation of the same sector to the same block cannot be detected.
    for sectors in [vec![512], vec![512, 24]] {
        let (bytes, redo) = after_one_write(&VhdBench, &dynamic(BLOCK, DISK));
        let other = MemoryFile::new(bytes);
        let mut parent = read_parent;
        let mut disk = disk_on(&other, Access::Write, &mut parent).unwrap();
        for sector in sectors {
            disk.write(sector * 512, &payload(7, sector, 8)).unwrap();
        }
        disk.flush().unwrap();
        drop(disk);
        let before = other.bytes();
        let error = reopen(&other, &redo).unwrap_err();
        assert!(other.bytes() == before, "{error}");
        assert!(["BAT entry", "block allocation"].contains(&error.field), "{error}");
    }
}

#[test]
fn redo_is_rejected_for_another_image() {
    let (bytes, mut redo) = after_one_write(&VhdBench, &dynamic(BLOCK, DISK));
    redo.identity_at_open.write_id[0] ^= 1;
    let file = MemoryFile::new(bytes);
    let before = file.bytes();
    let error = reopen(&file, &redo).unwrap_err();
    assert_eq!(error.field, "Unique Id");
    assert!(file.bytes() == before);
}

#[test]
fn redo_rejects_changes_outside_metadata() {
    for offset in [0, 600, 1 << 20] {
        let (bytes, mut redo) = after_one_write(&VhdBench, &differencing(BLOCK, DISK));
        redo.changes.push(MetadataChange::fill(ByteRange::new(offset, 8).unwrap(), 0));
        let file = MemoryFile::new(bytes);
        let before = file.bytes();
        let error = reopen(&file, &redo).unwrap_err();
        assert!(matches!(error.fault, ImageFault::ImageModified { .. }), "{error}");
        assert_eq!(error.offset, offset);
        assert!(file.bytes() == before);
    }
}
