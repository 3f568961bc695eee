//! Search for a running VM, by its driver.

use std::sync::Arc;
use std::time::{Duration, Instant};

use suimon_contract::VmState;
use suimon_ports::{VmError, VmErrorKind, VmIdentity, VmObserver};

use super::UnresponsiveVm;
use crate::vms::driver::Driver;
use crate::vms::inbox::NoticeObserver;
use crate::vms::records::StoredRun;
use crate::vms::texts;

/// Interval between attempts to adopt a VM that does not respond.
const QUERY_RETRY_INTERVAL: Duration = Duration::from_secs(5);

impl Driver {
    /// Tries again to adopt a VM that does not respond.
    pub(in crate::vms) fn retry_adoption(&mut self, now: Instant) {
        if self.source_cleanup.is_some() {
            return;
        }
        if let Some(lost) = self.unresponsive.take_if(|lost| lost.query_at <= now) {
            self.adopt(lost.stored, lost.is_reported);
            self.continue_adopted_vm();
        }
    }

    /// Adopts the VM of a recorded run. An unresponsive VM is marked as lost and tried again; a VM
    /// whose process has ended is stopped. `is_reported` is true if an event has reported the VM as
    /// lost.
    pub(in crate::vms) fn adopt(&mut self, stored: StoredRun, is_reported: bool) {
        self.run_number += 1;
        let observer: Arc<dyn VmObserver> =
            Arc::new(NoticeObserver { entry: self.entry.clone(), run_number: self.run_number });
        let adopted = self.query_identity(&stored).and_then(|identity| {
            let Some(identity) = identity else {
                let text = "the daemon was killed while it started the VM";
                return Err(VmError::new(VmErrorKind::NotRunning, text));
            };
            let vm = self.shared.vms.dependencies.host.adopt(&identity, observer);
            vm.map(|vm| (vm, identity)).map_err(|error| match error.kind {
                VmErrorKind::NotRunning => {
                    let text = "the VM ended while no daemon was running";
                    VmError::new(VmErrorKind::NotRunning, text)
                }
                _ => error,
            })
        });
        let vfs = stored.vfs.clone();
        match adopted {
            Ok((vm, identity)) => {
                self.append(texts::adopted_event(&self.entry, &identity));
                let process = Some((identity.pid, identity.started_ticks));
                let is_written = stored.process_id_and_start == process;
                self.set_current_run(
                    vm.into(),
                    StoredRun { process_id_and_start: process, ..stored },
                    is_written,
                );
                self.replug_disconnected_nics();
            }
            Err(error) if error.kind == VmErrorKind::NotRunning => {
                self.release_all(&vfs);
                self.handle_ended(false, &error.text);
            }
            Err(error) => return self.mark_unresponsive(stored, error, is_reported),
        }
        for order in std::mem::take(&mut self.vf_orders) {
            self.handle_vf_order(order);
        }
    }

    /// Returns the identity of the VM's process; `None` if no process is running. An unrecorded
    /// process id is determined from the running VMs.
    ///
    /// # Errors
    /// The process id is not recorded, and the running VMs cannot be determined.
    pub(in crate::vms) fn query_identity(
        &self,
        stored: &StoredRun,
    ) -> Result<Option<VmIdentity>, VmError> {
        let name = self.entry.name.as_str();
        if let Some((process, started)) = stored.process_id_and_start {
            let folder = stored.folder.clone();
            return Ok(Some(VmIdentity {
                name: name.to_owned(),
                folder,
                pid: process,
                started_ticks: started,
            }));
        }
        let running = self.shared.vms.dependencies.host.running_vms()?;
        Ok(running.into_iter().find(|vm| vm.name == name && vm.folder == stored.folder))
    }

    fn mark_unresponsive(&mut self, stored: StoredRun, error: VmError, is_reported: bool) {
        let mut view = self.entry.view();
        view.state = VmState::NotResponding;
        let reason = view.reason.insert(error.text).clone();
        drop(view);
        if !is_reported {
            self.append(texts::unresponsive_event(&self.entry, &reason));
        }
        let ask_at = Instant::now() + QUERY_RETRY_INTERVAL;
        self.unresponsive = Some(UnresponsiveVm { stored, query_at: ask_at, is_reported: true });
    }
}
