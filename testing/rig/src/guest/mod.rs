//! Real VMs: QEMU with Debian's kernel and a small initramfs.

mod accelerator;
mod archive;
mod bonding;
mod channel;
mod command_line;
mod disk;
mod disk_commands;
mod files;
mod hosted;
mod iov_files;
mod iov_machine;
mod kernel;
mod machine;
mod monitor;
mod nic;
mod root_disk;
mod shell;
mod spec;

use anyhow::Result;

pub use accelerator::Accelerator;
pub use bonding::BondStatus;
pub use disk::GuestDisk;
pub use disk_commands::GuestDiskInfo;
pub use files::{GuestFiles, guest_files};
pub use hosted::{GuestConsole, HostedVms};
pub use iov_machine::{IovMachine, IovSpec};
pub use machine::{Guest, accelerator};
pub(crate) use monitor::Monitor;
pub use nic::GuestNic;
pub use root_disk::{make_boot_sector, make_root_disk};
pub use shell::GuestShell;
pub use spec::{Boot, GuestSpec};

/// Downloads and builds the kernels and file systems of all kinds of guests, unless they exist.
///
/// # Errors
/// A package cannot be downloaded, or a program that goes into a file system is not installed.
pub fn prepare_guest_files() -> Result<()> {
    files::guest_files()?;
    files::machine_files()?;
    iov_files::iov_files()?;
    Ok(())
}
