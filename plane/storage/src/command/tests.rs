//! Commands to workers that do not respond: commands whose value is taken back, and commands that a
//! worker has begun to execute.

use std::io;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use suimon_image_files::{DiskLayer, LayerStack};
use suimon_ports::{FileIo, FileIoFactory, WorkerTaskFactory};
use suimon_quantity::{DiskId, StoreId, WorkerId};
use suimon_storage_engine::testing::fake_file::FakeFile;
use suimon_storage_engine::testing::fake_io::{FakeIo, FaultInjection};
use suimon_storage_engine::testing::fake_queue::{Client, FakeQueue};
use suimon_storage_engine::testing::image_kinds::VHDX;
use suimon_storage_engine::testing::requests::WRITE;
use suimon_storage_engine::{FullStorePolicy, StoreRole};
use suimon_storage_qos::{Capacity, Limits, LimitsSource, Proposal, StoreSpec};

use crate::command::Command;
use crate::command::queue_key::QueueKey;
use crate::command::reply::PassResult;
use crate::command::wait_limits::COMMAND_WAIT_MAX;
use crate::plane::moving::PassDiskError;
use crate::plane::test_workers::{
    STORE, StopOnDrop, TEST_TIMEOUT, Worker, close, submit, take_and_close, wait_for_completion,
    wait_until,
};
use crate::{AddDiskError, PlaneError, PlaneNotice, StoragePlane};

const DISK: DiskId = DiskId(0);

/// Maximum time that the next command waits after a wait has expired. It begins later than the
/// first wait by the time in which a prompt reply is expected, and by delays of a loaded machine.
const REST_MAX: Duration = Duration::from_millis(500);

/// I/O of the workers in the order of their first disks, with faults that the test controls.
#[derive(Default)]
struct Source(Mutex<Vec<Arc<Mutex<FaultInjection>>>>);

impl FileIoFactory for Source {
    fn open(&self) -> io::Result<Box<dyn FileIo>> {
        let io = FakeIo::new(7, 16);
        self.0.lock().unwrap().push(Arc::clone(&io.faults));
        Ok(Box::new(io))
    }
}

/// Plane with workers, and a store's disks.
struct Bench {
    source: Arc<Source>,
    plane: StoragePlane,
    workers: StopOnDrop,
}

impl Bench {
    fn new(workers: u16) -> Self {
        let source = Arc::new(Source::default());
        let plane = StoragePlane::new(Arc::clone(&source) as _);
        let workers = StopOnDrop((0..workers).map(|id| Worker::start(&plane, id)).collect());
        let bench = Self { source, plane, workers };
        bench.add_store(STORE);
        bench
    }

    fn add_store(&self, store: StoreId) {
        self.plane.add_store(store, StoreSpec::default()).unwrap();
        self.plane.set_capacity(store, Capacity::Declared(10_000));
    }

    /// Adds a disk with a VHDX image, which is clean only after it was closed.
    fn try_add(&self, disk: DiskId, store: StoreId) -> (Result<(), AddDiskError>, Arc<FakeFile>) {
        let assigned = LimitsSource::Own(Limits::default());
        self.plane.apply_proposals(store, &[Proposal::SetDisk(disk, assigned)], false).unwrap();
        let memory = (VHDX.create)();
        let image = (VHDX.open)(&memory);
        let file = FakeFile::new(memory);
        assert!(!is_clean(&file));
        let spec = LayerStack { layers: vec![DiskLayer { image, file: file.clone() }] };
        (self.plane.add_disk(disk, spec, Some(store)), file)
    }

    fn add(&self, disk: DiskId) -> Arc<FakeFile> {
        let (added, file) = self.try_add(disk, STORE);
        added.unwrap();
        file
    }

    /// Creates the I/O of a worker, which has no disk yet.
    fn ensure_io(&self, worker: u16) -> Arc<Mutex<FaultInjection>> {
        let io = self.source.open().unwrap();
        let channel = self.plane.worker_channel(WorkerId(worker)).unwrap();
        let passed = self.plane.pass_value(&channel, io, Command::SetIo);
        assert!(matches!(passed, PassResult::Replied(Ok(()))));
        channel.has_io.store(true, std::sync::atomic::Ordering::Relaxed);
        Arc::clone(self.source.0.lock().unwrap().last().unwrap())
    }

    /// Executes `f` on another thread. Returns the channel for its result.
    fn begin<T: Send + 'static>(
        &self,
        f: impl FnOnce(&StoragePlane) -> T + Send + 'static,
    ) -> Receiver<T> {
        let (plane, (report, reports)) = (self.plane.clone(), channel());
        std::thread::spawn(move || report.send(f(&plane)));
        reports
    }

    /// Executes `f`, which must not wait until a blocked worker proceeds. Returns its result, and
    /// the time for which it waited for workers.
    fn run<T: Send + 'static>(
        &self,
        f: impl FnOnce(&StoragePlane) -> T + Send + 'static,
    ) -> (T, Duration) {
        self.plane.0.wait_limits.take_expired();
        let result =
            self.begin(f).recv_timeout(TEST_TIMEOUT).expect("an operation waits for the worker");
        (result, self.plane.0.wait_limits.take_expired().iter().sum())
    }

    fn attach(&self, disk: DiskId) -> Arc<Mutex<Client>> {
        let queue = FakeQueue::new(64);
        queue.payloads.lock().unwrap().iter_mut().for_each(|payload| *payload = vec![9; 512]);
        let client = Arc::clone(&queue.client);
        self.plane.attach_queue(disk, QueueKey::Ring(0), Box::new(queue)).unwrap();
        client
    }

    /// Waits until each of these disks is on its worker, exactly once.
    fn wait_served(&self, expected: &[(DiskId, u16)]) {
        wait_until(|| {
            let views = self.plane.disks();
            let served = views.iter().map(|view| (view.disk, view.worker.0));
            views.iter().all(|view| view.is_current) && served.eq(expected.iter().copied())
        });
    }

    /// Waits until this worker is the only user of the store.
    fn wait_sole(&self, worker: u16) {
        wait_until(|| {
            let views = self.plane.stores();
            let [view] = &views[..] else { return false };
            view.is_current && view.worker.0 == worker && view.status.role == StoreRole::Sole
        });
    }

    /// Takes all disks out of service, and asserts that the store has no state of them.
    fn end(&self, disks: &[DiskId]) {
        for disk in disks {
            take_and_close(&self.plane, *disk);
        }
        wait_until(|| self.plane.stores().is_empty());
        self.plane.remove_store(STORE).unwrap();
    }
}

/// Returns true if no header of a VHDX file refers to a log that must be replayed.
fn is_clean(file: &FakeFile) -> bool {
    let bytes = file.memory().bytes().to_vec();
    [64 << 10, 128 << 10].iter().all(|header| bytes[header + 48..header + 64] == [0; 16])
}

fn serves(client: &Mutex<Client>) {
    submit(client, 5, WRITE, 0);
    assert_eq!(wait_for_completion(client).0, 5);
}

#[track_caller]
fn assert_blocked<T>(result: Result<T, PlaneError>, worker: u16) {
    match result {
        Err(error @ PlaneError::NoResponse(blocked)) if blocked.0 == worker => {
            assert!(error.to_string().contains("does not respond; retry"));
        }
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("the worker is blocked"),
    }
}

#[test]
fn a_disk_is_returned_if_no_worker_responds_and_can_be_added_later() {
    let bench = Bench::new(1);
    bench.workers.0[0].set_stalled(true);
    for attempt in 0..2 {
        bench.plane.0.wait_limits.take_expired();
        let (added, file) = bench.try_add(DISK, STORE);
        let waited: Duration = bench.plane.0.wait_limits.take_expired().iter().sum();
        let AddDiskError { error, spec } = added.unwrap_err();
        assert_blocked::<()>(Err(error), 0);
        // A worker that counts as blocked is not waited for.
        let max = [COMMAND_WAIT_MAX, REST_MAX][attempt];
        assert!(waited <= max, "attempt {attempt}: {waited:?}");
        close(spec.expect("the images are returned"));
        assert!(is_clean(&file) && Arc::strong_count(&file) == 1);
        assert!(!bench.plane.has_disk(DISK));
    }
    bench.workers.0[0].set_stalled(false);
    wait_until(|| bench.plane.disks().is_empty() && bench.try_add(DISK, STORE).0.is_ok());
    serves(&bench.attach(DISK));
    bench.end(&[DISK]);
}

#[test]
fn a_disk_is_added_to_a_worker_that_responds() {
    let bench = Bench::new(3);
    bench.workers.0[0].set_stalled(true);
    bench.workers.0[1].set_stalled(true);
    bench.plane.0.wait_limits.take_expired();
    bench.add(DISK);
    let waited: Duration = bench.plane.0.wait_limits.take_expired().iter().sum();
    assert!(waited <= COMMAND_WAIT_MAX, "{waited:?}");
    serves(&bench.attach(DISK));
    bench.workers.0[..2].iter().for_each(|worker| worker.set_stalled(false));
    bench.wait_served(&[(DISK, 2)]);
    bench.wait_sole(2);
    bench.end(&[DISK]);
}

/// The lock of the disk is free afterwards, and the disk was not paused.
#[test]
fn a_disk_remains_on_its_worker_if_either_worker_of_a_move_is_blocked() {
    for blocked in 0..2 {
        let bench = Bench::new(2);
        bench.add(DISK);
        let client = bench.attach(DISK);
        bench.ensure_io(1);
        bench.workers.0[blocked].set_stalled(true);
        for attempt in 0..2 {
            let (moved, waited) = bench.run(|plane| plane.move_disk(DISK, WorkerId(1)));
            assert_blocked(moved, blocked as u16);
            let max = [COMMAND_WAIT_MAX, REST_MAX][attempt];
            assert!(waited <= max, "attempt {attempt}: {waited:?}");
        }
        assert!(bench.plane.disk_record(DISK).unwrap().owner.try_lock().is_ok());
        if blocked == 1 {
            serves(&client);
        }
        bench.workers.0[blocked].set_stalled(false);
        bench.wait_served(&[(DISK, 0)]);
        bench.wait_sole(0);
        serves(&client);
        wait_until(|| bench.plane.move_disk(DISK, WorkerId(1)).is_ok());
        bench.wait_served(&[(DISK, 1)]);
        serves(&client);
        bench.end(&[DISK]);
    }
}

/// The worker becomes blocked after its last reply.
#[test]
fn a_disk_that_was_passed_to_a_blocked_worker_is_taken_back() {
    let bench = Bench::new(2);
    bench.add(DISK);
    let client = bench.attach(DISK);
    bench.ensure_io(1);
    let record = bench.plane.disk_record(DISK).unwrap();
    let mut owner = record.owner.lock().unwrap();
    let detached = bench.plane.remove_from_worker(WorkerId(0), DISK).unwrap();
    bench.workers.0[1].set_stalled(true);
    let target = bench.plane.worker_channel(WorkerId(1)).unwrap();
    bench.plane.0.wait_limits.take_expired();
    let passed = bench.plane.pass_disk(&target, DISK, Box::new(detached));
    let waited: Duration = bench.plane.0.wait_limits.take_expired().iter().sum();
    assert!(waited <= COMMAND_WAIT_MAX, "{waited:?}");
    let Err(PassDiskError::Refused(PlaneError::NoResponse(WorkerId(1)), Some(detached))) = passed
    else {
        panic!("the disk is not returned")
    };
    *owner = Some(WorkerId(0));
    drop(owner);
    bench.plane.register_store_disk(STORE, WorkerId(0)).unwrap();
    let source = bench.plane.worker_channel(WorkerId(0)).unwrap();
    let returned = bench.plane.pass_disk(&source, DISK, detached);
    assert!(returned.is_ok());
    serves(&client);
    bench.workers.0[1].set_stalled(false);
    bench.wait_served(&[(DISK, 0)]);
    bench.end(&[DISK]);
}

/// Begins to move a disk with a client to worker 1, which takes the disk and is then blocked.
fn late_move(bench: &Bench) -> (Arc<FakeFile>, Arc<Mutex<Client>>, Arc<Mutex<FaultInjection>>) {
    let file = bench.add(DISK);
    let client = bench.attach(DISK);
    serves(&client);
    let faults = bench.ensure_io(1);
    faults.lock().unwrap().blocks_files = true;
    let (moved, waited) = bench.run(|plane| plane.move_disk(DISK, WorkerId(1)));
    assert_eq!(faults.lock().unwrap().files_begun, 1);
    assert_blocked(moved, 1);
    assert!(waited <= COMMAND_WAIT_MAX, "{waited:?}");
    assert!(bench.plane.disk_record(DISK).unwrap().owner.try_lock().is_ok());
    (file, client, faults)
}

#[test]
fn a_disk_that_a_blocked_worker_has_taken_is_served_when_the_worker_proceeds() {
    let bench = Bench::new(2);
    let (_, client, faults) = late_move(&bench);
    submit(&client, 7, WRITE, 0);
    // The disk belongs to the worker: it is not moved again, and its policy applies later.
    let (moved, waited) = bench.run(|plane| plane.move_disk(DISK, WorkerId(0)));
    assert_blocked(moved, 1);
    assert!(waited <= REST_MAX, "{waited:?}");
    let (set, _) =
        bench.run(|plane| plane.set_full_store_policy(DISK, FullStorePolicy::FAIL_AT_ONCE));
    set.unwrap();
    faults.lock().unwrap().blocks_files = false;
    assert_eq!(wait_for_completion(&client).0, 7);
    bench.wait_served(&[(DISK, 1)]);
    bench.wait_sole(1);
    assert!(bench.plane.poll_notice().is_none());
    bench.end(&[DISK]);
}

#[test]
fn a_disk_that_a_worker_refuses_late_is_closed_and_reported() {
    for ends_before in [false, true] {
        let bench = Bench::new(2);
        let (file, client, faults) = late_move(&bench);
        if ends_before {
            let (result, _) = bench.run(|plane| plane.remove_disk(DISK));
            assert_blocked(result, 1);
            assert!(!bench.plane.has_disk(DISK));
        }
        faults.lock().unwrap().refuses_files = true;
        faults.lock().unwrap().blocks_files = false;
        if !ends_before {
            let mut notice = None;
            wait_until(|| {
                notice = bench.plane.poll_notice();
                notice.is_some()
            });
            assert!(matches!(notice, Some(PlaneNotice::DiskLost { disk: DISK, .. })), "{notice:?}");
        }
        wait_until(|| Arc::strong_count(&file) == 1);
        assert!(is_clean(&file), "it was closed");
        assert_eq!(Arc::strong_count(&client), 1, "its queue is dropped");
        assert!(bench.plane.poll_notice().is_none());
        assert!(matches!(bench.plane.remove_disk(DISK), Err(PlaneError::NoSuchDisk)));
        bench.end(&[]);
    }
}

#[test]
fn a_new_disk_that_a_blocked_worker_has_taken_is_closed_when_the_worker_replies() {
    for refuses in [false, true] {
        let bench = Bench::new(1);
        let faults = bench.ensure_io(0);
        faults.lock().unwrap().blocks_files = true;
        bench.plane.0.wait_limits.take_expired();
        let (added, file) = bench.try_add(DISK, STORE);
        let waited: Duration = bench.plane.0.wait_limits.take_expired().iter().sum();
        assert!(waited <= COMMAND_WAIT_MAX, "{waited:?}");
        let AddDiskError { error, spec } = added.unwrap_err();
        assert_blocked::<()>(Err(error), 0);
        assert!(spec.is_none() && !bench.plane.has_disk(DISK));
        faults.lock().unwrap().refuses_files = refuses;
        faults.lock().unwrap().blocks_files = false;
        wait_until(|| Arc::strong_count(&file) == 1);
        assert!(is_clean(&file), "it was closed");
        faults.lock().unwrap().refuses_files = false;
        wait_until(|| bench.plane.stores().is_empty());
        wait_until(|| bench.try_add(DISK, STORE).0.is_ok());
        bench.wait_served(&[(DISK, 0)]);
        bench.end(&[DISK]);
    }
}

#[test]
fn commands_to_a_worker_that_has_ended_fail() {
    let bench = Bench::new(1);
    bench.add(DISK);
    bench.workers.0[0].end_and_join();
    let (suspended, _) = bench.run(|plane| plane.suspend_disk(DISK));
    assert!(matches!(suspended, Err(PlaneError::NoWorker)));
    let (taken, _) = bench.run(|plane| plane.remove_disk(DISK));
    assert!(matches!(taken, Err(PlaneError::NoWorker)));
}

#[test]
fn a_new_worker_has_no_state_of_a_former_worker_with_its_number() {
    let mut bench = Bench::new(1);
    bench.add(DISK);
    bench.workers.0[0].end_and_join();
    assert!(bench.run(|plane| plane.remove_disk(DISK)).0.is_err());
    bench.workers = StopOnDrop(vec![Worker::start(&bench.plane, 0)]);
    bench.add(DiskId(1));
    bench.end(&[DiskId(1)]);
}

#[test]
fn a_disk_is_taken_out_of_service_without_waiting_and_closed_when_its_worker_proceeds() {
    let bench = Bench::new(1);
    let files = [DiskId(0), DiskId(1)].map(|disk| bench.add(disk));
    bench.workers.0[0].set_stalled(true);
    let (suspended, waited) = bench.run(|plane| plane.suspend_disk(DISK));
    assert_blocked(suspended, 0);
    assert!(waited <= COMMAND_WAIT_MAX, "{waited:?}");
    let (in_flight, waited) = bench.run(|plane| plane.requests_in_flight(DISK));
    assert_blocked(in_flight, 0);
    assert!(waited <= REST_MAX, "{waited:?}");
    let (mirrored, _) = bench.run(|plane| plane.begin_mirror(DISK, None));
    assert_blocked(mirrored, 0);
    let (_, waited) = bench.run(|plane| plane.detach_clients(DISK));
    assert!(waited <= REST_MAX, "{waited:?}");
    for disk in [DiskId(0), DiskId(1)] {
        let (result, waited) = bench.run(move |plane| plane.remove_disk(disk));
        assert_blocked(result, 0);
        assert!(waited <= REST_MAX, "{waited:?}");
        assert!(!bench.plane.has_disk(disk));
    }
    bench.workers.0[0].set_stalled(false);
    wait_until(|| files.iter().all(|file| Arc::strong_count(file) == 1));
    assert!(files.iter().all(|file| is_clean(file)));
    bench.end(&[]);
}

#[test]
fn disks_of_a_retiring_worker_move_to_one_that_responds() {
    let bench = Bench::new(3);
    let disks = [DiskId(0), DiskId(1), DiskId(2)];
    for disk in disks {
        bench.add(disk);
        bench.plane.move_disk(disk, WorkerId(0)).unwrap();
    }
    bench.wait_served(&disks.map(|disk| (disk, 0)));
    bench.ensure_io(1);
    bench.workers.0[1].set_stalled(true);
    let (remaining, waited) = bench.run(|plane| plane.retire_workers(&[WorkerId(0)]));
    assert_eq!(remaining, []);
    assert!(waited <= COMMAND_WAIT_MAX, "{waited:?}");
    assert!(bench.plane.poll_notice().is_none());
    for disk in disks {
        serves(&bench.attach(disk));
    }
    bench.workers.0[1].set_stalled(false);
    bench.wait_served(&disks.map(|disk| (disk, 2)));
    bench.end(&disks);
}

/// The retiring worker is blocked, or the only other one.
#[test]
fn a_worker_whose_disks_cannot_move_does_not_end() {
    for blocked in 0..2 {
        let bench = Bench::new(2);
        let disks = [DiskId(0), DiskId(1)];
        for disk in disks {
            bench.add(disk);
            bench.plane.move_disk(disk, WorkerId(0)).unwrap();
        }
        let clients = disks.map(|disk| bench.attach(disk));
        bench.workers.0[blocked].set_stalled(true);
        let (remaining, waited) = bench.run(|plane| plane.retire_workers(&[WorkerId(0)]));
        assert_eq!(remaining, [WorkerId(0)]);
        assert!(waited <= COMMAND_WAIT_MAX + 2 * REST_MAX, "{waited:?}");
        assert!(bench.plane.poll_notice().is_none(), "no disk is lost");
        bench.workers.0[blocked].set_stalled(false);
        bench.wait_served(&disks.map(|disk| (disk, 0)));
        clients.iter().for_each(|client| serves(client));
        assert_eq!(bench.plane.retire_workers(&[WorkerId(0)]), []);
        bench.wait_served(&disks.map(|disk| (disk, 1)));
        clients.iter().for_each(|client| serves(client));
        bench.end(&disks);
    }
}

#[test]
fn a_blocked_worker_without_disks_does_not_end() {
    let bench = Bench::new(3);
    bench.workers.0[0].set_stalled(true);
    bench.workers.0[1].set_stalled(true);
    let (remaining, waited) =
        bench.run(|plane| plane.retire_workers(&[WorkerId(0), WorkerId(1), WorkerId(2)]));
    assert_eq!(remaining, [WorkerId(0), WorkerId(1)]);
    assert!(waited <= COMMAND_WAIT_MAX, "{waited:?}");
    bench.workers.0[..2].iter().for_each(|worker| worker.set_stalled(false));
    assert_eq!(bench.plane.retire_workers(&[WorkerId(0), WorkerId(1)]), []);
}

/// Each store has one user, and all users are blocked.
#[test]
fn changes_of_several_stores_wait_once_for_all_blocked_workers() {
    let bench = Bench::new(4);
    let stores: Vec<StoreId> = (20..23).map(StoreId).collect();
    for (number, store) in (0..).zip(&stores) {
        bench.add_store(*store);
        let (added, _) = bench.try_add(DiskId(number), *store);
        added.unwrap();
    }
    bench.wait_served(&[(DiskId(0), 0), (DiskId(1), 1), (DiskId(2), 2)]);
    bench.workers.0[..3].iter().for_each(|worker| worker.set_stalled(true));
    bench.plane.0.wait_limits.take_expired();
    for (number, store) in (10..).zip(&stores) {
        let (added, _) = bench.try_add(DiskId(number), *store);
        let error = added.unwrap_err().error;
        assert!(matches!(error, PlaneError::WorkerBlocked(_)), "{error}");
        bench.plane.set_cap(*store, Some(suimon_quantity::TimedRateLimit::default()));
    }
    let waited: Duration = bench.plane.0.wait_limits.take_expired().iter().sum();
    assert!(waited <= COMMAND_WAIT_MAX, "{waited:?}");
    bench.workers.0[..3].iter().for_each(|worker| worker.set_stalled(false));
    (0..3).for_each(|number| take_and_close(&bench.plane, DiskId(number)));
}
