//! Launcher process: starts QEMU for a daemon that has given up the right to execute programs.
//!
//! The launcher runs as root, or as the user who started it, and accepts a restricted set of
//! requests. It constructs QEMU's command line itself. It runs each VM as a separate user that
//! nothing else on the host uses, in folders directly below a folder that it owns. It also kills
//! these processes. Files named in a specification are opened with the permissions of the VM's
//! user.
//!
//! One thread accepts connections and checks processes once a second. Each connection has a thread.

mod accelerator;
mod checks;
mod child;
mod control_group;
mod folder;
mod launcher_user;
mod logs;
mod qemu;
mod registry;
mod requests;
mod serving;
mod starter;
mod sysfs_writer;
mod vfs;
mod vm_process;

use std::path::PathBuf;

pub use serving::Launcher;

/// Configuration of a launcher process.
#[derive(Clone, Debug)]
pub struct LauncherSpec {
    /// Path of the launcher's socket, in a folder that only the launcher's user may write to. Only
    /// root and the launcher's user are served.
    pub socket: PathBuf,
    /// Folder that contains the VMs' folders. Created if it does not exist. Only the launcher's
    /// user may write to it.
    pub root: PathBuf,
    /// Path of the QEMU program; `None` searches the usual locations.
    pub qemu: Option<PathBuf>,
    /// True if the launcher exits when no VM runs and no client is connected. A daemon starts its
    /// launcher this way.
    pub exits_when_unused: bool,
}
