//! Image files, with and without a daemon, compared with QEMU's tools.

use std::fs;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use serde_json::Value;
use suimon_rig::{Daemon, Output, Process, Rig, program, run, run_any, wait_until};

const PATIENCE: Duration = Duration::from_secs(120);
const MIB: usize = 1 << 20;

/// Runs `suimon image` without a daemon.
fn image(rig: &Rig, arguments: &[&str]) -> Output {
    let socket = rig.path("none.sock");
    let program = program("suimon").unwrap();
    let command =
        [&[program.as_str(), "--socket", &socket, "--json", "image"][..], arguments].concat();
    run_any(&command, PATIENCE).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// Returns exit code and JSON output of `qemu-img`.
fn qemu(arguments: &[&str]) -> (i32, Value) {
    let output = run_any(&[&["qemu-img"][..], arguments].concat(), PATIENCE).unwrap();
    (output.code, serde_json::from_str(&output.stdout).unwrap_or(Value::Null))
}

/// Creates a raw file with content, and images of it with QEMU. Returns QEMU's format name, kind
/// and path of each.
fn qemu_images(rig: &Rig) -> Vec<(&'static str, &'static str, String)> {
    let mut bytes = vec![0; 20 * MIB];
    for (nth, byte) in (0_u32..).zip(&mut bytes[3 * MIB..9 * MIB]) {
        *byte = (nth.wrapping_mul(2_654_435_761) >> 24) as u8;
    }
    fs::write(rig.path("content.raw"), bytes).unwrap();
    let kinds = [("vhd", "dynamic"), ("vhd", "fixed"), ("vhdx", "dynamic"), ("vhdx", "fixed")];
    kinds
        .map(|(format, kind)| {
            let file = rig.path(&format!("{kind}.{format}"));
            let (qemu_format, exact) =
                if format == "vhd" { ("vpc", ",force_size=on") } else { (format, "") };
            let options = format!("subformat={kind}{exact}");
            let content = rig.path("content.raw");
            run(&[
                "qemu-img",
                "convert",
                "-f",
                "raw",
                "-O",
                qemu_format,
                "-o",
                &options,
                &content,
                &file,
            ])
            .unwrap();
            (qemu_format, kind, file)
        })
        .into()
}

fn has_content(rig: &Rig, qemu_format: &str, file: &str) {
    let content = rig.path("content.raw");
    run(&["qemu-img", "compare", "-f", "raw", "-F", qemu_format, &content, file]).unwrap();
}

/// Overwrites `len` bytes of a file. A negative offset counts from the end.
fn damage(file: &str, damage_offset: i64, len: usize) {
    let opened = fs::File::options().write(true).open(file).unwrap();
    let end = opened.metadata().unwrap().len();
    let start = if damage_offset < 0 {
        end.checked_add_signed(damage_offset).unwrap()
    } else {
        damage_offset.unsigned_abs()
    };
    opened.write_all_at(&vec![0x5a; len], start).unwrap();
}

#[test]
fn images_are_described_and_checked_as_qemu_does() {
    let rig = Rig::new().unwrap();
    for (qemu_format, kind, file) in qemu_images(&rig) {
        let (_, expected) = qemu(&["info", "--output=json", "-f", qemu_format, &file]);
        let output = image(&rig, &["info", &file]);
        let info = json(&output);
        assert!(output.is_ok(), "{output:?}");
        for (info_key, of_qemu) in [
            ("size_bytes", "virtual-size"),
            ("allocated_bytes", "actual-size"),
            ("block_bytes", "cluster-size"),
            ("dirty", "dirty-flag"),
        ] {
            assert_eq!(info[info_key], expected[of_qemu], "{file} {info_key}: {info} {expected}");
        }
        assert_eq!(
            (info["kind"].as_str(), info["file"].as_str()),
            (Some(kind), Some(file.as_str()))
        );
        let (code, _) = qemu(&["check", "--output=json", "-f", qemu_format, &file]);
        let output = image(&rig, &["check", &file]);
        // QEMU has no check for VHDs.
        assert_eq!(output.code, if qemu_format == "vpc" { 0 } else { code }, "{output:?}");
        assert_eq!(json(&output)["verdict"], "sound", "{output:?}");
    }
    let raw = rig.path("content.raw");
    let (code, _) = qemu(&["check", "--output=json", "-f", "raw", &raw]);
    let output = image(&rig, &["check", &raw]);
    assert_eq!((output.code, code), (63, 63), "{output:?}");
    let output = image(&rig, &["check", &rig.path("nothing.vhdx")]);
    let (code, _) = qemu(&["check", "-f", "vhdx", &rig.path("nothing.vhdx")]);
    assert_eq!((output.code, code), (1, 1), "{output:?}");
}

#[test]
fn damaged_images_are_repaired_so_that_qemu_reads_their_content() {
    let rig = Rig::new().unwrap();
    let (vhd, vhdx) = (rig.path("dynamic.vhd"), rig.path("dynamic.vhdx"));
    for (qemu_format, file, damage_offset, len) in [
        ("vpc", &vhd, -512, 512),
        ("vpc", &vhd, 0, 512),
        ("vhdx", &vhdx, 64 << 10, 4096),
        ("vhdx", &vhdx, 128 << 10, 4096),
        ("vhdx", &vhdx, 192 << 10, 64 << 10),
        ("vhdx", &vhdx, 0, 8),
    ] {
        qemu_images(&rig);
        damage(file, damage_offset, len);
        let damaged = fs::read(file).unwrap();
        let output = image(&rig, &["check", file]);
        assert_eq!(
            (output.code, json(&output)["verdict"].as_str()),
            (2, Some("damaged")),
            "{damage_offset}"
        );
        let planned = image(&rig, &["repair", "--dry-run", file]);
        assert!(planned.is_ok() && fs::read(file).unwrap() == damaged, "{planned:?}");
        let repair = image(&rig, &["repair", file]);
        assert!(repair.is_ok(), "{repair:?}");
        assert_eq!(json(&repair)["actions"], json(&planned)["actions"]);
        assert_eq!(image(&rig, &["check", file]).code, 0);
        if qemu_format == "vhdx" {
            assert_eq!(qemu(&["check", "-f", qemu_format, file]).0, 0, "{damage_offset}");
        }
        has_content(&rig, qemu_format, file);
        let backup = json(&repair)["backup"].as_str().unwrap().to_owned();
        let undone = image(&rig, &["repair", "--undo", &backup, file]);
        assert!(undone.is_ok() && fs::read(file).unwrap() == damaged, "{undone:?}");
        fs::remove_file(backup).unwrap();
    }
    // Damage without a redundant copy, in an entry of the block allocation table, is reported and
    // not changed.
    qemu_images(&rig);
    damage(&vhd, 1536 + 4, 4);
    let damaged = fs::read(&vhd).unwrap();
    assert_eq!(image(&rig, &["repair", &vhd]).code, 2);
    assert_eq!(fs::read(&vhd).unwrap(), damaged);
    // Damage that leaks space only.
    let opened = fs::File::options().write(true).open(&vhdx).unwrap();
    opened
        .set_len(opened.metadata().unwrap().len().next_multiple_of(1 << 20) + (40 << 20))
        .unwrap();
    assert_eq!(image(&rig, &["check", &vhdx]).code, 3);
    assert!(image(&rig, &["repair", &vhdx]).is_ok());
    has_content(&rig, "vhdx", &vhdx);
}

#[test]
fn images_in_use_are_refused() {
    let rig = Rig::new().unwrap();
    qemu_images(&rig);
    let file = rig.path("dynamic.vhdx");
    let socket = rig.path("qemu-nbd.sock");
    let arguments = ["qemu-nbd", "--persistent", "-f", "vhdx", "-k", &socket, &file];
    let arguments: Vec<String> = arguments.map(str::to_owned).into();
    let server = Process::start(&rig, "qemu-nbd", &arguments).unwrap();
    wait_until("QEMU to open the image", PATIENCE, || Ok(fs::exists(&socket)?)).unwrap();
    for arguments in [["info", &file].as_slice(), &["check", &file], &["repair", &file]] {
        let output = image(&rig, arguments);
        assert!(output.code == 1 && output.stderr.contains("in use"), "{arguments:?} {output:?}");
    }
    drop(server);
    wait_until("the image is unused", PATIENCE, || Ok(image(&rig, &["info", &file]).is_ok()))
        .unwrap();
}

fn host(rig: &Rig, file: &str, extra: &str) -> String {
    format!(
        "[[store]]\nname = \"s\"\npath = \"{}\"\n[[disk]]\nname = \"web\"\nstore = \"s\"\n\
         file = \"{file}\"\nformat = \"vhdx\"\n{extra}\nnbd = {{ socket = \"{}\" }}\n",
        rig.path("store"),
        rig.path("nbd.sock")
    )
}

fn state(daemon: &Daemon) -> Value {
    daemon.json(&["disk", "show", "web"]).unwrap()
}

/// An existing child image needs neither kind nor parent in the configuration. If the parent was
/// moved, the error names the commands that set or relink it.
#[test]
fn a_child_is_opened_with_the_recorded_parent_and_linked_to_a_moved_one() {
    let rig = Rig::new().unwrap();
    let store = |name: &str| rig.path(&format!("store/{name}"));
    fs::create_dir_all(store("moved")).unwrap();
    run(&["qemu-img", "create", "-q", "-f", "vhdx", &store("base.vhdx"), "20M"]).unwrap();
    let mut daemon = Daemon::start(&rig, &host(&rig, "base.vhdx", "")).unwrap();
    daemon.ok(&["disk", "snapshot", "web", "child.vhdx"]).unwrap();
    daemon.apply_ok(&host(&rig, "child.vhdx", "")).unwrap();
    let disk_status = state(&daemon);
    assert_eq!(
        (disk_status["kind"].as_str(), disk_status["parent"].as_str()),
        (Some("differencing"), Some("base.vhdx"))
    );
    assert_eq!(
        (disk_status["state"].as_str(), &disk_status["config"]["kind"]),
        (Some("ready"), &Value::Null)
    );
    // A file that is in use is rejected, with the daemon and without it.
    let in_use = daemon.cli(&["image", "repair", "--store", "s", "child.vhdx"]).unwrap();
    assert!(in_use.code == 1 && in_use.stderr.contains("in use"), "{in_use:?}");
    let in_use = image(&rig, &["check", &store("child.vhdx")]);
    assert!(in_use.code == 1 && in_use.stderr.contains("in use"), "{in_use:?}");

    assert!(daemon.stop().unwrap().success());
    fs::rename(store("base.vhdx"), store("moved/base.vhdx")).unwrap();
    daemon.restart(&rig).unwrap();
    wait_until("the parent is missing", PATIENCE, || Ok(state(&daemon)["state"] == "failed"))
        .unwrap();
    let reason = state(&daemon)["reason"].as_str().unwrap().to_owned();
    let commands =
        "suimon disk set web --parent PARENT, or suimon image relink --store s child.vhdx PARENT";
    assert!(reason.contains(r"the image records .\base.vhdx; searched base.vhdx"), "{reason}");
    assert!(reason.contains(commands), "{reason}");

    let info = daemon.json(&["image", "info", "--store", "s", "child.vhdx"]).unwrap();
    assert!(info["parent"]["reason"].as_str().unwrap().contains("parent not found"), "{info}");
    let link = ["image", "relink", "--store", "s", "child.vhdx", "moved/base.vhdx"];
    daemon.ok(&[&link[..], &["--dry-run"]].concat()).unwrap();
    assert_eq!(state(&daemon)["state"], "failed");
    let linked = daemon.json(&link).unwrap();
    assert!(linked["backup"].as_str().unwrap().starts_with("child.vhdx.backup-"), "{linked}");
    wait_until("the disk works", PATIENCE, || Ok(state(&daemon)["state"] == "ready")).unwrap();
    assert_eq!(state(&daemon)["parent"], "moved/base.vhdx");
    assert!(daemon.ok(&["event", "list", "--id", "6141"]).unwrap().contains("child.vhdx"));

    // The configuration's key takes precedence over the image's parent.
    assert!(daemon.stop().unwrap().success());
    fs::rename(store("moved/base.vhdx"), store("moved/again.vhdx")).unwrap();
    daemon.restart(&rig).unwrap();
    wait_until("the parent is missing", PATIENCE, || Ok(state(&daemon)["state"] == "failed"))
        .unwrap();
    daemon.ok(&["disk", "set", "web", "--parent", "moved/again.vhdx"]).unwrap();
    assert_eq!(state(&daemon)["state"], "ready");
    let output =
        daemon.cli(&["disk", "set", "web", "--kind", "dynamic", "--unset", "parent"]).unwrap();
    assert!(output.code == 3 && output.stderr.contains("differencing in the image"), "{output:?}");
    assert_eq!(state(&daemon)["state"], "ready");
    // Without a daemon, with any working directory.
    assert!(daemon.stop().unwrap().success());
    let linked = image(&rig, &["relink", &store("child.vhdx"), &store("moved/again.vhdx")]);
    assert!(linked.is_ok(), "{linked:?}");
    let info = json(&image(&rig, &["info", &store("child.vhdx")]));
    assert_eq!(info["parent"]["file"].as_str(), Some(store("moved/again.vhdx").as_str()), "{info}");
}
