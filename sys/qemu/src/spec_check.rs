//! Validation of a VM's specification, independent of the host.

use std::collections::BTreeSet;
use std::path::Path;

use suimon_ports::{
    MigrationRequirements, VmBoot, VmDiskKind, VmDiskSpec, VmError, VmErrorKind, VmNicKind,
    VmNicSpec, VmSpec,
};

/// Maximum length of names of VMs, NICs and disks, in bytes.
const NAME_BYTES_MAX: usize = 63;
/// Maximum length of serial numbers of IDE disks and of virtio-blk, in bytes.
const SERIAL_BYTES_MAX: usize = 20;
/// Maximum number of CPUs of a PC without an IOMMU.
const CPUS_MAX: u16 = 255;
/// Maximum number of hot-pluggable devices, each behind a root port of its own.
pub(crate) const HOT_PLUG_PORTS_MAX: usize = 16;
/// Maximum number of disks of an IDE controller with two channels.
const IDE_MAX: usize = 4;
/// Maximum number of disks of the SATA controller. The CD drive uses one more port.
const SATA_MAX: usize = 5;
/// Maximum number of queue pairs of QEMU's `virtio-net`.
const QUEUES_MAX: u16 = 256;
const MIB: u64 = 1 << 20;
/// Maximum length of a kernel's command line in bytes (`COMMAND_LINE_SIZE` of x86).
const KERNEL_WORDS_MAX: usize = 2048;
const PATH_BYTES_MAX: usize = 4095;

fn refused(text: impl Into<String>) -> VmError {
    VmError::new(VmErrorKind::Refused, text)
}

/// Returns true if QEMU accepts the text in an id (`id_wellformed`) and it is valid in a path.
pub(crate) fn is_name(text: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && text.bytes().any(|b| b.is_ascii_alphanumeric())
}

fn check_path(owner: &str, path: &Path) -> Result<(), VmError> {
    let Some(text) = path.to_str() else {
        return Err(refused(format!("the path of {owner}, {}, is not UTF-8", path.display())));
    };
    let is_plain = text.starts_with('/')
        && text.len() <= PATH_BYTES_MAX
        && !text.chars().any(char::is_control);
    if is_plain {
        return Ok(());
    }
    Err(refused(format!(
        "the path of {owner}, {text:?}, is not an absolute path without control characters"
    )))
}

/// Checks a VM's specification.
///
/// # Errors
/// The first invalid field.
pub(crate) fn check_vm(spec: &VmSpec) -> Result<(), VmError> {
    if !is_name(&spec.name) {
        let form = "letters, digits, `-`, `_` and `.`, at most 63 bytes";
        return Err(refused(format!("{:?} is not a valid name of a VM: {form}", spec.name)));
    }
    check_path("the folder", &spec.folder)?;
    if spec.cpus == 0 || spec.cpus > spec.cpus_max || spec.cpus_max > CPUS_MAX {
        let (cpus, max) = (spec.cpus, spec.cpus_max);
        let text = format!(
            "cpus {cpus} and cpus_max {max} must be in ascending order and from 1 to {CPUS_MAX}"
        );
        return Err(refused(text));
    }
    if spec.memory_bytes == 0 || spec.memory_bytes % MIB != 0 {
        return Err(refused(format!(
            "memory_bytes {} is not a multiple of 1 MiB",
            spec.memory_bytes
        )));
    }
    check_boot(&spec.boot)?;
    if let Some(arrival) = &spec.migration_requirements {
        check_arrival(arrival)?;
    }
    if let Some(cdrom) = &spec.cdrom {
        check_path("the CD image", cdrom)?;
    }
    check_devices(spec)
}

fn check_boot(boot: &VmBoot) -> Result<(), VmError> {
    match boot {
        VmBoot::Bios => Ok(()),
        VmBoot::Uefi { code, variables } => {
            check_path("the firmware", code)?;
            check_path("the UEFI variable store", variables)
        }
        VmBoot::Direct { kernel, initrd, command_line } => {
            check_path("the kernel", kernel)?;
            if let Some(initrd) = initrd {
                check_path("the initramfs", initrd)?;
            }
            if command_line.len() >= KERNEL_WORDS_MAX || command_line.chars().any(char::is_control)
            {
                return Err(refused(
                    "the kernel command line exceeds 2047 bytes or has control characters",
                ));
            }
            Ok(())
        }
    }
}

fn check_devices(spec: &VmSpec) -> Result<(), VmError> {
    for nic in &spec.nics {
        check_nic(nic)?;
    }
    for disk in &spec.disks {
        check_disk(disk)?;
    }
    check_unique("NICs", spec.nics.iter().map(|nic| nic.name.as_str()))?;
    check_unique("disks", spec.disks.iter().map(|disk| disk.name.as_str()))?;
    let count =
        |is_kind: fn(&VmDiskKind) -> bool| spec.disks.iter().filter(|d| is_kind(&d.kind)).count();
    let plugged = spec.nics.len() + count(|kind| matches!(kind, VmDiskKind::Virtio { .. }));
    let ide = count(|kind| matches!(kind, VmDiskKind::Ide { .. }));
    let sata = count(|kind| matches!(kind, VmDiskKind::Sata { .. }));
    check_ports(spec)?;
    for (devices, number, max) in [
        ("NICs and virtio disks", plugged, HOT_PLUG_PORTS_MAX),
        ("IDE disks", ide, IDE_MAX),
        ("SATA disks", sata, SATA_MAX),
    ] {
        if number > max {
            return Err(refused(format!("{number} {devices} exceed the limit of {max} per VM")));
        }
    }
    Ok(())
}

/// Checks that each port assigned to a device exists and is assigned to one device only.
fn check_ports(spec: &VmSpec) -> Result<(), VmError> {
    let ports = spec.nics.iter().filter_map(|nic| nic.root_port);
    let mut used = BTreeSet::new();
    for port in ports.chain(spec.disks.iter().filter_map(|disk| disk.root_port)) {
        if usize::from(port) >= HOT_PLUG_PORTS_MAX {
            return Err(refused(format!(
                "port {port} does not exist; a VM has ports 0 to {}",
                HOT_PLUG_PORTS_MAX - 1
            )));
        }
        if !used.insert(port) {
            return Err(refused(format!("port {port} is assigned to two devices")));
        }
    }
    Ok(())
}

/// Checks the name of the machine type with which a migrated VM was started.
fn check_arrival(arrival: &MigrationRequirements) -> Result<(), VmError> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let machine = &arrival.machine_type;
    let is_machine = machine.starts_with("pc-q35-")
        && machine.len() <= NAME_BYTES_MAX
        && machine.bytes().all(is_word);
    if is_machine {
        return Ok(());
    }
    Err(refused(format!("{machine:?} is not a machine type of QEMU like pc-q35-7.2")))
}

fn check_unique<'a>(devices: &str, names: impl Iterator<Item = &'a str>) -> Result<(), VmError> {
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    let duplicate = names.windows(2).find(|pair| pair.first() == pair.last());
    match duplicate.and_then(|pair| pair.first()) {
        Some(name) => Err(refused(format!("two {devices} have the name {name}"))),
        None => Ok(()),
    }
}

/// Checks a NIC's specification.
///
/// # Errors
/// The first invalid field.
pub(crate) fn check_nic(nic: &VmNicSpec) -> Result<(), VmError> {
    if !is_name(&nic.name) {
        return Err(refused(format!("{:?} is not a valid name of a NIC", nic.name)));
    }
    check_path("the NIC's socket", &nic.socket)?;
    let max = if nic.kind == VmNicKind::Virtio { QUEUES_MAX } else { 1 };
    if nic.queue_pairs == 0 || nic.queue_pairs > max {
        let text =
            format!("NIC {}: {} queue pairs are outside of 1 to {max}", nic.name, nic.queue_pairs);
        return Err(refused(text));
    }
    Ok(())
}

/// Checks a disk's specification.
///
/// # Errors
/// The first invalid field.
pub(crate) fn check_disk(disk: &VmDiskSpec) -> Result<(), VmError> {
    let name = &disk.name;
    if !is_name(name) {
        return Err(refused(format!("{name:?} is not a valid name of a disk")));
    }
    let is_serial = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    if disk.serial.len() > SERIAL_BYTES_MAX || !disk.serial.bytes().all(is_serial) {
        let text = format!("disk {name}: the serial number exceeds 20 ASCII characters");
        return Err(refused(text));
    }
    match &disk.kind {
        VmDiskKind::Virtio { socket, queues } => {
            if *queues == 0 || *queues > QUEUES_MAX {
                let text = format!("disk {name}: {queues} queues are outside of 1 to {QUEUES_MAX}");
                return Err(refused(text));
            }
            check_path("the disk's socket", socket)
        }
        VmDiskKind::Ide { socket } | VmDiskKind::Sata { socket } => {
            if disk.is_read_only {
                let text = format!(
                    "disk {name}: QEMU supports no read-only IDE or SATA disk; set controller = \
                     \"virtio\""
                );
                return Err(refused(text));
            }
            check_path("the disk's socket", socket)
        }
    }
}
