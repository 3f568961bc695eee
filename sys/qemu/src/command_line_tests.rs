use std::path::PathBuf;

use serde_json::Value;
use suimon_frame::MacAddr;
use suimon_ports::{VmAccelerator, VmBoot, VmDiskKind, VmDiskSpec, VmNicKind, VmNicSpec, VmSpec};
use suimon_qmp::Version;

use super::{InheritedDescriptors, QemuProperties, command_line};
use crate::spec_check::check_vm;

const OLD: Version = Version::new(7, 2, 22);
const NEW: Version = Version::new(10, 0, 0);

fn spec() -> VmSpec {
    let nic = |name: &str, kind| VmNicSpec {
        name: name.to_owned(),
        kind,
        socket: PathBuf::from(format!("/run/vms/a/{name},server=on.sock")),
        queue_pairs: 1,
        mac: Some(MacAddr::new([2, 0, 0, 0, 0, 1])),
        is_standby: false,
        root_port: None,
    };
    let disk = |name: &str, kind| VmDiskSpec {
        name: name.to_owned(),
        kind,
        is_read_only: false,
        serial: "a \"serial\", b".to_owned(),
        root_port: None,
        reports_full_to_guest: false,
    };
    let socket = PathBuf::from("/run/vms/a/d.sock");
    VmSpec {
        name: "a".to_owned(),
        uuid: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255],
        folder: PathBuf::from("/run/vms/a"),
        uid: 3_000_000,
        cpus: 2,
        cpus_max: 4,
        memory_bytes: 256 << 20,
        huge_pages: true,
        accelerator: None,
        boot: VmBoot::Bios,
        nics: vec![nic("web", VmNicKind::Virtio), nic("old", VmNicKind::Legacy)],
        disks: vec![
            disk("v", VmDiskKind::Virtio { socket: socket.clone(), queues: 2 }),
            disk("i", VmDiskKind::Ide { socket: socket.clone() }),
            disk("s", VmDiskKind::Sata { socket }),
        ],
        cdrom: Some(PathBuf::from("/iso/a,readonly=off.iso")),
        migration_requirements: None,
    }
}

fn argument_words(spec: &VmSpec, version: Version, accelerator: VmAccelerator) -> Vec<String> {
    check_vm(spec).unwrap();
    let inherited = InheritedDescriptors { monitor: 10, console: 11, console_log: 12, agent: 13 };
    command_line(spec, QemuProperties { version, accelerator }, inherited)
}

/// Returns the values of all occurrences of an option, in order.
fn values<'a>(arguments: &'a [String], option: &str) -> Vec<&'a str> {
    let pairs = arguments.windows(2).filter(|pair| pair[0] == option);
    pairs.map(|pair| pair[1].as_str()).collect()
}

/// Returns the JSON argument of the device with this id.
fn device(arguments: &[String], id: &str) -> Value {
    let devices =
        values(arguments, "-device").into_iter().map(|text| serde_json::from_str(text).unwrap());
    devices.into_iter().find(|device: &Value| device["id"] == id).unwrap()
}

#[test]
fn a_path_with_commas_stays_one_value() {
    let arguments = argument_words(&spec(), OLD, VmAccelerator::Tcg);
    let chardevs = values(&arguments, "-chardev");
    let nic = chardevs.iter().find(|text| text.contains("nic-web")).unwrap();
    assert_eq!(*nic, "socket,id=nic-web,path=/run/vms/a/web,,server=on.sock,reconnect=1");
    let stream: Value = serde_json::from_str(values(&arguments, "-netdev")[1]).unwrap();
    assert_eq!(stream["addr"]["path"], "/run/vms/a/old,server=on.sock");
    let cdrom: Value = serde_json::from_str(values(&arguments, "-blockdev")[2]).unwrap();
    assert_eq!(cdrom["filename"], "/iso/a,readonly=off.iso");
    assert_eq!(cdrom["read-only"], true);
    assert_eq!(device(&arguments, "disk-i")["serial"], "a \"serial\", b");
}

#[test]
fn each_version_has_its_own_options_for_reconnecting() {
    let old = argument_words(&spec(), OLD, VmAccelerator::Tcg);
    assert!(values(&old, "-chardev").iter().any(|text| text.ends_with(",reconnect=1")));
    assert!(!values(&old, "-netdev")[1].contains("reconnect"));
    let new = argument_words(&spec(), NEW, VmAccelerator::Tcg);
    assert!(values(&new, "-chardev").iter().any(|text| text.ends_with(",reconnect-ms=1000")));
    assert!(!new.iter().any(|word| word.contains("reconnect=")));
    assert!(values(&new, "-netdev")[1].contains("\"reconnect-ms\":1000"));
}

#[test]
fn without_kvm_vhost_user_devices_have_no_vectors() {
    for (accelerator, nic, disk) in [(VmAccelerator::Kvm, 4, 3), (VmAccelerator::Tcg, 0, 0)] {
        let arguments = argument_words(&spec(), OLD, accelerator);
        assert_eq!(device(&arguments, "nic-web")["vectors"], nic);
        assert_eq!(device(&arguments, "disk-v")["vectors"], disk);
    }
}

#[test]
fn writes_of_a_translated_guest_are_recorded_page_by_page_while_it_moves() {
    let sizes = |huge_pages, accelerator| {
        let arguments = argument_words(&VmSpec { huge_pages, ..spec() }, OLD, accelerator);
        let memory: Value = serde_json::from_str(values(&arguments, "-object")[0]).unwrap();
        (values(&arguments, "-m")[0].to_owned(), memory["size"].as_u64().unwrap())
    };
    assert_eq!(sizes(false, VmAccelerator::Tcg), ("262152K".to_owned(), (256 << 20) + (8 << 10)));
    let configured = ("262144K".to_owned(), 256 << 20);
    // Huge pages cannot be divided, and KVM records writes itself.
    assert_eq!(sizes(true, VmAccelerator::Tcg), configured);
    assert_eq!(sizes(false, VmAccelerator::Kvm), configured);
}

#[test]
fn devices_are_where_they_can_be_taken_away_and_started_from_in_order() {
    let arguments = argument_words(&spec(), OLD, VmAccelerator::Tcg);
    let ids = ["nic-web", "nic-old", "disk-v", "disk-i", "disk-s", "cdrom"];
    let buses = ids.map(|id| device(&arguments, id)["bus"].as_str().unwrap().to_owned());
    assert_eq!(buses, ["port0", "port1", "port2", "piix.0", "ide.0", "ide.5"]);
    let order = ["disk-v", "disk-i", "disk-s", "cdrom"];
    let order = order.map(|id| device(&arguments, id)["bootindex"].as_u64().unwrap());
    assert_eq!(order, [1, 2, 3, 4]);
    assert_eq!(device(&arguments, "port9")["addr"], "11.1");
    assert_eq!(values(&arguments, "-uuid"), ["00010203-0405-0607-0809-0a0b0c0d0eff"]);
    assert_eq!(values(&arguments, "-smp"), ["cpus=2,maxcpus=4"]);
    assert!(values(&arguments, "-object")[0].contains("\"hugetlb\":true"));
    assert!(arguments.contains(&"-S".to_owned()));
}

#[test]
fn a_kernel_gets_its_command_line_unchanged() {
    let command_line = "-S console=ttyS0,115200 init=\"a b\"".to_owned();
    let boot = VmBoot::Direct {
        kernel: "/boot/vmlinuz,initrd=/etc/shadow".into(),
        initrd: Some("/boot/initrd".into()),
        command_line: command_line.clone(),
    };
    let arguments = argument_words(&VmSpec { boot, ..spec() }, OLD, VmAccelerator::Tcg);
    assert_eq!(values(&arguments, "-append"), [command_line]);
    assert_eq!(values(&arguments, "-kernel"), ["/boot/vmlinuz,initrd=/etc/shadow"]);
    assert_eq!(values(&arguments, "-initrd"), ["/boot/initrd"]);
}

#[test]
fn invalid_specifications_are_refused() {
    let mutations: [fn(&mut VmSpec); 16] = [
        |spec| spec.name = "a,b".to_owned(),
        |spec| spec.folder = "relative".into(),
        |spec| spec.cpus = 0,
        |spec| spec.cpus_max = 1,
        |spec| spec.cpus_max = 256,
        |spec| spec.memory_bytes = 0,
        |spec| spec.memory_bytes += 1,
        |spec| spec.cdrom = Some("/a\nb".into()),
        |spec| spec.nics[1].name = "web".to_owned(),
        |spec| spec.nics[1].queue_pairs = 2,
        |spec| spec.nics[0].socket = "x".into(),
        |spec| spec.disks[1].is_read_only = true,
        |spec| spec.disks[0].serial = "x".repeat(21),
        |spec| spec.disks[0].name = "a/b".to_owned(),
        |spec| spec.boot = VmBoot::Uefi { code: "-x".into(), variables: "/x".into() },
        |spec| {
            let nic = spec.nics[0].clone();
            spec.nics =
                (0..16).map(|n| VmNicSpec { name: format!("n{n}"), ..nic.clone() }).collect();
        },
    ];
    for (number, break_it) in mutations.iter().enumerate() {
        let mut spec = spec();
        break_it(&mut spec);
        check_vm(&spec).expect_err(&number.to_string());
    }
}
