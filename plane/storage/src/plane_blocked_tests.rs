//! Stores whose only user, or one of whose users, does not proceed: changes, further workers, and
//! the state of disks.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use suimon_quantity::{DiskId, StoreId, TimedRateLimit, WorkerId};
use suimon_storage_qos::{
    Capacity, Limits, LimitsSource, PolicyId, PolicyShare, Proposal, StoreSpec,
};

use crate::fakes::{Client, FakeQueue};
use crate::plane_retire_tests::disk;
use crate::plane_stalled_tests::{Ends, LIMIT, STORE, Worker, two_disks, wait_until};
use crate::plane_suspend_tests::{Source, answer, ask, close};
use crate::queue_key::QueueKey;
use crate::work_tests::WRITE;
use crate::{PlaneError, StoragePlane, StoreRole};

const OTHER_STORE: StoreId = StoreId(8);
const STOPPED: TimedRateLimit = TimedRateLimit { leased: None, reserved_iops: 0, later: None };

fn propose(plane: &StoragePlane, store: StoreId, disk: DiskId) {
    let assigned = LimitsSource::Own(Limits::default());
    plane.propose(store, &[Proposal::Disk(disk, assigned)], false).unwrap();
}

/// Creates two workers and two stores. The disk of the first store is on the first worker.
fn one_disk() -> (StoragePlane, Ends) {
    let plane = StoragePlane::new(Arc::new(Source));
    let workers = Ends([0, 1].map(|id| Worker::start(&plane, id)).into());
    for store in [STORE, OTHER_STORE] {
        plane.add_store(store, StoreSpec::default()).unwrap();
        plane.set_capacity(store, Capacity::Declared(10_000));
    }
    propose(&plane, STORE, DiskId(0));
    plane.add_disk(DiskId(0), disk().0, Some(STORE)).unwrap();
    wait_until(|| plane.disks().iter().map(|view| view.worker).eq([WorkerId(0)]));
    (plane, workers)
}

/// Executes `f` on another thread.
fn begin<T: Send + 'static>(
    plane: &StoragePlane,
    f: impl FnOnce(&StoragePlane) -> T + Send + 'static,
) -> Receiver<T> {
    let (plane, (report, reports)) = (plane.clone(), channel());
    std::thread::spawn(move || report.send(f(&plane)));
    reports
}

fn end<T>(reports: &Receiver<T>) -> T {
    reports.recv_timeout(LIMIT).expect("an operation waits for the worker")
}

fn attach(plane: &StoragePlane, disk: DiskId) -> Arc<Mutex<Client>> {
    let queue = FakeQueue::new(64);
    queue.payloads.lock().unwrap().iter_mut().for_each(|payload| *payload = vec![9; 512]);
    let client = Arc::clone(&queue.client);
    plane.attach_queue(disk, QueueKey::Ring(0), Box::new(queue)).unwrap();
    client
}

#[test]
fn a_further_worker_and_all_other_operations_do_not_wait_for_a_blocked_only_user() {
    let (plane, workers) = one_disk();
    workers.0[0].set_stalled(true);
    propose(&plane, STORE, DiskId(1));
    let joining = begin(&plane, |plane| plane.add_disk(DiskId(1), disk().0, Some(STORE)));
    let others = begin(&plane, |plane| {
        propose(plane, OTHER_STORE, DiskId(2));
        plane.add_disk(DiskId(2), disk().0, Some(OTHER_STORE)).unwrap();
        plane.set_cap(OTHER_STORE, Some(STOPPED));
        plane.set_cap(OTHER_STORE, None);
        let client = attach(plane, DiskId(2));
        ask(&client, 1, WRITE, 0);
        drop((plane.disks(), plane.stores()));
        plane.set_cap(STORE, Some(STOPPED));
        plane.set_cap(STORE, None);
        answer(&client)
    });
    assert_eq!(end(&others).0, 1);
    let refused = end(&joining);
    assert!(matches!(refused, Err(PlaneError::WorkerBlocked(WorkerId(0)))), "{refused:?}");
    // Further attempts request nothing of the worker.
    let wakes = workers.0[0].wakes();
    for _ in 0..20 {
        let joining = begin(&plane, |plane| plane.add_disk(DiskId(1), disk().0, Some(STORE)));
        assert!(matches!(end(&joining), Err(PlaneError::WorkerBlocked(_))));
    }
    assert_eq!(workers.0[0].wakes(), wakes);
    // The worker remains the only user, or the disk is added, when it proceeds.
    workers.0[0].set_stalled(false);
    let is_sole = |plane: &StoragePlane| {
        let views = plane.stores();
        views
            .iter()
            .any(|of| of.store == STORE && of.is_current && of.status.role == StoreRole::Sole)
    };
    wait_until(|| is_sole(&plane));
    wait_until(|| plane.add_disk(DiskId(1), disk().0, Some(STORE)).is_ok());
    for id in [DiskId(0), DiskId(1)] {
        let client = attach(&plane, id);
        ask(&client, 7, WRITE, 0);
        assert_eq!(answer(&client).0, 7);
    }
    (0..3).for_each(|id| close(plane.take_disk(DiskId(id)).unwrap()));
}

/// The worker applies the last maximum before it dispatches a request, also if several changes were
/// made meanwhile.
#[test]
fn a_maximum_does_not_wait_for_a_blocked_only_user_and_applies_when_it_proceeds() {
    let policy = PolicyId(1);
    let part = |iops| PolicyShare {
        min_iops: 0,
        max: Some(TimedRateLimit { reserved_iops: iops, ..STOPPED }),
    };
    for is_part in [false, true] {
        let (plane, workers) = one_disk();
        if is_part {
            let spec = suimon_storage_qos::PolicySpec {
                kind: suimon_storage_qos::PolicyKind::Aggregated,
                limits: Limits::default(),
            };
            let assigned = LimitsSource::Policy(policy);
            let proposals = [Proposal::Policy(policy, spec), Proposal::Disk(DiskId(0), assigned)];
            plane.propose(STORE, &proposals, false).unwrap();
        }
        let set = move |plane: &StoragePlane, iops: Option<u64>| {
            if is_part {
                plane.set_policy_share(STORE, policy, iops.map(part));
            } else {
                let cap = |iops| TimedRateLimit { reserved_iops: iops, ..STOPPED };
                plane.set_cap(STORE, iops.map(cap));
            }
        };
        let client = attach(&plane, DiskId(0));
        workers.0[0].set_stalled(true);
        ask(&client, 3, WRITE, 0);
        // The first change waits for a bounded time, and the others not at all.
        end(&begin(&plane, move |plane| set(plane, Some(9000))));
        let wakes = workers.0[0].wakes();
        let changing = begin(&plane, move |plane| {
            (1..500).rev().for_each(|iops| set(plane, Some(iops)));
            set(plane, Some(0));
        });
        end(&changing);
        assert_eq!(workers.0[0].wakes(), wakes, "the changes do not accumulate as commands");
        workers.0[0].set_stalled(false);
        let is_queued = || plane.stores().iter().any(|view| view.status.waiting == 1);
        wait_until(is_queued);
        // The queries end after the worker's next rounds.
        for _ in 0..3 {
            wait_until(|| plane.stores().iter().all(|view| view.is_current));
        }
        assert!(client.lock().unwrap().answers.is_empty(), "{is_part}: the maximum is 0");
        set(&plane, None);
        assert_eq!(answer(&client).0, 3);
        close(plane.take_disk(DiskId(0)).unwrap());
    }
}

/// Returns the delivered operations of each disk, as reported once by a view that is current.
fn delivered(plane: &StoragePlane) -> Option<BTreeMap<DiskId, u64>> {
    let views = plane.stores();
    let reporters: Vec<_> = views.iter().filter(|view| !view.flows.is_empty()).collect();
    let [reporter] = reporters[..] else { return None };
    let flows = reporter.flows.iter().map(|flow| (flow.disk, flow.done.delivered));
    Some(flows.collect()).filter(|_| reporter.is_current)
}

#[test]
fn the_state_of_disks_is_current_while_a_member_of_the_store_is_blocked() {
    for stalled in 0..2 {
        let (plane, workers) = two_disks();
        let other = DiskId(1 - stalled as u32);
        let clients = [DiskId(0), DiskId(1)].map(|id| attach(&plane, id));
        wait_until(|| delivered(&plane).is_some_and(|of| of.len() == 2));
        workers.0[stalled].set_stalled(true);
        for count in 1..4 {
            ask(&clients[1 - stalled], 0, WRITE, 0);
            answer(&clients[1 - stalled]);
            wait_until(|| delivered(&plane).is_some_and(|of| of.get(&other) == Some(&count)));
        }
        // The state is current, too, when the other worker is the only one left.
        workers.0[stalled].set_stalled(false);
        close(plane.take_disk(DiskId(stalled as u32)).unwrap());
        let is_sole = || {
            let views = plane.stores();
            views.len() == 1 && views[0].is_current && views[0].status.role == StoreRole::Sole
        };
        wait_until(is_sole);
        ask(&clients[1 - stalled], 0, WRITE, 0);
        answer(&clients[1 - stalled]);
        wait_until(|| delivered(&plane).is_some_and(|of| of.get(&other) == Some(&4)));
        close(plane.take_disk(other).unwrap());
    }
}
