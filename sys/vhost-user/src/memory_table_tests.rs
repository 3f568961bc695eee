use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use super::*;

const BYTES: u64 = 0x10_0000;

fn file() -> OwnedFd {
    let fd = memfd_create("vm", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&fd, 4 * BYTES).unwrap();
    fd
}

fn region(index: u64) -> RegionInfo {
    RegionInfo {
        guest_addr: index * BYTES,
        size: BYTES,
        user_addr: 0x7000_0000 + index * BYTES,
        mmap_offset: index * BYTES,
    }
}

fn count(table: &MemoryTable) -> usize {
    table.memory().map_or(0, |memory| memory.regions().len())
}

/// Three queue pairs as in QEMU 7.2: each one adds all regions, and later each one removes them.
#[test]
fn changes_repeated_by_queue_pairs_are_applied_once() {
    let (mut table, fd) = (MemoryTable::default(), file());
    let mut changes = Vec::new();
    for _pair in 0..3 {
        changes.push(table.add(region(0), &fd).unwrap());
        changes.push(table.add(region(1), &fd).unwrap());
    }
    assert_eq!(changes.iter().filter(|change| **change == MemoryChange::NewMemory).count(), 2);
    let first: Vec<_> = (0..3).map(|_| table.remove(region(1)).unwrap()).collect();
    assert_eq!(first, [MemoryChange::NewMemory, MemoryChange::None, MemoryChange::None]);
    assert_eq!(count(&table), 1);
    // All repeated removals have been counted, so a further one is an error.
    let error = table.remove(region(1)).unwrap_err().to_string();
    assert!(error.contains("REM_MEM_REG: no memory region of 0x100000 bytes"), "{error}");
}

/// The first queue pair removes the region and adds it again before the second one removes it.
#[test]
fn a_late_removal_does_not_hit_a_region_that_came_back() {
    let (mut table, fd) = (MemoryTable::default(), file());
    for _pair in 0..2 {
        table.add(region(2), &fd).unwrap();
    }
    assert_eq!(table.remove(region(2)).unwrap(), MemoryChange::NewMemory);
    assert_eq!(table.add(region(2), &fd).unwrap(), MemoryChange::NewMemory);
    assert_eq!(table.remove(region(2)).unwrap(), MemoryChange::None);
    assert_eq!(table.add(region(2), &fd).unwrap(), MemoryChange::None);
    assert_eq!(count(&table), 1);
}

/// A region is added at the address of another one before the second queue pair has removed the
/// latter.
#[test]
fn a_region_can_replace_one_that_others_still_use() {
    let (mut table, fd) = (MemoryTable::default(), file());
    let larger = RegionInfo { size: 2 * BYTES, ..region(0) };
    for _pair in 0..2 {
        table.add(region(0), &fd).unwrap();
    }
    table.remove(region(0)).unwrap();
    table.add(larger, &fd).unwrap();
    table.remove(region(0)).unwrap();
    table.add(larger, &fd).unwrap();
    assert_eq!(count(&table), 1);
}

#[test]
fn a_table_that_is_refused_leaves_nothing() {
    let (mut table, fd) = (MemoryTable::default(), file());
    table.add(region(0), &fd).unwrap();
    let invalid = RegionInfo { size: 0, ..region(1) };
    assert!(table.replace(&[(region(0), file()), (invalid, file())]).is_err());
    assert_eq!(count(&table), 0);
    table.replace(&[(region(0), file()), (region(1), file())]).unwrap();
    assert_eq!(count(&table), 2);
}

/// The number of counted repetitions is bounded for any sequence of messages.
#[test]
fn repeats_are_bounded() {
    let (mut table, fd) = (MemoryTable::default(), file());
    for round in 0..2 * REGIONS_MAX as u64 {
        let info = RegionInfo { guest_addr: round * BYTES, ..region(0) };
        table.add(info, &fd).unwrap();
        table.add(info, &fd).unwrap();
        table.remove(info).unwrap();
    }
    assert!(table.expected_removals.len() <= REGIONS_MAX);
}
