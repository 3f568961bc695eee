//! Kill of a VM whose driver may be blocked.
//!
//! The driver of a VM executes kills. A QEMU that does not respond can block it for many seconds. A
//! kill that the driver has not begun within `GRACE` (`pending_kill.rs`) is therefore executed by another thread. The
//! end of the process also ends the calls that block the driver, which then completes the operation.

use std::sync::Arc;

use suimon_contract::MigrationPhase;
use suimon_ports::{VmError, VmErrorKind};

use super::VmEntry;
use super::driver::Driver;
use super::inbox::Message;
use super::pending_kill::PendingKill;
use super::texts::ON_REQUEST;
use super::work::VmAction;
use crate::operations::OperationHandle;
use crate::shared::Shared;

impl Shared {
    /// Submits a kill to the VM's driver, and executes it without the driver if that is blocked.
    pub(super) fn submit_kill(self: &Arc<Self>, entry: Arc<VmEntry>, operation: OperationHandle) {
        let kill = Arc::new(PendingKill::new(operation));
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
        if !kill.operation().begin() {
            return;
        }
        let checked = if is_killed { Ok(()) } else { self.check_action(VmAction::Kill) };
        let done = checked.and_then(|()| self.kill());
        self.entry.set_killed(false);
        kill.operation().end(&done);
    }

    /// Returns how the process has ended, given how its end was reported: true for an orderly end,
    /// and the reason. An end by [`Shared::kill_without_driver`] was requested.
    pub(super) fn cause_of_end<'r>(&self, is_orderly: bool, reason: &'r str) -> (bool, &'r str) {
        if self.entry.set_killed(false) { (true, ON_REQUEST) } else { (is_orderly, reason) }
    }
}
