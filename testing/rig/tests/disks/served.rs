//! Disks as a user has them: made, served over NBD and to a VM, limited, and there again
//! after the daemon was killed.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use suimon_rig::{
    Boot, Daemon, Guest, GuestDisk, GuestSpec, Rig, fio, make_root_disk, program, run, until,
};

/// After a change, so long until the daemon's figures of the last 5 s have nothing of before
/// in them.
const WINDOW: Duration = Duration::from_secs(6);
/// Of each disk.
const DISK_BYTES: u64 = 64 << 20;
const PATIENCE: Duration = Duration::from_secs(20);
/// Writes from one death of the daemon to the next, at least.
const WRITES_PER_LIFE: u64 = 50;

/// A store and disks in it, each offered over NBD.
fn disks(rig: &Rig, tables: &str) -> String {
    disks_on(rig, "", tables)
}

/// The same; the store has these keys, too.
fn disks_on(rig: &Rig, store_keys: &str, tables: &str) -> String {
    let store = rig.path("store");
    std::fs::create_dir_all(&store).unwrap();
    format!(
        "[[store]]\nname = \"fast\"\npath = \"{store}\"\ncapability_iops = 5000\n{store_keys}\n{}",
        tables.replace("NBD", &format!("nbd = {{ socket = \"{}\" }}", rig.path("nbd.sock")))
    )
}

fn disk(name: &str, format: &str, keys: &str) -> String {
    format!(
        "[[disk]]\nname = \"{name}\"\nstore = \"fast\"\nformat = \"{format}\"\n\
         size_bytes = {DISK_BYTES}\nNBD\n{keys}\n"
    )
}

/// Requests of a kind that a disk has answered since the daemon started.
fn requests(daemon: &Daemon, disk: &str, kind: &str) -> u64 {
    let status = daemon.json(&["disk", "show", disk]).unwrap();
    status["counters"][kind]["requests"].as_u64().unwrap()
}

const WRITES: &str = "--rw=randwrite --bs=4k --iodepth=32 --size=32m --verify=crc32c --fsync=32";

#[test]
fn what_was_written_is_there_after_a_kill_in_every_format() {
    let rig = Rig::new().unwrap();
    let formats = [("a", "raw"), ("b", "vhd"), ("c", "vhdx")];
    let tables: String = formats.iter().map(|(name, format)| disk(name, format, "")).collect();
    let mut daemon = Daemon::start(&rig, &disks(&rig, &tables)).unwrap();
    let socket = rig.path("nbd.sock");
    for (name, _) in formats {
        fio::run(rig.folder(), &socket, name, &format!("{WRITES} --do_verify=1")).unwrap();
    }
    daemon.kill();
    daemon.restart(&rig).unwrap();
    for (name, _) in formats {
        fio::run(rig.folder(), &socket, name, &format!("{WRITES} --verify_only")).unwrap();
        let status = daemon.json(&["disk", "show", name]).unwrap();
        assert_eq!(status["state"], "ready");
        assert!(status["counters"]["reads"]["requests"].as_u64().unwrap() > 0, "{status}");
        assert_eq!(status["counters"]["reads"]["errors"], 0, "{status}");
    }
    assert!(daemon.stop().unwrap().success());
    // What the daemon leaves, others take.
    let store = rig.path("store");
    run(&["qemu-img", "check", &format!("{store}/c.vhdx")]).unwrap();
    for (file, format) in [("b.vhd", "vpc"), ("c.vhdx", "vhdx")] {
        let file = format!("{store}/{file}");
        let said = run(&["qemu-img", "info", "-f", format, "--output=json", &file]).unwrap();
        let said: Value = serde_json::from_str(&said).unwrap();
        assert!(said["virtual-size"].as_u64().unwrap() >= 64 << 20, "{said}");
    }
}

#[test]
fn limits_hold_change_live_and_are_not_promised_beyond_what_the_store_can_do() {
    let rig = Rig::new().unwrap();
    let tables = disk("calm", "raw", "qos = { max_iops = 400 }") + &disk("noisy", "raw", "");
    let mut daemon = Daemon::start(&rig, &disks(&rig, &tables)).unwrap();
    let socket = rig.path("nbd.sock");
    let reads = "--rw=randread --bs=4k --iodepth=16 --size=64m --time_based --runtime=5";
    let got = fio::run(rig.folder(), &socket, "calm", reads).unwrap().read_iops;
    assert!((392.0..=408.0).contains(&got), "{got} of 400");

    // While requests wait the limit changes, and both are seen.
    let mut load = fio::command(rig.folder(), &socket, "calm", &reads.replace("=5", "=8"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let before = requests(&daemon, "calm", "reads");
    until("requests under way", PATIENCE, || Ok(requests(&daemon, "calm", "reads") > before))
        .unwrap();
    daemon.ok(&["disk", "set", "calm", "--qos-max-iops", "1000"]).unwrap();
    std::thread::sleep(WINDOW);
    let flows = daemon.json(&["qos", "flows"]).unwrap();
    let calm = &flows.as_array().unwrap()[0];
    assert_eq!((&calm["disk"], &calm["holder"]), (&"calm".into(), &"disk/calm".into()));
    let delivered = calm["last_5_s"]["delivered_iops"].as_u64().unwrap();
    assert!((950..=1050).contains(&delivered), "{calm}");
    assert!(calm["last_5_s"]["waits_ns"]["own-maximum"].as_u64().unwrap() > 0, "{calm}");
    assert!(load.wait().unwrap().success());

    // 90 % of 5000 may be promised.
    daemon.ok(&["disk", "set", "noisy", "--qos-min-iops", "4000"]).unwrap();
    let refused = daemon.cli(&["disk", "set", "calm", "--qos-min-iops", "600"]).unwrap();
    assert!(!refused.is_ok() && refused.stderr.contains("4600 IOPS"), "{}", refused.stderr);
    let what_if = daemon.cli(&["qos", "what-if", "disk/calm", "min_iops=600"]).unwrap();
    assert!(!what_if.is_ok(), "{}", what_if.stdout);
    daemon.ok(&["disk", "set", "calm", "--qos-min-iops", "600", "--force"]).unwrap();
    let store = daemon.json(&["store", "show", "fast"]).unwrap();
    assert_eq!((&store["promised_iops"], &store["promised_percent"]), (&4600.into(), &92.into()));
    let events = daemon.ok(&["event", "list"]).unwrap();
    assert!(events.contains("6206"), "{events}");

    daemon.kill();
    daemon.restart(&rig).unwrap();
    let store = daemon.json(&["store", "show", "fast"]).unwrap();
    assert_eq!(store["promised_iops"], 4600);
}

/// Three disks ask for more than the store can do; the one with a minimum has it.
#[test]
fn a_minimum_is_met_beside_disks_that_want_all() {
    let rig = Rig::new().unwrap();
    let tables = disk("vip", "raw", "qos = { weight = 1, min_iops = 1500 }")
        + &disk("x", "raw", "")
        + &disk("y", "raw", "");
    // Two requests at a time: a device that is soon busy.
    let toml = disks_on(&rig, "depth_max = 2", &tables);
    let mut daemon = Daemon::start(&rig, &toml).unwrap();
    let socket = rig.path("nbd.sock");
    let load = "--rw=randwrite --bs=4k --size=64m --time_based --runtime=9";
    let job = |name: &str, depth: u32| {
        fio::command(rig.folder(), &socket, name, &format!("{load} --iodepth={depth}"))
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let jobs = [job("vip", 16), job("x", 64), job("y", 64)];
    until("requests of all", PATIENCE, || {
        Ok(["vip", "x", "y"].iter().all(|name| requests(&daemon, name, "writes") > 0))
    })
    .unwrap();
    std::thread::sleep(WINDOW);
    let flows = daemon.json(&["qos", "flows"]).unwrap();
    for mut job in jobs {
        assert!(job.wait().unwrap().success());
    }
    let vip = flows.as_array().unwrap().iter().find(|flow| flow["disk"] == "vip").unwrap();
    let delivered = vip["last_5_s"]["delivered_iops"].as_u64().unwrap();
    assert!(delivered >= 1470, "{flows:#}");
    assert!(daemon.process().is_running());
}

/// It starts from one, works on the other, and sees that grow.
#[test]
fn a_vm_s_disks_survive_the_daemon_s_deaths() {
    let rig = Rig::new().unwrap();
    let verify = program("verify-disk").unwrap();
    let sockets = ["boot", "data"].map(|name| rig.path(&format!("{name}.sock")));
    let vhost_user = |at: usize| format!("vhost_user = {{ socket = \"{}\" }}", sockets[at]);
    let tables = disk("boot", "raw", &vhost_user(0))
        + &disk("data", "vhdx", &(vhost_user(1) + "\nserial = \"S-1\""));
    let toml = disks(&rig, &tables);
    let image = rig.file("store/boot.raw");
    make_root_disk(&rig, &image, DISK_BYTES, &[verify.into()]).unwrap();
    let mut daemon = Daemon::start(&rig, &toml).unwrap();
    let mut guest = Guest::start(
        &rig,
        &GuestSpec {
            name: "vm".to_owned(),
            disks: sockets.iter().map(GuestDisk::new).collect(),
            boot: Boot::RootDisk,
            ..GuestSpec::default()
        },
    )
    .unwrap();
    assert!(guest.run("mount").unwrap().contains("/dev/vda on / type ext4"));
    let sight = guest.disk("vdb").unwrap();
    assert_eq!((sight.bytes, sight.serial.as_str()), (DISK_BYTES, "S-1"));
    guest.begin_verifying("/dev/vdb", 12, "").unwrap();
    for _ in 0..3 {
        // QEMU comes back to each disk by itself; a life begins when it has to both.
        for name in ["boot", "data"] {
            until("VM that is back", PATIENCE, || {
                let status = daemon.json(&["disk", "show", name])?;
                Ok(status["vhost_user"]["queues"].as_u64() > Some(0))
            })
            .unwrap();
        }
        until("load", PATIENCE, || Ok(requests(&daemon, "data", "writes") > WRITES_PER_LIFE))
            .unwrap();
        daemon.kill();
        daemon.restart(&rig).unwrap();
    }
    let said = guest.finish_verifying(Duration::from_secs(120)).unwrap();
    println!("{said}");
    guest.check_disks().unwrap();
    let events = daemon.ok(&["event", "list"]).unwrap();
    assert!(events.contains("6106"), "the driver was ready: {events}");

    daemon.ok(&["disk", "resize", "data", "96MiB"]).unwrap();
    until("the guest's disk to grow", PATIENCE, || Ok(guest.disk("vdb")?.bytes == 96 << 20))
        .unwrap();
    guest.run("echo still there > /root/file && sync && cat /root/file").unwrap();
}
