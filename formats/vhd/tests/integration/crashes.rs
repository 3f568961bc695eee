//! Crash consistency: after every prefix of random workloads the image is reopened and compared
//! with the acknowledged writes.

use crate::support::history::{History, continue_workload, fates, reopened};
use crate::support::{
    PARENT_SECTOR, SECTOR, created, disk_on, numbers, open, parent, payload, range, read_parent,
};
use proptest::prelude::*;
use suimon_image::Image;
use suimon_image::testing::{Crash, FileContent, LoggedChange, MemoryFile};
use suimon_vhd::{Access, CreateParameters, SizeSource, check, resize};

#[derive(Clone, Debug)]
enum Op {
    Write { sector: u64, sectors: u64 },
    Discard { sector: u64, sectors: u64 },
    Flush,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        5 => (0_u64..200, 1_u64..20).prop_map(|(sector, sectors)| Op::Write { sector, sectors }),
        2 => (0_u64..200, 1_u64..60).prop_map(|(sector, sectors)| Op::Discard { sector, sectors }),
        2 => Just(Op::Flush),
    ]
}

fn disks() -> impl Strategy<Value = CreateParameters> {
    (0_u8..9, 0_u32..5).prop_map(|(kind, shift)| {
        let block_size = 512 << shift;
        match kind {
            0 => CreateParameters::Fixed,
            1..=4 => CreateParameters::Dynamic { block_size },
            _ => CreateParameters::Differencing { block_size, parent: parent() },
        }
    })
}

/// Executes a workload on a new file. Returns the file's initial contents, its operations and the
/// acknowledged changes.
fn history(file: &MemoryFile, ops: &[Op]) -> History {
    let mut history = History::default();
    let mut parent = read_parent;
    let mut disk = disk_on(file, Access::Write, &mut parent).unwrap();
    let size = disk.image.disk_geometry().size_bytes / SECTOR;
    let bounded = |sector: u64, sectors: u64| (sector % size, sectors.min(size - sector % size));
    for (number, op) in (1..).zip(ops) {
        let log_len = file.log().len();
        match *op {
            Op::Write { sector, sectors } => {
                let (sector, sectors) = bounded(sector, sectors);
                let written = (sector..sector + sectors)
                    .map(|position| (log_len, position, number << 24 | position));
                history.changes.extend(written);
                disk.write(sector * SECTOR, &payload(number, sector, sectors)).unwrap();
            }
            Op::Discard { sector, sectors } => {
                let (sector, sectors) = bounded(sector, sectors);
                let retained = disk.discard(range(sector, sectors)).unwrap();
                let is_kept = |position: &u64| {
                    retained
                        .iter()
                        .any(|range| (range.offset()..range.end()).contains(&(position * SECTOR)))
                };
                let freed = (sector..sector + sectors).filter(|position| !is_kept(position));
                history.changes.extend(freed.map(|position| (log_len, position, 0)));
            }
            Op::Flush => {
                disk.flush().unwrap();
                // A commit is durable after its last flush.
                let ops = file.log();
                let durable = ops.iter().rposition(|op| *op == LoggedChange::Flush).unwrap() + 1;
                history.durable.push((durable, history.changes.len()));
            }
        }
    }
    history
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn acknowledged_writes_survive_any_crash(
        disk in disks(),
        sectors in 1_u64..150,
        ops in proptest::collection::vec(op(), 1..14),
        mut rng in any::<u64>().prop_perturb(|_, rng| rng),
    ) {
        let is_differencing = matches!(disk, CreateParameters::Differencing { .. });
        let initial: Vec<u64> =
            (0..sectors).map(|sector| if is_differencing { PARENT_SECTOR | sector } else { 0 }).collect();
        let file = created(disk, sectors * SECTOR);
        file.clear_log();
        let before = file.content();
        let history = history(&file, &ops);
        let file_log = file.log();
        for started in 0..=file_log.len() {
            let crash = Crash { before: &before, changes: &file_log, started_count: started };
            let allowed = history.allowed(started, &initial);
            for (order, fates) in fates(crash.unflushed_count(), &mut rng) {
                let (file, contents) = reopened(crash.content_after(&order, &fates), &allowed)?;
                continue_workload(&file, contents, &mut rng)?;
            }
        }
    }

    #[test]
    fn repair_is_crash_safe(
        block_shift in 0_u32..4,
        ops in proptest::collection::vec(op(), 1..14),
        position in any::<prop::sample::Index>(),
        mut rng in any::<u64>().prop_perturb(|_, rng| rng),
    ) {
        let file = created(CreateParameters::Dynamic { block_size: 512 << block_shift }, 100 * SECTOR);
        file.clear_log();
        let before = file.content();
        let history = history(&file, &ops);
        let file_log = file.log();
        let crash = Crash { before: &before, changes: &file_log, started_count: position.index(file_log.len() + 1) };
        let allowed = history.allowed(crash.started_count, &[0; 100]);
        let (order, fates_of_one) = fates(crash.unflushed_count(), &mut rng).pop().unwrap();
        let mut left = crash.content_after(&order, &fates_of_one).to_vec();
        // Another program may have left the first or the last sector unwritten.
        let lost = if rng.random() { 0 } else { left.len() - 512 };
        left[lost..lost + 512].fill(0);
        let left = FileContent::from(left);
        let file = MemoryFile::new(left.clone());
        drop(open(&file, Access::Write).unwrap());
        let repairs = file.log();
        for started in 0..=repairs.len() {
            let crash = Crash { before: &left, changes: &repairs, started_count: started };
            for (order, fates) in fates(crash.unflushed_count(), &mut rng) {
                let reopened_file = MemoryFile::new(crash.content_after(&order, &fates));
                let mut parent = read_parent;
                let actual = numbers(&mut disk_on(&reopened_file, Access::Write, &mut parent).unwrap());
                prop_assert!(actual.iter().zip(&allowed).all(|(number, allowed)| allowed.contains(number)));
            }
        }
    }

    #[test]
    fn resize_is_crash_safe(
        disk in disks(),
        sectors in 1_u64..150,
        more in 1_u64..400,
        ops in proptest::collection::vec(op(), 1..9),
        mut rng in any::<u64>().prop_perturb(|_, rng| rng),
    ) {
        let file = created(disk, sectors * SECTOR);
        history(&file, &[ops, vec![Op::Flush]].concat());
        let mut parent = read_parent;
        let numbers_before = numbers(&mut disk_on(&file, Access::Read, &mut parent).unwrap());
        let before = file.content();
        file.clear_log();
        resize(&file, (sectors + more) * SECTOR, SizeSource::Creator).unwrap();
        let mut parent = read_parent;
        let numbers_after = numbers(&mut disk_on(&file, Access::Read, &mut parent).unwrap());
        let file_log = file.log();
        for started in 0..=file_log.len() {
            let crash = Crash { before: &before, changes: &file_log, started_count: started };
            for (order, fates) in fates(crash.unflushed_count(), &mut rng) {
                let left = MemoryFile::new(crash.content_after(&order, &fates));
                let mut parent = read_parent;
                let actual = numbers(&mut disk_on(&left, Access::Write, &mut parent).unwrap());
                prop_assert!(actual == numbers_before || actual == numbers_after, "{:x?}", actual);
                prop_assert!(check(&left, SizeSource::Creator).findings.is_empty());
            }
        }
    }
}
