//! Configuration of a VM of a test.

use std::path::PathBuf;

use anyhow::Result;

use super::disk::GuestDisk;
use super::files::{GuestFiles, guest_files, machine_files};
use super::nic::GuestNic;

/// Boot source of a VM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Boot {
    /// Kernel and initramfs only.
    #[default]
    Memory,
    /// Kernel and initramfs, which continues with the root file system on `vda` (see
    /// [`make_root_disk`](crate::make_root_disk)).
    RootDisk,
    /// Firmware, from the VM's disk. The booted program executes no commands;
    /// [`Guest::console`](super::Guest::console) returns its output.
    Firmware,
}

/// Configuration of a VM.
#[derive(Clone, Debug, Default)]
pub struct GuestSpec {
    /// Name in log messages.
    pub name: String,
    /// NICs: `eth0`, `eth1`, … in the guest.
    pub nics: Vec<GuestNic>,
    /// Disks: `vda`, `vdb`, …, and those on IDE `sda`, `sdb`, ….
    pub disks: Vec<GuestDisk>,
    /// Additional programs of the host.
    pub programs: Vec<PathBuf>,
    /// Boot source.
    pub boot: Boot,
    /// Number of virtual CPUs; 0 means 1.
    pub cpus: u16,
    /// Memory in MiB; 0 means 256.
    pub memory_mib: u32,
    /// True if its kernel has drivers for machines that QEMU emulates, such as `e1000e`.
    pub is_machine: bool,
    /// Number of root ports, `port0`, `port1`, …, for hot-plug.
    pub ports: u8,
}

impl GuestSpec {
    /// Returns the files that it boots.
    pub(crate) fn files(&self) -> Result<GuestFiles> {
        if self.is_machine { machine_files() } else { guest_files() }
    }
}
