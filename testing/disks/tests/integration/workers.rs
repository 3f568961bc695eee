//! Tests of disks of one store on several worker threads, which are started and stopped under load.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use suimon_disk_tests::{DiskExports, DiskWorker, OpenedDisk};
use suimon_nbd_server::{NbdServer, UnixAccess};
use suimon_quantity::Iops;
use suimon_rig::{fio, wait_until};
use suimon_storage_qos::Limits;

const SIZE: u64 = 64 << 20;
/// Common maximum of both disks in requests per second.
const MAX: u64 = 1000;

fn limits(max: Option<u64>) -> Limits {
    Limits { max_iops: max.and_then(Iops::new), ..Limits::default() }
}

/// Number of outstanding requests of each disk.
const DEPTH: u64 = 32;
const PATIENCE: Duration = Duration::from_secs(120);

/// Starts fio on a disk: it writes, reads and verifies until [`end`].
fn load(folder: &Path, disk: &str) -> Child {
    let arguments = format!(
        "--name={disk} --ioengine=nbd --uri=nbd+unix:///{disk}?socket={} --rw=randrw --bs=4k \
         --size=64m --iodepth={DEPTH} --verify=crc32c --verify_backlog=64 --verify_fatal=1 \
         --time_based --runtime=3600 --output-format=json",
        folder.join("nbd").display()
    );
    Command::new("fio")
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Ends fio, and asserts that it found no error.
fn end(child: Child) {
    let id = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(id, Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let result = fio::result(&stdout).unwrap_or_else(|error| panic!("{error:#}: {stdout}{errors}"));
    assert_eq!(result.errors, 0, "{stdout}{errors}");
    assert!(!errors.contains("verify"), "{errors}");
}

struct Bench {
    folder: tempfile::TempDir,
    exports: Arc<DiskExports>,
    disks: [OpenedDisk; 2],
    _server: NbdServer,
}

impl Bench {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let exports = DiskExports::new(DiskWorker::start_several(2).unwrap()).unwrap();
        let disks = ["a", "b"].map(|name| {
            let path = folder.path().join(name);
            std::fs::File::create(&path).unwrap().set_len(SIZE).unwrap();
            exports.add_limited(name, &path, limits(None)).unwrap()
        });
        let socket = folder.path().join("nbd");
        let server = NbdServer::listen(&socket, UnixAccess::default(), exports.nbd());
        Self { folder, exports, disks, _server: server.unwrap() }
    }

    fn requests(&self) -> u64 {
        let all_counters = self.disks.map(|disk| self.exports.worker().counters(disk).unwrap());
        assert!(all_counters.iter().all(|counters| counters.failed() == 0), "{all_counters:?}");
        all_counters.iter().map(|counters| counters.reads.requests + counters.writes.requests).sum()
    }

    /// Returns the number of workers that serve the two disks.
    fn spread(&self) -> usize {
        let worker_ids = self.disks.map(|disk| self.exports.worker().worker_of(disk).unwrap());
        if worker_ids[0] == worker_ids[1] { 1 } else { 2 }
    }
}

/// The limit is common to both disks on different workers: each worker dispatches only its share of
/// the budget.
///
/// Only this upper bound is asserted, because load on the machine cannot break it. That both disks
/// together reach the limit is tested in virtual time
/// (`policy/storage_qos/tests/integration/workers.rs`).
#[test]
fn disks_on_two_workers_share_one_limit_exactly() {
    const WINDOW: Duration = Duration::from_secs(5);
    let bench = Bench::start();
    assert_eq!(bench.spread(), 2);
    bench.exports.worker().share_limits(&bench.disks, limits(Some(MAX))).unwrap();
    let loads = ["a", "b"].map(|disk| load(bench.folder.path(), disk));
    let is_loaded = || {
        let counters = |disk| bench.exports.worker().counters(disk).unwrap();
        bench.disks.iter().all(|disk| counters(*disk).writes.requests > 100)
    };
    wait_until("load on both", PATIENCE, || Ok(is_loaded())).unwrap();
    let (started, before) = (Instant::now(), bench.requests());
    std::thread::sleep(WINDOW);
    let count = bench.requests() - before;
    let elapsed = started.elapsed().as_secs_f64();
    println!("{:.1} of {MAX}", count as f64 / elapsed);
    // 2 %, the catch-up of 20 ms, and the requests dispatched before.
    let allowed = MAX as f64 * (elapsed * 1.02 + 0.02) + 2.0 * DEPTH as f64;
    assert!(count as f64 <= allowed, "{count} requests in {elapsed} s, {allowed} are allowed");
    loads.into_iter().for_each(end);
}

/// Workers are stopped and started repeatedly: requests of clients are delayed, and none is lost.
#[test]
fn disks_move_with_their_clients_when_workers_come_and_go() {
    let bench = Bench::start();
    bench.exports.worker().share_limits(&bench.disks, limits(Some(4 * MAX))).unwrap();
    let loads = ["a", "b"].map(|disk| load(bench.folder.path(), disk));
    for round in 0..8_u64 {
        let before = bench.requests();
        wait_until("more requests", PATIENCE, || Ok(bench.requests() > before + 200)).unwrap();
        let workers = 1 + (round % 2) as usize;
        bench.exports.worker().set_workers(workers).unwrap();
        if workers == 1 {
            assert_eq!(bench.spread(), 1);
        }
    }
    loads.into_iter().for_each(end);
}
