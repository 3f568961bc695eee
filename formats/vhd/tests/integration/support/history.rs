//! What a disk was told, and whether a crash left that.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::TestRng;
use suimon_image::testing::{Fate, MemoryFile};
use suimon_vhd::{Access, SizeRule, check};

use super::{SECTOR, disk_on, numbers, payload, read_parent};

/// What the disk was told, by the number of changes of the file that had been begun by then.
#[derive(Default)]
pub(crate) struct History {
    /// When, which sector, what it may hold from then on.
    pub(crate) changes: Vec<(usize, u64, u64)>,
    /// From when on all changes before were acknowledged as durable: that moment, and how
    /// many they were.
    pub(crate) durable: Vec<(usize, usize)>,
}

impl History {
    /// What a sector may hold if a crash comes when `begun` changes of the file were begun.
    pub(crate) fn allowed(&self, begun: usize, initial: &[u64]) -> Vec<BTreeSet<u64>> {
        let durable =
            self.durable.iter().filter(|(when, _)| *when <= begun).map(|(_, changes)| *changes);
        let durable = durable.max().unwrap_or(0);
        let mut allowed: Vec<_> = initial.iter().map(|number| BTreeSet::from([*number])).collect();
        for (nth, (when, sector, number)) in self.changes.iter().enumerate() {
            if *when >= begun {
                continue;
            }
            let numbers = &mut allowed[*sector as usize];
            if nth < durable {
                numbers.clear();
            }
            numbers.insert(*number);
        }
        allowed
    }
}

/// What became of changes: all there, none, all but one, one alone, or by chance.
pub(crate) fn fates(unsynced: usize, rng: &mut TestRng) -> Vec<(Vec<usize>, Vec<Fate>)> {
    let in_order: Vec<usize> = (0..unsynced).collect();
    let mut cases = vec![
        (in_order.clone(), vec![Fate::Kept; unsynced]),
        (in_order.clone(), vec![Fate::Lost; unsynced]),
    ];
    for _ in 0..if unsynced == 0 { 0 } else { 3 } {
        let one = rng.random_range(0..unsynced);
        for (of_one, of_others) in [(Fate::Kept, Fate::Lost), (Fate::Lost, Fate::Kept)] {
            let mut fates = vec![of_others; unsynced];
            fates[one] = of_one;
            cases.push((in_order.clone(), fates));
        }
        let fates = (0..unsynced).map(|_| match rng.random_range(0..3) {
            0 => Fate::Kept,
            1 => Fate::Lost,
            _ => Fate::Torn(rng.random()),
        });
        let fates = fates.collect();
        let mut order = in_order.clone();
        for at in (1..unsynced).rev() {
            order.swap(at, rng.random_range(0..=at));
        }
        cases.push((order, fates));
    }
    cases
}

/// The image of a file opens, and holds what is allowed; then it is repaired, sound, and
/// holds the same. Returns what it holds.
pub(crate) fn reopened(
    bytes: Vec<u8>,
    allowed: &[BTreeSet<u64>],
) -> Result<(MemoryFile, Vec<u64>), TestCaseError> {
    prop_assert_eq!(&bytes[bytes.len() - 512..][..8], b"conectix", "the file ends with a footer");
    let file = MemoryFile::new(bytes);
    let read = |access| {
        let mut parent = read_parent;
        let mut disk = disk_on(&file, access, &mut parent)
            .map_err(|error| TestCaseError::fail(format!("{access:?}: {error}")))?;
        Ok::<_, TestCaseError>(numbers(&mut disk))
    };
    let found = read(Access::Read)?;
    for (sector, (number, allowed)) in found.iter().zip(allowed).enumerate() {
        prop_assert!(
            allowed.contains(number),
            "sector {}: {:x}, not {:x?}",
            sector,
            number,
            allowed
        );
    }
    prop_assert_eq!(&read(Access::Write)?, &found);
    let report = check(&file, SizeRule::Creator);
    prop_assert!(report.findings.is_empty(), "{:?}", report.findings);
    Ok((file, found))
}

/// Blocks that are found after a crash have nothing of before in them.
pub(crate) fn goes_on(
    file: &MemoryFile,
    mut model: Vec<u64>,
    rng: &mut TestRng,
) -> Result<(), TestCaseError> {
    let mut parent = read_parent;
    let mut disk = disk_on(file, Access::Write, &mut parent).unwrap();
    for number in 0x7000..0x7006 {
        let sector = rng.random_range(0..model.len() as u64);
        disk.write(sector * SECTOR, &payload(number, sector, 1)).unwrap();
        model[sector as usize] = number << 24 | sector;
    }
    disk.flush().unwrap();
    prop_assert_eq!(numbers(&mut disk), model);
    Ok(())
}
