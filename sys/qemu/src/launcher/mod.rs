//! Process that starts QEMU for a daemon that has given up this right.
//!
//! The launcher runs as root, or as the user who started it, with a restricted interface. It starts
//! QEMU with a command line that it constructs itself, as a user that nothing else on the host
//! uses, in folders directly below one that it owns; and it kills such processes. Files named in a
//! specification are opened with the rights of the VM's user.
//!
//! One thread accepts connections and checks processes once a second; each connection has a thread.

mod accelerator;
mod checks;
mod child;
mod control_group;
mod folder;
mod launched;
mod logs;
mod qemu;
mod registry;
mod requests;
mod serving;
mod starter;
mod sysfs_writer;
mod user;
mod vfs;

use std::path::PathBuf;

pub use serving::Launcher;

/// Parameters of a launcher.
#[derive(Clone, Debug)]
pub struct LauncherSpec {
    /// Path of its socket, in a folder that only its user may write to. Only root and its own user
    /// are served.
    pub socket: PathBuf,
    /// Folder that contains the VMs' folders. Created if it does not exist; only its user may write
    /// to it.
    pub root: PathBuf,
    /// Path of QEMU; `None` searches the usual locations.
    pub qemu: Option<PathBuf>,
    /// True if the launcher exits when no VM runs and no client is connected, as one started by a
    /// daemon does.
    pub ends_unneeded: bool,
}
