//! VMs: started, stopped, found again after a daemon's death, and told what changes while
//! they run.
//!
//! Each VM that is desired has a thread of its own (`driver.rs`), which alone talks to it:
//! what a VM takes its time for holds up neither another VM nor the control thread. The
//! thread is told what to do through an inbox, writes what is known of the VM where
//! everybody can read it, and keeps in the state store what the next daemon needs to find
//! the VM again.
//!
//! ```text
//! API ── VmWork, Migrate ─┐
//! control ─ Look, Leave ──┼──► inbox ──► driver ──► ports::Vm ──► QEMU
//! ports::Vm ── notices ───┘                │
//!                                          └──► view, events, state store
//! ```

mod arriving;
mod driver;
mod entry;
mod finding;
mod freezing;
mod handing_over;
mod inbox;
mod leaving;
mod moving;
mod plugging;
mod publishing;
mod records;
mod releasing;
mod replugging;
mod space;
mod spec;
mod starting;
mod status;
mod staying;
mod steps;
mod stopping;
mod texts;
mod vfs;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use suimon_contract::Name;
use suimon_ports::VmHost;

pub(crate) use self::entry::VmEntry;
pub(crate) use self::inbox::Message;
pub(crate) use self::records::{StoredRun, has_arrived, load_boot};
pub(crate) use self::releasing::{Releases, releases};
pub(crate) use self::steps::{LeftVm, disks_away, no_user_left};
pub(crate) use self::vfs::VfOrder;
pub use self::work::VmWork;

/// VMs run as users of their own, which no account and no subordinate range of Debian has
/// (Debian policy, section 9.2.2; `login.defs(5)`, `SUB_UID_MIN`).
const USER_FIRST: u32 = 70_000;
const USER_LAST: u32 = 99_999;

/// What VMs need of the world.
#[derive(Clone)]
pub struct VmParts {
    /// Starts VMs.
    pub host: Arc<dyn VmHost>,
    /// What tells one start of the host from another
    /// (`/proc/sys/kernel/random/boot_id`, `random(4)`).
    pub boot_id: String,
}

/// All VMs that are desired.
pub(crate) struct Vms {
    pub(crate) parts: VmParts,
    entries: RwLock<BTreeMap<Name, Arc<VmEntry>>>,
}

impl Vms {
    pub(crate) fn new(parts: VmParts) -> Self {
        Self { parts, entries: RwLock::default() }
    }

    pub(crate) fn find(&self, name: &Name) -> Option<Arc<VmEntry>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<VmEntry>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// The user that a new VM's process runs as; `None` if there is none left.
    pub(crate) fn free_user(&self) -> Option<u32> {
        let used: BTreeSet<u32> = self.all().iter().map(|entry| entry.user).collect();
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
