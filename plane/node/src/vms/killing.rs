//! Kill of a VM whose driver may be blocked.
//!
//! The driver of a VM executes kills. A QEMU that does not respond can block it for many seconds. A
//! kill that the driver has not begun within `GRACE` (`pending_kill.rs`) is therefore executed by
//! another thread. The end of the process also ends the calls that block the driver, which then
//! completes the operation.
//!
//! From the switchover of a migration on, only the driver may kill the process. If the switchover
//! fails, the other thread tries again.

use std::sync::Arc;

use suimon_contract::MigrationPhase;
use suimon_ports::{VmError, VmErrorKind};

use super::VmEntry;
use super::driver::Driver;
use super::inbox::Message;
use super::pending_kill::{DirectKill, PendingKill};
use super::texts::KILLED_ON_REQUEST;
use super::work::VmAction;
use crate::operations::OperationHandle;
use crate::shared::Shared;

/// Reason of a kill that is left to the driver: the VM is not running, or another node may have it.
pub(crate) const KILL_NOT_PERMITTED: &str = "the VM is not running, or another node may own it";

/// Result of a kill without the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DirectKillResult {
    /// The process has ended.
    Killed,
    /// Nothing was done. The driver must execute or reject the kill; with the reason.
    LeftToDriver(&'static str),
    /// The process may still run. The driver's attempt would fail in the same way.
    Failed(VmError),
}

impl Shared {
    /// Submits a kill to the VM's driver, and executes it without the driver if that is blocked.
    pub(super) fn submit_kill(self: &Arc<Self>, entry: Arc<VmEntry>, operation: OperationHandle) {
        let kill = Arc::new(PendingKill::new(operation));
        if let Some(rejected) = entry.inbox.put(Message::Kill(Arc::clone(&kill))) {
            return entry.fail_request(rejected);
        }
        let (shared, vm) = (Arc::clone(self), entry.name.clone());
        let bypass = move || {
            let Some(late_kill) = kill.wait_driver_timeout() else { return };
            if shared.execute_late_kill(&entry, late_kill)
                && let Some(late_kill) = kill.wait_unblocked(|| entry.is_switchover_in_progress())
            {
                shared.execute_late_kill(&entry, late_kill);
            }
        };
        // Without the thread, the driver kills the VM as soon as it is not blocked any more.
        if let Err(error) = std::thread::Builder::new().name("vm-kill".to_owned()).spawn(bypass) {
            tracing::warn!(%vm, %error, "cannot start a thread that kills a VM");
        }
    }

    /// Executes a kill that the driver has not begun in time. Returns true if it was left to the
    /// driver because of a switchover.
    fn execute_late_kill(&self, entry: &VmEntry, mut late_kill: DirectKill<'_>) -> bool {
        let was_switching = entry.is_switchover_in_progress();
        match self.kill_without_driver(entry) {
            DirectKillResult::Killed => {
                late_kill.set_killed();
                false
            }
            DirectKillResult::LeftToDriver(reason) => {
                #[cfg(test)]
                entry.count_kill_left();
                tracing::info!(vm = %entry.name, reason, "a kill waits for the driver of the VM");
                was_switching || entry.is_switchover_in_progress()
            }
            DirectKillResult::Failed(error) => {
                late_kill.operation().end(&Err(entry.error_of(&error)));
                false
            }
        }
    }

    /// Kills the process of a VM. The driver handles its end.
    pub(crate) fn kill_without_driver(&self, entry: &VmEntry) -> DirectKillResult {
        use DirectKillResult::{Failed, Killed, LeftToDriver};
        if !entry.may_be_killed() {
            return LeftToDriver(KILL_NOT_PERMITTED);
        }
        let host = &self.vms.dependencies.host;
        let vm = match host.running_vms() {
            Ok(running) => running.into_iter().find(|vm| vm.name == entry.name.as_str()),
            Err(error) => return Failed(error),
        };
        let Some(vm) = vm else { return LeftToDriver("the VM has no process") };
        // The list can take long. Until the process has ended, no switchover begins.
        let _no_switchover = entry.lock_switchover();
        // Another VM of this name may have arrived.
        let is_present = self
            .vms
            .find(&entry.name)
            .is_some_and(|current_entry| std::ptr::eq(Arc::as_ptr(&current_entry), entry));
        if !is_present || !entry.may_be_killed() {
            return LeftToDriver(KILL_NOT_PERMITTED);
        }
        // The notice of the end can precede the return.
        entry.set_killed(true);
        match host.kill(&vm) {
            Ok(()) | Err(VmError { kind: VmErrorKind::NotRunning, .. }) => Killed,
            Err(error) => {
                entry.set_killed(false);
                Failed(error)
            }
        }
    }
}

impl VmEntry {
    /// Returns true if the VM is running, as far as is known, and no other node may have it.
    fn may_be_killed(&self) -> bool {
        let view = self.view();
        let is_here = view.migration.as_ref().is_none_or(|migration| {
            migration.is_outgoing && migration.phase != MigrationPhase::HandedOver
        });
        is_here
            && !self.is_switchover_in_progress()
            && VmAction::Kill.check(&self.name, view.state).is_ok()
    }

    /// Publishes that the switchover of an outgoing migration begins: from now on, only the driver
    /// may kill the process. Blocks while another thread kills it. Returns false if the process was
    /// killed.
    pub(super) fn begin_switchover(&self) -> bool {
        let _no_kill = self.lock_switchover();
        if self.is_killed() {
            return false;
        }
        self.set_switchover_in_progress(true);
        if let Some(migration) = &mut self.view().migration {
            migration.phase = MigrationPhase::StopAndCopy;
        }
        true
    }
}

impl Driver {
    /// Executes a kill, or completes one that another thread has executed.
    pub(super) fn begin_kill(&mut self, kill: &PendingKill) {
        let is_killed = kill.begin();
        if !kill.operation().begin() {
            return;
        }
        // A kill that another thread has left to the driver counts as started, but nothing was
        // done.
        if !is_killed && let Err(cancelled) = kill.operation().check_cancelled() {
            kill.operation().end(&Err(cancelled));
            return;
        }
        // The end of the process may have been handled already.
        let checked = match is_killed {
            true => self.check_migration_permits(VmAction::Kill),
            false => self.check_action(VmAction::Kill),
        };
        let result = checked.and_then(|()| self.execute_action(VmAction::Kill));
        self.entry.set_killed(false);
        kill.operation().end(&result);
    }

    /// Returns whether the end of the process was orderly, and the reason, given the same as QEMU's
    /// end was reported. An end that [`Shared::kill_without_driver`] has caused was requested.
    pub(super) fn cause_of_end<'r>(&self, is_orderly: bool, reason: &'r str) -> (bool, &'r str) {
        if self.entry.set_killed(false) { (true, KILLED_ON_REQUEST) } else { (is_orderly, reason) }
    }
}
