//! Keys of VMs.

use crate::key::{Key, optional, optional_with_default, required};
use crate::vm_config::VM_DEVICES_MAX;
use crate::{ChangeEffect, Form};

const MIB: u64 = 1 << 20;
const CPUS: Form = Form::Number { min: 1, max: 255 };
/// Largest memory size: 64 TiB.
const MEMORY: Form = Form::Bytes { min: 16 * MIB, max: 1 << 46, step: MIB };
/// Largest length of a kernel command line in bytes: Linux accepts 2048 on x86, including the
/// terminating zero (`COMMAND_LINE_SIZE`).
const COMMAND_LINE_BYTES_MAX: usize = 2047;

pub(crate) const VM: &[Key] = &[
    required("name", Form::Name, ChangeEffect::Identity),
    optional_with_default("cpus", CPUS, ChangeEffect::Live),
    optional("cpus_max", CPUS, ChangeEffect::NextVmStart),
    required("memory_bytes", MEMORY, ChangeEffect::NextVmStart),
    optional_with_default("huge_pages", Form::Flag, ChangeEffect::NextVmStart),
    optional_with_default(
        "firmware",
        Form::OneOfKeywords(&["bios", "uefi"]),
        ChangeEffect::NextVmStart,
    ),
    optional("kernel", Form::FilePath, ChangeEffect::NextVmStart),
    optional("initrd", Form::FilePath, ChangeEffect::NextVmStart),
    optional(
        "command_line",
        Form::SingleLineText { max: COMMAND_LINE_BYTES_MAX },
        ChangeEffect::NextVmStart,
    ),
    optional_with_default("nics", Form::Names { max: VM_DEVICES_MAX }, ChangeEffect::Live),
    optional_with_default("disks", Form::Names { max: VM_DEVICES_MAX }, ChangeEffect::Live),
    optional("cdrom", Form::FilePath, ChangeEffect::NextVmStart),
    optional_with_default(
        "accelerator",
        Form::OneOfKeywords(&["auto", "kvm", "tcg"]),
        ChangeEffect::NextVmStart,
    ),
    optional_with_default("autostart", Form::Flag, ChangeEffect::Live),
];
