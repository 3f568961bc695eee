//! Storage QoS on a real processor, for a client that nobody here wrote.

use std::process::Command;

use rustix::time::{ClockId, clock_gettime};
use suimon_disk_tests::{DiskExports, DiskProcessor};
use suimon_nbd_server::{NbdServer, UnixAccess};
use suimon_ports::Placement;
use suimon_quantity::Iops;
use suimon_storage_qos::Limits;

const SIZE: u64 = 64 << 20;
const SECONDS: u64 = 5;

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// What fio gets of 4 KB requests at this depth, per second.
fn fio(uri: &str, rw: &str, depth: u32) -> f64 {
    let words = [
        "--name=limited".to_owned(),
        "--ioengine=nbd".to_owned(),
        format!("--uri={uri}"),
        format!("--rw={rw}"),
        format!("--iodepth={depth}"),
        format!("--runtime={SECONDS}"),
        "--bs=4k --size=64m --time_based --output-format=json".to_owned(),
    ];
    let words = words.iter().flat_map(|words| words.split(' '));
    let output = Command::new("timeout").arg("60").arg("fio").args(words).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    // Notes may come before it.
    let told = &said[said.find('{').expect("it tells in JSON")..];
    let told: serde_json::Value = serde_json::from_str(told).unwrap();
    let job = &told["jobs"][0];
    ["read", "write"].iter().filter_map(|way| job[way]["iops"].as_f64()).sum()
}

#[test]
fn a_maximum_is_what_fio_gets_and_waiting_for_it_costs_nothing() {
    // In memory, so that no other use of the machine's disk is measured.
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("disk.raw");
    std::fs::File::create(&path).unwrap().set_len(SIZE).unwrap();
    let exports = DiskExports::new(DiskProcessor::start(Placement::Floating).unwrap());
    let limits = |max| Limits { max_iops: Iops::new(max), ..Limits::default() };
    let disk = exports.add_limited("disk", &path, limits(1000)).unwrap();
    let limit = |max| exports.processor().set_limits(disk, limits(max)).unwrap();
    let socket = folder.path().join("nbd");
    let _server = NbdServer::listen(&socket, UnixAccess::default(), exports.nbd()).unwrap();
    let uri = format!("nbd+unix:///disk?socket={}", socket.display());
    // At depth 128 more is asked than may wait: the connection is not read, nor watched.
    for (max, rw, depth) in [(1000, "randread", 128), (1000, "randwrite", 16), (300, "randrw", 128)]
    {
        limit(max);
        let before = cpu_seconds();
        let got = fio(&uri, rw, depth);
        let spent = (cpu_seconds() - before) / SECONDS as f64;
        println!("{rw} at depth {depth}: {got:.1} of {max}, {:.1} % of a CPU", spent * 100.0);
        assert!((got - max as f64).abs() <= max as f64 * 0.02, "{rw}: {got} of {max}");
        assert!(spent < 0.25, "{rw}: {spent} of a CPU");
    }
    limit(0);
    let got = fio(&uri, "randread", 32);
    assert!(got > 3000.0, "{got} without a maximum");
}
