//! Tests of requests that are rejected before they change the host.

use crate::support;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::support::{Notices, Site};
use suimon_ports::{VmAccelerator, VmBoot, VmErrorKind, VmHost, VmSpec};
use suimon_qemu::QemuHost;

fn start_error(host: &QemuHost, spec: &VmSpec) -> suimon_ports::VmError {
    let (observer, notices) = Notices::new();
    let error = host.start(spec, observer).err().expect("the start is rejected");
    assert!(notices.so_far().is_empty(), "a VM that was never running has ended");
    error
}

#[test]
fn a_missing_or_invalid_qemu_is_reported() {
    for (qemu, text) in [("/nonexistent/qemu", "install"), ("/bin/true", "no version")] {
        let mut site = Site::empty();
        site.start_launcher(Some(qemu));
        let host = site.host();
        let spec = site.spec("none");
        host.create_folder(&spec.folder, spec.uid).unwrap();
        for error in [host.probe(&spec).unwrap_err(), start_error(&host, &spec)] {
            assert_eq!(error.kind, VmErrorKind::Host);
            assert!(error.text.contains(qemu) && error.text.contains(text), "{error}");
        }
    }
}

#[test]
fn a_folder_that_the_vms_user_cannot_reach() {
    let site = Site::new();
    let host = site.host();
    let spec = site.spec("closed");
    host.create_folder(&spec.folder, spec.uid).unwrap();
    let parent = site.path("");
    fs::set_permissions(&parent, fs::Permissions::from_mode(0o700)).unwrap();
    let error = start_error(&host, &spec);
    assert_eq!(error.kind, VmErrorKind::Refused);
    let remedy = format!("chmod o+x {}", parent.display().to_string().trim_end_matches('/'));
    assert!(error.text.contains(&remedy), "{error}");
    assert!(error.text.contains(&spec.uid.to_string()), "{error}");
    // Once permitted, the VM starts without being prepared again.
    fs::set_permissions(&parent, fs::Permissions::from_mode(0o755)).unwrap();
    let (vm, _notices) = site.start(&host, &spec);
    host.kill(&vm.identity()).unwrap();
}

#[test]
fn a_failed_launcher_reports_the_reason() {
    let site = Site::empty();
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "echo 'the folder is not there'; echo more >&2; exit 1"]);
    let error = suimon_qemu::start_launcher(&site.socket(), command).unwrap_err();
    assert_eq!(error.to_string(), "the VM launcher failed: the folder is not there");
    let silent = suimon_qemu::start_launcher(&site.socket(), Command::new("/bin/false"));
    assert!(silent.unwrap_err().to_string().contains("ended with exit status: 1"));
}

#[test]
fn a_qemu_that_exits_at_once_reports_the_reason() {
    let site = Site::new();
    let host = site.host();
    // Firmware of a length that no flash device has.
    let mut spec = site.obedient("short");
    let code = site.path("code.bin");
    fs::write(&code, [0; 1000]).unwrap();
    host.create_folder(&spec.folder, spec.uid).unwrap();
    let error = start_error(&host, &spec);
    assert_eq!(error.kind, VmErrorKind::Host);
    assert!(error.text.contains("status 1") && error.text.contains("invalid size"), "{error}");
    assert!(host.running_vms().unwrap().is_empty());
    for name in ["qmp.sock", "console.sock", "launched.json"] {
        assert!(!spec.folder.join(name).exists(), "{name}");
    }
    spec.boot = VmBoot::Bios;
    let (vm, _notices) = site.start(&host, &spec);
    host.kill(&vm.identity()).unwrap();
}

#[test]
fn resources_missing_from_the_host_are_reported() {
    let site = Site::new();
    let host = site.host();
    let refuse = |spec: &VmSpec, word: &str| {
        let error = host.probe(spec).unwrap_err();
        assert_eq!(error.kind, VmErrorKind::Host, "{error}");
        assert!(error.text.contains(word), "{error}");
    };
    refuse(&VmSpec { memory_bytes: 1 << 50, ..site.spec("huge") }, "memory");
    refuse(&VmSpec { huge_pages: true, memory_bytes: 1 << 50, ..site.spec("pages") }, "huge pages");
    refuse(
        &VmSpec { cdrom: Some("/nonexistent.iso".into()), ..site.spec("cd") },
        "/nonexistent.iso",
    );
    // Files are read with the permissions of the VM's user, and not with those of the launcher.
    let secret =
        VmBoot::Direct { kernel: "/etc/shadow".into(), initrd: None, command_line: String::new() };
    refuse(&VmSpec { boot: secret, ..site.spec("thief") }, "/etc/shadow");
    let variables = "/etc/shadow".into();
    let secret = VmBoot::Uefi { code: "/etc/passwd".into(), variables };
    refuse(&VmSpec { boot: secret, ..site.spec("copier") }, "/etc/shadow");
    let has_kvm = fs::read_to_string("/proc/cpuinfo").unwrap();
    if !has_kvm.split_whitespace().any(|flag| matches!(flag, "vmx" | "svm")) {
        let accelerator = Some(VmAccelerator::Kvm);
        refuse(&VmSpec { accelerator, ..site.spec("kvm") }, "KVM");
        host.probe(&VmSpec { accelerator: None, ..site.spec("any") }).unwrap();
    }
}

#[test]
fn users_of_the_host() {
    let site = Site::new();
    let host = site.host();
    for user in [0, 1, 65534] {
        let spec = VmSpec { uid: user, ..site.spec("user") };
        assert_eq!(host.probe(&spec).unwrap_err().kind, VmErrorKind::Refused, "{user}");
        let error = host.create_folder(&spec.folder, user).unwrap_err();
        assert_eq!(error.kind, VmErrorKind::Refused, "{user}");
    }
}

#[test]
fn folders_that_are_none_of_a_vm() {
    let site = Site::new();
    let host = site.host();
    let spec = site.spec("real");
    let other_folder = site.path("elsewhere");
    fs::create_dir(&other_folder).unwrap();
    fs::write(other_folder.join("file"), "x").unwrap();
    symlink(&other_folder, site.vm_folder("link")).unwrap();
    let root = site.vm_folder("x");
    let root = root.parent().unwrap();
    let invalid = [
        site.vm_folder("link"),
        other_folder.clone(),
        root.join("../elsewhere"),
        root.join("a/b"),
        root.join(".."),
        root.to_owned(),
        Path::new("/etc").to_owned(),
        Path::new("relative").to_owned(),
    ];
    for folder in &invalid {
        let prepared = host.create_folder(folder, spec.uid).unwrap_err();
        let removed = host.remove_folder(folder).unwrap_err();
        let started = start_error(&host, &VmSpec { folder: folder.clone(), ..spec.clone() });
        for error in [prepared, removed, started] {
            assert_eq!(error.kind, VmErrorKind::Refused, "{folder:?}: {error}");
        }
    }
    assert!(other_folder.join("file").exists());
    // The folders were not prepared, were prepared for another user, or are writable by others.
    assert_eq!(start_error(&host, &spec).kind, VmErrorKind::Refused);
    host.create_folder(&spec.folder, spec.uid + 1_000_000).unwrap();
    assert_eq!(start_error(&host, &spec).kind, VmErrorKind::Refused);
    host.create_folder(&spec.folder, spec.uid).unwrap();
    fs::set_permissions(&spec.folder, fs::Permissions::from_mode(0o2770)).unwrap();
    assert_eq!(start_error(&host, &spec).kind, VmErrorKind::Refused);
    host.create_folder(&spec.folder, spec.uid).unwrap();
    let (vm, _notices) = site.start(&host, &spec);
    host.kill(&vm.identity()).unwrap();
}

#[test]
fn names_that_would_break_out() {
    let site = Site::new();
    let host = site.host();
    for name in ["", "..", "a/b", "a,b", "a b", "ä", &"x".repeat(64)] {
        let spec = VmSpec { name: name.to_owned(), ..site.spec("named") };
        assert_eq!(host.probe(&spec).unwrap_err().kind, VmErrorKind::Refused, "{name:?}");
    }
}

/// Process of another user, started by [`processes_of_other_users_are_refused`], that connects to
/// the launcher.
#[test]
#[ignore = "child process of processes_of_other_users_are_refused"]
fn stranger() {
    let socket = std::env::var_os("SUIMON_TEST_SOCKET").unwrap();
    let host = QemuHost::connect(Path::new(&socket), std::sync::Arc::new(|| Ok(()))).unwrap();
    let error = host.running_vms().unwrap_err();
    assert!(error.kind == VmErrorKind::Refused && error.text.contains("3999999"), "{error}");
}

#[test]
fn processes_of_other_users_are_refused() {
    let site = Site::new();
    assert_eq!(support::mode(&site.socket()), 0o600);
    // The peer's user is checked even if all users may connect to the socket.
    fs::set_permissions(site.socket(), fs::Permissions::from_mode(0o666)).unwrap();
    let program = site.path("stranger");
    // Another process copies the file. A concurrent test that starts a program would inherit an
    // open descriptor of the copy.
    let copied = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&program).status();
    assert!(copied.unwrap().success());
    let output = Command::new(&program)
        .args(["--exact", "refusals::stranger", "--ignored", "--nocapture"])
        .env("SUIMON_TEST_SOCKET", site.socket())
        .current_dir("/")
        .uid(3_999_999)
        .gid(3_999_999)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{stderr}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{stderr}");
}
