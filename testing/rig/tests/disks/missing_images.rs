//! Image files that are missing when the daemon starts: the daemon does not create empty images in
//! their place, and the disks work once the files exist again.

use std::fs;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use suimon_rig::{Daemon, Mounted, NbdClient, Rig, run, wait_until};

const PATIENCE: Duration = Duration::from_secs(120);
const BLOCK: [u8; 4096] = [7; 4096];
/// Image file of each disk.
const IMAGES: [(&str, &str); 3] = [("raw", "raw.raw"), ("vhdx", "vhdx.vhdx"), ("good", "good.raw")];

fn host(rig: &Rig, store: &str) -> String {
    let disks = IMAGES.map(|(name, file)| {
        let format = file.rsplit('.').next().unwrap();
        let socket = rig.path("nbd.sock");
        format!(
            "[[disk]]\nname = \"{name}\"\nstore = \"s\"\nformat = \"{format}\"\n\
             size_bytes = \"16 MiB\"\nnbd = {{ socket = \"{socket}\" }}\n"
        )
    });
    format!("[[store]]\nname = \"s\"\npath = \"{store}\"\n") + &disks.concat()
}

fn disk(daemon: &Daemon, name: &str) -> Value {
    daemon.json(&["disk", "show", name]).unwrap()
}

fn wait_state(daemon: &Daemon, name: &str, state: &str) {
    let description = format!("{name} is {state}");
    wait_until(&description, PATIENCE, || Ok(disk(daemon, name)["state"] == state)).unwrap();
}

fn write_all(rig: &Rig) {
    for (name, _) in IMAGES {
        let mut client = NbdClient::connect(&rig.path("nbd.sock"), name).unwrap();
        client.write(1 << 20, &BLOCK, false).unwrap();
    }
}

fn read(rig: &Rig, name: &str) -> [u8; 4096] {
    let mut content = [1; 4096];
    let mut client = NbdClient::connect(&rig.path("nbd.sock"), name).unwrap();
    client.read(1 << 20, &mut content).unwrap();
    content
}

/// Returns the number of image files that were created so far.
fn created(daemon: &Daemon) -> usize {
    let events = daemon.json(&["event", "list", "--id", "6111"]).unwrap();
    events.as_array().unwrap().len()
}

fn assert_failed(daemon: &Daemon, name: &str, path: &str) {
    wait_state(daemon, name, "failed");
    let reason = disk(daemon, name)["reason"].as_str().unwrap().to_owned();
    for part in [path, "store s", "--create-image"] {
        assert!(reason.contains(part), "{reason}");
    }
}

#[test]
fn missing_files_are_not_replaced_by_empty_ones() {
    let rig = Rig::new().unwrap();
    let store = rig.path("store");
    fs::create_dir(&store).unwrap();
    let mut daemon = Daemon::start(&rig, &host(&rig, &store)).unwrap();
    write_all(&rig);
    daemon.kill();
    for (_, file) in &IMAGES[..2] {
        fs::rename(format!("{store}/{file}"), rig.path(file)).unwrap();
    }
    daemon.restart(&rig).unwrap();
    for (name, file) in &IMAGES[..2] {
        assert_failed(&daemon, name, &format!("{store}/{file}"));
        assert!(fs::metadata(format!("{store}/{file}")).is_err(), "{file}");
    }
    wait_state(&daemon, "good", "ready");
    assert_eq!(read(&rig, "good"), BLOCK);
    // Another missing file is reported too.
    let output = daemon.cli(&["disk", "set", "good", "--file", "other.raw"]).unwrap();
    assert!(!output.is_ok() && output.stderr.contains("--create-image"), "{}", output.stderr);
    assert_eq!(read(&rig, "good"), BLOCK);
    for (name, file) in &IMAGES[..2] {
        fs::rename(rig.path(file), format!("{store}/{file}")).unwrap();
        wait_state(&daemon, name, "ready");
        assert_eq!(read(&rig, name), BLOCK, "{name}");
    }
    assert_eq!(created(&daemon), IMAGES.len());
    // An empty image is created on request.
    daemon.kill();
    fs::remove_file(format!("{store}/raw.raw")).unwrap();
    daemon.restart(&rig).unwrap();
    assert_failed(&daemon, "raw", &format!("{store}/raw.raw"));
    daemon.ok(&["disk", "set", "raw", "--create-image"]).unwrap();
    assert_eq!(disk(&daemon, "raw")["state"], "ready");
    assert_eq!(read(&rig, "raw"), [0; 4096]);
    assert_eq!(created(&daemon), IMAGES.len() + 1);
    assert!(daemon.stop().unwrap().success());
}

#[test]
fn a_store_that_is_mounted_after_the_start_is_found() {
    let rig = Rig::new().unwrap();
    let (store, files) = (rig.path("store"), rig.path("files"));
    fs::create_dir(&store).unwrap();
    fs::create_dir(&files).unwrap();
    let mount = || {
        run(&["mount", "--bind", &files, &store]).unwrap();
        Mounted::taken_over(&store)
    };
    let mounted = mount();
    let mut daemon = Daemon::start(&rig, &host(&rig, &store)).unwrap();
    write_all(&rig);
    daemon.kill();
    mounted.unmount().unwrap();
    daemon.restart(&rig).unwrap();
    for (name, file) in IMAGES {
        assert_failed(&daemon, name, &format!("{store}/{file}"));
    }
    assert_eq!(fs::read_dir(&store).unwrap().count(), 0);
    let _mounted = mount();
    for (name, _) in IMAGES {
        wait_state(&daemon, name, "ready");
        assert_eq!(read(&rig, name), BLOCK, "{name}");
    }
    assert_eq!(created(&daemon), IMAGES.len());
    assert!(daemon.stop().unwrap().success());
}

/// Number of kills that must interrupt a change.
const INTERRUPTED: usize = 3;
/// Maximum number of kills; some come after the commit.
const KILLS_MAX: usize = 60;

/// Returns true if a new image has its name and a VHDX was opened, which writes its headers. The
/// daemon sets the modification time of a new image to one second before its creation.
fn is_in_use(image: &str) -> bool {
    fs::metadata(image).is_ok_and(|found| {
        let since_mark = |time: SystemTime| found.modified().ok()?.duration_since(time).ok();
        !image.ends_with(".vhdx") || found.created().is_ok_and(|at| since_mark(at).is_some())
    })
}

/// The daemon is killed when the new image has its name, or when it was opened, usually before the
/// commit of the change.
fn assert_not_opened_after_a_kill(disk_name: &str, file: &str) {
    let rig = Rig::new().unwrap();
    let store = rig.path("store");
    fs::create_dir(&store).unwrap();
    let image = format!("{store}/{file}");
    let mut daemon = Daemon::start(&rig, &host(&rig, &store)).unwrap();
    daemon.kill();
    fs::remove_file(&image).unwrap();
    daemon.restart(&rig).unwrap();
    assert_failed(&daemon, disk_name, &image);
    let mut interrupted = 0;
    for kill in 0..KILLS_MAX {
        let serial = format!("S{kill}");
        let process = Pid::from_raw(daemon.process().id().try_into().unwrap()).unwrap();
        let client = &daemon;
        thread::scope(|scope| {
            let arguments = ["disk", "set", disk_name, "--serial", &serial, "--create-image"];
            let set = scope.spawn(move || drop(client.cli(&arguments)));
            let limit = Instant::now() + PATIENCE;
            while !is_in_use(&image) && !set.is_finished() && Instant::now() < limit {
                thread::yield_now();
            }
            kill_process(process, Signal::KILL).unwrap();
        });
        // The request ends when the process has ended.
        let is_interrupted = is_in_use(&image);
        daemon.restart(&rig).unwrap();
        if disk(&daemon, disk_name)["config"]["serial"] == serial {
            // The change was committed before the kill.
            wait_state(&daemon, disk_name, "ready");
            daemon.kill();
            fs::remove_file(&image).unwrap();
            daemon.restart(&rig).unwrap();
        } else if is_interrupted {
            interrupted += 1;
        }
        assert_failed(&daemon, disk_name, &image);
        assert!(fs::metadata(&image).is_err(), "{interrupted} changes were interrupted");
        if interrupted == INTERRUPTED {
            break;
        }
    }
    assert!(interrupted > 0, "no kill came between the creation and the commit");
    wait_state(&daemon, "good", "ready");
    daemon.ok(&["disk", "set", disk_name, "--create-image"]).unwrap();
    assert_eq!(disk(&daemon, disk_name)["state"], "ready");
    assert!(daemon.stop().unwrap().success());
}

#[test]
fn an_image_of_a_killed_change_is_not_opened_as_the_image_of_its_disk() {
    assert_not_opened_after_a_kill("raw", "raw.raw");
}

#[test]
fn a_vhdx_of_a_killed_change_is_not_opened_as_the_image_of_its_disk() {
    assert_not_opened_after_a_kill("vhdx", "vhdx.vhdx");
}
