//! Tests of live migration from one real QEMU to another on one host.

use crate::support;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::support::backend::listen_for_all;
use crate::support::{Notices, Site, complete_unplug, wait_until};
use suimon_frame::MacAddr;
use suimon_ports::{
    MigrationRequirements, MigrationSpec, MigrationTransferPhase, Vm, VmCommand, VmDevice,
    VmErrorKind, VmHost, VmNicKind, VmNicSpec, VmNotice, VmRunState, VmSpec,
};

const SPEC: MigrationSpec =
    MigrationSpec { downtime_max: Duration::from_millis(300), bytes_per_second: None };

/// Returns the specification of the VM at its destination.
fn arriving(site: &Site, name: &str, source_vm: &dyn Vm) -> VmSpec {
    let arrival = MigrationRequirements {
        machine_type: source_vm.hardware().unwrap().machine_type,
        qemu_version: source_vm.status().qemu_version,
    };
    VmSpec { migration_requirements: Some(arrival), ..site.obedient(name) }
}

fn wait_phase(vm: &dyn Vm, expected: &MigrationTransferPhase) {
    wait_until(&format!("{expected:?}"), || {
        (vm.migration_status().unwrap().phase == *expected).then_some(())
    });
}

/// Checks that the guest returns the byte `letter` written to its console.
fn echoes(vm: &dyn Vm, letter: u8) {
    let mut console = UnixStream::from(vm.open_console().unwrap());
    console.set_read_timeout(Some(support::LIMIT)).unwrap();
    console.write_all(&[letter]).unwrap();
    let mut echo = [0];
    while echo[0] != letter {
        console.read_exact(&mut echo).unwrap();
    }
}

fn legacy(name: &str, spec: &VmSpec, port: Option<u8>) -> VmNicSpec {
    VmNicSpec {
        name: name.to_owned(),
        kind: VmNicKind::Legacy,
        socket: spec.folder.join(format!("{name}.sock")),
        queue_pairs: 1,
        mac: None,
        is_standby: false,
        root_port: port,
    }
}

#[test]
fn a_migrated_vm_continues_at_its_destination() {
    let (site, far) = (Site::new(), Site::new());
    let (host, far_host) = (site.host(), far.host());
    let (vm, notices) = site.start(&host, &site.obedient("a"));
    echoes(&*vm, b'x');
    assert_eq!(vm.migration_status().unwrap().phase, MigrationTransferPhase::None);

    let spec = arriving(&far, "a", &*vm);
    far_host.probe(&spec).unwrap();
    let (remote, there_notices) = far.start(&far_host, &spec);
    assert_eq!(remote.status().state, VmRunState::Paused);
    let near_end = remote.migrate_in().unwrap();
    vm.migrate_out(near_end, &SPEC).unwrap();
    wait_phase(&*vm, &MigrationTransferPhase::WaitingForFinish);
    notices.wait(&VmNotice::StateChanged(VmRunState::Paused));
    vm.execute(&VmCommand::FinishMigration).unwrap();
    wait_phase(&*vm, &MigrationTransferPhase::Done);
    wait_phase(&*remote, &MigrationTransferPhase::Done);
    let status = vm.migration_status().unwrap();
    assert!(status.bytes_sent > 0 && status.remaining_bytes == 0, "{status:?}");

    // No CPU of either VM runs before the command to resume, which the destination gets here.
    assert_eq!(vm.status().state, VmRunState::Paused);
    assert_eq!(remote.status().state, VmRunState::Paused);
    remote.execute(&VmCommand::Resume).unwrap();
    remote.execute(&VmCommand::AnnounceAddresses).unwrap();
    there_notices.wait(&VmNotice::StateChanged(VmRunState::Running));
    vm.execute(&VmCommand::Quit).unwrap();
    notices.wait_end();
    // The guest sends its greeting only when it starts.
    let mut console = UnixStream::from(remote.open_console().unwrap());
    console.set_read_timeout(Some(support::LIMIT)).unwrap();
    console.write_all(b"y").unwrap();
    let mut first = [0];
    console.read_exact(&mut first).unwrap();
    assert_eq!(first, *b"y");
    far_host.kill(&remote.identity()).unwrap();
}

/// Returns the next byte that the guest sends.
fn next_byte(console: &mut UnixStream) -> u8 {
    let mut byte = [0];
    console.read_exact(&mut byte).unwrap();
    byte[0]
}

/// Between two rounds of copying, the guest writes more memory than may remain when it is stopped,
/// and less than is copied meanwhile. Several rounds are therefore necessary.
#[test]
fn writes_of_a_guest_during_memory_copying_are_not_lost() {
    const SLOW: MigrationSpec =
        MigrationSpec { downtime_max: Duration::from_millis(100), bytes_per_second: Some(1 << 20) };
    const MOVES: usize = 3;
    let first = Site::new();
    let (mut vm, _notices) = first.start(&first.host(), &first.obedient("a"));
    let mut sites = vec![first];
    let console = |vm: &dyn Vm| {
        let console = UnixStream::from(vm.open_console().unwrap());
        console.set_read_timeout(Some(support::LIMIT)).unwrap();
        console
    };
    let mut local_console = console(&*vm);
    for _ in 0..MOVES {
        local_console.write_all(b"w").unwrap();
        while next_byte(&mut local_console) != b'w' {}
        let far = Site::new();
        let (remote, _told) = far.start(&far.host(), &arriving(&far, "a", &*vm));
        let near_end = remote.migrate_in().unwrap();
        vm.migrate_out(near_end, &SLOW).unwrap();
        wait_phase(&*vm, &MigrationTransferPhase::WaitingForFinish);
        vm.execute(&VmCommand::FinishMigration).unwrap();
        wait_phase(&*remote, &MigrationTransferPhase::Done);
        remote.execute(&VmCommand::Resume).unwrap();
        vm.execute(&VmCommand::Quit).unwrap();
        local_console = console(&*remote);
        vm = remote;
        local_console.write_all(b"?").unwrap();
        assert_eq!(next_byte(&mut local_console), b'k', "the guest's memory lacks writes");
        sites.push(far);
    }
}

#[test]
fn a_vm_continues_at_its_source_after_a_failed_migration() {
    let (site, far) = (Site::new(), Site::new());
    let (host, far_host) = (site.host(), far.host());
    let (vm, notices) = site.start(&host, &site.obedient("a"));
    let spec = arriving(&far, "a", &*vm);
    let receiver = || {
        let (remote, far_notices) = far.start(&far_host, &spec);
        let near_end = remote.migrate_in().unwrap();
        (remote, far_notices, near_end)
    };
    // The migration is cancelled while it waits with only the final part not sent.
    let (_there, far_notices, near_end) = receiver();
    vm.migrate_out(near_end, &SPEC).unwrap();
    wait_phase(&*vm, &MigrationTransferPhase::WaitingForFinish);
    vm.execute(&VmCommand::CancelMigration).unwrap();
    notices.wait(&VmNotice::StateChanged(VmRunState::Running));
    echoes(&*vm, b'1');
    assert!(matches!(vm.migration_status().unwrap().phase, MigrationTransferPhase::Failed(_)));
    assert!(!far_notices.wait_end().0);

    // The destination ends while the source is waiting.
    let (remote, far_notices, near_end) = receiver();
    vm.migrate_out(near_end, &SPEC).unwrap();
    wait_phase(&*vm, &MigrationTransferPhase::WaitingForFinish);
    far_host.kill(&remote.identity()).unwrap();
    far_notices.wait_end();
    vm.execute(&VmCommand::FinishMigration).unwrap();
    wait_until("the failure of the migration", || {
        matches!(vm.migration_status().unwrap().phase, MigrationTransferPhase::Failed(_))
            .then_some(())
    });
    wait_until("the VM to continue", || (vm.status().state == VmRunState::Running).then_some(()));
    echoes(&*vm, b'2');

    // Everything was sent, and the VM is nevertheless resumed at the source.
    let (remote, _told, near_end) = receiver();
    vm.migrate_out(near_end, &SPEC).unwrap();
    wait_phase(&*vm, &MigrationTransferPhase::WaitingForFinish);
    vm.execute(&VmCommand::FinishMigration).unwrap();
    wait_phase(&*vm, &MigrationTransferPhase::Done);
    far_host.kill(&remote.identity()).unwrap();
    vm.execute(&VmCommand::Resume).unwrap();
    notices.wait(&VmNotice::StateChanged(VmRunState::Running));
    echoes(&*vm, b'3');
    host.kill(&vm.identity()).unwrap();
}

/// Returns true if QEMU accepts a migration to a VM whose second NIC has this port and address.
fn is_taken(vm: &dyn Vm, port: Option<u8>, mac: Option<MacAddr>) -> bool {
    let far = Site::new();
    let far_host = far.host();
    let spec = arriving(&far, "a", vm);
    far_host.create_folder(&spec.folder, spec.uid).unwrap();
    let nic = VmNicSpec { mac, ..legacy("second", &spec, port) };
    let _listener = listen_for_all(&nic.socket);
    let spec = VmSpec { nics: vec![nic], ..spec };
    let (remote, _told) = far.start(&far_host, &spec);
    let near_end = remote.migrate_in().unwrap();
    vm.migrate_out(near_end, &SPEC).unwrap();
    wait_phase(vm, &MigrationTransferPhase::WaitingForFinish);
    vm.execute(&VmCommand::FinishMigration).unwrap();
    let is_taken =
        wait_until("the end of the migration", || match vm.migration_status().unwrap().phase {
            MigrationTransferPhase::Done => Some(true),
            MigrationTransferPhase::Failed(_) => Some(false),
            _ => None,
        });
    let _ = far_host.kill(&remote.identity());
    is_taken
}

#[test]
fn plugged_devices_keep_their_slots() {
    let site = Site::new();
    let host = site.host();
    let spec = site.obedient("a");
    host.create_folder(&spec.folder, spec.uid).unwrap();
    let (first, second) = (legacy("first", &spec, None), legacy("second", &spec, None));
    let _listeners = [listen_for_all(&first.socket), listen_for_all(&second.socket)];
    let spec = VmSpec { nics: vec![first], ..spec };
    let (vm, notices) = site.start(&host, &spec);
    vm.execute(&VmCommand::PlugNic(second)).unwrap();
    let device = |name: &str| VmDevice::Nic(name.to_owned());
    let placements = || {
        let plugged = vm.hardware().unwrap().plugged_devices;
        plugged.into_iter().map(|entry| (entry.device, entry.root_port)).collect::<Vec<_>>()
    };
    assert_eq!(placements(), [(device("first"), 0), (device("second"), 1)]);
    vm.execute(&VmCommand::Unplug(device("first"))).unwrap();
    complete_unplug(&*vm, &notices, device("first"));
    let layout = vm.hardware().unwrap();
    assert!(layout.machine_type.starts_with("pc-q35-"), "{layout:?}");
    assert_eq!(placements(), [(device("second"), 1)]);
    let mac = layout.plugged_devices[0].mac;

    assert!(!is_taken(&*vm, None, mac));
    wait_until("the VM to continue", || (vm.status().state == VmRunState::Running).then_some(()));
    // QEMU assigns a second NIC another address than an only one.
    assert!(!is_taken(&*vm, Some(1), None));
    wait_until("the VM to continue", || (vm.status().state == VmRunState::Running).then_some(()));
    assert!(is_taken(&*vm, Some(1), mac));
    host.kill(&vm.identity()).unwrap();
}

#[test]
fn a_vm_of_a_later_qemu_or_of_another_machine_is_refused() {
    let site = Site::new();
    let host = site.host();
    let refuse = |machine: &str, version: &str, kind, reason: &str| {
        let arrival = MigrationRequirements {
            machine_type: machine.to_owned(),
            qemu_version: version.to_owned(),
        };
        let spec = VmSpec { migration_requirements: Some(arrival), ..site.spec("a") };
        let error = host.probe(&spec).unwrap_err();
        assert!(error.kind == kind && error.text.contains(reason), "{error}");
    };
    refuse("pc-q35-7.2", "1000.2.0", VmErrorKind::Host, "1000.2.0 or later");
    refuse("pc-q35-7.2", "old", VmErrorKind::Refused, "not a version");
    refuse("pc-q35-7.2,accel=x", "7.2.0", VmErrorKind::Refused, "not a machine type");
    refuse("isapc", "7.2.0", VmErrorKind::Refused, "not a machine type");
    // QEMU itself rejects an unknown machine type.
    let arrival = MigrationRequirements {
        machine_type: "pc-q35-1000.0".to_owned(),
        qemu_version: "7.2.0".to_owned(),
    };
    let spec = VmSpec { migration_requirements: Some(arrival), ..site.spec("b") };
    host.create_folder(&spec.folder, spec.uid).unwrap();
    let (observer, _notices) = Notices::new();
    let error = host.start(&spec, observer).map(drop).unwrap_err();
    assert!(error.text.contains("unsupported machine type"), "{error}");
}
