//! Tests of devices with the real QEMU: configured at the start, hot-plugged and unplugged.

use crate::support;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;

use crate::support::backend::{Backend, listen_for_all};
use crate::support::{Notices, Site, complete_unplug, firmware};
use suimon_frame::MacAddr;
use suimon_ports::{
    VmCommand, VmDevice, VmDiskKind, VmDiskSpec, VmErrorKind, VmHost, VmNicKind, VmNicSpec, VmSpec,
};

fn nic(name: &str, kind: VmNicKind, socket: PathBuf) -> VmNicSpec {
    let mac = Some(MacAddr::new([2, 0, 0, 0, 0, 7]));
    VmNicSpec {
        name: name.to_owned(),
        kind,
        socket,
        queue_pairs: 1,
        mac,
        root_port: None,
        is_standby: false,
    }
}

fn disk(name: &str, kind: VmDiskKind) -> VmDiskSpec {
    VmDiskSpec {
        name: name.to_owned(),
        kind,
        is_read_only: false,
        serial: "serial 1".to_owned(),
        root_port: None,
        reports_full_to_guest: false,
    }
}

#[test]
fn nics_are_hot_plugged_and_unplugged() {
    let site = Site::new();
    let host = site.host();
    let mut spec = site.spec("nics");
    host.create_folder(&spec.folder, spec.uid).unwrap();
    // The comma is part of the path and does not separate options.
    let socket = |name: &str| spec.folder.join(format!("{name},server=on.sock"));
    let (first, second, third) = (socket("first"), socket("second"), socket("third"));
    let backend = Backend::listen(&first);
    let plugged = Backend::listen(&second);
    let legacy = listen_for_all(&third);
    spec.nics = vec![VmNicSpec { queue_pairs: 2, ..nic("first", VmNicKind::Virtio, first) }];
    let (vm, notices) = site.start(&host, &spec);
    assert_eq!(backend.connections.load(Ordering::Relaxed), 1);

    let virtio = nic("second", VmNicKind::Virtio, second);
    let emulated = nic("third.x", VmNicKind::Legacy, third);
    for nic in [&virtio, &emulated] {
        vm.execute(&VmCommand::PlugNic(nic.clone())).unwrap();
        let error = vm.execute(&VmCommand::PlugNic(nic.clone())).unwrap_err();
        assert_eq!(error.kind, VmErrorKind::Refused, "{error}");
    }
    assert_eq!(plugged.connections.load(Ordering::Relaxed), 1);
    legacy.accept().unwrap();

    for name in ["second", "third.x", "first"] {
        vm.execute(&VmCommand::Unplug(VmDevice::Nic(name.to_owned()))).unwrap();
        complete_unplug(&*vm, &notices, VmDevice::Nic(name.to_owned()));
        let error = vm.execute(&VmCommand::Unplug(VmDevice::Nic(name.to_owned()))).unwrap_err();
        assert_eq!(error.kind, VmErrorKind::Refused, "{error}");
    }
    // All objects were removed, so the same NICs can be added again.
    for nic in [&virtio, &emulated] {
        vm.execute(&VmCommand::PlugNic(nic.clone())).unwrap();
    }
    host.kill(&vm.identity()).unwrap();
}

#[test]
fn a_nic_is_adopted_with_its_vm_and_taken_away_by_another_daemon() {
    let site = Site::new();
    let host = site.host();
    let spec = site.spec("adopted");
    let (vm, _notices) = site.start(&host, &spec);
    let path = spec.folder.join("late.sock");
    let _backend = Backend::listen(&path);
    let late = nic("late", VmNicKind::Virtio, path);
    vm.execute(&VmCommand::PlugNic(late.clone())).unwrap();
    let identity = vm.identity();
    drop(vm);
    let (observer, notices) = Notices::new();
    let vm = host.adopt(&identity, observer).unwrap();
    let device = VmDevice::Nic("late".to_owned());
    vm.execute(&VmCommand::Unplug(device.clone())).unwrap();
    complete_unplug(&*vm, &notices, device);
    vm.execute(&VmCommand::PlugNic(late)).unwrap();
    host.kill(&vm.identity()).unwrap();
}

#[test]
fn virtio_disks_are_hot_plugged_up_to_the_number_of_ports() {
    let site = Site::new();
    let host = site.host();
    let mut spec = site.spec("disks");
    host.create_folder(&spec.folder, spec.uid).unwrap();
    let path = |name: &str| spec.folder.join(name);
    let (own_socket, late) = (path("own.sock"), path("late.sock"));
    let (_own, _late) = (Backend::listen(&own_socket), Backend::listen(&late));
    let virtio = |socket: &Path| VmDiskKind::Virtio { socket: socket.to_owned(), queues: 2 };
    spec.disks = vec![disk("own", virtio(&own_socket))];
    let (vm, notices) = site.start(&host, &spec);
    let late_disk = disk("late", virtio(&late));
    vm.execute(&VmCommand::PlugDisk(late_disk.clone())).unwrap();
    let device = VmDevice::Disk("late".to_owned());
    vm.execute(&VmCommand::Unplug(device.clone())).unwrap();
    complete_unplug(&*vm, &notices, device);
    vm.execute(&VmCommand::PlugDisk(late_disk)).unwrap();

    for number in 0..14 {
        vm.execute(&VmCommand::PlugDisk(disk(&format!("more{number}"), virtio(&late)))).unwrap();
    }
    let full = vm.execute(&VmCommand::PlugDisk(disk("last", virtio(&late)))).unwrap_err();
    assert!(full.kind == VmErrorKind::Refused && full.text.contains("16 ports"), "{full}");
    let ide = VmDiskKind::Ide { socket: late };
    let fixed = vm.execute(&VmCommand::PlugDisk(disk("ide", ide))).unwrap_err();
    assert_eq!(fixed.kind, VmErrorKind::Refused);
    let kind = virtio(&spec.folder.join("nobody.sock"));
    let error = vm.execute(&VmCommand::PlugDisk(disk("nobody", kind))).unwrap_err();
    assert_eq!(error.kind, VmErrorKind::Host, "{error}");
    host.kill(&vm.identity()).unwrap();
}

#[test]
fn cpus_are_added_and_not_taken_away() {
    let site = Site::new();
    let host = site.host();
    let spec = VmSpec { cpus_max: 4, ..site.spec("growing") };
    let (vm, _notices) = site.start(&host, &spec);
    vm.execute(&VmCommand::SetCpus(3)).unwrap();
    assert_eq!(vm.status().cpus, 3);
    vm.execute(&VmCommand::SetCpus(3)).unwrap();
    assert_eq!(vm.execute(&VmCommand::SetCpus(2)).unwrap_err().kind, VmErrorKind::Refused);
    assert_eq!(vm.execute(&VmCommand::SetCpus(5)).unwrap_err().kind, VmErrorKind::Refused);
    let identity = vm.identity();
    drop(vm);
    let (observer, _notices) = Notices::new();
    let vm = host.adopt(&identity, observer).unwrap();
    assert_eq!(vm.status().cpus, 3);
    vm.execute(&VmCommand::SetCpus(4)).unwrap();
    host.kill(&vm.identity()).unwrap();
}

/// NBD server of one disk, killed at the end of the test.
struct NbdServer(Child);

impl NbdServer {
    fn start(socket: &Path, export: &str, file: &Path) -> Self {
        let child = Command::new("qemu-nbd")
            .args(["--persistent", "--shared=4", "--format=raw", "--export-name", export])
            .arg("--socket")
            .arg(socket)
            .arg(file)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        support::wait_until("qemu-nbd", || socket.exists().then_some(()));
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o660)).unwrap();
        Self(child)
    }
}

impl Drop for NbdServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Checks that a BIOS boots from the first disk although there are other disks and a CD.
fn starts_from(name: &str, kind: fn(PathBuf) -> VmDiskKind, other_kind: fn(PathBuf) -> VmDiskKind) {
    let site = Site::new();
    let host = site.host();
    let mut spec = site.spec(name);
    host.create_folder(&spec.folder, spec.uid).unwrap();
    let (image, empty, cdrom) = (site.path("image"), site.path("empty"), site.path("cd,rom.iso"));
    let mut bytes = firmware::boot_sector();
    bytes.resize(1 << 20, 0);
    std::fs::write(&image, &bytes).unwrap();
    std::fs::write(&empty, vec![0; 1 << 20]).unwrap();
    std::fs::write(&cdrom, vec![0; 1 << 20]).unwrap();
    let (first, second) = (spec.folder.join("first,x.sock"), spec.folder.join("second.sock"));
    // Longer than the maximum length of a node name.
    let long = "a-disk-with-a-name-of-more-than-thirty-one-bytes";
    let _servers =
        [NbdServer::start(&first, long, &image), NbdServer::start(&second, "second", &empty)];
    spec.disks = vec![disk(long, kind(first)), disk("second", other_kind(second))];
    spec.cdrom = Some(cdrom);
    let (vm, _notices) = site.start(&host, &spec);
    let log = spec.folder.join("console.log");
    support::wait_until("greeting of the boot sector", || {
        std::fs::read_to_string(&log).ok().filter(|content| content.contains(firmware::WORD))
    });
    host.kill(&vm.identity()).unwrap();
}

#[test]
fn a_bios_starts_from_an_ide_disk() {
    starts_from("ide", |socket| VmDiskKind::Ide { socket }, |socket| VmDiskKind::Sata { socket });
}

#[test]
fn a_bios_starts_from_a_sata_disk() {
    starts_from("sata", |socket| VmDiskKind::Sata { socket }, |socket| VmDiskKind::Ide { socket });
}
