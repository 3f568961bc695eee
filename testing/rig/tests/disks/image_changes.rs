//! Changes of image files with and without the daemon: what they preserve, and how failures are
//! reported.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use suimon_rig::{
    Daemon, NbdClient, Output, Rig, program, run, run_any, wait_for_value, wait_until,
};

const PATIENCE: Duration = Duration::from_secs(120);
const MIB: u64 = 1 << 20;

fn image_with(socket: &str, arguments: &[&str]) -> Output {
    let program = program("suimon").unwrap();
    let command =
        [&[program.as_str(), "--socket", socket, "--json", "image"][..], arguments].concat();
    run_any(&command, PATIENCE).unwrap()
}

/// Runs `suimon image` without a daemon.
fn image(rig: &Rig, arguments: &[&str]) -> Output {
    image_with(&rig.path("none.sock"), arguments)
}

fn host(rig: &Rig, format: &str, file: &str, extra: &str) -> String {
    format!(
        "[[store]]\nname = \"s\"\npath = \"{}\"\n[[disk]]\nname = \"web\"\nstore = \"s\"\n\
         file = \"{file}\"\nformat = \"{format}\"\n{extra}\nnbd = {{ socket = \"{}\" }}\n",
        rig.path("store"),
        rig.path("nbd.sock")
    )
}

fn modified(file: &str) -> (i64, i64) {
    let metadata = fs::metadata(file).unwrap();
    (metadata.mtime(), metadata.mtime_nsec())
}

/// Child images of a VHD identify their parent by its modification time in seconds. Opening the
/// parent for writing and repairs change no content, so they must preserve the time.
#[test]
fn a_vhd_parent_keeps_its_child_when_it_is_repaired_or_opened() {
    let rig = Rig::new().unwrap();
    fs::create_dir(rig.path("store")).unwrap();
    let (base, child) = (rig.path("store/base.vhd"), rig.path("store/child.vhd"));
    run(&["qemu-img", "create", "-q", "-f", "vpc", &base, "20M"]).unwrap();
    let mut daemon = Daemon::start(&rig, &host(&rig, "vhd", "base.vhd", "")).unwrap();
    daemon.ok(&["disk", "snapshot", "web", "child.vhd"]).unwrap();
    assert!(daemon.stop().unwrap().success());
    let before = modified(&base);
    wait_until("the next second", PATIENCE, || {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
        Ok(i64::try_from(now)? > before.0 + 1)
    })
    .unwrap();
    let parent = || {
        let info: Value = serde_json::from_str(&image(&rig, &["info", &child]).stdout).unwrap();
        info["parent"]["file"].as_str().map(str::to_owned)
    };
    let sound = image(&rig, &["repair", &base]);
    assert!(sound.is_ok() && modified(&base) == before, "{sound:?} {:?}", modified(&base));
    assert_eq!(parent().as_deref(), Some(base.as_str()));

    // Damages the copy of the footer, as another program may do.
    let file = fs::File::options().write(true).open(&base).unwrap();
    let time = file.metadata().unwrap().modified().unwrap();
    file.write_all_at(&[0x5a; 8], 0).unwrap();
    file.set_modified(time).unwrap();
    drop(file);
    let repaired = image(&rig, &["repair", &base]);
    assert!(repaired.is_ok() && modified(&base) == before, "{repaired:?} {:?}", modified(&base));
    let report: Value = serde_json::from_str(&repaired.stdout).unwrap();
    let undone = image(&rig, &["repair", &base, "--undo", report["backup"].as_str().unwrap()]);
    assert!(undone.is_ok() && modified(&base) == before, "{undone:?} {:?}", modified(&base));

    // The daemon opens the parent for writing and repairs the footer, but no client writes.
    let with_child = host(&rig, "vhd", "child.vhd", "");
    daemon.restart(&rig).unwrap();
    daemon.apply_ok(&with_child).unwrap();
    daemon.ok(&["disk", "delete", "web"]).unwrap();
    let with_base = host(&rig, "vhd", "base.vhd", "");
    let refused = daemon.apply(&with_base, &[]).unwrap();
    let reason = "base.vhd is the parent of child.vhd";
    assert!(!refused.is_ok() && refused.stderr.contains(reason), "{refused:?}");
    let aside = rig.path("child.vhd");
    fs::rename(&child, &aside).unwrap();
    daemon.apply_ok(&with_base).unwrap();
    assert_eq!(daemon.json(&["disk", "show", "web"]).unwrap()["state"], "ready");
    fs::rename(&aside, &child).unwrap();
    daemon.apply_ok(&with_child).unwrap();
    assert_eq!(daemon.json(&["disk", "show", "web"]).unwrap()["state"], "ready");
    assert_eq!(image(&rig, &["check", &base]).code, 0);
    assert_eq!(modified(&base), before);
    assert!(daemon.stop().unwrap().success());
    assert_eq!(parent().as_deref(), Some(base.as_str()));
}

/// Redo records of a daemon of another user prevent changes of the image by any user.
#[test]
fn acknowledged_writes_of_another_users_daemon_are_kept() {
    let rig = Rig::new().unwrap();
    fs::create_dir(rig.path("store")).unwrap();
    let file = rig.path("store/disk.vhdx");
    let host = host(&rig, "vhdx", "disk.vhdx", "kind = \"dynamic\"\nsize_bytes = \"64 MiB\"");
    let mut daemon = Daemon::start(&rig, &host).unwrap();
    let mut client = wait_for_value("a connection to the disk", PATIENCE, || {
        NbdClient::connect(&rig.path("nbd.sock"), "web").map(Some)
    })
    .unwrap();
    let socket = daemon.socket().to_owned();
    // The write allocates a block shortly before the daemon is killed, so it is in a record but not
    // in the image.
    client.write(8 * MIB, &[7; 4096], false).unwrap();
    daemon.kill();
    let folder = format!("{socket}.redo");
    for entry in fs::read_dir(&folder).unwrap() {
        chown(entry.unwrap().path(), Some(12345), Some(12345)).unwrap();
    }
    chown(&folder, Some(12345), Some(12345)).unwrap();
    let before = fs::read(&file).unwrap();
    for verb in [["repair", &file].as_slice(), &["repair", "--dry-run", &file]] {
        let output = image_with(&socket, verb);
        assert_eq!(output.code, 1, "{output:?}");
        assert!(output.stderr.contains("completed writes"), "{output:?}");
    }
    assert_eq!(fs::read(&file).unwrap(), before);
    // An unreadable record directory prevents changes too.
    let renamed_folder = format!("{socket}.kept");
    fs::rename(&folder, &renamed_folder).unwrap();
    fs::write(&folder, "").unwrap();
    let output = image_with(&socket, &["repair", &file]);
    assert!(output.code == 1 && output.stderr.contains("run as the daemon's user"), "{output:?}");
    fs::remove_file(&folder).unwrap();
    assert_eq!(image_with(&socket, &["repair", &file, "--dry-run"]).code, 0);
}

/// Every reason for which an image cannot be checked results in exit code 1, as with `qemu-img
/// check`; other codes are those of check reports.
#[test]
fn a_check_that_cannot_run_has_the_exit_code_of_qemu_img() {
    let rig = Rig::new().unwrap();
    fs::create_dir(rig.path("store")).unwrap();
    let mut daemon =
        Daemon::start(&rig, &host(&rig, "vhdx", "disk.vhdx", "size_bytes = \"8 MiB\"")).unwrap();
    fs::write(rig.path("store/raw"), vec![0; 4096]).unwrap();
    let of_qemu = run_any(&["qemu-img", "check", &rig.path("nothing.vhdx")], PATIENCE).unwrap();
    assert_eq!(of_qemu.code, 1, "{of_qemu:?}");
    let raw = daemon.cli(&["image", "check", "--store", "s", "raw"]).unwrap();
    assert_eq!(raw.code, 63, "{raw:?}");
    for verb in ["check", "repair"] {
        for arguments in [
            ["--store", "s", "disk.vhdx"].as_slice(),
            &["--store", "s", "nothing.vhdx"],
            &["--store", "s", "../outside"],
            &["--store", "other", "disk.vhdx"],
            &["--store", "s", "--format", "qcow2", "disk.vhdx"],
            &["--store", "s"],
            &[&rig.path("store/disk.vhdx")],
            &[&rig.path("nothing")],
        ] {
            let output = daemon.cli(&[&["image", verb][..], arguments].concat()).unwrap();
            assert_eq!(output.code, 1, "{verb} {arguments:?}: {output:?}");
            assert!(!output.stderr.trim().is_empty() && output.stdout.is_empty(), "{output:?}");
        }
    }
    assert!(daemon.stop().unwrap().success());
    let output = image(&rig, &["check", "--store", "s", "disk.vhdx"]);
    assert_eq!(output.code, 1, "{output:?}");
    assert_eq!(image(&rig, &["check", &rig.path("store/disk.vhdx")]).code, 0);
}

/// If suimond is missing or has another version, the error names a remedy.
#[test]
fn a_tool_that_is_missing_or_fails_is_named() {
    let rig = Rig::new().unwrap();
    let folder = rig.path("bin");
    fs::create_dir(&folder).unwrap();
    let (suimon, tool) = (format!("{folder}/suimon"), format!("{folder}/suimond"));
    fs::copy(program("suimon").unwrap(), &suimon).unwrap();
    let check = || run_any(&["env", "PATH=/nowhere", &suimon, "image", "check", "x"], PATIENCE);
    let missing = check().unwrap();
    assert_eq!(missing.code, 1, "{missing:?}");
    assert!(
        missing.stderr.contains("is neither in the directory of suimon nor in PATH"),
        "{missing:?}"
    );
    for (script, expected) in [
        ("kill -9 $$", "signal: 9"),
        ("echo '{}'", "install suimon and suimond of the same version"),
        ("echo broken >&2; exit 101", "exit status: 101: broken"),
        ("echo 'no image' >&2; exit 1", "suimon: no image"),
    ] {
        fs::write(&tool, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
        let failed = check().unwrap();
        assert_eq!(failed.code, 1, "{script}: {failed:?}");
        assert!(failed.stderr.contains(expected), "{script}: {failed:?}");
    }
}
