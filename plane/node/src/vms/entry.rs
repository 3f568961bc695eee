//! One VM: its inbox, and what is known of it. Written by its driver only.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use suimon_contract::{Name, VmAccelerator, VmConfig, VmMigration, VmState};
use suimon_ports::Vm;

use super::inbox::Inbox;

/// See the module.
pub(crate) struct VmEntry {
    pub(crate) name: Name,
    /// What the guest sees as the machine's identity.
    pub(crate) uuid: [u8; 16],
    /// The user that its process runs as.
    pub(crate) user: u32,
    pub(crate) inbox: Inbox,
    view: Mutex<VmView>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What is known of a VM.
pub(crate) struct VmView {
    pub(crate) state: VmState,
    pub(crate) reason: Option<String>,
    /// Whether it is paused because there was no space for a write, and goes on when there is.
    pub(crate) waits_for_space: bool,
    pub(crate) running: Option<RunView>,
    /// NICs that were given VFs, of a VM that ran when the daemon before ended and has not been
    /// found again.
    pub(crate) vfs_left: BTreeSet<Name>,
    /// Whether it moves from one node to another; nothing else is changed of it meanwhile.
    pub(crate) moving: Option<VmMigration>,
}

/// What is known of a VM that runs.
#[derive(Clone)]
pub(crate) struct RunView {
    pub(crate) process: u32,
    pub(crate) user: Option<u32>,
    pub(crate) started_unix_ms: u64,
    pub(crate) as_started: VmConfig,
    pub(crate) accelerator: VmAccelerator,
    pub(crate) cpus: u16,
    pub(crate) qemu_version: String,
    pub(crate) nics: BTreeSet<Name>,
    pub(crate) disks: BTreeSet<Name>,
    /// NICs that were plugged in as standbys of virtual functions.
    pub(crate) standbys: BTreeSet<Name>,
    /// Those of them whose guest's driver takes one beside them.
    pub(crate) takers: BTreeSet<Name>,
    /// NICs that have a virtual function, plugged in or on its way into or out of the guest.
    pub(crate) vfs: BTreeSet<Name>,
    /// Devices and CPUs that it could not be given or be freed of.
    pub(crate) refused: BTreeSet<String>,
    /// Until when its guest's file systems are frozen, if they are.
    pub(crate) frozen_until: Option<Instant>,
    /// True if it was paused on request.
    pub(crate) is_held: bool,
    /// For its console, which is asked for beside the driver.
    pub(crate) vm: Arc<dyn Vm>,
}

impl VmEntry {
    pub(crate) fn new(name: Name, uuid: [u8; 16], user: u32) -> Self {
        let view = VmView {
            state: VmState::Stopped,
            reason: None,
            waits_for_space: false,
            running: None,
            vfs_left: BTreeSet::new(),
            moving: None,
        };
        Self {
            name,
            uuid,
            user,
            inbox: Inbox::default(),
            view: Mutex::new(view),
            thread: Mutex::default(),
        }
    }

    pub(crate) fn view(&self) -> MutexGuard<'_, VmView> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As events and errors name it.
    pub(crate) fn label(&self) -> String {
        format!("vm/{}", self.name)
    }

    pub(crate) fn set_thread(&self, thread: JoinHandle<()>) {
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
    }

    /// Waits until the driver has ended, which was told to.
    pub(crate) fn join(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!(vm = %self.name, "the thread of the VM panicked");
        }
    }
}
