//! Entry of one VM in the registry: inbox of its driver, and its observed state, which only the
//! driver writes once the thread is started.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use suimon_contract::{ApiError, ErrorCode, Name, VmAccelerator, VmConfig, VmMigration, VmState};
use suimon_frame::MacAddr;
use suimon_ports::{Vm, VmError, VmErrorKind, VmRunState};

use super::inbox::Inbox;

/// Registry entry of a VM.
pub(crate) struct VmEntry {
    pub(crate) name: Name,
    /// UUID of the machine, visible to the guest (SMBIOS).
    pub(crate) uuid: [u8; 16],
    /// User id of the VM's process.
    pub(crate) user_id: u32,
    pub(crate) inbox: Inbox,
    /// Id of the migration by which the VM came to this node, set at the activation.
    pub(super) incoming_migration_id: OnceLock<String>,
    view: Mutex<VmView>,
    /// True while a thread other than the driver kills the process, and until the driver has
    /// handled its end.
    is_killed: AtomicBool,
    /// True from the switchover of an outgoing migration on. Reset when it is certain that the VM
    /// stays on this node.
    is_switching: AtomicBool,
    /// Locked while a thread other than the driver kills the process, and while the switchover of
    /// an outgoing migration begins.
    switchover: Mutex<()>,
    /// Number of kills that other threads could not execute and left to the driver, for tests.
    #[cfg(test)]
    kills_left: std::sync::atomic::AtomicU32,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Observed state of a VM.
pub(crate) struct VmView {
    pub(crate) state: VmState,
    pub(crate) reason: Option<String>,
    /// True if the VM is paused because a write found no space and will be resumed when there is
    /// some.
    pub(crate) waits_for_space: bool,
    pub(crate) running: Option<RunView>,
    /// NICs that had VFs when the previous daemon ended, until the VM is adopted or has ended.
    pub(crate) recorded_vfs: BTreeSet<Name>,
    /// Progress of a migration. While set, other changes of the VM are rejected.
    pub(crate) migration: Option<VmMigration>,
}

/// Observed state of a running VM.
#[derive(Clone)]
pub(crate) struct RunView {
    pub(crate) process_id: u32,
    pub(crate) user_id: Option<u32>,
    pub(crate) started_unix_ms: u64,
    pub(crate) start_config: VmConfig,
    pub(crate) accelerator: VmAccelerator,
    pub(crate) cpus: u16,
    pub(crate) qemu_version: String,
    pub(crate) nics: BTreeSet<Name>,
    pub(crate) disks: BTreeSet<Name>,
    /// MAC addresses with which NICs were plugged, as far as they are recorded.
    pub(crate) macs: BTreeMap<Name, MacAddr>,
    /// NICs plugged as standbys of virtual functions.
    pub(crate) standbys: BTreeSet<Name>,
    /// Standbys whose guest driver has negotiated the failover to a VF.
    pub(crate) failover_nics: BTreeSet<Name>,
    /// NICs with a virtual function that is plugged, being plugged or being unplugged.
    pub(crate) vfs: BTreeSet<Name>,
    /// Hot-plug and hot-unplug operations that failed at the last attempt; see
    /// [`Run::failed_plugs`](super::driver::Run::failed_plugs).
    pub(crate) failed_plugs: BTreeSet<String>,
    /// Time at which the guest's file systems are thawed at the latest; `None` if they are not
    /// frozen.
    pub(crate) frozen_until: Option<Instant>,
    /// True if the VM was paused on request.
    pub(crate) is_paused_on_request: bool,
    /// Handle for queries that bypass the driver: console, guest agent, uptime.
    pub(crate) vm: Arc<dyn Vm>,
}

impl VmEntry {
    pub(crate) fn new(name: Name, uuid: [u8; 16], user: u32) -> Self {
        let view = VmView {
            state: VmState::Stopped,
            reason: None,
            waits_for_space: false,
            running: None,
            recorded_vfs: BTreeSet::new(),
            migration: None,
        };
        Self {
            name,
            uuid,
            user_id: user,
            inbox: Inbox::default(),
            incoming_migration_id: OnceLock::new(),
            view: Mutex::new(view),
            is_killed: AtomicBool::new(false),
            is_switching: AtomicBool::new(false),
            switchover: Mutex::default(),
            #[cfg(test)]
            kills_left: 0.into(),
            thread: Mutex::default(),
        }
    }

    pub(crate) fn view(&self) -> MutexGuard<'_, VmView> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the VM's name in events and errors: `vm/NAME`.
    pub(crate) fn label(&self) -> String {
        format!("vm/{}", self.name)
    }

    /// Converts an error of the VM host or of the VM's QEMU.
    pub(super) fn error_of(&self, error: &VmError) -> ApiError {
        let code = match error.kind {
            VmErrorKind::Host | VmErrorKind::Timeout => ErrorCode::HostError,
            VmErrorKind::AlreadyRunning | VmErrorKind::NotRunning | VmErrorKind::Busy => {
                ErrorCode::Conflict
            }
            VmErrorKind::Refused => ErrorCode::Unsupported,
        };
        ApiError::new(code, error.text.clone()).with_resource(self.label())
    }

    /// Records that the VM came to this node by the migration `id`.
    pub(super) fn set_incoming_migration_id(&self, id: &str) {
        // A VM is created by one migration at most, and deleted when it migrates to another node.
        let _ = self.incoming_migration_id.set(id.to_owned());
    }

    /// Sets whether a thread other than the driver kills the process. Returns the former value.
    pub(super) fn set_killed(&self, is_killed: bool) -> bool {
        self.is_killed.swap(is_killed, Ordering::AcqRel)
    }

    pub(super) fn is_killed(&self) -> bool {
        self.is_killed.load(Ordering::Acquire)
    }

    /// Sets whether another node may become the owner of the VM, so that only the driver may kill
    /// its process.
    pub(super) fn set_switchover_in_progress(&self, is_switching: bool) {
        self.is_switching.store(is_switching, Ordering::Release);
    }

    pub(super) fn is_switchover_in_progress(&self) -> bool {
        self.is_switching.load(Ordering::Acquire)
    }

    #[cfg(test)]
    pub(super) fn count_kill_left(&self) {
        self.kills_left.fetch_add(1, Ordering::AcqRel);
    }

    #[cfg(test)]
    pub(crate) fn kills_left(&self) -> u32 {
        self.kills_left.load(Ordering::Acquire)
    }

    pub(super) fn lock_switchover(&self) -> MutexGuard<'_, ()> {
        self.switchover.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_thread(&self, thread: JoinHandle<()>) {
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
    }

    /// Blocks until the driver thread has ended. The caller has sent
    /// [`Message::Detach`](super::Message) or `Delete` before.
    pub(crate) fn join(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!(vm = %self.name, "the thread of the VM panicked");
        }
    }
}

/// Returns the API state that corresponds to a run state.
pub(super) const fn vm_state(state: VmRunState) -> VmState {
    match state {
        VmRunState::Running => VmState::Running,
        VmRunState::Paused => VmState::Paused,
        VmRunState::Panicked => VmState::Panicked,
        VmRunState::Off => VmState::Stopping,
    }
}
