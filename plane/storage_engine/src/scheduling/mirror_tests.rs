//! Storage QoS during disk copies.

use suimon_ports::DiskOp;
use suimon_quantity::DiskId;
use suimon_storage_qos::{Limits, LimitsSource, Proposal, StoreSpec, Weight};

use crate::StoreDiskSlot;
use crate::testing::fake_queue::FakeQueue;
use crate::tests::device_bench::{Bench, Load, SECOND, STORE, deep, limits};

/// Weight of a disk copy: a quarter of the default weight.
const COPY_WEIGHT: u16 = 25;

/// Load of a disk copy's reads.
const COPYING: Load = Load { op: DiskOp::Read, bytes: 256 << 10, depth: 8 };

/// Returns the identifier of the copy of a disk in Storage QoS.
const fn copied(disk: DiskId) -> DiskId {
    DiskId(disk.0 | 1 << 31)
}

/// Adds a client with the load of a disk copy. Returns the number of the client.
fn copy(bench: &mut Bench, disk: u32, load: Load) -> usize {
    let copied_disk = copied(DiskId(disk));
    let limits = Limits { weight: Weight::new(COPY_WEIGHT).unwrap(), ..Limits::default() };
    bench.propose(&[Proposal::SetDisk(copied_disk, LimitsSource::Own(limits))]);
    let location = StoreDiskSlot { store: STORE, slot: bench.slot(copied_disk.0) };
    let (worker, number) = bench.disks[&disk];
    bench.engines[worker].set_mirror(number, Some(location), None);
    let queue = FakeQueue::new(load.depth as usize);
    bench.add_queue(disk, load, queue, true)
}

/// Reads of a copy are not counted for the guest. They use the capacity that the guest leaves.
#[test]
fn a_guest_keeps_its_maximum_while_its_disk_is_copied() {
    for workers in [1, 2] {
        let mut bench = Bench::new(workers, &deep(), 32, 200_000);
        let worker = workers - 1;
        bench.add_disk(0, 1, limits(0, 0));
        bench.add_disk(worker, 0, limits(0, 1000));
        let guest = bench.add_client(0, Load::reads(4096, 32));
        let mirror = copy(&mut bench, 0, COPYING);
        bench.run(2 * SECOND);
        let delivered = bench.clients[guest].completion_count;
        assert!((1960..=2100).contains(&delivered), "{delivered} of 2000 with {workers}");
        // 8 requests at a time with 200 us each, less the latency of messages.
        let copied = bench.clients[mirror].completion_count;
        assert!(copied > 50_000, "{copied} with {workers}");
    }
}

/// The target disk may have any maximum, because no client uses it yet.
#[test]
fn writes_of_a_copy_are_not_limited_by_the_maximum_of_the_target() {
    let mut bench = Bench::new(1, &deep(), 32, 200_000);
    bench.add_disk(0, 0, limits(0, 10));
    let load = Load { op: DiskOp::Write { is_durable: false }, ..COPYING };
    let mirror = copy(&mut bench, 0, load);
    bench.run(SECOND);
    assert!(
        bench.clients[mirror].completion_count > 35_000,
        "{}",
        bench.clients[mirror].completion_count
    );
}

#[test]
fn a_minimum_is_met_beside_disks_that_are_copied() {
    // 8 requests at a time with 200 us each are 40 000 per second.
    let mut bench = Bench::new(1, &StoreSpec::default(), 8, 200_000);
    bench.add_disk(0, 0, limits(10_000, 0));
    let guest = bench.add_client(0, Load::reads(4096, 32));
    let mut mirrors = vec![copy(&mut bench, 0, COPYING)];
    for disk in 1..5 {
        bench.add_disk(0, disk, limits(0, 0));
        mirrors.push(copy(&mut bench, disk, COPYING));
    }
    // Runs until the store has determined the queue depth of the device.
    bench.run(SECOND);
    let before = bench.clients[guest].completion_count;
    bench.run(2 * SECOND);
    let delivered = bench.clients[guest].completion_count - before;
    assert!(delivered >= 2 * 9_800, "{delivered} of 20 000");
    let copied: Vec<u64> =
        mirrors.iter().map(|client| bench.clients[*client].completion_count).collect();
    assert!(copied.iter().all(|count| *count > 1000), "{copied:?}");
}

/// The connection of a copy ends while its requests are queued, and its slot is removed afterwards.
#[test]
fn a_mirror_that_ends_leaves_nothing_behind() {
    let mut bench = Bench::new(1, &StoreSpec { depth_max: 2, ..StoreSpec::default() }, 2, 200_000);
    bench.add_disk(0, 0, limits(0, 500));
    let guest = bench.add_client(0, Load::reads(4096, 8));
    let mirror = copy(&mut bench, 0, Load { depth: 64, ..COPYING });
    bench.run(SECOND / 10);
    let queue = bench.clients[mirror].queue;
    bench.clients[mirror].load = None;
    bench.engines[0].close_queue(queue);
    bench.run(SECOND / 10);
    assert_eq!(bench.engines[0].poll_closed_queue().map(|(number, _)| number), Some(queue));
    let (_, number) = bench.disks[&0];
    bench.engines[0].set_mirror(number, None, None);
    bench.propose(&[Proposal::RemoveDisk(copied(DiskId(0)))]);
    let before = bench.clients[guest].completion_count;
    bench.run(2 * SECOND);
    let delivered = bench.clients[guest].completion_count - before;
    assert!((980..=1020).contains(&delivered), "{delivered} of 1000");
    bench.clients[guest].load = None;
    bench.run(SECOND);
    assert_eq!(bench.open(), 0);
    let status = bench.engines[0].store_status(STORE).unwrap();
    assert_eq!((status.waiting, status.in_flight_of_worker), (0, 0));
}

/// The copy ends although the device does not complete its requests. They are removed from the
/// queue depth of the store when the device completes them.
#[test]
fn requests_of_a_mirror_that_ended_during_a_stall_are_accounted_for() {
    for workers in [1, 2] {
        let mut bench = Bench::new(workers, &deep(), 32, 3 * SECOND);
        let worker = workers - 1;
        bench.add_disk(worker, 0, limits(0, 0));
        let mirror = copy(&mut bench, 0, COPYING);
        bench.run(SECOND / 10);
        let queue = bench.clients[mirror].queue;
        bench.clients[mirror].load = None;
        bench.engines[worker].close_queue(queue);
        let (_, number) = bench.disks[&0];
        bench.engines[worker].set_mirror(number, None, None);
        bench.propose(&[Proposal::RemoveDisk(copied(DiskId(0)))]);
        bench.run(5 * SECOND);
        assert_eq!(
            bench.engines[worker].poll_closed_queue().map(|(number, _)| number),
            Some(queue)
        );
        let status = bench.engines[worker].store_status(STORE).unwrap();
        assert_eq!((status.waiting, status.in_flight_of_worker), (0, 0), "{workers}");
        assert_eq!(
            bench.engines[0].store_status(STORE).unwrap().in_flight_of_all_workers,
            0,
            "{workers}"
        );
    }
}
