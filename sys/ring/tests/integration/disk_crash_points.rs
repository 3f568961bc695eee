//! Tests of a process that dies while it serves a disk's ring with requests in flight, at every
//! point at which the state it leaves differs: the next process with the in-flight region receives
//! exactly the requests not completed, in the order in which they were made available.

use crate::disk::{DISK_BYTES, DISK_FEATURES, MemoryDisk, Wanted, facts};
use crate::remains::{Remains, SIZE, crash_everywhere, records, region_of};
use crate::rig::any::AnyDriver;
use crate::rig::packed::RING_PACKED;
use crate::rig::{Vm, call_line};
use suimon_ports::{ArmResult, DiskQueue};
use suimon_ring::{DiskRing, RingSetup};
use vm_memory::{Bytes, GuestAddress};

const EVENT_IDX: u64 = 1 << 29;

/// Makes a request that writes to this sector available.
fn offer(driver: &mut AnyDriver<'_>, sector: u64) {
    let request = Wanted::write(sector, vec![sector as u8; 512]);
    let (mut lens, mut readable) = request.usual();
    if sector % 3 == 0 {
        lens = vec![16, 200, 312, 1];
        readable = 3;
    }
    let bytes = [request.readable(), vec![0xee]].concat();
    driver.add_request(&lens, readable, sector % 4 == 1, &bytes).unwrap();
}

/// Returns the sector to which the request with the head `head` writes.
fn sector_of(vm: &Vm, driver: &AnyDriver<'_>, head: u16) -> u64 {
    vm.memory.read_obj(GuestAddress(driver.pieces(head)[0].addr + 8)).unwrap()
}

/// Receives requests from the queue, at most `max`, and returns their sectors.
fn receive_sectors(disk: &mut MemoryDisk, queue: &mut dyn DiskQueue, max: usize) -> Vec<u64> {
    let count = disk.under_way.len();
    while disk.receive(queue, max - (disk.under_way.len() - count)) > 0 {}
    disk.under_way.iter().skip(count).map(|request| request.range.offset() / 512).collect()
}

fn survives(features: u64) -> usize {
    let vm = Vm::new(SIZE);
    let mut driver = AnyDriver::new(&vm, SIZE, features);
    let (call, _far) = call_line();
    let mut setup = driver.setup(features, &call);
    let (region, file) = region_of(&[], features);
    let mut queue =
        DiskRing::with_tracking(vm.map(), &setup, records(&region), facts()).unwrap().into_queue();
    let mut disk = MemoryDisk::new(DISK_BYTES);
    // Some requests are in flight out of order, so that the region is not in its initial state.
    for sector in 0..4 {
        offer(&mut driver, sector);
    }
    assert_eq!(receive_sectors(&mut disk, &mut *queue, 4), [0, 1, 2, 3]);
    for index in [2, 0] {
        disk.carry_out(&mut *queue, index);
    }
    queue.flush().unwrap();
    let completed: Vec<_> =
        driver.reap_any_order().iter().map(|used| sector_of(&vm, &driver, used.head)).collect();
    assert_eq!(completed, [2, 0]);
    for sector in 10..14 {
        offer(&mut driver, sector);
    }
    // 1 and 3 are in flight, and three of 10 to 13 are taken.
    let snapshots = crash_everywhere(&vm, &file, || {
        assert_eq!(receive_sectors(&mut disk, &mut *queue, 2), [10, 11]);
        for index in [2, 1] {
            disk.carry_out(&mut *queue, index);
        }
        queue.flush().unwrap();
        assert_eq!(receive_sectors(&mut disk, &mut *queue, 1), [12]);
        disk.carry_out(&mut *queue, 0);
        queue.flush().unwrap();
    });
    // The ring belongs to the process that died.
    core::mem::forget(queue);
    // The front-end does not have the ring's position.
    setup.base = if features & RING_PACKED == 0 { 0x1234 } else { 0x8000 };
    let points = snapshots.len();
    let mut ends = Vec::new();
    for (index, remains) in snapshots.iter().enumerate() {
        ends.push(finish(&driver, remains, features, &setup));
        if index % 3 == 2 {
            // The second process dies while it recovers.
            let (region, file) = region_of(&remains.region, features);
            let memory = remains.vm.map();
            let nested = crash_everywhere(&remains.vm, &file, || {
                let ring = DiskRing::with_tracking(memory, &setup, records(&region), facts());
                let mut queue = ring.unwrap().into_queue();
                let mut disk = MemoryDisk::new(DISK_BYTES);
                receive_sectors(&mut disk, &mut *queue, 3);
                while let Some(last) = disk.under_way.len().checked_sub(1) {
                    disk.carry_out(&mut *queue, last);
                }
                queue.flush().unwrap();
                core::mem::forget(queue);
            });
            for remains in nested {
                finish(&driver, &remains, features, &setup);
            }
        }
    }
    assert_eq!(
        (ends.first(), ends.last()),
        (Some(&6), Some(&3)),
        "the number of remaining requests"
    );
    points
}

/// Acts as the next process: receives the requests that were not returned to the guest, oldest
/// first, and completes them in another order. Returns their number.
fn finish(driver: &AnyDriver<'_>, remains: &Remains, features: u64, setup: &RingSetup) -> usize {
    let vm = remains.vm.copy();
    let mut driver = driver.in_copy(&vm);
    let mut remaining: Vec<_> = [1, 3, 10, 11, 12, 13].into();
    for used in driver.reap_any_order() {
        let sector = sector_of(&vm, &driver, used.head);
        let index = remaining.iter().position(|other| *other == sector);
        remaining.remove(index.expect("completed twice"));
    }
    let (region, _file) = region_of(&remains.region, features);
    let memory = vm.map();
    let ring = DiskRing::with_tracking(memory.clone(), setup, records(&region), facts()).unwrap();
    let state = ring.state();
    let mut queue = ring.into_queue();
    let mut disk = MemoryDisk::new(DISK_BYTES);
    assert_eq!(receive_sectors(&mut disk, &mut *queue, 100), remaining);
    while let Some(last) = disk.under_way.len().checked_sub(1) {
        disk.carry_out(&mut *queue, last);
    }
    for sector in &remaining {
        let offset = *sector as usize * 512;
        assert!(disk.bytes[offset..offset + 512].iter().all(|byte| u64::from(*byte) == *sector));
    }
    queue.flush().unwrap();
    assert_eq!(driver.reap_any_order().len(), remaining.len());
    assert!(region.queue(1).unwrap().was_in_use_at_crash());
    drop(queue);
    assert!(
        !region.queue(1).unwrap().was_in_use_at_crash(),
        "the part is not empty after the drop"
    );
    // The front-end determines the position again.
    let setup =
        RingSetup { base: setup.features.base_from_vring(state.vring_base()), ..setup.clone() };
    let ring = DiskRing::with_tracking(memory, &setup, records(&region), facts()).unwrap();
    let mut queue = ring.into_queue();
    for sector in 20..25 {
        offer(&mut driver, sector);
    }
    assert_eq!(receive_sectors(&mut disk, &mut *queue, 100), [20, 21, 22, 23, 24]);
    while let Some(last) = disk.under_way.len().checked_sub(1) {
        disk.carry_out(&mut *queue, last);
    }
    queue.flush().unwrap();
    assert_eq!(driver.reap_any_order().len(), 5);
    remaining.len()
}

#[test]
fn a_split_ring_continues_after_a_kill_at_any_point() {
    for features in [DISK_FEATURES, DISK_FEATURES | EVENT_IDX] {
        let points = survives(features);
        assert!(points > 20, "only {points} crash points");
    }
}

#[test]
fn a_packed_ring_continues_after_a_kill_at_any_point() {
    for features in [DISK_FEATURES, DISK_FEATURES | EVENT_IDX] {
        let points = survives(features | RING_PACKED);
        assert!(points > 60, "only {points} crash points");
    }
}

/// A ring that is dropped with requests in flight leaves them to the next ring.
#[test]
fn requests_in_flight_when_a_ring_is_dropped_are_repeated() {
    for features in [DISK_FEATURES, DISK_FEATURES | RING_PACKED] {
        let vm = Vm::new(SIZE);
        let mut driver = AnyDriver::new(&vm, SIZE, features);
        let (call, _far) = call_line();
        let setup = driver.setup(features, &call);
        let (region, _file) = region_of(&[], features);
        let open = || DiskRing::with_tracking(vm.map(), &setup, records(&region), facts()).unwrap();
        let mut disk = MemoryDisk::new(DISK_BYTES);
        let mut queue = open().into_queue();
        for sector in 0..4 {
            offer(&mut driver, sector);
        }
        assert_eq!(receive_sectors(&mut disk, &mut *queue, 3), [0, 1, 2]);
        disk.carry_out(&mut *queue, 1);
        drop(queue);
        assert_eq!(driver.reap_any_order().len(), 1, "a completed request was not returned");
        assert!(region.queue(1).unwrap().was_in_use_at_crash());
        let mut disk = MemoryDisk::new(DISK_BYTES);
        let mut queue = open().into_queue();
        assert_eq!(receive_sectors(&mut disk, &mut *queue, 100), [0, 2, 3]);
        for index in [2, 0, 0] {
            disk.carry_out(&mut *queue, index);
        }
        drop(queue);
        assert_eq!(driver.reap_any_order().len(), 3);
        assert!(!region.queue(1).unwrap().was_in_use_at_crash());
    }
}

/// Requests that the worker returns unexecuted are received again before others, also by the next
/// ring. While a migration logs written pages, they are not left to the next ring, because the
/// destination host has no information about them.
#[test]
fn withdrawn_requests_are_received_again() {
    for features in [DISK_FEATURES, DISK_FEATURES | RING_PACKED] {
        let vm = Vm::new(SIZE);
        let mut driver = AnyDriver::new(&vm, SIZE, features);
        let (call, _far) = call_line();
        let setup = driver.setup(features, &call);
        let (region, _file) = region_of(&[], features);
        let open = || DiskRing::with_tracking(vm.map(), &setup, records(&region), facts()).unwrap();
        let mut queue = open().into_queue();
        assert!(queue.redelivers_after_drop());
        for sector in 0..4 {
            offer(&mut driver, sector);
        }
        let mut requests = Vec::new();
        assert_eq!(queue.receive(3, &mut requests).unwrap(), 3);
        assert!(queue.requeue(requests[2]) && queue.requeue(requests[0]));
        assert_eq!(queue.arm(), ArmResult::Pending);
        let mut repeated = Vec::new();
        assert_eq!(queue.receive(1, &mut repeated).unwrap(), 1);
        assert_eq!(queue.receive(8, &mut repeated).unwrap(), 2);
        let sectors: Vec<u64> =
            repeated.iter().map(|request| request.range.offset() / 512).collect();
        assert_eq!(sectors, [2, 0, 3]);
        assert_eq!(repeated[..2], [requests[2], requests[0]]);
        // The next ring has all of them, in the order in which they were offered.
        assert!(queue.requeue(repeated[1]));
        drop(queue);
        let mut disk = MemoryDisk::new(DISK_BYTES);
        let mut queue = open().into_queue();
        assert_eq!(receive_sectors(&mut disk, &mut *queue, 100), [0, 1, 2, 3]);
        for _ in 0..4 {
            disk.carry_out(&mut *queue, 0);
        }
        drop(queue);
        assert_eq!(driver.reap_any_order().len(), 4);
        let plain = DiskRing::new(vm.map(), &setup, facts());
        assert!(plain.is_ok_and(|ring| !ring.into_queue().redelivers_after_drop()));
    }
}
