//! Command line of QEMU.

use std::path::Path;

use anyhow::Result;

use super::accelerator::Accelerator;
use super::disk::GuestDisk;
use super::spec::{Boot, GuestSpec};

/// Options of Linux for guests, without the console.
///
/// `no_timer_check` skips a check of the timer during boot. The check counts timer interrupts over
/// 10 ms of the guest's time. A QEMU that the host does not schedule for that long delivers too few
/// of them, and the guest panics: "IO-APIC + timer doesn't work!".
///
/// The others make the boot faster without hardware virtualization: `tsc=reliable` skips the
/// calibration of the clock, `cryptomgr.notests` tests of ciphers, and `initcall_blacklist` a test
/// of key derivation and the preparation of kprobes for tracing.
pub(crate) const KERNEL_OPTIONS: &str = "quiet panic=-1 random.trust_cpu=on no_timer_check \
    tsc=reliable cryptomgr.notests initcall_blacklist=crypto_kdf108_init,init_kprobe_trace";

/// Returns the command line of a VM. Its console is written to a file, and its commands come over a
/// socket.
pub(crate) fn command_line(
    spec: &GuestSpec,
    accelerator: Accelerator,
    console: &str,
    line: &str,
    initramfs: &Path,
) -> Result<Vec<String>> {
    let files = spec.files()?;
    let (accel, cpu) = match accelerator {
        Accelerator::Kvm => ("kvm", "host"),
        Accelerator::Tcg => ("tcg", "max"),
    };
    let mut arguments: Vec<String> = [
        "qemu-system-x86_64",
        "-nodefaults",
        "-no-user-config",
        "-no-reboot",
        "-display",
        "none",
        "-machine",
        "q35,memory-backend=memory",
        "-accel",
        accel,
        "-cpu",
        cpu,
        "-device",
        "virtio-rng-pci",
    ]
    .map(str::to_owned)
    .to_vec();
    let mut add = |option: &str, value: String| arguments.extend([option.to_owned(), value]);
    let memory = if spec.memory_mib == 0 { 256 } else { spec.memory_mib };
    add("-m", memory.to_string());
    // The switch maps the guest's memory through this file.
    add("-object", format!("memory-backend-memfd,id=memory,size={memory}M,share=on"));
    add("-smp", spec.cpus.max(1).to_string());
    if spec.boot != Boot::Firmware {
        let root = if spec.boot == Boot::RootDisk { " root=/dev/vda" } else { "" };
        add("-kernel", files.kernel.to_string_lossy().into_owned());
        add("-initrd", initramfs.to_string_lossy().into_owned());
        add("-append", format!("console=ttyS0 {KERNEL_OPTIONS}{root}"));
    }
    add("-chardev", format!("file,id=console,path={console}"));
    add("-serial", "chardev:console".to_owned());
    add("-chardev", format!("socket,id=line,path={line},server=on,wait=on"));
    add("-serial", "chardev:line".to_owned());
    if spec.disks.iter().any(GuestDisk::is_on_ide) {
        add("-device", "piix3-ide,id=ide".to_owned());
    }
    for port in 0..spec.ports {
        let chassis = port + 1;
        add("-device", format!("pcie-root-port,id=port{port},chassis={chassis}"));
    }
    for (index, nic) in spec.nics.iter().enumerate() {
        arguments.extend(nic.arguments(index, accelerator));
    }
    for (index, disk) in spec.disks.iter().enumerate() {
        arguments.extend(disk.arguments(index, accelerator));
    }
    Ok(arguments)
}
