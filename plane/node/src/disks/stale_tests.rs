//! Disks whose worker does not respond, so that their state is the last known one.

use std::collections::BTreeSet;

use suimon_contract::{ErrorCode, EventKind, MeasureStoreRequest, StorageState};
use suimon_quantity::{DiskId, StoreId, Time, WorkerId};
use suimon_storage::{PlaneNotice, StoreView};
use suimon_storage_engine::{StoreRole, WorkerStoreStatus};
use suimon_storage_qos::{DeliveryStats, DiskQosCounters, DiskQosStatus, Limits, LimitsOwner};

use crate::DiskFileJob;
use crate::disks::QueuedWrites;
use crate::testing::{DEADLINE, DISK_STORE, Harness, host, name, wait_until};

fn harness() -> Harness {
    let harness = Harness::with_store();
    let text = "[[store]]\nname = \"fast\"\npath = \"/srv/fast\"\n[[disk]]\nname = \"data\"\n\
                store = \"fast\"\nformat = \"vhdx\"\nsize_bytes = 8388608\n\
                nbd = { socket = \"/run/nbd.sock\" }\n";
    harness.apply_ok(&host(text));
    harness
}

/// Returns true for each of these that is marked: the store, its disk, and the disk in `suimon
/// top`.
fn marks(harness: &Harness) -> [bool; 3] {
    let (store, disk) = (harness.node.store("fast").unwrap(), harness.node.disk("data").unwrap());
    let top = harness.node.top().disks.remove(0);
    [store.stale, disk.stale, top.stale]
}

/// Returns the view of a worker with the disk.
fn view(worker: u16, depth: u32, is_current: bool) -> StoreView {
    let flow = DiskQosStatus {
        disk: DiskId(0),
        owner: LimitsOwner::Disk(DiskId(0)),
        limits: Limits::default(),
        waiting: 1,
        in_flight: 1,
        counters: DiskQosCounters::default(),
        short: DeliveryStats::default(),
        long: DeliveryStats::default(),
    };
    let status = WorkerStoreStatus {
        role: StoreRole::Shared,
        waiting: 1,
        in_flight_of_worker: 1,
        in_flight_of_all_workers: depth,
        depth_limit: 8,
        mean_latency_ns: 1,
        estimate: None,
    };
    let (worker, now, flows) = (WorkerId(worker), Time::ZERO, vec![flow]);
    StoreView { store: StoreId(0), worker, status, read_at: now, flows, is_current }
}

#[test]
fn an_outdated_state_is_marked() {
    let harness = harness();
    let stale = || {
        let (store, disk) =
            (harness.node.store("fast").unwrap(), harness.node.disk("data").unwrap());
        (marks(&harness), disk.qos.unwrap().stale, store.queue_depth)
    };
    harness.disks.set_views(vec![view(0, 5, true)]);
    assert_eq!(stale(), ([false; 3], false, 5));
    harness.disks.set_stale(true);
    harness.disks.set_views(vec![view(0, 5, false)]);
    assert_eq!(stale(), ([true; 3], true, 5));
    // Another worker of the store responds.
    let other = StoreView { flows: Vec::new(), ..view(0, 5, false) };
    harness.disks.set_views(vec![other, view(1, 3, true)]);
    assert_eq!(stale(), ([false, true, true], false, 3));
}

/// The first disk of a store was added to a worker that has not responded since.
#[test]
fn a_state_that_was_never_reported_is_marked_while_the_disk_is_in_service() {
    let harness = harness();
    let stale = || marks(&harness);
    harness.disks.set_views(vec![view(0, 5, true)]);
    assert_eq!(stale(), [false; 3]);
    harness.disks.set_views(Vec::new());
    harness.disks.set_unseen(true);
    assert_eq!(stale(), [true; 3]);
    // A disk that is out of service has no state.
    harness.disks.lose("no io_uring");
    wait_until("no state is marked", || stale() == [false; 3]);
}

#[test]
fn queued_writes_are_unknown_while_the_worker_does_not_respond() {
    let harness = harness();
    let disks = BTreeSet::from([name("data")]);
    let queued = || harness.node.shared().disks.queued_writes(&disks);
    assert_eq!(queued(), QueuedWrites::Absent);
    for set in [FakeState::Stale, FakeState::Unseen] {
        set.apply(&harness, true);
        assert_eq!(queued(), QueuedWrites::Unknown(name("data")));
        set.apply(&harness, false);
        assert_eq!(queued(), QueuedWrites::Absent);
    }
    harness.disks.fill(Some(1));
    assert_eq!(queued(), QueuedWrites::Queued(name("data")));
}

#[test]
fn operations_on_unused_disks_are_rejected_while_the_clients_are_unknown() {
    let harness = harness();
    let refuse = || {
        let job = harness.node.start_disk_job(&name("data"), DiskFileJob::Merge);
        let measurement = harness.node.measure_store(&name("fast"), MeasureStoreRequest::default());
        [job.err(), measurement.err()].map(|error| error.map(|error| (error.code, error.message)))
    };
    for set in [FakeState::Stale, FakeState::Unseen] {
        set.apply(&harness, true);
        for error in refuse() {
            let (code, message) = error.expect("the connections are not known");
            assert_eq!(code, ErrorCode::Conflict);
            assert!(message.contains("does not respond"), "{message}");
        }
        set.apply(&harness, false);
    }
    let operation = harness.node.start_disk_job(&name("data"), DiskFileJob::Merge).unwrap();
    harness.node.wait_operation(operation.id, DEADLINE).unwrap();
}

/// Ways in which the plane does not know the state of a disk.
#[derive(Clone, Copy)]
enum FakeState {
    Stale,
    Unseen,
}

impl FakeState {
    fn apply(self, harness: &Harness, is_applied: bool) {
        match self {
            Self::Stale => harness.disks.set_stale(is_applied),
            Self::Unseen => harness.disks.set_unseen(is_applied),
        }
    }
}

/// The disk was opened again on a worker that has not reported it yet.
#[test]
fn a_disk_whose_worker_does_not_respond_is_not_lost() {
    let harness = harness();
    harness.disks.set_unseen(true);
    let disk = DiskId(0);
    harness.disks.report(PlaneNotice::DiskLost { disk, reason: "no io_uring".to_owned() });
    let (offset, detail, suppressed) = (None, "cannot read".to_owned(), 0);
    harness.disks.report(PlaneNotice::DiskFault { disk, offset, detail, suppressed });
    wait_until("the later notice is handled", || {
        !harness.events(EventKind::DiskIoFailed.id()).is_empty()
    });
    assert!(harness.events(EventKind::DiskFailed.id()).is_empty());
    harness.disks.set_unseen(false);
    assert_eq!(harness.node.disk("data").unwrap().state, StorageState::Ready);
}

/// The images are those of a file that existed before.
#[test]
fn images_of_a_disk_that_no_worker_can_serve_are_closed() {
    let harness = harness();
    let config = harness.node.config();
    let without = suimon_contract::HostConfig { disks: Vec::new(), ..config.clone() };
    harness.apply_ok(&without);
    let is_clean = || {
        let files = harness.disks.store(DISK_STORE).files();
        let bytes = files.values().next().unwrap();
        // LogGuid of both headers.
        [64 << 10, 128 << 10].iter().all(|header| bytes[header + 48..header + 64] == [0; 16])
    };
    assert!(is_clean());
    harness.disks.block_workers(true);
    let operation = harness.apply(&config);
    let error = operation.error.expect("no worker serves the disk");
    assert!(error.message.contains("worker 0 does not respond"), "{}", error.message);
    assert!(is_clean(), "the image was not closed");
    harness.disks.block_workers(false);
    harness.apply_ok(&config);
    assert!(!is_clean());
}
