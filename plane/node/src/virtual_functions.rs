//! Assignment of virtual functions (VFs) of SR-IOV adapters to NICs of VMs.
//!
//! The control thread drives the policy in `policy/failover` (`controller.rs`): it passes events
//! about adapters, VFs and NICs to the policy and carries out the returned actions. Actions on a VM
//! are slow; the VM's driver thread performs them (`vms/vfs.rs`) and reports the results here.
//!
//! ```text
//! adapters, desired state ─► VfController ─► policy/failover
//!            ▲                 │ VfOrder ─────► VM driver ──► launcher, QEMU
//!            │                 └ path ────────► switch tables, embedded switch of the adapter
//!            └── VfReport ◄──────────────────── VM driver
//! ```

mod controller;
mod nic_numbers;
mod query;
mod settings;
mod status;
mod stored_assignments;
mod texts;
mod vf_address;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use suimon_contract::Name;
use suimon_quantity::PciAddress;

pub(crate) use self::controller::VfController;
pub(crate) use self::vf_address::{StoredVfId, VfAddress, settings_for_nic, unassigned_settings};

/// Report of a VM's driver about the VF of a NIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum VfReport {
    /// The VF is attached to the VM.
    Ready { nic: Name, vf: VfAddress },
    /// The VF could not be attached, or has disappeared.
    Failed { nic: Name, vf: VfAddress, reason: String },
    /// The VF was detached from the VM, and is not back at the host.
    Unplugged { nic: Name, vf: VfAddress },
    /// The VF was detached from the VM and returned to the host.
    Released { nic: Name, vf: VfAddress },
    /// A migration of the NIC's VM has started or ended.
    Migrating { nic: Name, is_moving: bool },
}

/// NICs with VFs, as published to other threads.
#[derive(Debug, Default)]
struct View {
    /// NICs that send and receive through a VF, with the VF.
    active: BTreeMap<Name, VfAddress>,
    /// NIC of each assigned VF, by the VF's address, until the VF is released.
    assigned: BTreeMap<PciAddress, Name>,
    /// Reasons why NICs have no VF.
    reasons: BTreeMap<Name, String>,
}

/// VF management as seen by other threads: queue of reports of the VMs' drivers, and published
/// state.
#[derive(Debug, Default)]
pub(crate) struct VfAssignments {
    reports: Mutex<VecDeque<VfReport>>,
    view: Mutex<View>,
}

impl VfAssignments {
    /// Queues a report for the control thread, which polls several times per second.
    pub(crate) fn report(&self, report: VfReport) {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).push_back(report);
    }

    fn poll_report(&self) -> Option<VfReport> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the NIC to which a VF is assigned.
    pub(crate) fn nic_of_vf(&self, vf: PciAddress) -> Option<Name> {
        self.view().assigned.get(&vf).cloned()
    }

    /// Returns the NICs that send and receive through a VF.
    pub(crate) fn nics_on_vfs(&self) -> BTreeSet<Name> {
        self.view().active.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests;
