//! Tests Storage QoS on a real worker with an independent client (fio).
//!
//! Only properties that do not depend on the load of the machine are asserted: no more requests
//! than a maximum allows, and the CPU time of a disk that waits for its maximum. That a backlogged
//! disk reaches its maximum is tested in virtual time
//! (`plane/storage_engine/src/scheduling/tests.rs`,
//! `maximums_hold_in_every_window_and_are_reached`).

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use suimon_disk_tests::{DiskExports, DiskWorker};
use suimon_nbd_server::{NbdServer, UnixAccess};
use suimon_ports::CpuAffinity;
use suimon_quantity::Iops;
use suimon_rig::{Process, Rig, fio, wait_until};
use suimon_storage_qos::Limits;

const SIZE: u64 = 64 << 20;
const WINDOW: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(120);

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Starts endless requests of 4 KiB at the given depth.
fn load(rig: &Rig, socket: &str, rw: &str, depth: u32) -> Process {
    let target = fio::FioTarget::Nbd { socket, disk: "disk" };
    let job = format!("--rw={rw} --iodepth={depth} --bs=4k --size=64m --time_based --runtime=3600");
    Process::start(rig, "fio", &fio::words(target, &job)).unwrap()
}

#[test]
fn fio_measures_the_maximum_and_waiting_for_it_uses_no_cpu() {
    let rig = Rig::new().unwrap();
    // In memory, so that other use of the machine's disk has no effect.
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("disk.raw");
    std::fs::File::create(&path).unwrap().set_len(SIZE).unwrap();
    let exports = DiskExports::new(DiskWorker::start(CpuAffinity::Floating).unwrap()).unwrap();
    let limits = |max| Limits { max_iops: Iops::new(max), ..Limits::default() };
    let disk = exports.add_limited("disk", &path, limits(1000)).unwrap();
    let limit = |max| exports.worker().set_limits(disk, limits(max)).unwrap();
    let completed = || {
        let counters = exports.worker().counters(disk).unwrap();
        assert_eq!(counters.failed(), 0);
        counters.reads.requests + counters.writes.requests
    };
    let socket = folder.path().join("nbd");
    let _server = NbdServer::listen(&socket, UnixAccess::default(), exports.nbd()).unwrap();
    let socket = socket.to_str().unwrap();
    // At depth 128 there are more requests than may wait: the connection is neither read nor
    // watched.
    for (max, rw, depth) in [(1000, "randread", 128), (1000, "randwrite", 16), (300, "randrw", 128)]
    {
        limit(max);
        let idle = completed();
        let mut fio = load(&rig, socket, rw, depth);
        wait_until("requests", PATIENCE, || Ok(completed() > idle + 50)).unwrap();
        // All requests were completed between the two moments, so load on the machine cannot
        // increase their number. The maximum is exceeded at most by the catch-up of 20 ms, by one
        // request, and by the requests dispatched before.
        let (started, cpu) = (Instant::now(), cpu_seconds());
        let before = completed();
        std::thread::sleep(WINDOW);
        let count = completed() - before;
        let elapsed = started.elapsed().as_secs_f64();
        let cpu_share = (cpu_seconds() - cpu) / elapsed;
        let rate = count as f64 / elapsed;
        println!("{rw} at depth {depth}: {rate:.1} of {max}, {:.1} % of a CPU", cpu_share * 100.0);
        let allowed = max as f64 * (elapsed + 0.02) + 1.0 + f64::from(depth);
        assert!(count as f64 <= allowed, "{rw}: {count} in {elapsed} s at {max} a second");
        // CPU time of this process, which does not depend on other load on the machine.
        assert!(cpu_share < 0.25, "{rw}: {cpu_share} of a CPU");
        fio.kill();
    }
    // Without a maximum, the rate is more than twice the last maximum in at least one second.
    limit(0);
    let mut fio = load(&rig, socket, "randread", 32);
    let mut rates = Vec::new();
    let freed = wait_until("more requests without a maximum", PATIENCE, || {
        let before = completed();
        std::thread::sleep(Duration::from_secs(1));
        rates.push(completed() - before);
        Ok(rates.last() > Some(&600))
    });
    freed.unwrap_or_else(|error| panic!("{error:#}: {rates:?}"));
    fio.kill();
}
