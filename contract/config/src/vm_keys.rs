//! Keys of VMs.

use crate::key::{Key, defaulted, optional, required};
use crate::vm_config::VM_DEVICES_MAX;
use crate::{ChangeEffect, Form};

const MIB: u64 = 1 << 20;
const CPUS: Form = Form::Number { min: 1, most: 255 };
/// Largest memory size: 64 TiB.
const MEMORY: Form = Form::Bytes { least: 16 * MIB, most: 1 << 46, step: MIB };
/// Largest length of a kernel command line in bytes: Linux accepts 2048 on x86, including the
/// terminating zero (`COMMAND_LINE_SIZE`).
const COMMAND_LINE_BYTES_MAX: usize = 2047;

pub(crate) const VM: &[Key] = &[
    required("name", Form::Name, ChangeEffect::Identity),
    defaulted("cpus", CPUS, ChangeEffect::Live),
    optional("cpus_max", CPUS, ChangeEffect::NextBoot),
    required("memory_bytes", MEMORY, ChangeEffect::NextBoot),
    defaulted("huge_pages", Form::Flag, ChangeEffect::NextBoot),
    defaulted("firmware", Form::OneOf(&["bios", "uefi"]), ChangeEffect::NextBoot),
    optional("kernel", Form::FilePath, ChangeEffect::NextBoot),
    optional("initrd", Form::FilePath, ChangeEffect::NextBoot),
    optional("command_line", Form::Line { most: COMMAND_LINE_BYTES_MAX }, ChangeEffect::NextBoot),
    defaulted("nics", Form::Names { max: VM_DEVICES_MAX }, ChangeEffect::Live),
    defaulted("disks", Form::Names { max: VM_DEVICES_MAX }, ChangeEffect::Live),
    optional("cdrom", Form::FilePath, ChangeEffect::NextBoot),
    defaulted("accelerator", Form::OneOf(&["auto", "kvm", "tcg"]), ChangeEffect::NextBoot),
    defaulted("autostart", Form::Flag, ChangeEffect::Live),
];
