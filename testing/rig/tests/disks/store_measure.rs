//! Measurement of a store's throughput with the daemon and the CLI, on a real file system.

use std::fs;
use std::time::Duration;

use serde_json::Value;
use suimon_rig::{
    Daemon, LastingLoad, LoopDevice, Mounted, NbdClient, Process, Rig, fio, run, wait_until,
};

const PATIENCE: Duration = Duration::from_secs(240);
/// Duration of a load in seconds, longer than any test; the test stops the load.
const LASTS_S: u32 = 600;

/// Returns a host file with one store to be measured, and a disk in it.
fn host_file(rig: &Rig, store: &str, keys: &str) -> String {
    format!(
        "[[store]]\nname = \"fast\"\npath = \"{store}\"\ncapacity_iops = \"measure\"\n{keys}\n\
         [[disk]]\nname = \"d\"\nstore = \"fast\"\nformat = \"raw\"\nsize_bytes = \"16 MiB\"\n\
         nbd = {{ socket = \"{}\" }}\n",
        rig.path("nbd.sock")
    )
}

fn names(store: &str) -> Vec<String> {
    let entries = fs::read_dir(store).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

fn store(daemon: &Daemon) -> Value {
    daemon.json(&["store", "show", "fast"]).unwrap()
}

#[test]
fn a_measured_store_admits_minimums_up_to_its_capacity_also_after_a_kill() {
    let rig = Rig::new().unwrap();
    let path = rig.path("store");
    // In memory, because one write to a device that other tests use may take seconds.
    let mounted = Mounted::tmpfs("256m", &path).unwrap();
    let mut daemon = Daemon::start(&rig, &host_file(&rig, &path, "depth_max = 1")).unwrap();
    let promise = |daemon: &Daemon, iops: u64| {
        daemon.cli(&["disk", "set", "d", "--qos-min-iops", &iops.to_string()]).unwrap()
    };
    let output = promise(&daemon, 1);
    assert!(!output.is_ok(), "{}", output.stdout);
    assert!(output.stderr.contains("suimon store measure fast"), "{}", output.stderr);

    let report = daemon.ok(&["store", "measure", "fast", "--seconds", "2"]).unwrap();
    println!("{report}");
    let measured = store(&daemon)["measured"].clone();
    let iops = measured["iops"].as_u64().unwrap();
    assert!(iops > 0 && report.contains(&format!("is {iops} IOPS")), "{report}");
    assert_eq!(measured["patterns"].as_array().unwrap().len(), 3, "{measured}");
    assert_eq!(names(&path), ["d.raw"]);

    daemon.kill();
    daemon.restart(&rig).unwrap();
    let store_status = store(&daemon);
    assert_eq!(store_status["measured"], measured);
    assert_eq!(
        (&store_status["capacity_iops"], &store_status["capacity_source"]),
        (&iops.into(), &"measured".into())
    );
    let max_iops = iops * 9 / 10;
    let output = promise(&daemon, max_iops + 1);
    assert!(!output.is_ok() && output.stderr.contains("(measured)"), "{}", output.stderr);
    let what_if =
        daemon.cli(&["qos", "what-if", "disk/d", &format!("min_iops={}", max_iops + 1)]).unwrap();
    assert!(!what_if.is_ok(), "{}", what_if.stdout);
    assert!(promise(&daemon, max_iops).is_ok());
    let text = daemon.ok(&["store", "show", "fast"]).unwrap();
    assert!(text.contains("(measured)") && text.contains("random writes"), "{text}");

    // Requests are queued for the device, so the daemon can estimate its throughput.
    assert_eq!(store_status["estimate"], Value::Null);
    let load = "--rw=randwrite --bs=8k --iodepth=64 --size=16m --time_based --runtime=600";
    let target = fio::FioTarget::Nbd { socket: &rig.path("nbd.sock"), disk: "d" };
    let load = Process::start(&rig, "fio", &fio::words(target, load)).unwrap();
    let mut store_status = Value::Null;
    let estimated = wait_until("an estimate", PATIENCE, || {
        store_status = store(&daemon);
        Ok(store_status["estimate"]["iops"].as_u64() > Some(0))
    });
    estimated.unwrap_or_else(|error| panic!("{error:#}: {store_status}"));
    println!("measured {iops}, then {}", store_status["estimate"]);
    let metrics = daemon.http("GET", "/metrics", None).unwrap().text;
    assert!(metrics.contains("suimon_store_estimated_iops{store=\"fast\"}"), "{metrics}");
    drop((load, daemon, mounted));
}

#[test]
fn a_store_in_use_is_measured_only_beside_its_load_and_the_report_says_so() {
    let rig = Rig::new().unwrap();
    let path = rig.path("store");
    fs::create_dir(&path).unwrap();
    let daemon = Daemon::start(&rig, &host_file(&rig, &path, "")).unwrap();
    let load = LastingLoad::begin(&rig, &rig.path("nbd.sock"), &["d"], 2, LASTS_S).unwrap();
    wait_until("load", PATIENCE, || Ok(store(&daemon)["delivered_iops"].as_u64() > Some(0)))
        .unwrap();
    let output = daemon.cli(&["store", "measure", "fast"]).unwrap();
    assert!(!output.is_ok() && output.stderr.contains("--beside"), "{}", output.stderr);
    let report = daemon.ok(&["store", "measure", "fast", "--seconds", "2", "--beside"]).unwrap();
    load.stop().unwrap();
    assert!(report.contains("disks of the store used"), "{report}");
    assert!(store(&daemon)["measured"]["others_iops"].as_u64() > Some(0));
}

#[test]
fn cancelled_or_killed_in_the_middle_it_leaves_no_file() {
    let rig = Rig::new().unwrap();
    let path = rig.path("store");
    fs::create_dir(&path).unwrap();
    let mut daemon = Daemon::start(&rig, &host_file(&rig, &path, "")).unwrap();
    let begin = |daemon: &Daemon| {
        let arguments = ["store", "measure", "fast", "--seconds", "60", "--no-wait"];
        let id = daemon.json(&arguments).unwrap()["id"].as_u64().unwrap().to_string();
        let mut operation = Value::Null;
        let result = wait_until("a step", PATIENCE, || {
            operation = daemon.json(&["operation", "show", &id])?;
            let step = operation["step"].as_str().unwrap_or_default();
            // The measurement first fills its file.
            Ok(step.contains("MiB") || step.contains("random"))
        });
        result.unwrap_or_else(|error| panic!("{error:#}: {operation}"));
        id
    };
    let id = begin(&daemon);
    let conflict = daemon.cli(&["store", "measure", "fast"]).unwrap();
    assert!(!conflict.is_ok() && conflict.stderr.contains(&id), "{}", conflict.stderr);
    daemon.ok(&["operation", "cancel", &id]).unwrap();
    wait_until("the end of the measurement", PATIENCE, || {
        Ok(daemon.json(&["operation", "show", &id])?["state"] == "cancelled")
    })
    .unwrap();
    assert_eq!(names(&path), ["d.raw"]);

    begin(&daemon);
    daemon.kill();
    assert_eq!(names(&path), ["d.raw"]);
    // Simulates a kill directly before the measurement's file was removed.
    fs::write(format!("{path}/.measure.suimon-new"), "left").unwrap();
    daemon.restart(&rig).unwrap();
    assert_eq!(names(&path), ["d.raw"]);
    assert_eq!(store(&daemon)["measured"], Value::Null);
}

#[test]
fn a_store_that_is_a_block_device_is_read_and_never_written() {
    let rig = Rig::new().unwrap();
    let file = rig.path("medium");
    let content: Vec<u8> = (0..64_u32 << 20).map(|offset| (offset / 4096) as u8).collect();
    fs::write(&file, &content).unwrap();
    let device = LoopDevice::attach(&file).unwrap();
    let socket = rig.path("nbd.sock");
    let toml = format!(
        "[[store]]\nname = \"fast\"\npath = \"{}\"\ncapacity_iops = \"measure\"\n\
         [[disk]]\nname = \"d\"\nstore = \"fast\"\nformat = \"pass-through\"\n\
         nbd = {{ socket = \"{socket}\" }}\n",
        device.path()
    );
    let mut daemon = Daemon::start(&rig, &toml).unwrap();
    let state = |daemon: &Daemon| daemon.json(&["disk", "show", "d"]).unwrap()["state"].clone();
    // The disk is the whole store: a measurement does not disconnect its client, not even with
    // `--beside`.
    let client = NbdClient::connect(&socket, "d").unwrap();
    for arguments in [&["store", "measure", "fast"][..], &["store", "measure", "fast", "--beside"]]
    {
        let output = daemon.cli(arguments).unwrap();
        assert!(!output.is_ok(), "{}", output.stdout);
        assert!(output.stderr.contains("the whole store"), "{}", output.stderr);
    }
    drop(client);
    wait_until("closed connections of clients", PATIENCE, || {
        Ok(daemon.json(&["disk", "show", "d"])?["nbd"]["clients"] == 0)
    })
    .unwrap();

    // The disk is not served during the measurement, which lasts until it is cancelled.
    let arguments = ["store", "measure", "fast", "--seconds", "60", "--no-wait"];
    let id = daemon.json(&arguments).unwrap()["id"].as_u64().unwrap().to_string();
    wait_until("the disk out of service", PATIENCE, || Ok(state(&daemon) == "working")).unwrap();
    daemon.ok(&["operation", "cancel", &id]).unwrap();
    wait_until("the disk ready", PATIENCE, || Ok(state(&daemon) == "ready")).unwrap();
    let report = daemon.ok(&["store", "measure", "fast", "--seconds", "2"]).unwrap();
    println!("{report}");
    let store_status = store(&daemon);
    let (measured, iops) =
        (&store_status["measured"], store_status["measured"]["iops"].as_u64().unwrap());
    assert!(iops > 0 && report.contains(&format!("is {iops} IOPS")), "{report}");
    let patterns = measured["patterns"].as_array().unwrap();
    assert_eq!(patterns.len(), 1, "only reads: {measured}");
    assert!(report.contains("random reads") && !report.contains("random writes"), "{report}");
    assert_eq!(store_status["capacity_iops"], iops);

    // The disk is available again with its content, and a minimum up to the measured rate is
    // accepted.
    wait_until("the disk ready", PATIENCE, || Ok(state(&daemon) == "ready")).unwrap();
    let mut block = [0; 4096];
    NbdClient::connect(&socket, "d").unwrap().read(5 << 20, &mut block).unwrap();
    assert_eq!(block, content[5 << 20..][..4096]);
    daemon.ok(&["disk", "set", "d", "--qos-min-iops", &(iops * 9 / 10).to_string()]).unwrap();
    assert!(daemon.stop().unwrap().success());
    drop(device);
    assert!(fs::read(&file).unwrap() == content, "the medium was written");
}

#[test]
fn a_full_or_read_only_store_is_reported_and_unchanged() {
    let rig = Rig::new().unwrap();
    let path = rig.path("store");
    let mounted = Mounted::tmpfs("40m", &path).unwrap();
    let mut daemon = Daemon::start(&rig, &host_file(&rig, &path, "")).unwrap();
    let failed = daemon.cli(&["store", "measure", "fast", "--seconds", "1"]).unwrap();
    assert!(!failed.is_ok() && failed.stderr.contains("are free"), "{}", failed.stderr);
    // Provides the space that the measurement needs.
    run(&["mount", "-o", "remount,size=128m", &path]).unwrap();
    daemon.ok(&["store", "measure", "fast", "--seconds", "1"]).unwrap();
    let before = store(&daemon)["measured"].clone();
    daemon.ok(&["disk", "delete", "d", "--with-file"]).unwrap();
    // The kernel closes files of an io_uring shortly after they were released.
    wait_until("the store to be read-only", PATIENCE, || {
        run(&["mount", "-o", "remount,ro", &path]).map(|_| true)
    })
    .unwrap();
    let failed = daemon.cli(&["store", "measure", "fast", "--seconds", "1"]).unwrap();
    assert!(!failed.is_ok() && failed.stderr.contains("Read-only"), "{}", failed.stderr);
    assert!(names(&path).is_empty());
    assert_eq!(store(&daemon)["measured"], before);
    assert!(daemon.stop().unwrap().success());
    drop(mounted);
}
