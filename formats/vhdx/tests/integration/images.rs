//! Images of each type: creation, writes, closing, reopening, resizing, checking.

use suimon_image::testing::{MemoryFile, TestDisk};
use suimon_image::{
    CommitOutcome, Image, ImageExtent, ImageFault, ImageFile, Location, Step, Translation,
};
use suimon_vhdx::{Guid, ImageType, NewVhdx, Vhdx, check, resize};

use crate::support::*;

/// Returns images with all combinations of parameters that the format permits.
fn all_kinds() -> Vec<NewVhdx> {
    let mut kinds = Vec::new();
    for block_bytes in [MB, 2 * MB, 256 * MB] {
        for (logical_sector, physical_sector) in [(512, 512), (512, 4096), (4096, 4096)] {
            let like = |image: NewVhdx| NewVhdx {
                block_bytes,
                logical_sector_bytes: logical_sector,
                physical_sector_bytes: physical_sector,
                ..image
            };
            let size = 5 * MB + 4096;
            kinds.push(like(dynamic(size)));
            kinds.push(like(child(size)));
            if block_bytes < 256 * MB {
                kinds.push(like(NewVhdx { is_fixed: true, ..dynamic(size) }));
            }
        }
    }
    kinds
}

#[test]
fn writes_persist_across_reopen() {
    for spec in all_kinds() {
        let file = created(&spec);
        assert!(check(&file).is_clean());
        let image = Vhdx::open(&file, &guids(1)).unwrap();
        let geometry = image.disk_geometry();
        assert_eq!(
            (geometry.size_bytes, geometry.logical_sector_bytes),
            (spec.size, spec.logical_sector_bytes)
        );
        assert_eq!(geometry.physical_sector_bytes, spec.physical_sector_bytes);
        assert_eq!((image.kind(), image.block_bytes()), (spec.kind(), spec.block_bytes));
        assert_eq!(geometry.block_bytes, if spec.is_fixed { 0 } else { spec.block_bytes });
        assert_eq!(image.parent_locator(), spec.parent.as_ref());
        assert_eq!(image.disk_id(), spec.disk_id);
        let mut expected = vec![0; spec.size as usize];
        let mut parent = read_parent;
        if spec.parent.is_some() {
            parent(range(0, spec.size), &mut expected);
        }
        let mut disk = TestDisk { image, file: &file, parent: Some(&mut parent) };
        let sector = u64::from(spec.logical_sector_bytes);
        for (index, (offset, len)) in [
            (0, sector),
            (MB - sector, 2 * sector),
            (2 * MB, MB),
            (spec.size - sector, sector),
            (4 * MB + 4096, 8192),
            (0, 2 * sector),
        ]
        .into_iter()
        .enumerate()
        {
            let bytes = vec![index as u8 + 100; len as usize];
            disk.write(offset, &bytes).unwrap();
            expected[offset as usize..(offset + len) as usize].copy_from_slice(&bytes);
        }
        assert!(disk.read(range(0, spec.size)).unwrap() == expected);
        disk.image.close(&file).unwrap();
        let report = check(&file);
        assert!(report.is_clean() && report.log_entries == 0, "{spec:?}: {report:?}");
        let image = Vhdx::open_read_only(&file).unwrap();
        assert!(content(image, &file) == expected, "{spec:?}");
    }
}

#[test]
fn a_fixed_image_is_contiguous_and_frees_no_blocks() {
    let spec = NewVhdx { is_fixed: true, ..dynamic(5 * MB + 512) };
    let file = created(&spec);
    let len = file.len().unwrap();
    let mut disk = disk(Vhdx::open(&file, &guids(1)).unwrap(), &file);
    let offset = disk.image.linear_offset().unwrap();
    let mut extents = Vec::new();
    disk.image.translate_read(range(0, spec.size), &mut extents).unwrap();
    assert_eq!(extents, [ImageExtent { location: Location::File(offset), len: spec.size }]);
    assert_eq!(disk.discard(range(0, spec.size)).unwrap(), [range(0, spec.size)]);
    disk.image.close(&file).unwrap();
    assert_eq!(file.len().unwrap(), len);
    assert_eq!(Vhdx::open_read_only(&file).unwrap().kind(), ImageType::Fixed);
}

#[test]
fn discarded_blocks_read_as_zeros_and_their_space_is_reused_after_the_commit() {
    let file = created(&dynamic(8 * MB));
    let mut disk = disk(Vhdx::open(&file, &guids(1)).unwrap(), &file);
    disk.write(0, &vec![1; 4 * MB as usize]).unwrap();
    disk.flush().unwrap();
    let len = file.len().unwrap();
    let retained = disk.discard(range(MB / 2, 3 * MB)).unwrap();
    assert_eq!(retained, [range(MB / 2, MB / 2), range(3 * MB, MB / 2)]);
    assert!(disk.read(range(MB, 2 * MB)).unwrap().iter().all(|byte| *byte == 0));
    assert!(disk.image.uncommitted_bytes() > 0);
    // Not durable yet: the space must not be reused.
    disk.write(4 * MB, &[2; 512]).unwrap();
    let locate = |disk: &mut TestDisk<'_, Vhdx>, offset| {
        let mut extents = Vec::new();
        disk.image.translate_read(range(offset, 512), &mut extents).unwrap();
        extents[0].location
    };
    let fresh = locate(&mut disk, 4 * MB);
    disk.flush().unwrap();
    assert_eq!(disk.image.uncommitted_bytes(), 0);
    disk.write(MB, &[3; 512]).unwrap();
    disk.write(2 * MB + 512, &[4; 512]).unwrap();
    let (Location::File(fresh), Location::File(reused)) = (fresh, locate(&mut disk, MB)) else {
        panic!("both are in the file")
    };
    assert!(reused < fresh);
    assert!(disk.read(range(MB + 512, MB)).unwrap().iter().all(|byte| *byte == 0));
    disk.image.close(&file).unwrap();
    assert!(file.len().unwrap() <= len + MB);
    assert!(check(&file).is_clean());
}

#[test]
fn a_discarded_block_of_a_child_does_not_show_the_parent() {
    let file = created(&child(4 * MB));
    let mut parent = read_parent;
    let image = Vhdx::open(&file, &guids(1)).unwrap();
    let mut disk = TestDisk { image, file: &file, parent: Some(&mut parent) };
    disk.write(512, &[9; 512]).unwrap();
    disk.discard(range(0, 2 * MB)).unwrap();
    assert!(disk.read(range(0, 2 * MB)).unwrap().iter().all(|byte| *byte == 0));
    disk.write(1024, &[8; 512]).unwrap();
    disk.image.close(&file).unwrap();
    let bytes = content(Vhdx::open_read_only(&file).unwrap(), &file);
    let expected = |offset: u64| match offset {
        1024..1536 => 8,
        0..0x20_0000 => 0,
        _ => parent_byte(offset),
    };
    assert!((0..4 * MB).all(|index| bytes[index as usize] == expected(index)));
}

#[test]
fn a_reader_replays_in_memory_and_writes_nothing() {
    for spec in [dynamic(4 * MB), child(4 * MB)] {
        let file = created(&spec);
        let mut disk = disk(Vhdx::open(&file, &guids(1)).unwrap(), &file);
        disk.write(MB + 512, &[7; 1024]).unwrap();
        let commit = disk.image.begin_commit().unwrap();
        // Power failure when the commit is durable but not applied in place.
        for step in &commit.steps {
            match step {
                suimon_image::Step::Write { offset, bytes } => {
                    file.write_at(*offset, bytes).unwrap();
                }
                Step::Extend { len, .. } => file.set_len(*len).unwrap(),
                suimon_image::Step::DurableMarker => break,
                _ => {}
            }
        }
        file.clear_log();
        let bytes = content(Vhdx::open_read_only(&file).unwrap(), &file);
        assert_eq!(bytes[MB as usize + 512..MB as usize + 1536], [7; 1024]);
        assert_eq!(file.log(), []);
        let report = check(&file);
        assert!(report.is_clean() && report.log_entries == 1);
        let mut reader = Vhdx::open_read_only(&file).unwrap();
        let error = reader.translate_write(range(0, 512), &mut Vec::new()).unwrap_err();
        assert!(matches!(error.fault, ImageFault::ReadOnly));
        let written = Vhdx::open(&file, &guids(2)).unwrap();
        assert!(content(written, &file) == bytes);
    }
}

#[test]
fn opening_for_writing_changes_the_guids_and_closing_trims() {
    let file = created(&dynamic(4 * MB));
    let len = file.len().unwrap();
    assert_eq!(Vhdx::open_read_only(&file).unwrap().data_write_guid(), DATA_WRITE);
    let mut disk = disk(Vhdx::open(&file, &guids(9)).unwrap(), &file);
    disk.write(0, &[1; 512]).unwrap();
    disk.flush().unwrap();
    assert!(file.len().unwrap() > len + MB);
    disk.image.close(&file).unwrap();
    assert_eq!(file.len().unwrap(), len + MB);
    assert_eq!(Vhdx::open_read_only(&file).unwrap().data_write_guid(), guids(9).data_write);
    let nil = suimon_vhdx::WriteGuids { log: Guid::NIL, ..guids(10) };
    assert!(Vhdx::open(&file, &nil).is_err());
}

#[test]
fn an_image_in_use_has_an_entry_in_its_log_from_the_beginning() {
    let file = created(&dynamic(4 * MB));
    let image = Vhdx::open(&file, &guids(1)).unwrap();
    assert_eq!(check(&file).log_entries, 1);
    image.close(&file).unwrap();
    assert_eq!(check(&file).log_entries, 0);
}

#[test]
fn closing_leaves_a_file_that_was_overwritten_unchanged() {
    let file = created(&dynamic(4 * MB));
    let mut open = disk(Vhdx::open(&file, &guids(1)).unwrap(), &file);
    open.write(MB, &[1; 512]).unwrap();
    let other = created(&NewVhdx { disk_id: Guid::new(8), is_fixed: true, ..dynamic(8 * MB) });
    file.set_len(0).unwrap();
    file.write_at(0, &other.bytes()).unwrap();
    let error = open.image.close(&file).unwrap_err();
    assert!(matches!(error.fault, ImageFault::ImageModified { .. }), "{error}");
    assert!(file.bytes() == other.bytes());
    let open = Vhdx::open(&file, &guids(2)).unwrap();
    file.set_len(0).unwrap();
    assert!(open.close(&file).is_err());
    assert_eq!(file.len().unwrap(), 0);
}

#[test]
fn stale_bits_of_absent_blocks_are_ignored() {
    let file = created(&child(4 * MB));
    let mut first = disk(Vhdx::open(&file, &guids(1)).unwrap(), &file);
    first.write(MB + 3 * 512, &[1; 512]).unwrap();
    first.image.close(&file).unwrap();
    // Simulates a program that removes the block from the BAT and leaves its sector bits.
    file.write_at(3 * MB + 8, &[0; 8]).unwrap();
    let mut parent = read_parent;
    let image = Vhdx::open(&file, &guids(2)).unwrap();
    let mut disk = TestDisk { image, file: &file, parent: Some(&mut parent) };
    disk.write(MB + 5 * 512, &[2; 512]).unwrap();
    disk.flush().unwrap();
    let bytes = disk.read(range(MB, 8 * 512)).unwrap();
    for (sector, bytes) in (0..).zip(bytes.chunks(512)) {
        let byte = if sector == 5 { 2 } else { parent_byte(MB + sector * 512) };
        assert!(bytes.iter().all(|actual| *actual == byte), "sector {sector}");
    }
}

#[test]
fn space_of_failed_writes_is_zeroed_before_anything_else_needs_space() {
    let file = created(&dynamic(8 * MB));
    let mut image = Vhdx::open(&file, &guids(1)).unwrap();
    let failing = range(0, 2 * MB);
    let mut extents = Vec::new();
    assert_eq!(image.translate_write(failing, &mut extents).unwrap(), Translation::Ready);
    let Location::File(offset) = extents[0].location else { panic!("{extents:?}") };
    image.handle_write_failed(failing);
    let steps = image.begin_commit().unwrap().steps;
    // No extension of the file: metadata does not refer to the space.
    // Adjacent blocks are zeroed together.
    assert_eq!(steps[0], Step::Zero(range(offset, 2 * MB)), "{steps:?}");
    assert!(!steps.iter().any(|step| matches!(step, Step::Extend { .. })), "{steps:?}");
    // After a failure, the next commit repeats the steps.
    image.handle_commit(CommitOutcome::Failed { completed_steps: 0 });
    assert_eq!(image.begin_commit().unwrap().steps, steps);
    image.handle_commit(CommitOutcome::Done);
    // The space is reused afterwards.
    assert_eq!(image.translate_write(range(MB, MB), &mut extents).unwrap(), Translation::Ready);
    let last = extents.last().unwrap().location;
    assert!([offset, offset + MB].map(Location::File).contains(&last), "{last:?}");
    image.handle_written(range(MB, MB));
    let steps = image.begin_commit().unwrap().steps;
    let Some(Step::Extend { len, required_len: required }) = steps.first() else {
        panic!("{steps:?}")
    };
    assert!(*required <= offset + 2 * MB && len > required, "{steps:?}");
}

#[test]
fn fully_written_child_blocks_need_no_bitmap() {
    let file = created(&child(4 * MB));
    let mut disk = disk(Vhdx::open(&file, &guids(1)).unwrap(), &file);
    disk.write(MB, &vec![1; MB as usize / 2]).unwrap();
    disk.flush().unwrap();
    assert_eq!(entry(&file, 1) & 7, 7);
    disk.write(MB + MB / 2, &vec![1; MB as usize / 2]).unwrap();
    disk.flush().unwrap();
    assert_eq!(entry(&file, 1) & 7, 6);
    disk.discard(range(MB, MB)).unwrap();
    disk.flush().unwrap();
    assert_eq!(entry(&file, 1), 3, "unmapped");
}

/// Returns BAT entry number `index` of an image that these tests created.
fn entry(file: &MemoryFile, index: u64) -> u64 {
    let mut bytes = [0; 8];
    file.read_at(3 * MB + 8 * index, &mut bytes).unwrap();
    u64::from_le_bytes(bytes)
}

#[test]
fn uncompleted_writes_are_not_read() {
    let file = created(&dynamic(4 * MB));
    let mut image = Vhdx::open(&file, &guids(1)).unwrap();
    let (mut first, mut again) = (Vec::new(), Vec::new());
    assert_eq!(image.translate_write(range(512, 512), &mut first).unwrap(), Translation::Ready);
    image.translate_write(range(512, 512), &mut again).unwrap();
    assert_eq!(first, again);
    let mut read = Vec::new();
    image.translate_read(range(0, MB), &mut read).unwrap();
    assert_eq!(read, [ImageExtent { location: Location::Zero, len: MB }]);
    assert!(image.begin_commit().is_none());
    image.handle_written(range(512, 512));
    read.clear();
    image.translate_read(range(512, 512), &mut read).unwrap();
    assert_eq!(read, first);
}

#[test]
fn space_is_reserved_while_writes_are_in_flight() {
    let file = created(&dynamic(4 * MB));
    let mut image = Vhdx::open(&file, &guids(1)).unwrap();
    let locate = |image: &mut Vhdx, offset| {
        let mut extents = Vec::new();
        image.translate_write(range(offset, 512), &mut extents).unwrap();
        extents
    };
    let first = locate(&mut image, 0);
    assert_eq!(locate(&mut image, 0), first);
    image.handle_write_failed(range(0, 512));
    assert!(image.begin_commit().is_none(), "another write is under way there");
    assert_eq!(locate(&mut image, 0), first);
    image.handle_write_failed(range(0, 512));
    image.handle_write_failed(range(0, 512));
    assert_ne!(locate(&mut image, MB), first, "it may have something in it");
    image.begin_commit().unwrap().execute(&file).unwrap();
    image.handle_commit(CommitOutcome::Done);
    assert_eq!(locate(&mut image, 2 * MB), first, "it is zeros now");
    // A completed write keeps the space shared with a failed one.
    locate(&mut image, 2 * MB + 512);
    image.handle_written(range(2 * MB, 512));
    image.handle_write_failed(range(2 * MB + 512, 512));
    let mut read = Vec::new();
    image.translate_read(range(2 * MB, 512), &mut read).unwrap();
    assert_eq!(read, first);
}

#[test]
fn invalid_requests_are_rejected() {
    let file = created(&dynamic(4 * MB));
    let mut image = Vhdx::open(&file, &guids(1)).unwrap();
    for (offset, len) in [(1, 512), (0, 100), (4 * MB, 512), (u64::MAX - 511, 0), (MB, 4 * MB)] {
        let range = range(offset, len);
        let is_refused = |refused: Result<_, suimon_image::ImageError>| refused.is_err();
        assert!(is_refused(image.translate_read(range, &mut Vec::new())), "{range}");
        assert!(is_refused(image.translate_write(range, &mut Vec::new())), "{range}");
        assert!(is_refused(image.discard(range, &mut Vec::new())), "{range}");
    }
    assert!(image.translate_read(range(4 * MB, 0), &mut Vec::new()).is_ok());
}

#[test]
fn invalid_image_specifications_are_rejected() {
    let valid = dynamic(4 * MB);
    let invalid = [
        NewVhdx { size: 0, ..valid.clone() },
        NewVhdx { size: 513, ..valid.clone() },
        NewVhdx { size: (64 << 40) + 512, ..valid.clone() },
        NewVhdx { block_bytes: 3 * MB, ..valid.clone() },
        NewVhdx { block_bytes: 512 * MB, ..valid.clone() },
        NewVhdx { logical_sector_bytes: 1024, ..valid.clone() },
        NewVhdx { logical_sector_bytes: 4096, physical_sector_bytes: 512, ..valid.clone() },
    ];
    for spec in invalid {
        let file = MemoryFile::default();
        assert!(spec.create(&file).is_err(), "{spec:?}");
        assert_eq!(file.log(), []);
    }
    assert!(valid.create(&created(&valid)).is_err());
}

#[test]
fn a_grown_disk_reads_as_zeros_beyond_its_old_end() {
    for is_fixed in [false, true] {
        let old = 3 * MB + 512;
        let file = created(&NewVhdx { is_fixed, ..dynamic(old) });
        let mut first = disk(Vhdx::open(&file, &guids(1)).unwrap(), &file);
        first.write(0, &vec![5; old as usize]).unwrap();
        first.image.close(&file).unwrap();
        for (index, size) in (2..).zip([2 * MB + 1024, 6 * MB, 1024, 3 * MB]) {
            resize(&file, size, &guids(index)).unwrap();
            let report = check(&file);
            assert!(report.is_clean() && report.log_entries == 0, "{report:?}");
        }
        let bytes = content(Vhdx::open_read_only(&file).unwrap(), &file);
        let (old_bytes, added) = bytes.split_at(1024);
        assert_eq!(bytes.len() as u64, 3 * MB);
        assert!(old_bytes.iter().all(|byte| *byte == 5) && added.iter().all(|byte| *byte == 0));
    }
    let file = created(&dynamic(MB));
    assert!(resize(&file, 1000, &guids(1)).is_err());
    assert!(resize(&file, (64 << 40) + 512, &guids(2)).is_err());
}

#[test]
fn a_bat_that_does_not_fit_moves_and_both_sizes_stay_readable() {
    for spec in [dynamic(4 * MB), child(4 * MB)] {
        let file = created(&spec);
        let mut small = disk(Vhdx::open(&file, &guids(1)).unwrap(), &file);
        small.write(MB, &[6; 4096]).unwrap();
        small.image.close(&file).unwrap();
        // A BAT of 1 MB has 2^17 entries: too few for 200 GB.
        resize(&file, 200 << 30, &guids(2)).unwrap();
        assert!(check(&file).is_clean());
        let mut large = disk(Vhdx::open(&file, &guids(3)).unwrap(), &file);
        assert_eq!(large.image.disk_geometry().size_bytes, 200 << 30);
        assert_eq!(large.read(range(MB, 4096)).unwrap(), [6; 4096]);
        large.write((200 << 30) - 512, &[7; 512]).unwrap();
        large.image.close(&file).unwrap();
        let report = check(&file);
        assert!(report.is_clean() && report.present_blocks == 2, "{report:?}");
        resize(&file, 4 * MB, &guids(4)).unwrap();
        let mut again = disk(Vhdx::open_read_only(&file).unwrap(), &file);
        assert_eq!(again.read(range(MB, 4096)).unwrap(), [6; 4096]);
        assert_eq!(check(&file).present_blocks, 1);
    }
}

#[test]
fn the_largest_disk_with_the_smallest_blocks_can_be_created_and_used() {
    // The file is mostly a hole, which MemoryFile does not support: blocks of 32 MB suffice.
    let spec = NewVhdx { block_bytes: 32 * MB, ..dynamic(64 << 40) };
    let file = created(&spec);
    let mut disk = disk(Vhdx::open(&file, &guids(1)).unwrap(), &file);
    disk.write((64 << 40) - 512, &[1; 512]).unwrap();
    disk.image.close(&file).unwrap();
    assert_eq!(check(&file).present_blocks, 1);
}
