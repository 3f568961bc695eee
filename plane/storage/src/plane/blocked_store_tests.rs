//! Stores that are used by a worker that does not proceed, alone or with others: changes of their
//! limits, further workers, and the state of disks.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use suimon_ports::WorkerTaskFactory;
use suimon_quantity::{DiskId, StoreId, TimedRateLimit, WorkerId};
use suimon_storage_engine::StoreRole;
use suimon_storage_engine::testing::fake_queue::{Client, FakeQueue};
use suimon_storage_engine::testing::requests::WRITE;
use suimon_storage_qos::{
    Capacity, Limits, LimitsSource, PolicyId, PolicyShare, Proposal, StoreSpec,
};

use crate::command::queue_key::QueueKey;
use crate::command::wait_limits::SHARE_WAIT_MAX;
use crate::plane::test_workers::{
    FakeIoSource, STORE, StopOnDrop, TEST_TIMEOUT, Worker, close, plane_with_long_waits, raw_disk,
    submit, take_and_close, two_disks, wait_for_completion, wait_until,
};
use crate::{PlaneError, PlaneNotice, StoragePlane, VIEW_WAIT_MAX};

const OTHER_STORE: StoreId = StoreId(8);
const STOPPED: TimedRateLimit =
    TimedRateLimit { leased_iops_until: None, reserved_iops: 0, next_iops_from: None };

fn propose(plane: &StoragePlane, store: StoreId, disk: DiskId) {
    let assigned = LimitsSource::Own(Limits::default());
    plane.apply_proposals(store, &[Proposal::SetDisk(disk, assigned)], false).unwrap();
}

/// Creates two workers and two stores. The disk of the first store is on the first worker.
fn one_disk() -> (StoragePlane, StopOnDrop) {
    one_disk_on(StoragePlane::new(Arc::new(FakeIoSource)))
}

fn one_disk_on(plane: StoragePlane) -> (StoragePlane, StopOnDrop) {
    let workers = StopOnDrop([0, 1].map(|id| Worker::start(&plane, id)).into());
    for store in [STORE, OTHER_STORE] {
        plane.add_store(store, StoreSpec::default()).unwrap();
        plane.set_capacity(store, Capacity::Declared(10_000));
    }
    propose(&plane, STORE, DiskId(0));
    plane.add_disk(DiskId(0), raw_disk().0, Some(STORE)).unwrap();
    wait_until(|| plane.disks().iter().map(|view| view.worker).eq([WorkerId(0)]));
    (plane, workers)
}

/// Executes `f` on another thread. Returns the channel for its result.
fn begin<T: Send + 'static>(
    plane: &StoragePlane,
    f: impl FnOnce(&StoragePlane) -> T + Send + 'static,
) -> Receiver<T> {
    let (plane, (report, reports)) = (plane.clone(), channel());
    std::thread::spawn(move || report.send(f(&plane)));
    reports
}

fn end<T>(reports: &Receiver<T>) -> T {
    reports.recv_timeout(TEST_TIMEOUT).expect("an operation waits for the worker")
}

fn attach(plane: &StoragePlane, disk: DiskId) -> Arc<Mutex<Client>> {
    let queue = FakeQueue::new(64);
    queue.payloads.lock().unwrap().iter_mut().for_each(|payload| *payload = vec![9; 512]);
    let client = Arc::clone(&queue.client);
    plane.attach_queue(disk, QueueKey::Ring(0), Box::new(queue)).unwrap();
    client
}

#[test]
fn other_stores_do_not_wait_while_a_further_worker_waits_for_a_blocked_only_user() {
    let (plane, workers) = one_disk_on(plane_with_long_waits());
    workers.0[0].set_stalled(true);
    propose(&plane, STORE, DiskId(1));
    let wakes = workers.0[0].wakes();
    let joining = begin(&plane, |plane| plane.add_disk(DiskId(1), raw_disk().0, Some(STORE)));
    // The request for the scheduler has been sent, so that the store waits.
    wait_until(|| workers.0[0].wakes() > wakes);
    let others = begin(&plane, |plane| {
        propose(plane, OTHER_STORE, DiskId(2));
        plane.add_disk(DiskId(2), raw_disk().0, Some(OTHER_STORE)).unwrap();
        plane.set_cap(OTHER_STORE, Some(STOPPED));
        plane.set_cap(OTHER_STORE, None);
        plane.begin_mirror(DiskId(2), None).unwrap();
        plane.end_mirror(DiskId(2)).unwrap();
        let client = attach(plane, DiskId(2));
        submit(&client, 1, WRITE, 0);
        drop((plane.disks(), plane.stores()));
        wait_for_completion(&client)
    });
    assert_eq!(end(&others).0, 1);
    workers.0[0].set_stalled(false);
    end(&joining).unwrap();
    (0..3).for_each(|id| take_and_close(&plane, DiskId(id)));
}

fn add(plane: &StoragePlane, disk: u32, store: StoreId) -> Result<(), PlaneError> {
    let added = plane.add_disk(DiskId(disk), raw_disk().0, Some(store));
    added.map_err(|refused| refused.error)
}

#[test]
fn a_further_worker_waits_once_for_a_blocked_only_user() {
    let (plane, workers) = one_disk();
    workers.0[0].set_stalled(true);
    propose(&plane, STORE, DiskId(1));
    plane.0.wait_limits.take_expired();
    let result = end(&begin(&plane, |plane| add(plane, 1, STORE)));
    assert!(matches!(result, Err(PlaneError::WorkerBlocked(WorkerId(0)))), "{result:?}");
    assert_eq!(plane.0.wait_limits.take_expired(), [SHARE_WAIT_MAX]);
    // A maximum does not wait for the worker then.
    end(&begin(&plane, |plane| {
        plane.set_cap(STORE, Some(STOPPED));
        plane.set_cap(STORE, None);
    }));
    // Further attempts send no request to the worker.
    let wakes = workers.0[0].wakes();
    for _ in 0..20 {
        let result = end(&begin(&plane, |plane| add(plane, 1, STORE)));
        assert!(matches!(result, Err(PlaneError::WorkerBlocked(_))));
    }
    assert_eq!(workers.0[0].wakes(), wakes);
    assert_eq!(plane.0.wait_limits.take_expired(), []);
    // The worker remains the only user, or the disk is added, when it proceeds.
    workers.0[0].set_stalled(false);
    let is_sole = |plane: &StoragePlane| {
        let views = plane.stores();
        views.iter().any(|view| {
            view.store == STORE && view.is_current && view.status.role == StoreRole::Sole
        })
    };
    wait_until(|| is_sole(&plane));
    wait_until(|| add(&plane, 1, STORE).is_ok());
    for id in [DiskId(0), DiskId(1)] {
        let client = attach(&plane, id);
        submit(&client, 7, WRITE, 0);
        assert_eq!(wait_for_completion(&client).0, 7);
    }
    (0..2).for_each(|id| take_and_close(&plane, DiskId(id)));
}

/// The changes wait for the lock of the store, and not once more for the worker.
#[test]
fn changes_of_a_store_wait_for_its_blocked_worker_together() {
    let (plane, workers) = one_disk();
    workers.0[0].set_stalled(true);
    propose(&plane, STORE, DiskId(1));
    plane.0.wait_limits.take_expired();
    let wakes = workers.0[0].wakes();
    let joining = begin(&plane, |plane| add(plane, 1, STORE));
    wait_until(|| workers.0[0].wakes() > wakes);
    let others: Vec<_> = (0..3)
        .map(|number| {
            begin(&plane, move |plane| {
                plane.set_cap(STORE, Some(TimedRateLimit { reserved_iops: number, ..STOPPED }));
                add(plane, 2 + number as u32, STORE)
            })
        })
        .collect();
    assert!(matches!(end(&joining), Err(PlaneError::WorkerBlocked(WorkerId(0)))));
    // These disks have no limits on the store.
    others.iter().for_each(|other| drop(end(other).unwrap_err()));
    assert_eq!(plane.0.wait_limits.take_expired(), [SHARE_WAIT_MAX]);
    workers.0[0].set_stalled(false);
    take_and_close(&plane, DiskId(0));
}

#[test]
fn waits_for_a_blocked_worker_do_not_add_up_over_its_stores() {
    let (plane, workers) = one_disk();
    propose(&plane, OTHER_STORE, DiskId(2));
    add(&plane, 2, OTHER_STORE).unwrap();
    wait_until(|| plane.move_disk(DiskId(2), WorkerId(0)).is_ok());
    propose(&plane, STORE, DiskId(1));
    propose(&plane, OTHER_STORE, DiskId(3));
    workers.0[0].set_stalled(true);
    plane.0.wait_limits.take_expired();
    for (disk, store) in [(1, STORE), (3, OTHER_STORE)] {
        let result = end(&begin(&plane, move |plane| add(plane, disk, store)));
        assert!(matches!(result, Err(PlaneError::WorkerBlocked(WorkerId(0)))), "{result:?}");
        end(&begin(&plane, move |plane| plane.set_cap(store, Some(STOPPED))));
    }
    assert_eq!(plane.0.wait_limits.take_expired(), [SHARE_WAIT_MAX]);
    workers.0[0].set_stalled(false);
    for (disk, store) in [(1, STORE), (3, OTHER_STORE)] {
        plane.set_cap(store, None);
        wait_until(|| add(&plane, disk, store).is_ok());
    }
    (0..4).for_each(|id| take_and_close(&plane, DiskId(id)));
}

/// The disk leaves its worker by itself, or because the worker retires. The blocked worker is then
/// the only other user of the store.
#[test]
fn a_disk_moves_while_another_user_of_its_store_is_blocked() {
    for retires in [false, true] {
        let plane = StoragePlane::new(Arc::new(FakeIoSource));
        let workers = StopOnDrop([0, 1, 2].map(|id| Worker::start(&plane, id)).into());
        plane.add_store(STORE, StoreSpec::default()).unwrap();
        plane.set_capacity(STORE, Capacity::Declared(10_000));
        for id in 0..2 {
            propose(&plane, STORE, DiskId(id));
            wait_until(|| add(&plane, id, STORE).is_ok());
        }
        let workers_of_disks =
            || plane.disks().iter().map(|view| view.worker.0).collect::<Vec<_>>();
        wait_until(|| workers_of_disks() == [0, 1]);
        workers.0[1].set_stalled(true);
        end(&begin(&plane, move |plane| match retires {
            true => assert_eq!(plane.retire_workers(&[WorkerId(0)]), []),
            false => plane.move_disk(DiskId(0), WorkerId(2)).unwrap(),
        }));
        let mut notices = std::iter::from_fn(|| plane.poll_notice());
        assert!(notices.all(|notice| !matches!(notice, PlaneNotice::DiskLost { .. })));
        let client = attach(&plane, DiskId(0));
        submit(&client, 5, WRITE, 0);
        assert_eq!(wait_for_completion(&client).0, 5);
        wait_until(|| workers_of_disks() == [2, 1]);
        workers.0[1].set_stalled(false);
        (0..2).for_each(|id| take_and_close(&plane, DiskId(id)));
    }
}

#[test]
fn the_counters_of_a_disk_remain_when_it_moves_from_the_only_user() {
    let (plane, _workers) = one_disk_on(plane_with_long_waits());
    let client = attach(&plane, DiskId(0));
    for target in [1, 0] {
        submit(&client, 0, WRITE, 0);
        wait_for_completion(&client);
        plane.move_disk(DiskId(0), WorkerId(target)).unwrap();
    }
    let is_sole = || {
        let views = plane.stores();
        views.len() == 1 && views[0].is_current && views[0].status.role == StoreRole::Sole
    };
    wait_until(is_sole);
    wait_until(|| delivered(&plane) == Some(BTreeMap::from([(DiskId(0), 2)])));
    take_and_close(&plane, DiskId(0));
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
            let proposals =
                [Proposal::SetPolicy(policy, spec), Proposal::SetDisk(DiskId(0), assigned)];
            plane.apply_proposals(STORE, &proposals, false).unwrap();
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
        submit(&client, 3, WRITE, 0);
        // The first change waits for a bounded time, and the others not at all.
        plane.0.wait_limits.take_expired();
        end(&begin(&plane, move |plane| set(plane, Some(9000))));
        let expired_waits = plane.0.wait_limits.take_expired();
        assert!(
            !expired_waits.is_empty() && expired_waits.iter().sum::<Duration>() <= VIEW_WAIT_MAX,
            "{expired_waits:?}"
        );
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
        assert!(client.lock().unwrap().completions.is_empty(), "{is_part}: the maximum is 0");
        set(&plane, None);
        assert_eq!(wait_for_completion(&client).0, 3);
        take_and_close(&plane, DiskId(0));
    }
}

/// Returns the delivered operations of each disk if each disk is reported exactly once and the
/// report is current; otherwise `None`.
fn delivered(plane: &StoragePlane) -> Option<BTreeMap<DiskId, u64>> {
    let views = plane.stores();
    let reporters: Vec<_> = views.iter().filter(|view| !view.flows.is_empty()).collect();
    let [reporter] = reporters[..] else { return None };
    let flows = reporter.flows.iter().map(|flow| (flow.disk, flow.counters.delivered_operations));
    Some(flows.collect()).filter(|_| reporter.is_current)
}

#[test]
fn the_state_of_disks_is_current_while_a_member_of_the_store_is_blocked() {
    for stalled in 0..2 {
        let (plane, workers) = two_disks();
        let other = DiskId(1 - stalled as u32);
        let clients = [DiskId(0), DiskId(1)].map(|id| attach(&plane, id));
        wait_until(|| {
            delivered(&plane).is_some_and(|delivered_counts| delivered_counts.len() == 2)
        });
        workers.0[stalled].set_stalled(true);
        for count in 1..4 {
            submit(&clients[1 - stalled], 0, WRITE, 0);
            wait_for_completion(&clients[1 - stalled]);
            wait_until(|| {
                delivered(&plane)
                    .is_some_and(|delivered_counts| delivered_counts.get(&other) == Some(&count))
            });
        }
        // The state is current even when the other worker is the only one left.
        workers.0[stalled].set_stalled(false);
        take_and_close(&plane, DiskId(stalled as u32));
        let is_sole = || {
            let views = plane.stores();
            views.len() == 1 && views[0].is_current && views[0].status.role == StoreRole::Sole
        };
        wait_until(is_sole);
        submit(&clients[1 - stalled], 0, WRITE, 0);
        wait_for_completion(&clients[1 - stalled]);
        wait_until(|| {
            delivered(&plane)
                .is_some_and(|delivered_counts| delivered_counts.get(&other) == Some(&4))
        });
        close(plane.remove_disk(other).unwrap());
    }
}
