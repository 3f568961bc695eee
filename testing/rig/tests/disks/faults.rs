//! A block device under a disk fails or does not respond: the guest gets an error or waits, an
//! event names the disk, and other disks are not affected.

use std::time::{Duration, Instant};

use serde_json::Value;
use suimon_rig::{BlockDevice, Daemon, NbdClient, NbdFailure, Rig, wait_for_value, wait_until};

const DISK_BYTES: u64 = 32 << 20;
const BLOCK: [u8; 4096] = [7; 4096];
/// Offsets that were not read before, which the kernel's cache and read-ahead do not contain.
const UNREAD: [u64; 2] = [8 << 20, 24 << 20];
const PATIENCE: Duration = Duration::from_secs(120);
/// Time that a change which needs a store waits for it. One command takes about 10 ms of CPU time,
/// so load on the machine does not make it take as long.
const WAITS: Duration = Duration::from_secs(10);

/// Starts a daemon with a disk on the device and one in a folder.
fn start(rig: &Rig, device: &BlockDevice) -> Daemon {
    let (store, socket) = (rig.path("store"), rig.path("nbd.sock"));
    std::fs::create_dir_all(&store).unwrap();
    let toml = format!(
        "[[store]]\nname = \"device\"\npath = \"{}\"\n[[store]]\nname = \"fast\"\npath = \
         \"{store}\"\n[[disk]]\nname = \"bad\"\nstore = \"device\"\nformat = \"pass-through\"\n\
         nbd = {{ socket = \"{socket}\" }}\n[[disk]]\nname = \"good\"\nstore = \"fast\"\n\
         format = \"raw\"\nsize_bytes = {DISK_BYTES}\nnbd = {{ socket = \"{socket}\" }}\n",
        device.path(),
    );
    Daemon::start(rig, &toml).unwrap()
}

fn connect(rig: &Rig, disk: &str) -> NbdClient {
    NbdClient::connect(&rig.path("nbd.sock"), disk).unwrap()
}

/// Waits for the first event with this id about the disk on the device.
fn event(daemon: &Daemon, id: u32) -> Value {
    wait_for_value("the event", PATIENCE, || {
        let events = daemon.json(&["event", "list"])?;
        let events = events.as_array().into_iter().flatten();
        let mut matching =
            events.filter(|event| event["id"] == id && event["subject"] == "disk/bad");
        Ok(matching.next().cloned())
    })
    .unwrap()
}

fn state(daemon: &Daemon, disk: &str) -> Value {
    daemon.json(&["disk", "show", disk]).unwrap()["state"].clone()
}

#[test]
fn a_failed_device_is_reported_and_others_continue() {
    let rig = Rig::new().unwrap();
    let mut device = BlockDevice::new(&rig, DISK_BYTES).unwrap();
    let mut daemon = start(&rig, &device);
    let (mut bad, mut healthy) = (connect(&rig, "bad"), connect(&rig, "good"));
    bad.write(0, &BLOCK, true).unwrap();
    device.fail();
    let mut content = [0; 4096];
    let failed = bad.read(1 << 20, &mut content).unwrap_err();
    assert!(matches!(failed, NbdFailure::Refused(5)), "EIO: {failed}");
    let failed = bad.write(1 << 20, &BLOCK, false).unwrap_err();
    assert!(matches!(failed, NbdFailure::Refused(5)), "EIO: {failed}");
    let event = event(&daemon, 6110);
    assert!(event["fields"]["detail"].to_string().contains("os error 5"), "{event}");
    assert_eq!(event["fields"]["offset"], "1048576", "{event}");
    let mut counters = Value::Null;
    let counted = wait_until("both errors in the counters", PATIENCE, || {
        counters = daemon.json(&["disk", "show", "bad"])?["counters"].take();
        Ok(counters["reads"]["errors"] == 1 && counters["writes"]["errors"] == 1)
    });
    counted.unwrap_or_else(|error| panic!("{error:#}: {counters}"));
    healthy.write(0, &BLOCK, true).unwrap();
    healthy.read(0, &mut content).unwrap();
    assert_eq!(content, BLOCK);
    drop((bad, healthy));
    assert!(daemon.stop().unwrap().success());
}

/// A failed flush may have lost data, so no later flush may succeed until the disk is reopened.
#[test]
fn a_disk_whose_flush_failed_is_faulted_until_it_is_reopened() {
    let rig = Rig::new().unwrap();
    let mut device = BlockDevice::new(&rig, DISK_BYTES).unwrap();
    let mut daemon = start(&rig, &device);
    let (mut bad, mut healthy) = (connect(&rig, "bad"), connect(&rig, "good"));
    bad.write(0, &BLOCK, true).unwrap();
    device.fail();
    for is_durable in [true, false, true] {
        let failed = bad.write(0, &BLOCK, is_durable).unwrap_err();
        assert!(matches!(failed, NbdFailure::Refused(5)), "EIO: {failed}");
    }
    let event_found = event(&daemon, 6124);
    assert!(event_found["text"].to_string().contains("suimon disk reopen bad"), "{event_found}");
    assert_eq!((state(&daemon, "bad"), state(&daemon, "good")), ("faulted".into(), "ready".into()));
    healthy.write(0, &BLOCK, true).unwrap();
    daemon.ok(&["disk", "reopen", "bad"]).unwrap();
    assert_eq!(state(&daemon, "bad"), "ready");
    // The device still fails. The client's connection persists over the reopening.
    bad.write(0, &BLOCK, true).unwrap_err();
    wait_until("the disk is faulted again", PATIENCE, || Ok(state(&daemon, "bad") == "faulted"))
        .unwrap();
    drop((bad, healthy));
    assert!(daemon.stop().unwrap().success());
}

#[test]
fn an_unresponsive_device_is_reported_and_delays_nothing_else() {
    let rig = Rig::new().unwrap();
    let mut device = BlockDevice::new(&rig, DISK_BYTES).unwrap();
    let mut daemon = start(&rig, &device);
    let (mut bad, mut healthy) = (connect(&rig, "bad"), connect(&rig, "good"));
    bad.write(0, &BLOCK, false).unwrap();
    device.stall();
    let reading = std::thread::spawn(move || {
        let mut content = [0; 4096];
        bad.read(UNREAD[0], &mut content).map(|()| content)
    });
    let event_found = event(&daemon, 6116);
    assert_eq!(event_found["fields"]["store"], "device", "{event_found}");
    assert_eq!((state(&daemon, "bad"), state(&daemon, "good")), ("stalled".into(), "ready".into()));

    // The other disk works, and the daemon executes changes while the device does not respond.
    healthy.write(4096, &BLOCK, true).unwrap();
    let started = Instant::now();
    daemon.ok(&["disk", "set", "good", "--qos-max-iops", "1000"]).unwrap();
    assert!(started.elapsed() < WAITS, "it waited for the device: {:?}", started.elapsed());

    device.resume();
    assert_eq!(reading.join().unwrap().unwrap(), [0; 4096]);
    event(&daemon, 6117);
    wait_until("the disk ready", PATIENCE, || Ok(state(&daemon, "bad") == "ready")).unwrap();

    // The daemon stops although a request is pending on the device.
    device.stall();
    let mut bad = connect(&rig, "bad");
    let cut_off = std::thread::spawn(move || bad.read(UNREAD[1], &mut [0; 4096]));
    wait_until("the disk stalls", PATIENCE, || Ok(state(&daemon, "bad") == "stalled")).unwrap();
    daemon.stop().unwrap();
    assert!(matches!(cut_off.join().unwrap(), Err(NbdFailure::Gone(_))));
    device.resume();
}
