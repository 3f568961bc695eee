//! Search for a running VM, by its driver.

use std::sync::Arc;
use std::time::{Duration, Instant};

use suimon_contract::VmState;
use suimon_ports::{VmError, VmErrorKind, VmIdentity, VmObserver};

use super::Lost;
use crate::vms::driver::Driver;
use crate::vms::inbox::Ear;
use crate::vms::records::StoredRun;
use crate::vms::texts;

/// Interval between attempts to adopt a VM that does not respond.
const ASK_AGAIN: Duration = Duration::from_secs(5);

impl Driver {
    /// Tries again to adopt a VM that does not respond.
    pub(in crate::vms) fn look_at_lost(&mut self, now: Instant) {
        if self.departing.is_some() {
            return;
        }
        if let Some(lost) = self.lost.take_if(|lost| lost.ask_at <= now) {
            self.find_again(lost.stored, lost.is_told);
            self.stay_if_found();
        }
    }

    /// Adopts the VM of a recorded run. An unresponsive VM is marked as lost and tried again; a VM
    /// whose process has ended is stopped. `is_told` is true if an event has reported the VM as
    /// lost.
    pub(in crate::vms) fn find_again(&mut self, stored: StoredRun, is_told: bool) {
        self.runs += 1;
        let ear: Arc<dyn VmObserver> = Arc::new(Ear { entry: self.entry.clone(), run: self.runs });
        let adopted = self.identity_of(&stored).and_then(|identity| {
            let Some(identity) = identity else {
                let text = "the daemon was killed while it started the VM";
                return Err(VmError::new(VmErrorKind::Gone, text));
            };
            let vm = self.shared.vms.parts.host.adopt(&identity, ear);
            vm.map(|vm| (vm, identity)).map_err(|error| match error.kind {
                VmErrorKind::Gone => {
                    let text = "the VM ended while no daemon was running";
                    VmError::new(VmErrorKind::Gone, text)
                }
                _ => error,
            })
        });
        let vfs = stored.vfs.clone();
        match adopted {
            Ok((vm, identity)) => {
                self.append(texts::found(&self.entry, &identity));
                let process = Some((identity.process, identity.started));
                let is_written = stored.process == process;
                self.take_over(vm.into(), StoredRun { process, ..stored }, is_written);
                self.replug_cut_off();
            }
            Err(error) if error.kind == VmErrorKind::Gone => {
                self.release_all(&vfs);
                self.has_ended(false, &error.text);
            }
            Err(error) => return self.lose(stored, error, is_told),
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
    pub(in crate::vms) fn identity_of(
        &self,
        stored: &StoredRun,
    ) -> Result<Option<VmIdentity>, VmError> {
        let name = self.entry.name.as_str();
        if let Some((process, started)) = stored.process {
            let folder = stored.folder.clone();
            return Ok(Some(VmIdentity { name: name.to_owned(), folder, process, started }));
        }
        let running = self.shared.vms.parts.host.running()?;
        Ok(running.into_iter().find(|vm| vm.name == name && vm.folder == stored.folder))
    }

    fn lose(&mut self, stored: StoredRun, error: VmError, is_told: bool) {
        let mut view = self.entry.view();
        view.state = VmState::Lost;
        let reason = view.reason.insert(error.text).clone();
        drop(view);
        if !is_told {
            self.append(texts::lost(&self.entry, &reason));
        }
        let ask_at = Instant::now() + ASK_AGAIN;
        self.lost = Some(Lost { stored, ask_at, is_told: true });
    }
}
