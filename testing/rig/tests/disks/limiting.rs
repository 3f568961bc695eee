//! Limiting factors of disks, as the API and the CLI report them. Each factor is caused with fio as
//! an NBD client, and must be reported first.
//!
//! The reported shares cover the last 5 s, so each case waits until its factor is the first.

use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::Value;
use suimon_rig::fio::{self, FioTarget};
use suimon_rig::{Daemon, LastingLoad, Process, Rig, SlowDisk, wait_until};

const PATIENCE: Duration = Duration::from_secs(180);
/// Duration of a load in seconds, longer than any case; the test stops the load.
const LASTS_S: u32 = 900;
const DISK_BYTES: u64 = 32 << 20;
/// Throughput of the slow store, about 1000 reads of 8 KiB per second.
const RATE: u64 = 8 << 20;
/// Number of busy loops on the worker's CPU, each with the highest weight.
const LOOPS: usize = 3;

fn disk(rig: &Rig, name: &str, store: &str, keys: &str) -> String {
    let socket = rig.path("nbd.sock");
    format!(
        "[[disk]]\nname = \"{name}\"\nstore = \"{store}\"\nformat = \"raw\"\nkind = \"fixed\"\n\
         size_bytes = {DISK_BYTES}\nnbd = {{ socket = \"{socket}\" }}\n{keys}\n"
    )
}

fn host(rig: &Rig, slow: &str) -> String {
    let fast = rig.path("store");
    std::fs::create_dir_all(&fast).unwrap();
    let stores = format!(
        "[[store]]\nname = \"fast\"\npath = \"{fast}\"\ncapacity_iops = 5000\n\
         [[store]]\nname = \"slow\"\npath = \"{slow}\"\ncapacity_iops = 1000\n\
         [[qos_policy]]\nname = \"both\"\nkind = \"aggregated\"\nmax_iops = 300\n"
    );
    let disks = [
        disk(rig, "capped", "fast", "qos = { max_iops = 300 }"),
        disk(rig, "one", "fast", "qos_policy = \"both\""),
        disk(rig, "other", "fast", "qos_policy = \"both\""),
        disk(rig, "idle", "fast", ""),
        disk(rig, "alone", "slow", ""),
        disk(rig, "gold", "slow", "qos = { min_iops = 850 }"),
    ];
    stores + &disks.concat()
}

/// Writes a disk completely, so that reads are served by the device.
fn fill(rig: &Rig, disk: &str) {
    let job = format!("--rw=write --bs=256k --iodepth=4 --size={DISK_BYTES}");
    fio::run(rig.folder(), &rig.path("nbd.sock"), disk, &job).unwrap();
}

/// Waits until the API reports `factor` as the disk's first limiting factor, and the CLI prints
/// `text`.
fn wait_limited(daemon: &Daemon, disk: &str, factor: &str, text: &str) {
    let mut last = Value::Null;
    let result = wait_until("the limiting factor", PATIENCE, || {
        let flows = daemon.get("/1.0/qos/flows")?;
        let flow_found = flows.as_array().into_iter().flatten().find(|flow| flow["disk"] == disk);
        last = flow_found.map(|flow| flow["last_5_s"].clone()).unwrap_or_default();
        Ok(last["limited_by"][0]["factor"] == factor)
    });
    result.unwrap_or_else(|error| panic!("{disk}: {factor}: {error:#}: {last:#}"));
    let shares = last["limited_by"].as_array().unwrap();
    let sum: u64 = shares.iter().filter_map(|share| share["share_ppm"].as_u64()).sum();
    assert_eq!(sum, 1_000_000, "{last:#}");
    let mut table = String::new();
    let result = wait_until("the CLI's first factor", PATIENCE, || {
        table = daemon.ok(&["qos", "flows"])?;
        Ok(table.lines().any(|line| line.starts_with(disk) && line.contains(text)))
    });
    result.unwrap_or_else(|error| panic!("{disk}: {text}: {error:#}: {table}"));
}

#[test]
fn the_first_reported_factor_limits_the_disk() {
    let rig = Rig::new().unwrap();
    let slow = SlowDisk::new(&rig, rig.folder(), 4 * DISK_BYTES, RATE).unwrap();
    let daemon = Daemon::start(&rig, &host(&rig, slow.path().to_str().unwrap())).unwrap();
    let socket = rig.path("nbd.sock");
    let load =
        |disk: &str, depth| LastingLoad::begin(&rig, &socket, &[disk], depth, LASTS_S).unwrap();

    let loads = [load("capped", 16), load("one", 8), load("other", 8)];
    let target = FioTarget::Nbd { socket: &socket, disk: "idle" };
    let job = format!("--rw=randread --bs=8k --rate_iops=10 --time_based --runtime={LASTS_S}");
    let mut idle = Process::start(&rig, "fio", &fio::words(target, &job)).unwrap();
    wait_limited(&daemon, "capped", "own-maximum", "its own maximum");
    wait_limited(&daemon, "one", "shared-policy", "the maximum of its shared policy");
    wait_limited(&daemon, "idle", "client-idle", "the client is idle");
    idle.kill();
    loads.into_iter().for_each(|load| drop(load.stop()));

    fill(&rig, "alone");
    fill(&rig, "gold");
    // One outstanding request, on a device that could serve more.
    let single_load = load("alone", 1);
    wait_limited(&daemon, "alone", "queue-depth", "the client's queue depth");
    // The same load on a device with a sixteenth of the throughput.
    slow.set_rate(RATE / 16).unwrap();
    wait_limited(&daemon, "alone", "device-slow", "the device is slow");
    slow.set_rate(RATE).unwrap();
    single_load.stop().unwrap();

    // Many outstanding requests, alone and beside a disk with a minimum.
    let single_load = load("alone", 48);
    wait_limited(&daemon, "alone", "device-saturated", "the device is saturated");
    let gold = load("gold", 48);
    wait_limited(&daemon, "alone", "others-minimums", "other disks' minimums");
    gold.stop().unwrap();
    single_load.stop().unwrap();
}

fn a_worker_that_is_not_scheduled_is_the_first_factor() {
    let rig = Rig::new().unwrap();
    let slow = SlowDisk::new(&rig, rig.folder(), 4 * DISK_BYTES, 4 * RATE).unwrap();
    let mut daemon = Daemon::start(&rig, &host(&rig, slow.path().to_str().unwrap())).unwrap();
    fill(&rig, "alone");
    let load = LastingLoad::begin(&rig, &rig.path("nbd.sock"), &["alone"], 1, LASTS_S).unwrap();
    wait_limited(&daemon, "alone", "queue-depth", "the client's queue depth");
    pin(daemon.process().id(), 0);
    let script = "while :; do :; done";
    let arguments = ["nice", "-n", "-20", "taskset", "-c", "0", "sh", "-c", script];
    let loops: Vec<_> = (0..LOOPS)
        .map(|index| Process::start(&rig, &format!("loop-{index}"), &arguments).unwrap())
        .collect();
    wait_limited(&daemon, "alone", "worker", "the worker is not scheduled");
    drop(loops);
    load.stop().unwrap();
}

/// Pins the workers of a daemon to one CPU.
fn pin(daemon: u32, cpu: usize) {
    let mut cpu_set = CpuSet::new();
    cpu_set.set(cpu);
    let mut pinned = 0;
    for task in std::fs::read_dir(format!("/proc/{daemon}/task")).unwrap().flatten() {
        let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        let id = task.file_name().to_str().and_then(|id| id.parse().ok()).and_then(Pid::from_raw);
        if name.starts_with("processor-") {
            sched_setaffinity(id, &cpu_set).unwrap();
            pinned += 1;
        }
    }
    assert!(pinned > 0, "the daemon has no worker");
}

mod full {
    #[test]
    fn a_worker_that_is_not_scheduled_is_the_first_factor() {
        super::a_worker_that_is_not_scheduled_is_the_first_factor();
    }
}
