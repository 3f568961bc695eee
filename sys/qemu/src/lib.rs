//! VMs: QEMU processes, started by a launcher and controlled over QMP.
//!
//! - [`QemuHost`]: the implementation of [`VmHost`](suimon_ports::VmHost). It requests the start
//!   of QEMU from the launcher, and connects to QEMU's monitor in the VM's folder.
//! - [`Launcher`]: a separate process, because the daemon gives up the right to execute programs
//!   (`docs/decisions/0026-vm-launcher-process.md`). It accepts a VM's specification and constructs
//!   the command line itself. It accepts no command-line arguments.
//! - [`start_launcher`]: starts a launcher if none responds, before the daemon is confined.
//!
//! Outside of the scope: devices of a VM. The sockets of NICs and disks must exist before a VM is
//! started; QEMU connects to them.
//!
//! Life cycle of a VM
//! ```text
//! prepare: the folder, in which NICs and disks create their sockets
//! start:   launcher ─ fork, drop privileges, exec ─► QEMU -S, inherits its monitor's socket
//!          daemon ─ connect ─► greeting, capabilities, cont
//!          daemon ─ watch ──► launcher: reports how the process ended
//! the daemon ends: QEMU continues, and a daemon that adopts the VM connects again
//! the launcher ends: QEMU continues, and a later launcher finds it by its folder
//! ```
//!
//! Invariants
//! - A VM's process has a separate user, no capability, and may not create files in its folder.
//! - A process is identified by its id and start time, and killed through a pidfd: another
//!   process that reuses the id is never killed.
//! - Messages of QEMU and of the guest agent are bounded in length and rate, and affect their own
//!   VM only.
#![deny(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod agent;
mod client;
mod command_line;
mod devices;
mod host;
mod launcher;
mod message_rate;
mod messages;
mod migration;
mod monitor;
mod monitor_reader;
mod process_facts;
mod qemu_stream;
mod session;
mod spec_check;
mod starting;
mod translated_memory;
mod unplug_queue;
mod vf;
mod vm;
mod vm_socket;
mod wire;

pub use host::QemuHost;
pub use launcher::{Launcher, LauncherSpec};
pub use starting::start_launcher;
