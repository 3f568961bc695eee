//! Tests of VMs with the real QEMU: start, commands, adoption, end.

use crate::support;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;

use crate::support::{Notices, Site, firmware, is_running, mode, status_line};
use suimon_ports::{Vm, VmAccelerator, VmCommand, VmErrorKind, VmHost, VmNotice, VmRunState};

/// Reads the guest's output until it ends with `end`.
fn read_until(console: &mut UnixStream, end: &str) -> String {
    console.set_read_timeout(Some(support::LIMIT)).unwrap();
    let mut output = String::new();
    while !output.ends_with(end) {
        let mut byte = [0];
        console.read_exact(&mut byte).unwrap();
        output.push(char::from(byte[0]));
    }
    output
}

fn console(vm: &dyn Vm) -> UnixStream {
    UnixStream::from(vm.open_console().unwrap())
}

#[test]
fn a_vm_runs_pauses_and_ends_on_command() {
    let site = Site::new();
    let host = site.host();
    let spec = site.spec("plain");
    host.probe(&spec).unwrap();
    let (vm, notices) = site.start(&host, &spec);
    let facts = vm.status();
    assert_eq!(
        (facts.state, facts.accelerator, facts.cpus),
        (VmRunState::Running, VmAccelerator::Tcg, 1)
    );
    assert!(facts.qemu_version.split('.').count() == 3, "{facts:?}");

    vm.execute(&VmCommand::Pause).unwrap();
    assert_eq!(notices.next(&[VmNotice::Reset]), VmNotice::StateChanged(VmRunState::Paused));
    assert_eq!(vm.status().state, VmRunState::Paused);
    vm.execute(&VmCommand::Resume).unwrap();
    assert_eq!(notices.next(&[VmNotice::Reset]), VmNotice::StateChanged(VmRunState::Running));
    vm.execute(&VmCommand::Reset).unwrap();
    assert_eq!(notices.next(&[]), VmNotice::Reset);
    // A guest without an operating system ignores the power button.
    vm.execute(&VmCommand::PowerButton).unwrap();

    vm.execute(&VmCommand::Quit).unwrap();
    let (is_orderly, reason) = notices.wait_end();
    assert!(is_orderly, "{reason}");
    assert_eq!(reason, "QEMU was requested to end");
    assert_eq!(vm.execute(&VmCommand::Pause).unwrap_err().kind, VmErrorKind::NotRunning);
    assert_eq!(vm.status().state, VmRunState::Off);
    // The launcher may not have detected the end yet.
    let result = host.kill(&vm.identity());
    assert!(result.is_ok() || result.unwrap_err().kind == VmErrorKind::NotRunning);
    host.remove_folder(&spec.folder).unwrap();
    assert!(!spec.folder.exists());
}

#[test]
fn a_vms_process_has_no_rights() {
    let site = Site::new();
    let host = site.host();
    let spec = site.obedient("bound");
    let (vm, _notices) = site.start(&host, &spec);
    let process = vm.identity().pid;
    let user = spec.uid.to_string();
    for name in ["Uid", "Gid"] {
        let numbers = status_line(process, name);
        assert!(numbers.split_whitespace().all(|number| number == user), "{name}: {numbers}");
    }
    assert_eq!(status_line(process, "Groups"), "");
    for name in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(status_line(process, name).trim_start_matches('0'), "", "{name}");
    }
    assert_eq!(status_line(process, "NoNewPrivs"), "1");
    assert_eq!(status_line(process, "Seccomp"), "2");
    assert_eq!(fs::read_link(format!("/proc/{process}/cwd")).unwrap(), spec.folder);
    // The folder is owned by the launcher. The VM may search it, and write only to files that are
    // owned by its user.
    assert_eq!(mode(&spec.folder), 0o2750);
    let folder = fs::metadata(&spec.folder).unwrap();
    assert_eq!((folder.uid(), folder.gid()), (0, spec.uid));
    for entry in fs::read_dir(&spec.folder).unwrap() {
        let entry = entry.unwrap();
        let owner = entry.metadata().unwrap().uid();
        let is_its_own = entry.file_name() == "uefi-variables.bin";
        assert_eq!(owner, if is_its_own { spec.uid } else { 0 }, "{entry:?}");
        assert_eq!(mode(&entry.path()) & 0o007, 0, "{entry:?}");
    }
    let session = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let session: Vec<_> = session.rsplit_once(')').unwrap().1.split_whitespace().collect();
    assert_eq!(session[3], process.to_string(), "a session of its own");
}

#[test]
fn a_guest_uses_its_console_panics_resets_and_powers_off() {
    let site = Site::new();
    let host = site.host();
    let spec = site.obedient("talker");
    let (vm, notices) = site.start(&host, &spec);
    let mut line = console(&*vm);
    // The log contains output from before the connection.
    line.write_all(b"x").unwrap();
    assert!(read_until(&mut line, "x").ends_with('x'));
    assert_eq!(vm.open_console().unwrap_err().kind, VmErrorKind::Refused);

    line.write_all(b"r").unwrap();
    assert_eq!(notices.next(&[]), VmNotice::Reset);
    assert!(read_until(&mut line, firmware::WORD).ends_with(firmware::WORD));

    line.write_all(b"p").unwrap();
    assert_eq!(notices.next(&[]), VmNotice::StateChanged(VmRunState::Panicked));
    assert_eq!(vm.status().state, VmRunState::Panicked);
    vm.execute(&VmCommand::Reset).unwrap();
    notices.wait(&VmNotice::StateChanged(VmRunState::Running));
    read_until(&mut line, firmware::WORD);
    drop(line);

    // Another client may connect to the console now.
    let mut line = support::wait_until("console", || vm.open_console().ok().map(UnixStream::from));
    line.write_all(b"o").unwrap();
    let (is_orderly, reason) = notices.wait_end();
    assert!(is_orderly, "{reason}");
    assert_eq!(reason, "the guest has shut down");
    assert!(!is_running(vm.identity().pid));
    let log = fs::read_to_string(spec.folder.join("console.log")).unwrap();
    assert!(log.starts_with(firmware::WORD), "{log:?}");
    assert!(!spec.folder.join("qmp.sock").exists());
    // Firmware variables are preserved.
    assert_eq!(fs::read(spec.folder.join("uefi-variables.bin")).unwrap(), vec![0x5a; 64 << 10]);
    let (vm, _notices) = site.start(&host, &spec);
    host.kill(&vm.identity()).unwrap();
}

#[test]
fn a_killed_vm_reports_the_signal() {
    let site = Site::new();
    let host = site.host();
    let (vm, notices) = site.start(&host, &site.spec("victim"));
    host.kill(&vm.identity()).unwrap();
    let (is_orderly, reason) = notices.wait_end();
    assert!(!is_orderly);
    assert!(reason.contains("signal 9"), "{reason}");
    assert!(!is_running(vm.identity().pid));
    host.kill(&vm.identity()).unwrap();
    assert_eq!(vm.execute(&VmCommand::Resume).unwrap_err().kind, VmErrorKind::NotRunning);
}

#[test]
fn another_daemon_finds_a_vm_again() {
    let site = Site::new();
    let host = site.host();
    let spec = site.spec("kept");
    let (vm, notices) = site.start(&host, &spec);
    vm.execute(&VmCommand::Pause).unwrap();
    let identity = vm.identity();
    drop((vm, host));
    let ends = |notice: &VmNotice| matches!(notice, VmNotice::Ended { .. });
    assert!(!notices.so_far().iter().any(ends), "the VM has ended after its handle was dropped");
    assert!(is_running(identity.pid));

    let host = site.host();
    assert_eq!(host.running_vms().unwrap(), std::slice::from_ref(&identity));
    let (observer, notices) = Notices::new();
    let vm = host.adopt(&identity, observer).unwrap();
    assert_eq!(vm.identity(), identity);
    assert_eq!(vm.status().state, VmRunState::Paused);
    vm.execute(&VmCommand::Resume).unwrap();
    assert_eq!(notices.next(&[]), VmNotice::StateChanged(VmRunState::Running));
    let (observer, _) = Notices::new();
    assert_eq!(host.start(&spec, observer).err().unwrap().kind, VmErrorKind::AlreadyRunning);
    assert_eq!(host.remove_folder(&spec.folder).unwrap_err().kind, VmErrorKind::AlreadyRunning);

    let mut other = identity.clone();
    other.started_ticks += 1;
    let (observer, _) = Notices::new();
    assert_eq!(host.adopt(&other, observer).err().unwrap().kind, VmErrorKind::NotRunning);
    host.kill(&vm.identity()).unwrap();
    notices.wait_end();
    let (observer, _) = Notices::new();
    assert_eq!(host.adopt(&identity, observer).err().unwrap().kind, VmErrorKind::NotRunning);
}

#[test]
fn a_vm_outlives_its_launcher() {
    let mut site = Site::new();
    let host = site.host();
    let spec = site.spec("orphan");
    let (vm, notices) = site.start(&host, &spec);
    let identity = vm.identity();
    site.kill_launcher();
    // Functions without use of the launcher continue to work.
    vm.execute(&VmCommand::Pause).unwrap();
    notices.wait(&VmNotice::StateChanged(VmRunState::Paused));
    assert_eq!(host.kill(&vm.identity()).unwrap_err().kind, VmErrorKind::Host);
    assert!(is_running(identity.pid));
    drop((vm, host));

    site.start_launcher(None);
    let host = site.host();
    assert_eq!(host.running_vms().unwrap(), std::slice::from_ref(&identity));
    let (observer, notices) = Notices::new();
    let vm = host.adopt(&identity, observer).unwrap();
    vm.execute(&VmCommand::Resume).unwrap();
    host.kill(&vm.identity()).unwrap();
    let (is_orderly, reason) = notices.wait_end();
    assert!(!is_orderly && reason.contains("earlier launcher"), "{reason}");
    support::wait_until("end of the process", || (!is_running(identity.pid)).then_some(()));
    assert!(host.running_vms().unwrap().is_empty());
}

#[test]
fn an_unused_launcher_exits_and_one_with_a_vm_does_not() {
    let site = Site::empty();
    assert!(support::start_passing(&site));
    assert!(!support::start_passing(&site), "a launcher was started although one runs");
    let host = site.host();
    let (vm, notices) = site.start(&host, &site.spec("last"));
    drop(host);
    vm.execute(&VmCommand::Pause).unwrap();
    vm.execute(&VmCommand::Quit).unwrap();
    notices.wait_end();
    drop(vm);
    let socket = site.socket();
    let connect_error = || UnixStream::connect(&socket).err();
    support::wait_until("end of the launcher", || {
        connect_error().filter(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
    });
}
