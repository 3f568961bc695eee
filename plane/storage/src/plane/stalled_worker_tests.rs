//! Control of a store's disks while one of the store's workers does not proceed.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use suimon_ports::WorkerTaskFactory;
use suimon_quantity::{DiskId, Iops, TimedRateLimit, WorkerId};
use suimon_storage_engine::StoreRole;
use suimon_storage_engine::testing::fake_queue::FakeQueue;
use suimon_storage_engine::testing::requests::WRITE;
use suimon_storage_qos::{Capacity, Limits, LimitsSource, Proposal, StoreSpec};

use crate::command::queue_key::QueueKey;
use crate::plane::test_workers::{
    STORE, StopOnDrop, TEST_TIMEOUT, Worker, close, plane_with_long_waits, raw_disk, submit,
    two_disks, wait_for_completion, wait_until,
};
use crate::{StoragePlane, StoreView, VIEW_WAIT_MAX};

#[test]
fn changes_and_the_removal_of_a_disk_do_not_wait_for_a_stalled_worker() {
    for stalled in 0..2 {
        let plane = plane_with_long_waits();
        let workers = StopOnDrop([0, 1].map(|id| Worker::start(&plane, id)).into());
        plane.add_store(STORE, StoreSpec::default()).unwrap();
        plane.set_capacity(STORE, Capacity::Declared(10_000));
        for id in [DiskId(0), DiskId(1)] {
            let assigned = LimitsSource::Own(Limits::default());
            plane.apply_proposals(STORE, &[Proposal::SetDisk(id, assigned)], false).unwrap();
            plane.add_disk(id, raw_disk().0, Some(STORE)).unwrap();
        }
        let workers_of_disks = || plane.disks().iter().map(|view| view.worker).collect::<Vec<_>>();
        wait_until(|| workers_of_disks() == [WorkerId(0), WorkerId(1)]);
        workers.0[stalled].set_stalled(true);
        let other = DiskId(1 - stalled as u32);
        let (report, reports) = channel();
        let of_thread = plane.clone();
        std::thread::spawn(move || {
            let cap = TimedRateLimit::default();
            of_thread.set_cap(STORE, Some(cap));
            of_thread.set_cap(STORE, None);
            let queue = FakeQueue::new(4);
            queue.payloads.lock().unwrap().iter_mut().for_each(|payload| *payload = vec![9; 512]);
            let client = Arc::clone(&queue.client);
            of_thread.attach_queue(other, QueueKey::Ring(0), Box::new(queue)).unwrap();
            submit(&client, 1, WRITE, 0);
            let outcome = wait_for_completion(&client);
            close(of_thread.remove_disk(other).unwrap());
            report.send(outcome).unwrap();
        });
        let outcome =
            reports.recv_timeout(TEST_TIMEOUT).expect("no operation waits for the worker");
        assert_eq!(outcome.0, 1);
        workers.0[stalled].set_stalled(false);
        // The worker proceeds, and becomes the only user of the store.
        let remaining_disk = DiskId(stalled as u32);
        wait_until(|| plane.disks().iter().map(|view| view.disk).eq([remaining_disk]));
        // The state may be the last known one, if the worker has not replied yet.
        wait_until(|| plane.add_disk(other, raw_disk().0, Some(STORE)).is_ok());
        for id in [remaining_disk, other] {
            close(plane.remove_disk(id).unwrap());
        }
    }
}

#[test]
fn a_status_query_returns_the_last_known_state_of_a_stalled_worker() {
    for stalled in 0..2 {
        let (plane, workers) = two_disks();
        let are_current = |plane: &StoragePlane| {
            let (disks, stores) = (plane.disks(), plane.stores());
            let disks: Vec<bool> = disks.iter().map(|view| view.is_current).collect();
            (disks, stores.iter().map(|view| view.is_current).collect::<Vec<bool>>())
        };
        wait_until(|| are_current(&plane) == (vec![true; 2], vec![true; 2]));
        let worker = &workers.0[stalled];
        worker.set_stalled(true);
        let of_thread = plane.clone();
        let (report, reports) = channel();
        std::thread::spawn(move || report.send(of_thread.disks()).unwrap());
        reports.recv_timeout(TEST_TIMEOUT).expect("a query waits for the worker");
        // Further queries send no request to the worker, and do not wait for it.
        let wakes = worker.wakes();
        (0..200).for_each(|_| drop((plane.disks(), plane.stores())));
        assert_eq!(worker.wakes(), wakes);
        wait_until(|| {
            let expected: Vec<bool> = (0..2).map(|worker| worker != stalled).collect();
            are_current(&plane) == (expected.clone(), expected)
        });
        assert_eq!(plane.stores()[stalled].worker, WorkerId(stalled as u16));
        workers.0[stalled].set_stalled(false);
        wait_until(|| are_current(&plane) == (vec![true; 2], vec![true; 2]));
        [DiskId(0), DiskId(1)].into_iter().for_each(|id| close(plane.remove_disk(id).unwrap()));
    }
}

#[test]
fn a_status_query_waits_for_all_blocked_workers_together() {
    let (plane, workers) = two_disks();
    workers.0.iter().for_each(|worker| worker.set_stalled(true));
    plane.0.wait_limits.take_expired();
    drop((plane.disks(), plane.stores()));
    let expired_waits = plane.0.wait_limits.take_expired();
    assert!(
        !expired_waits.is_empty() && expired_waits.iter().sum::<Duration>() <= VIEW_WAIT_MAX,
        "{expired_waits:?}"
    );
    (0..20).for_each(|_| drop((plane.disks(), plane.stores())));
    assert_eq!(plane.0.wait_limits.take_expired(), []);
    workers.0.iter().for_each(|worker| worker.set_stalled(false));
    [DiskId(0), DiskId(1)].into_iter().for_each(|id| close(plane.remove_disk(id).unwrap()));
}

/// The placeholders of the retiring worker's disk may take longer to be charged than the worker may
/// take to return its grants.
#[test]
fn a_worker_that_retires_with_placeholders_leaves_the_store() {
    let (plane, workers) = two_disks();
    let slow = Limits { max_iops: Iops::new(10), ..Limits::default() };
    plane
        .apply_proposals(STORE, &[Proposal::SetDisk(DiskId(0), LimitsSource::Own(slow))], false)
        .unwrap();
    let queue = FakeQueue::new(16);
    queue.payloads.lock().unwrap().iter_mut().for_each(|payload| *payload = vec![9; 512]);
    let client = Arc::clone(&queue.client);
    plane.attach_queue(DiskId(0), QueueKey::Ring(0), Box::new(queue)).unwrap();
    (0..8).for_each(|tag| submit(&client, tag, WRITE, 0));
    let is_queued = |view: &StoreView| view.worker == WorkerId(0) && view.status.waiting > 0;
    wait_until(|| plane.stores().iter().any(is_queued));
    // The worker ends when it has retired, as the runtime does it.
    let (of_thread, first) = (plane.clone(), Arc::clone(&workers.0[0]));
    let (report, reports) = channel();
    std::thread::spawn(move || {
        assert_eq!(of_thread.retire_workers(&[WorkerId(0)]), []);
        first.end();
        report.send(()).unwrap();
    });
    reports.recv_timeout(TEST_TIMEOUT).expect("the worker retires");
    wait_until(|| plane.disks().iter().map(|view| view.worker).eq([WorkerId(1); 2]));
    // The remaining worker proceeds as the only user.
    wait_until(|| plane.stores().iter().all(|view| view.status.role == StoreRole::Sole));
    [DiskId(0), DiskId(1)].into_iter().for_each(|id| close(plane.remove_disk(id).unwrap()));
}

/// The worker waits for grants for queued requests of a disk that does not exist any more.
#[test]
fn a_disk_that_is_removed_with_queued_requests_leaves_nothing_to_its_worker() {
    let (plane, _workers) = two_disks();
    let slow = Limits { max_iops: Iops::new(1), ..Limits::default() };
    plane
        .apply_proposals(STORE, &[Proposal::SetDisk(DiskId(0), LimitsSource::Own(slow))], false)
        .unwrap();
    let attach = |disk: DiskId| {
        let queue = FakeQueue::new(64);
        queue.payloads.lock().unwrap().iter_mut().for_each(|payload| *payload = vec![9; 512]);
        let client = Arc::clone(&queue.client);
        plane.attach_queue(disk, QueueKey::Ring(0), Box::new(queue)).unwrap();
        client
    };
    let client = attach(DiskId(0));
    (0..60).for_each(|tag| submit(&client, tag, WRITE, 0));
    let is_queued = |view: &StoreView| view.worker == WorkerId(0) && view.status.waiting > 0;
    wait_until(|| plane.stores().iter().any(is_queued));
    close(plane.remove_disk(DiskId(0)).unwrap());
    // A minute of placeholders is left.
    plane.apply_proposals(STORE, &[Proposal::RemoveDisk(DiskId(0))], true).unwrap();
    wait_until(|| plane.stores().iter().all(|view| view.status.role == StoreRole::Sole));
    // The next disk has the same slot and the same worker.
    let assigned = LimitsSource::Own(Limits::default());
    plane.apply_proposals(STORE, &[Proposal::SetDisk(DiskId(2), assigned)], false).unwrap();
    wait_until(|| plane.add_disk(DiskId(2), raw_disk().0, Some(STORE)).is_ok());
    let client = attach(DiskId(2));
    submit(&client, 0, WRITE, 0);
    wait_for_completion(&client);
    [DiskId(1), DiskId(2)].into_iter().for_each(|id| close(plane.remove_disk(id).unwrap()));
}
