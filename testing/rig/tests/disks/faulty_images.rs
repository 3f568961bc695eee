//! Images in the configuration that cannot be opened: the daemon starts nevertheless, and the
//! images are repaired while it runs.

use std::fs;
use std::time::Duration;

use serde_json::Value;
use suimon_rig::{Daemon, NbdClient, Rig, run, wait_until};

const PATIENCE: Duration = Duration::from_secs(120);
/// Disks with faulty images, and a part of the reported reason of each.
const FAULTY: [(&str, &str); 4] = [
    ("footer", "Cookie"),
    ("format", "not an image of this format"),
    ("orphan", "missing.vhdx"),
    ("folder", "is a directory"),
];

fn disk_toml(rig: &Rig, name: &str, format: &str, extra: &str) -> String {
    let socket = rig.path("nbd.sock");
    format!(
        "[[disk]]\nname = \"{name}\"\nstore = \"s\"\nfile = \"{name}.{format}\"\n\
         format = \"{format}\"\n{extra}\nnbd = {{ socket = \"{socket}\" }}\n"
    )
}

fn host(rig: &Rig) -> String {
    let dynamic = "kind = \"dynamic\"\nsize_bytes = \"16 MiB\"";
    let disks = [
        ("footer", "vhd", dynamic),
        ("good", "vhdx", dynamic),
        ("format", "vhdx", dynamic),
        ("orphan", "vhdx", "kind = \"differencing\"\nparent = \"missing.vhdx\""),
        ("folder", "raw", "size_bytes = \"16 MiB\""),
    ];
    let disks = disks.map(|(name, format, extra)| disk_toml(rig, name, format, extra));
    format!("[[store]]\nname = \"s\"\npath = \"{}\"\n", rig.path("store")) + &disks.concat()
}

/// Creates a damaged image, an image of another format, and a folder in place of an image; a parent
/// is missing.
fn make_faulty(rig: &Rig) {
    let file = |name: &str| rig.path(&format!("store/{name}"));
    fs::create_dir(rig.path("store")).unwrap();
    for name in ["footer.vhd", "format.vhdx"] {
        run(&["qemu-img", "create", "-q", "-f", "vpc", &file(name), "16M"]).unwrap();
    }
    // Overwrites both copies of the footer.
    let mut bytes = fs::read(file("footer.vhd")).unwrap();
    let last = bytes.len() - 512;
    bytes[..512].fill(0);
    bytes[last..].fill(0);
    fs::write(file("footer.vhd"), bytes).unwrap();
    fs::create_dir(file("folder.raw")).unwrap();
}

fn disk(daemon: &Daemon, name: &str) -> Value {
    daemon.json(&["disk", "show", name]).unwrap()
}

fn check(rig: &Rig, daemon: &Daemon) {
    for (name, expected_reason) in FAULTY {
        wait_until(&format!("{name} is failed"), PATIENCE, || {
            let disk_status = disk(daemon, name);
            let reason = disk_status["reason"].as_str().unwrap_or_default();
            Ok(disk_status["state"] == "failed" && reason.contains(expected_reason))
        })
        .unwrap();
    }
    wait_until("the good disk works", PATIENCE, || Ok(disk(daemon, "good")["state"] == "ready"))
        .unwrap();
    let mut client = NbdClient::connect(&rig.path("nbd.sock"), "good").unwrap();
    client.write(0, &[1; 4096], true).unwrap();
}

#[test]
fn faulty_images_keep_nothing_else_from_starting() {
    let rig = Rig::new().unwrap();
    make_faulty(&rig);
    let mut daemon = Daemon::start(&rig, &host(&rig)).unwrap();
    check(&rig, &daemon);
    let mut events = String::new();
    wait_until("an event of each faulty image", PATIENCE, || {
        events = daemon.ok(&["event", "list", "--id", "6108"])?;
        Ok(FAULTY.into_iter().all(|(name, reason)| {
            events.lines().any(|line| line.contains(name) && line.contains(reason))
        }))
    })
    .unwrap_or_else(|error| panic!("{error:#}: {events}"));
    // A later start has the same result.
    assert!(daemon.stop().unwrap().success());
    daemon.restart(&rig).unwrap();
    check(&rig, &daemon);
    // A requested change is made completely or not at all.
    fs::copy(rig.path("store/format.vhdx"), rig.path("store/again.vhdx")).unwrap();
    let config = rig.path("more.toml");
    let repeated = disk_toml(&rig, "again", "vhdx", "kind = \"dynamic\"\nsize_bytes = \"16 MiB\"");
    fs::write(&config, host(&rig) + &repeated).unwrap();
    let output = daemon.cli(&["apply", "-f", &config]).unwrap();
    let is_reported = output.stderr.contains("again.vhdx: FileIdentifier.Signature");
    assert!(!output.is_ok() && is_reported, "{}{}", output.stdout, output.stderr);
    assert!(!daemon.cli(&["disk", "show", "again"]).unwrap().is_ok());
    // A repaired image is opened without a further change.
    let footer = rig.path("store/footer.vhd");
    run(&["qemu-img", "create", "-q", "-f", "vpc", &footer, "16M"]).unwrap();
    wait_until("the image is opened", PATIENCE, || Ok(disk(&daemon, "footer")["state"] == "ready"))
        .unwrap();
    for (name, _) in FAULTY.into_iter().skip(1) {
        assert_eq!(disk(&daemon, name)["state"], "failed", "{name}");
    }
}
