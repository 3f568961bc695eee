//! Tests that a worker allocates no memory per request, whether or not requests wait for their
//! store, and whether or not several workers share the store. The global allocator counts the
//! allocations.
#![allow(unsafe_code, reason = "a global allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use suimon_disk_tests::{NullIo, hollow_client, hollow_disk, never_readable};
use suimon_quantity::{DiskId, Iops, StoreId, Time, WorkerId};
use suimon_storage_engine::{StorageEngine, StoreDiskSlot};
use suimon_storage_qos::{Capacity, Limits, LimitsSource, Proposal, Store, StoreSpec};

struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is forwarded to the system allocator, which fulfils the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const STORE: StoreId = StoreId(1);

/// Returns the number of allocations of `workers` workers while `depth` requests per client are
/// outstanding, and the number of requests completed in the same time.
fn allocations(workers: usize, depth: u32, max: u64) -> (u64, u64) {
    let mut now = Time::from_ns(1 << 40);
    let mut store = Store::new(Capacity::Declared(10_000_000));
    let limits =
        Limits { min_iops: Iops::new(10.min(max)), max_iops: Iops::new(max), ..Limits::default() };
    let disks = 0..8 * workers as u32;
    let proposals: Vec<Proposal> = disks
        .clone()
        .map(|disk| Proposal::SetDisk(DiskId(disk), LimitsSource::Own(limits)))
        .collect();
    let changes = store.apply(&proposals, false).unwrap();
    let mut shared = None;
    let mut benchmarks: Vec<StorageEngine> = (0..workers)
        .map(|index| {
            let mut work = StorageEngine::new(Box::new(NullIo::ending(16).unwrap()));
            work.set_worker(WorkerId(index as u16));
            let spec = StoreSpec { depth_min: depth, depth_max: depth, ..StoreSpec::default() };
            work.add_store(now, STORE, spec, shared.as_ref());
            if shared.is_none() {
                changes.iter().for_each(|change| work.apply_store_change(now, STORE, *change));
            }
            if workers > 1 && shared.is_none() {
                shared = work.share_store(now, STORE);
            }
            work
        })
        .collect();
    let wake = Arc::new(never_readable().unwrap());
    for number in disks {
        let work = &mut benchmarks[number as usize % workers];
        let location = StoreDiskSlot { store: STORE, slot: store.slot(DiskId(number)).unwrap() };
        let added = work.add_disk(hollow_disk(), Some(location)).unwrap();
        work.add_queue(added, Box::new(hollow_client(16, &wake))).unwrap();
    }
    let mut turns = |count: u64| {
        for _ in 0..count {
            now = now + Duration::from_micros(16);
            for work in &mut benchmarks {
                work.poll(now);
            }
        }
        let all_counters =
            benchmarks.iter().flat_map(|work| (0..8).filter_map(|disk| work.counters(disk)));
        all_counters.map(|counters| counters.reads.requests).sum::<u64>()
    };
    let warm = turns(20_000);
    let before = COUNT.get();
    let completed = turns(20_000) - warm;
    (COUNT.get() - before, completed)
}

#[test]
fn requests_allocate_nothing() {
    for workers in [1, 2, 3] {
        // No request waits; the device is full; maximums limit the rate.
        for (depth, max) in [(4096, 0), (16, 0), (16, 3000)] {
            let (count, completed) = allocations(workers, depth, max);
            assert!(completed > 5000, "{completed}");
            assert!(count == 0, "{workers}, {depth}, {max}: {count} for {completed}");
        }
    }
}
