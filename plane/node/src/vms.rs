//! VMs: start, stop, adoption after a restart of the daemon, and changes while they run.
//!
//! Each desired VM has a driver thread (`driver.rs`), the only thread that accesses the VM. Slow
//! operations on one VM delay neither other VMs nor the control thread. The driver receives
//! messages through its inbox, publishes the observed state in a view that any thread can read, and
//! records in the state store the data that the next daemon process needs to adopt the VM.
//!
//! ```text
//! API ── VmAction, Migrate ───┐
//! control ── Reconcile, … ────┼──► inbox ──► driver ──► ports::Vm ──► QEMU
//! ports::Vm ── notices ───────┘              │
//!                                               └──► view, events, state store
//! ```

mod adoption;
mod autostart;
mod change_steps;
mod control_sender;
mod driver;
mod driver_end;
mod entry;
mod freezing;
mod handing_over;
mod inbox;
mod incoming;
mod killing;
mod migration_limits;
mod migration_restrictions;
mod outgoing;
mod outgoing_failed;
mod pending_kill;
mod plugging;
mod publishing;
mod records;
mod releasing;
mod replugging;
mod self_released;
mod source_cleanup;
mod space;
mod spec;
mod starting;
mod status;
mod steps;
mod stopping;
mod texts;
mod vfs;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use suimon_contract::Name;
use suimon_ports::VmHost;

pub(crate) use self::autostart::HostAutostart;
pub(crate) use self::change_steps::{VmStep, VmUndo, vm_steps};
pub(crate) use self::entry::VmEntry;
pub(crate) use self::inbox::Message;
#[cfg(test)]
pub(crate) use self::killing::{DirectKillResult, KILL_NOT_PERMITTED};
pub(crate) use self::records::{StoredRun, is_migration_activated};
pub(crate) use self::steps::{RecordedVm, disks_on_other_nodes, no_free_user_error};
pub(crate) use self::vfs::VfOrder;
pub use self::work::VmAction;

/// Range of user IDs for VM processes, one user per VM. Debian assigns the range neither to
/// accounts nor to subordinate IDs (Debian policy, section 9.2.2; `login.defs(5)`, `SUB_UID_MIN`).
const USER_FIRST: u32 = 70_000;
const USER_LAST: u32 = 99_999;

/// Interfaces and identity of the host that the VM subsystem depends on.
#[derive(Clone)]
pub struct VmDependencies {
    /// Launcher and adopter of VM processes.
    pub host: Arc<dyn VmHost>,
    /// Identifier of the current boot of the host (`/proc/sys/kernel/random/boot_id`, `random(4)`).
    pub boot_id: String,
}

/// Table of the desired VMs.
pub(crate) struct Vms {
    pub(crate) dependencies: VmDependencies,
    entries: RwLock<BTreeMap<Name, Arc<VmEntry>>>,
}

impl Vms {
    pub(crate) fn new(parts: VmDependencies) -> Self {
        Self { dependencies: parts, entries: RwLock::default() }
    }

    pub(crate) fn find(&self, name: &Name) -> Option<Arc<VmEntry>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<VmEntry>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Returns an unused user ID for the process of a new VM; `None` if all are in use.
    pub(crate) fn unused_user_id(&self) -> Option<u32> {
        let used: BTreeSet<u32> = self.all().iter().map(|entry| entry.user_id).collect();
        (USER_FIRST..=USER_LAST).find(|user| !used.contains(user))
    }

    fn insert(&self, entry: Arc<VmEntry>) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.insert(entry.name.clone(), entry);
    }

    fn remove(&self, name: &Name) -> Option<Arc<VmEntry>> {
        self.entries.write().unwrap_or_else(PoisonError::into_inner).remove(name)
    }
}

#[cfg(test)]
mod tests;
