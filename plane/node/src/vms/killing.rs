//! Kill of a VM whose driver may be blocked.
//!
//! The driver of a VM executes kills. A QEMU that does not respond can block it for many seconds. A
//! kill that the driver has not begun within [`GRACE`] is therefore executed by another thread. The
//! end of the process also ends the calls that block the driver, which then completes the operation.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use suimon_contract::MigrationPhase;
use suimon_ports::{VmError, VmErrorKind};

use super::VmEntry;
use super::driver::Driver;
use super::inbox::Message;
use super::work::VmAction;
use crate::operations::OperationHandle;
use crate::shared::Shared;

/// Time within which the driver must begin a kill.
const GRACE: Duration = Duration::from_millis(250);
/// Reason for the end of a VM that was killed.
pub(super) const ON_REQUEST: &str = "it was killed on request";

/// Requested kill of a VM. One thread executes it.
pub(crate) struct PendingKill {
    operation: OperationHandle,
    stage: Mutex<Stage>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No thread has begun the kill.
    Queued,
    /// The driver executes the kill.
    Begun,
    /// The other thread kills the process.
    Killing,
    /// The other thread has killed the process, or has failed.
    Ended { is_killed: bool },
}

impl PendingKill {
    fn lock(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the kill in the driver. Blocks while the other thread kills the process. Returns true
    /// if that thread has killed it.
    fn begin(&self) -> bool {
        let is_killing = |stage: &mut Stage| *stage == Stage::Killing;
        let stage = self.changed.wait_while(self.lock(), is_killing);
        let mut stage = stage.unwrap_or_else(PoisonError::into_inner);
        let is_killed = *stage == Stage::Ended { is_killed: true };
        *stage = Stage::Begun;
        self.changed.notify_all();
        is_killed
    }

    /// Waits until the driver begins the kill. Returns true if it has not done so in time; the
    /// driver then waits for [`Self::end`].
    fn is_late(&self) -> bool {
        let is_queued = |stage: &mut Stage| *stage == Stage::Queued;
        let waited = self.changed.wait_timeout_while(self.lock(), GRACE, is_queued);
        let (mut stage, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if *stage != Stage::Queued || !self.operation.begin() {
            return false;
        }
        *stage = Stage::Killing;
        true
    }

    fn end(&self, is_killed: bool) {
        *self.lock() = Stage::Ended { is_killed };
        self.changed.notify_all();
    }
}

impl Shared {
    /// Submits a kill to the VM's driver, and executes it without the driver if that is blocked.
    pub(super) fn submit_kill(self: &Arc<Self>, entry: Arc<VmEntry>, operation: OperationHandle) {
        let (stage, changed) = (Mutex::new(Stage::Queued), Condvar::new());
        let kill = Arc::new(PendingKill { operation, stage, changed });
        entry.inbox.put(Message::Kill(Arc::clone(&kill)));
        let (shared, vm) = (Arc::clone(self), entry.name.clone());
        let bypass = move || {
            if kill.is_late() {
                let killed = shared.kill_without_driver(&entry);
                if let Err(error) = &killed {
                    tracing::warn!(vm = %entry.name, %error, "cannot kill a VM before its driver does");
                }
                kill.end(killed.is_ok());
            }
        };
        // Without the thread, the driver kills the VM as soon as it is not blocked any more.
        if let Err(error) = std::thread::Builder::new().name("vm-kill".to_owned()).spawn(bypass) {
            tracing::warn!(%vm, %error, "cannot start a thread that kills a VM");
        }
    }

    /// Kills the process of a VM. The driver handles its end.
    fn kill_without_driver(&self, entry: &VmEntry) -> Result<(), VmError> {
        let refused = |text: &str| Err(VmError::new(VmErrorKind::Refused, text));
        if !entry.may_be_killed() {
            return refused("the state of the VM does not permit it");
        }
        let host = &self.vms.parts.host;
        let Some(vm) = host.running()?.into_iter().find(|vm| vm.name == entry.name.as_str()) else {
            return refused("the VM has no process");
        };
        // The notice of the end can precede the return.
        entry.set_killed(true);
        match host.kill(&vm) {
            Ok(()) | Err(VmError { kind: VmErrorKind::NotRunning, .. }) => Ok(()),
            Err(error) => {
                entry.set_killed(false);
                Err(error)
            }
        }
    }
}

impl VmEntry {
    /// Returns true if the VM is running, as far as is known, and no other node may have it.
    fn may_be_killed(&self) -> bool {
        use MigrationPhase::{CopyingDisks, CopyingMemory, Preparing};
        let view = self.view();
        let is_here = view.migration.as_ref().is_none_or(|of| {
            of.is_outgoing && matches!(of.phase, Preparing | CopyingDisks | CopyingMemory)
        });
        is_here && VmAction::Kill.check(&self.name, view.state).is_ok()
    }
}

impl Driver {
    /// Executes a kill, or completes one that another thread has executed.
    pub(super) fn begin_kill(&mut self, kill: &PendingKill) {
        let is_killed = kill.begin();
        if !kill.operation.begin() {
            return;
        }
        let checked = if is_killed { Ok(()) } else { self.check_action(VmAction::Kill) };
        let done = checked.and_then(|()| self.kill());
        self.entry.set_killed(false);
        kill.operation.end(&done);
    }

    /// Returns how the process has ended, given how its end was reported: true for an orderly end,
    /// and the reason. An end by [`Shared::kill_without_driver`] was requested.
    pub(super) fn cause_of_end<'r>(&self, is_orderly: bool, reason: &'r str) -> (bool, &'r str) {
        if self.entry.set_killed(false) { (true, ON_REQUEST) } else { (is_orderly, reason) }
    }
}
