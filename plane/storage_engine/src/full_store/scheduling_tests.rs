//! Storage QoS of disks on full stores, and of requests that end without being executed.

use std::time::Duration;

use suimon_image::{DiskGeometry, LinearImage};
use suimon_image_files::{DiskLayer, LayerStack};
use suimon_ports::testing::NullFile;
use suimon_ports::{DiskOp, DiskRequest};
use suimon_quantity::DiskId;
use suimon_storage_qos::{
    Capacity, DiskQosStatus, DiskSlot, Limits, LimitsSource, Proposal, Store, StoreSpec,
};

use crate::disk::qos_slot::EngineDiskSlot;
use crate::full_store::FullStorePolicy;
use crate::request::RequestFullState;
use crate::testing::fake_queue::FakeQueue;
use crate::testing::image_kinds::KINDS;
use crate::testing::requests::{SIZE, WRITE, range};
use crate::tests::device_bench::{self, Load, SECOND, STORE, deep, limits};
use crate::tests::disk_bench::Bench;

const BLOCK: u64 = 64 << 10;

/// Disk with Storage QoS limits on a store that is full. Its first block is allocated.
struct OnFullStore {
    bench: Bench,
    store: Store,
    slot: DiskSlot,
}

impl OnFullStore {
    fn new(spec: StoreSpec) -> Self {
        let mut bench = Bench::with_queue(KINDS[0], (KINDS[0].create)(), 5, 64, FakeQueue::new(64));
        let wait = FullStorePolicy { ring_wait: None, client_wait: Duration::ZERO };
        bench.engine.set_full_store_policy(bench.disk, wait);
        bench.run(WRITE, range(0, BLOCK), vec![1; BLOCK as usize]);
        bench.faults.lock().unwrap().is_full = true;
        assert!(bench.engine.add_store(bench.now, STORE, spec, None));
        let store = Store::new(Capacity::Declared(1_000_000));
        let mut full_store = Self { bench, store, slot: DiskSlot(0) };
        full_store.set_limits(Limits::default());
        full_store.slot = full_store.store.slot(DiskId(0)).unwrap();
        let number = full_store.bench.engine.store_number(STORE).unwrap();
        let location = Some(EngineDiskSlot { store_number: number, slot: full_store.slot });
        full_store.bench.engine.disks.get_mut(full_store.bench.disk).unwrap().client_slot =
            location;
        full_store.bench.engine.queues.get_mut(full_store.bench.queue).unwrap().qos_slot = location;
        full_store
    }

    fn set_limits(&mut self, limits: Limits) {
        let proposal = Proposal::SetDisk(DiskId(0), LimitsSource::Own(limits));
        for change in self.store.apply(&[proposal], true).unwrap() {
            self.bench.engine.apply_store_change(self.bench.now, STORE, change);
        }
    }

    /// Submits a write; blocks other than the first one need space.
    fn write(&self, tag: u32, block: u64) {
        let payload = vec![2; BLOCK as usize];
        self.bench.submit(tag, WRITE, range(block * BLOCK, BLOCK), payload);
    }

    fn pass(&mut self, time: Duration) {
        let end = self.bench.now + time;
        while self.bench.now < end {
            self.bench.now = self.bench.now + Duration::from_millis(100);
            for _ in 0..64 {
                self.bench.poll();
            }
        }
    }

    fn view(&self) -> DiskQosStatus {
        self.bench.engine.disk_view(self.bench.now, STORE, self.slot).unwrap()
    }
}

#[test]
fn attempts_that_find_no_space_are_not_counted_as_delivered() {
    let mut full_store = OnFullStore::new(StoreSpec::default());
    full_store.pass(Duration::from_secs(1));
    for tag in 0..4 {
        full_store.write(tag, SIZE / BLOCK - 1 - u64::from(tag));
    }
    full_store.pass(Duration::from_secs(10));
    assert_eq!(full_store.bench.engine.full_store_view(full_store.bench.disk).unwrap().queued, 4);
    let view = full_store.view();
    assert_eq!((view.short.delivered_operations, view.short.time.completed_requests), (0, 0));
    let status = full_store.bench.engine.store_status(STORE).unwrap();
    assert_eq!(
        (status.in_flight_of_worker, status.in_flight_of_all_workers, status.mean_latency_ns),
        (0, 0, 0)
    );
}

#[test]
fn a_disk_that_waits_for_space_does_not_wait_for_its_worker() {
    let mut full_store = OnFullStore::new(StoreSpec::default());
    full_store.write(0, SIZE / BLOCK - 1);
    full_store.pass(Duration::from_millis(500));
    full_store.bench.engine.handle_unscheduled(Duration::from_millis(50));
    full_store.pass(Duration::from_millis(100));
    let time = full_store.view().short.time;
    assert_eq!((time.unscheduled_ns, time.unserviced_ns), (0, 0));
}

/// If the scheduler has no room for a repetition, the repetition waits. Otherwise it would start
/// without being charged.
#[test]
fn a_repetition_waits_for_room_in_the_scheduler() {
    let mut full_store = OnFullStore::new(StoreSpec { waiting_max: 1, ..StoreSpec::default() });
    full_store.write(0, SIZE / BLOCK - 1);
    full_store.pass(Duration::from_millis(200));
    assert_eq!(full_store.bench.engine.full_store_view(full_store.bench.disk).unwrap().queued, 1);
    // Each of these writes is charged as 8 operations, so the maximum permits one in 8 s.
    full_store.set_limits(limits(0, 1));
    full_store.bench.faults.lock().unwrap().is_stalled = true;
    for tag in 1..4 {
        full_store.write(tag, 0);
    }
    full_store.pass(Duration::from_millis(300));
    assert_eq!(full_store.bench.engine.store_status(STORE).unwrap().waiting, 1, "there is no room");
    full_store.pass(Duration::from_secs(3));
    let requests = &full_store.bench.engine.requests;
    let has_begun = requests.numbers().filter_map(|number| requests.get(number)).any(|request| {
        matches!(request.full_state, RequestFullState::Repeating(_))
            && request.charged_slot.is_none()
            && request.remaining_parts > 0
    });
    assert!(!has_begun, "a repetition began regardless of the maximum");
}

/// A refused request has left its phase, even if other requests are in the device.
#[test]
fn a_refused_discard_takes_no_further_time() {
    let mut bench = device_bench::Bench::new(1, &deep(), 32, 100 * SECOND);
    bench.set_limits(0, limits(0, 0));
    let size = 1 << 30;
    let shape = DiskGeometry {
        size_bytes: size,
        logical_sector_bytes: 512,
        physical_sector_bytes: 4096,
        block_bytes: 0,
    };
    let image = Box::new(LinearImage::new(shape, 0, true));
    let file = std::sync::Arc::new(NullFile { number: 0, len: size });
    bench.add_of_spec(0, 0, LayerStack { layers: vec![DiskLayer { image, file }] });
    let client = bench.add_client(0, Load::reads(4096, 1));
    bench.run(SECOND / 10);
    let requests = [DiskRequest { tag: 0, op: DiskOp::Discard, range: range(0, 4096) }];
    bench.clients[client].client.lock().unwrap().requests.extend(requests);
    for _ in 0..20 {
        bench.device().now += SECOND / 10;
        let now = bench.time();
        bench.engines[0].wake_queue(bench.clients[client].queue);
        bench.engines[0].poll(now);
    }
    assert_eq!(bench.clients[client].client.lock().unwrap().completions.len(), 1);
    let view = bench.engines[0].disk_view(bench.time(), STORE, bench.slot(0)).unwrap();
    assert_eq!(view.short.time.discard_ns, 0);
}
