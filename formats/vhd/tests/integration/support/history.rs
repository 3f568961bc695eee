//! History of acknowledged writes, with which the state after a crash is compared.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::TestRng;
use suimon_image::testing::{FileContent, MemoryFile, WriteOutcome};
use suimon_vhd::{Access, SizeSource, check};

use super::{SECTOR, disk_on, numbers, payload, read_parent};

/// Acknowledged changes, each with the number of file operations that had begun before it.
#[derive(Default)]
pub(crate) struct History {
    /// Changes: number of file operations begun before, sector number, and content of the sector
    /// that is possible from then on.
    pub(crate) changes: Vec<(usize, u64, u64)>,
    /// Commits: number of file operations begun before the commit was durable, and number of
    /// changes that it made durable.
    pub(crate) durable: Vec<(usize, usize)>,
}

impl History {
    /// Returns the permitted contents of each sector after a crash when `started` file operations
    /// had begun. `initial` are the original contents.
    pub(crate) fn allowed(&self, started: usize, initial: &[u64]) -> Vec<BTreeSet<u64>> {
        let durable = self
            .durable
            .iter()
            .filter(|(log_len, _)| *log_len <= started)
            .map(|(_, changes)| *changes);
        let durable = durable.max().unwrap_or(0);
        let mut allowed: Vec<_> = initial.iter().map(|number| BTreeSet::from([*number])).collect();
        for (index, (log_len, sector, number)) in self.changes.iter().enumerate() {
            if *log_len >= started {
                continue;
            }
            let numbers = &mut allowed[*sector as usize];
            if index < durable {
                numbers.clear();
            }
            numbers.insert(*number);
        }
        allowed
    }
}

/// Generates outcomes of a crash for `unsynced` changes of a file: all applied, none, all but one,
/// only one, and random.
pub(crate) fn fates(unsynced: usize, rng: &mut TestRng) -> Vec<(Vec<usize>, Vec<WriteOutcome>)> {
    let in_order: Vec<usize> = (0..unsynced).collect();
    let mut cases = vec![
        (in_order.clone(), vec![WriteOutcome::Persisted; unsynced]),
        (in_order.clone(), vec![WriteOutcome::Lost; unsynced]),
    ];
    for _ in 0..if unsynced == 0 { 0 } else { 3 } {
        let selected = rng.random_range(0..unsynced);
        for (of_one, of_others) in [
            (WriteOutcome::Persisted, WriteOutcome::Lost),
            (WriteOutcome::Lost, WriteOutcome::Persisted),
        ] {
            let mut fates = vec![of_others; unsynced];
            fates[selected] = of_one;
            cases.push((in_order.clone(), fates));
        }
        let fates = (0..unsynced).map(|_| match rng.random_range(0..3) {
            0 => WriteOutcome::Persisted,
            1 => WriteOutcome::Lost,
            _ => WriteOutcome::Torn(rng.random()),
        });
        let fates = fates.collect();
        let mut order = in_order.clone();
        for index in (1..unsynced).rev() {
            order.swap(index, rng.random_range(0..=index));
        }
        cases.push((order, fates));
    }
    cases
}

/// Opens the image after a crash and asserts that the contents are permitted; then repairs it,
/// checks its consistency and asserts the same contents. Returns the contents.
pub(crate) fn reopened(
    content: FileContent,
    allowed: &[BTreeSet<u64>],
) -> Result<(MemoryFile, Vec<u64>), TestCaseError> {
    let cookie = content.read_padded(content.len() - 512, 8);
    prop_assert_eq!(cookie, b"conectix", "the file ends with a footer");
    let file = MemoryFile::new(content);
    let read = |access| {
        let mut parent = read_parent;
        let mut disk = disk_on(&file, access, &mut parent)
            .map_err(|error| TestCaseError::fail(format!("{access:?}: {error}")))?;
        Ok::<_, TestCaseError>(numbers(&mut disk))
    };
    let sectors = read(Access::Read)?;
    for (sector, (number, allowed)) in sectors.iter().zip(allowed).enumerate() {
        prop_assert!(
            allowed.contains(number),
            "sector {}: {:x}, not {:x?}",
            sector,
            number,
            allowed
        );
    }
    prop_assert_eq!(&read(Access::Write)?, &sectors);
    let report = check(&file, SizeSource::Creator);
    prop_assert!(report.findings.is_empty(), "{:?}", report.findings);
    Ok((file, sectors))
}

/// Executes further writes after a crash, and asserts that newly allocated blocks contain no former
/// data.
pub(crate) fn continue_workload(
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
