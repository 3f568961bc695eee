//! Construction of QEMU's command line from a VM's specification.
//!
//! Where QEMU supports it, each value from the specification is a separate argument or a JSON
//! value. Commas of a path within an option list are doubled.

use std::collections::BTreeSet;

use suimon_ports::{VmAccelerator, VmBoot, VmDiskKind, VmSpec};
use suimon_qmp::{BlockNode, DeviceArguments, chardev_option};

use crate::agent::{AGENT_PORT, AGENT_PORT_NAME};
use crate::devices::{Backend, DeviceAttachment, QemuProperties, port_id, text};
use crate::spec_check::HOT_PLUG_PORTS_MAX;
use crate::translated_memory::memory_bytes;

/// File descriptors that QEMU inherits from the launcher, by number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InheritedDescriptors {
    /// Listening socket of the QMP monitor.
    pub(crate) monitor: i32,
    /// Listening socket of the serial console.
    pub(crate) console: i32,
    /// Log file of the serial console's output.
    pub(crate) console_log: i32,
    /// Listening socket of the guest agent's port.
    pub(crate) agent: i32,
}

impl InheritedDescriptors {
    /// Returns the descriptors as an array.
    pub(crate) const fn all(self) -> [i32; 4] {
        [self.monitor, self.console, self.console_log, self.agent]
    }
}

/// Name of the file with the variables of UEFI firmware, in the VM's folder, which is QEMU's
/// working directory.
pub(crate) const UEFI_VARIABLES_FILE: &str = "uefi-variables.bin";

/// First PCI device number of the root ports. QEMU itself assigns none from this number on.
const PORTS_AT: u32 = 0x10;
/// Number of root ports per PCI device, each of which is a function.
const PORTS_EACH: usize = 8;

struct ArgumentWords(Vec<String>);

impl ArgumentWords {
    fn add(&mut self, option: &str, value: impl Into<String>) {
        self.0.extend([option.to_owned(), value.into()]);
    }

    fn device(&mut self, device: &DeviceArguments) {
        self.add("-device", device.to_json().to_string());
    }

    fn attachment(&mut self, attachment: DeviceAttachment, boot_index: Option<usize>) {
        for backend in attachment.backends {
            match backend {
                Backend::Chardev { id, path, reconnect } => {
                    self.add("-chardev", chardev_option(&id, &path, reconnect));
                }
                Backend::Netdev(netdev) => self.add("-netdev", netdev.to_json().to_string()),
                Backend::Block(node) => self.add("-blockdev", node.to_json().to_string()),
            }
        }
        let device = attachment.device;
        self.device(&match boot_index {
            Some(index) => device.with("bootindex", index),
            None => device,
        });
    }
}

/// Returns the arguments of QEMU. The specification must be valid.
pub(crate) fn command_line(
    spec: &VmSpec,
    machine: QemuProperties,
    inherited: InheritedDescriptors,
) -> Vec<String> {
    let mut arguments = ArgumentWords(Vec::new());
    add_machine(&mut arguments, spec, machine.accelerator);
    add_lines(&mut arguments, inherited);
    add_boot(&mut arguments, &spec.boot);
    for number in 0..HOT_PLUG_PORTS_MAX {
        arguments.device(&root_port(number));
    }
    add_devices(&mut arguments, spec, machine);
    arguments.0
}

fn add_machine(arguments: &mut ArgumentWords, spec: &VmSpec, accelerator: VmAccelerator) {
    arguments.add("-name", format!("guest={},debug-threads=on", spec.name));
    arguments.0.extend(["-nodefaults", "-no-user-config", "-S"].map(str::to_owned));
    arguments.add("-display", "none");
    let sandbox = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";
    arguments.add("-sandbox", sandbox);
    let flash = match &spec.boot {
        VmBoot::Uefi { .. } => ",pflash0=uefi-code,pflash1=uefi-variables",
        VmBoot::Bios | VmBoot::Direct { .. } => "",
    };
    let machine =
        spec.migration_requirements.as_ref().map_or("q35", |arrival| arrival.machine_type.as_str());
    arguments.add("-machine", format!("{machine},memory-backend=memory{flash}"));
    let (accel, cpu) = match accelerator {
        VmAccelerator::Kvm => ("kvm", "host"),
        VmAccelerator::Tcg => ("tcg", "max"),
    };
    arguments.add("-accel", accel);
    arguments.add("-cpu", cpu);
    arguments.add("-smp", format!("cpus={},maxcpus={}", spec.cpus, spec.cpus_max));
    let memory_bytes = memory_bytes(spec, accelerator);
    arguments.add("-m", format!("{}K", memory_bytes >> 10));
    // The switch and the disks map the guest's memory through this memfd.
    let memory = serde_json::json!({
        "qom-type": "memory-backend-memfd",
        "id": "memory",
        "size": memory_bytes,
        "share": true,
        "hugetlb": spec.huge_pages,
    });
    arguments.add("-object", memory.to_string());
    arguments.add("-uuid", uuid(spec.uuid));
    // A guest that reports a panic is paused for examination.
    arguments.add("-action", "panic=pause");
    arguments.device(&DeviceArguments::new("pvpanic"));
    arguments.device(&DeviceArguments::new("virtio-rng-pci"));
    arguments.add("-msg", "timestamp=on");
    if spec.migration_requirements.is_some() {
        arguments.add("-incoming", "defer");
    }
}

fn add_lines(arguments: &mut ArgumentWords, inherited: InheritedDescriptors) {
    let InheritedDescriptors { monitor, console, console_log, agent } = inherited;
    arguments.add("-chardev", format!("socket,id=qmp,fd={monitor},server=on,wait=off"));
    arguments.add("-mon", "chardev=qmp,mode=control");
    arguments.add("-add-fd", format!("fd={console_log},set=1"));
    let log = "logfile=/dev/fdset/1,logappend=on";
    arguments.add("-chardev", format!("socket,id=console,fd={console},server=on,wait=off,{log}"));
    arguments.add("-serial", "chardev:console");
    arguments.add("-chardev", format!("socket,id={AGENT_PORT},fd={agent},server=on,wait=off"));
    arguments.device(&DeviceArguments::new("virtio-serial-pci").with("id", "serial"));
    let port =
        DeviceArguments::new("virtserialport").with("id", AGENT_PORT).with("bus", "serial.0");
    arguments.device(&port.with("chardev", AGENT_PORT).with("name", AGENT_PORT_NAME));
}

fn add_boot(arguments: &mut ArgumentWords, boot: &VmBoot) {
    match boot {
        VmBoot::Bios => {}
        VmBoot::Uefi { code, .. } => {
            for (name, path, is_read_only) in [
                ("uefi-code", text(code), true),
                ("uefi-variables", UEFI_VARIABLES_FILE.to_owned(), false),
            ] {
                let node = BlockNode::File { name: name.to_owned(), path, is_read_only };
                arguments.add("-blockdev", node.to_json().to_string());
            }
        }
        VmBoot::Direct { kernel, initrd, command_line } => {
            arguments.add("-kernel", text(kernel));
            if let Some(initrd) = initrd {
                arguments.add("-initrd", text(initrd));
            }
            arguments.add("-append", command_line.as_str());
        }
    }
}

fn root_port(number: usize) -> DeviceArguments {
    let (slot, function) = (number / PORTS_EACH, number % PORTS_EACH);
    DeviceArguments::new("pcie-root-port")
        .with("id", port_id(number))
        .with("bus", "pcie.0")
        .with("addr", format!("{:x}.{function}", PORTS_AT as usize + slot))
        .with("multifunction", function == 0)
        .with("chassis", number + 1)
}

/// Adds NICs and virtio disks, each behind its configured root port or else the first free one, and
/// emulated disks on IDE and SATA controllers.
fn add_devices(arguments: &mut ArgumentWords, spec: &VmSpec, machine: QemuProperties) {
    if spec.disks.iter().any(|disk| matches!(disk.kind, VmDiskKind::Ide { .. })) {
        arguments.device(&DeviceArguments::new("piix3-ide").with("id", "piix"));
    }
    let mut ports = Ports::of(spec);
    for nic in &spec.nics {
        if let Some(port) = ports.take(nic.root_port) {
            arguments.attachment(machine.nic(nic, &port), None);
        }
    }
    let (mut ide, mut sata) = (0, 0);
    for (index, disk) in spec.disks.iter().enumerate() {
        let attachment = match &disk.kind {
            VmDiskKind::Virtio { socket, queues } => {
                let port = ports.take(disk.root_port);
                port.map(|port| machine.virtio_disk(&disk.name, socket, *queues, &port))
            }
            VmDiskKind::Ide { .. } => {
                let attachment = machine.emulated_disk(disk, &format!("piix.{}", ide / 2), ide % 2);
                ide += 1;
                attachment
            }
            VmDiskKind::Sata { .. } => {
                let attachment = machine.emulated_disk(disk, &format!("ide.{sata}"), 0);
                sata += 1;
                attachment
            }
        };
        if let Some(attachment) = attachment {
            // QEMU uses boot index 0 for a kernel that it starts directly.
            arguments.attachment(attachment, Some(index + 1));
        }
    }
    if let Some(cdrom) = &spec.cdrom {
        let name = "cdrom".to_owned();
        let node = BlockNode::File { name, path: text(cdrom), is_read_only: true };
        arguments.add("-blockdev", node.to_json().to_string());
        let drive = DeviceArguments::new("ide-cd").with("id", "cdrom").with("bus", "ide.5");
        arguments.device(&drive.with("drive", "cdrom").with("bootindex", spec.disks.len() + 1));
    }
}

/// Numbers of the machine's root ports that no device uses.
struct Ports(BTreeSet<usize>);

impl Ports {
    /// Returns the numbers of the root ports that the specification assigns to no device.
    fn of(spec: &VmSpec) -> Self {
        let number = |port: Option<u8>| port.map(usize::from);
        let nics = spec.nics.iter().filter_map(|nic| number(nic.root_port));
        let used: BTreeSet<_> =
            nics.chain(spec.disks.iter().filter_map(|disk| number(disk.root_port))).collect();
        Self((0..HOT_PLUG_PORTS_MAX).filter(|port| !used.contains(port)).collect())
    }

    /// Returns the id of the port `requested`, or if that is `None`, of the first free port, which
    /// is then used. Returns `None` if no port is free.
    fn take(&mut self, requested: Option<u8>) -> Option<String> {
        match requested {
            Some(port) => Some(port_id(port.into())),
            None => self.0.pop_first().map(port_id),
        }
    }
}

fn uuid(bytes: [u8; 16]) -> String {
    let hex = |byte: &u8| format!("{byte:02x}");
    let digits: String = bytes.iter().map(hex).collect();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if matches!(index, 8 | 12 | 16 | 20) {
            text.push('-');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
#[path = "command_line_tests.rs"]
mod tests;
