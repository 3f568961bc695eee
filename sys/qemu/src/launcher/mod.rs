//! The process that starts QEMU for a daemon that may not.
//!
//! It has root's rights, or those of whoever started it, and few ways to use them: it starts QEMU
//! with words that it makes itself, as a user that nobody else on the host has, in folders right
//! below one that is its own; and it ends such processes. It opens what a description names only
//! with the rights of the VM's user.
//!
//! One thread takes connections in and looks after processes once a second; each connection has
//! one.

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
mod user;
mod vfs;

use std::path::PathBuf;

pub use serving::Launcher;

/// What a launcher is told when it is started.
#[derive(Clone, Debug)]
pub struct LauncherSpec {
    /// Where it listens: a path that nobody else may write to. Only root and its own user are
    /// served.
    pub socket: PathBuf,
    /// The folder in which VMs have theirs. Made if it is not there; nobody else may write to it.
    pub root: PathBuf,
    /// QEMU; `None` looks where packages put it.
    pub qemu: Option<PathBuf>,
    /// Whether it ends when no VM runs and nobody is connected, which is how a daemon starts it.
    pub ends_unneeded: bool,
}
