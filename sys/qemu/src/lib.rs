//! VMs: QEMU's processes, started by a launcher and driven over QMP.
//!
//! - [`QemuHost`]: the implementation of [`VmHost`](suimon_ports::VmHost). It asks the launcher
//!   to start QEMU, and connects to QEMU's monitor in the VM's folder.
//! - [`Launcher`]: a process of its own, because the daemon gives up starting programs
//!   (`docs/decisions/0026-vm-launcher-process.md`). It takes a VM's description, never
//!   words of a command line, and makes those itself.
//! - [`start_launcher`]: starts one if none answers, before the daemon is confined.
//!
//! What it does not do: it opens no device of a VM. Sockets of NICs and disks are listened on
//! before a VM is started; QEMU connects to them.
//!
//! Life of a VM
//! ```text
//! prepare: the folder, in which NICs and disks make their sockets
//! start:   launcher ─ fork, give up rights, exec ─► QEMU -S, its monitor's socket inherited
//!          daemon ─ connect ─► greeting, capabilities, cont
//!          daemon ─ watch ──► launcher: tells how the process ended
//! the daemon ends: QEMU goes on, and a daemon that adopts the VM connects again
//! the launcher ends: QEMU goes on, and a launcher that comes later finds it by its folder
//! ```
//!
//! Invariants
//! - What runs as a VM has a user of its own, no capability, and may not write into its folder.
//! - A process is named by its number and the time of its start, and ended through a descriptor
//!   of that process: never another one that got the number.
//! - What a QEMU says, and the agent in its guest, is bounded in length and pace, and affects its
//!   own VM only.
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod agent;
mod client;
mod command_line;
mod devices;
mod host;
mod launcher;
mod moving;
mod pace;
mod peer;
mod process_facts;
mod session;
mod spec_check;
mod starting;
mod translated_memory;
mod unplugging;
mod vf;
mod vm;
mod wire;

pub use host::QemuHost;
pub use launcher::{Launcher, LauncherSpec};
pub use starting::start_launcher;
