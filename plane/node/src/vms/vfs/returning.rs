//! Return of unplugged VFs to the host.
//!
//! A VF that QEMU keeps open belongs to its NIC until it is returned, so that no other VM gets it.
//! The driver of the VM tries again at intervals that double up to one second, without waiting for
//! QEMU. The VF is recorded meanwhile, also after the end of the VM, so that the next daemon
//! continues.

use std::time::{Duration, Instant};

use suimon_contract::Name;
use suimon_ports::VmErrorKind;

use super::driving::is_recorded;
use super::unreturned::{RETRY_FIRST, UnreturnedVf};
use crate::virtual_functions::{StoredVfId, VfAddress, VfReport, unassigned_settings};
use crate::vms::driver::Driver;
use crate::vms::texts;

/// Longest interval between attempts, in units of the first retry delay of devices (1 s by
/// default).
const RETRY_MAX: u32 = 1;
/// Time after which an event reports a VF that is not back at the host, in units of the first retry
/// delay of devices.
const REPORT_AFTER: u32 = 2;
/// Interval until the next attempt if the launcher did not respond. Longer, because a launcher of
/// an earlier version occupies a thread for each attempt.
const RETRY_UNANSWERED: Duration = Duration::from_secs(60);

/// Result of an attempt to return a VF to the host.
enum Reclaim {
    Returned,
    /// A process has the VF open, or the change of its driver has failed or not ended; with the
    /// reason.
    Held(String),
    /// The launcher did not respond in time; the VF may still be open. With the reason.
    Unanswered(String),
}

impl Driver {
    /// Returns a VF that was unplugged to the host, and reports that. Returns false if that is not
    /// possible yet; further attempts are then made.
    pub(super) fn return_to_host(&mut self, nic: &Name, stored: &StoredVfId) -> bool {
        let Some(vf) = stored.address() else { return true };
        if self.unreturned_vfs.holds(&vf) {
            return false;
        }
        if let Err(error) = self.shared.set_vf(&vf, unassigned_settings) {
            let vm = &self.entry.name;
            tracing::warn!(%vm, %nic, error, "cannot remove the NIC's address from a VF");
        }
        let first = match self.reclaim(nic, &vf) {
            Reclaim::Returned => return true,
            Reclaim::Held(_) => RETRY_FIRST,
            Reclaim::Unanswered(_) => RETRY_UNANSWERED,
        };
        // The guest has the standby only.
        self.report(VfReport::Unplugged { nic: nic.clone(), vf: vf.clone() });
        self.unreturned_vfs.0.insert(vf.pci_address, UnreturnedVf::new(nic.clone(), vf, first));
        false
    }

    /// Tries to return a VF to the host.
    fn reclaim(&self, nic: &Name, vf: &VfAddress) -> Reclaim {
        let vm = &self.entry.name;
        if let Err(error) =
            self.shared.vms.dependencies.host.reclaim_vf(vm.as_str(), vf.pci_address)
        {
            return match error.kind {
                VmErrorKind::Timeout => Reclaim::Unanswered(error.text),
                _ => Reclaim::Held(error.text),
            };
        }
        self.report(VfReport::Released { nic: nic.clone(), vf: vf.clone() });
        Reclaim::Returned
    }

    /// Makes the attempts to return VFs that are due.
    pub(in crate::vms) fn retry_vf_returns(&mut self, now: Instant) {
        let due = |held_vf: &&UnreturnedVf| held_vf.retry_at <= now;
        let due: Vec<UnreturnedVf> = self.unreturned_vfs.0.values().filter(due).cloned().collect();
        let unit = self.peer_request_interval;
        for mut held_vf in due {
            let (nic, vf) = (held_vf.nic.clone(), held_vf.vf.clone());
            held_vf.interval = (held_vf.interval * 2).min(unit * RETRY_MAX);
            let (interval, reason) = match self.reclaim(&nic, &vf) {
                Reclaim::Returned => {
                    self.handle_returned(&held_vf);
                    continue;
                }
                Reclaim::Held(reason) => (held_vf.interval, reason),
                Reclaim::Unanswered(reason) => (RETRY_UNANSWERED, reason),
            };
            if !held_vf.is_reported && held_vf.since.elapsed() >= unit * REPORT_AFTER {
                held_vf.is_reported = true;
                self.append(texts::vf_unreturned_event(&self.entry, &nic, &vf, &reason));
            }
            held_vf.retry_at = Instant::now() + interval;
            self.unreturned_vfs.0.insert(vf.pci_address, held_vf);
        }
    }

    /// Deletes the record of a VF that was returned after it had been held.
    fn handle_returned(&mut self, held_vf: &UnreturnedVf) {
        let UnreturnedVf { nic, vf, .. } = held_vf;
        self.unreturned_vfs.0.remove(&vf.pci_address);
        if held_vf.is_reported {
            self.append(texts::vf_returned_event(&self.entry, nic, vf));
        }
        if self.run.as_ref().is_some_and(|run| is_recorded(run, nic, vf)) {
            self.forget_vf(nic);
        } else {
            self.save_record();
        }
    }

    /// Ends the attempts, because the VM is deleted. The launcher assigns a VF to no other VM
    /// before it is closed.
    pub(in crate::vms) fn stop_vf_returns(&mut self) {
        for held_vf in std::mem::take(&mut self.unreturned_vfs.0).into_values() {
            self.report(VfReport::Released { nic: held_vf.nic, vf: held_vf.vf });
        }
    }
}
