//! Random workloads compared with a reference model, with reopening, on every type of disk.

use crate::support::{
    PARENT_SECTOR, SECTOR, created, disk_on, numbers, open, parent, payload, range, read_parent,
};
use proptest::prelude::*;
use suimon_image::testing::{MemoryFile, TestDisk};
use suimon_image::{ByteRange, Image, ImageFile};
use suimon_vhd::{Access, CreateParameters, SizeSource, Vhd, check, resize};

#[derive(Clone, Debug)]
enum Op {
    Write { sector: u64, sectors: u64 },
    Discard { sector: u64, sectors: u64 },
    Flush,
    Reopen,
    Grow { sectors: u64 },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0_u64..400, 1_u64..24).prop_map(|(sector, sectors)| Op::Write { sector, sectors }),
        2 => (0_u64..400, 1_u64..80).prop_map(|(sector, sectors)| Op::Discard { sector, sectors }),
        2 => Just(Op::Flush),
        1 => Just(Op::Reopen),
        1 => (1_u64..90).prop_map(|sectors| Op::Grow { sectors }),
    ]
}

fn disks() -> impl Strategy<Value = CreateParameters> {
    (0_u8..5, 0_u32..5).prop_map(|(kind, shift)| {
        let block_size = 512 << shift;
        match kind {
            0 => CreateParameters::Fixed,
            1 | 2 => CreateParameters::Dynamic { block_size },
            _ => CreateParameters::Differencing { block_size, parent: parent() },
        }
    })
}

/// Reference model: expected number of each sector.
struct Model {
    numbers: Vec<u64>,
}

impl Model {
    fn write(&mut self, number: u64, sector: u64, sectors: u64) {
        for index in sector..sector + sectors {
            self.numbers[index as usize] = number << 24 | index;
        }
    }

    fn discard(&mut self, range: ByteRange, retained: &[ByteRange]) {
        let is_kept =
            |offset| retained.iter().any(|kept| kept.offset() <= offset && offset < kept.end());
        for index in range.offset() / SECTOR..range.end() / SECTOR {
            if !is_kept(index * SECTOR) {
                self.numbers[index as usize] = 0;
            }
        }
    }
}

fn carry_out(
    op: &Op,
    number: u64,
    disk: &mut TestDisk<'_, Vhd>,
    model: &mut Model,
) -> Result<(), TestCaseError> {
    let size = disk.image.disk_geometry().size_bytes / SECTOR;
    let bounded = |sector: u64, sectors: u64| (sector % size, sectors.min(size - sector % size));
    match *op {
        Op::Write { sector, sectors } => {
            let (sector, sectors) = bounded(sector, sectors);
            disk.write(sector * SECTOR, &payload(number, sector, sectors)).unwrap();
            model.write(number, sector, sectors);
        }
        Op::Discard { sector, sectors } => {
            let (sector, sectors) = bounded(sector, sectors);
            let retained = disk.discard(range(sector, sectors)).unwrap();
            model.discard(range(sector, sectors), &retained);
        }
        _ => disk.flush().unwrap(),
    }
    prop_assert_eq!(&numbers(disk), &model.numbers);
    Ok(())
}

fn is_sound(file: &MemoryFile) -> Result<(), TestCaseError> {
    let report = check(file, SizeSource::Creator);
    prop_assert!(report.findings.is_empty(), "{:?}", report.findings);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn disk_equals_the_model(
        disk in disks(),
        sectors in 1_u64..300,
        ops in proptest::collection::vec(op(), 1..40),
    ) {
        let is_differencing = matches!(disk, CreateParameters::Differencing { .. });
        let of_parent = |sector: u64| if is_differencing { PARENT_SECTOR | sector } else { 0 };
        let file = created(disk, sectors * SECTOR);
        let mut model = Model { numbers: (0..sectors).map(of_parent).collect() };
        let mut rest = ops.as_slice();
        let mut number = 1;
        while !rest.is_empty() {
            let mut parent = read_parent;
            let mut disk = disk_on(&file, Access::Write, &mut parent).unwrap();
            prop_assert_eq!(&numbers(&mut disk), &model.numbers);
            while let Some((op, next)) = rest.split_first() {
                number += 1;
                if matches!(op, Op::Reopen | Op::Grow { .. }) {
                    break;
                }
                rest = next;
                carry_out(op, number, &mut disk, &mut model)?;
            }
            disk.flush().unwrap();
            prop_assert_eq!(disk.image.uncommitted_bytes(), 0);
            drop(disk);
            is_sound(&file)?;
            let Some((op, next)) = rest.split_first() else { break };
            rest = next;
            if let Op::Grow { sectors } = op {
                let before = model.numbers.len() as u64;
                let size = (before + sectors) * SECTOR;
                prop_assert_eq!(resize(&file, size, SizeSource::Creator).unwrap(), size);
                model.numbers.extend((before..before + sectors).map(of_parent));
                is_sound(&file)?;
            }
        }
        // A read-only image has the same contents and does not modify the file.
        file.clear_log();
        let mut parent = read_parent;
        let mut disk = disk_on(&file, Access::Read, &mut parent).unwrap();
        prop_assert_eq!(numbers(&mut disk), model.numbers);
        prop_assert!(file.log().is_empty());
    }
}

#[test]
fn freed_space_is_reused() {
    let file = created(CreateParameters::Dynamic { block_size: 4096 }, 1 << 20);
    let mut disk =
        TestDisk { image: open(&file, Access::Write).unwrap(), file: &file, parent: None };
    let mut len = 0;
    for round in 1..5 {
        disk.write(0, &payload(round, 0, 2048)).unwrap();
        disk.flush().unwrap();
        assert!(disk.discard(range(0, 2048)).unwrap().is_empty());
        disk.flush().unwrap();
        assert_eq!(numbers(&mut disk), [0; 2048]);
        if len == 0 {
            len = file.len().unwrap();
        }
        assert_eq!(file.len().unwrap(), len, "room is used again");
    }
    assert!(len < (1 << 20) * 4 / 3 + 65536, "{len}");
}

#[test]
fn shrinking_requires_unused_blocks() {
    let file = created(CreateParameters::Dynamic { block_size: 4096 }, 64 << 10);
    let mut disk =
        TestDisk { image: open(&file, Access::Write).unwrap(), file: &file, parent: None };
    disk.write(40 << 10, &payload(3, 80, 2)).unwrap();
    disk.flush().unwrap();
    drop(disk);
    let error = resize(&file, 32 << 10, SizeSource::Creator).unwrap_err();
    assert_eq!((error.field, error.offset), ("BAT entry", 1536 + 40));
    assert_eq!(resize(&file, 41 << 10, SizeSource::Creator).unwrap(), 41 << 10);
    // Data cut off by shrinking does not reappear.
    assert_eq!(resize(&file, 128 << 10, SizeSource::Creator).unwrap(), 128 << 10);
    let mut disk =
        TestDisk { image: open(&file, Access::Read).unwrap(), file: &file, parent: None };
    let numbers = numbers(&mut disk);
    assert_eq!((numbers.len(), numbers[80], numbers[81]), (256, 3 << 24 | 80, 3 << 24 | 81));

    let fixed = created(CreateParameters::Fixed, 4096);
    let error = resize(&fixed, 512, SizeSource::Creator).unwrap_err();
    assert_eq!((error.field, error.offset), ("Current Size", 4096 + 48));
}
