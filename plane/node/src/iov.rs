//! Virtual functions (VFs) of SR-IOV adapters for VM NICs, with fallback to the paravirtual path.
//!
//! The control thread drives the policy `policy/failover` (`desk.rs`): it reports adapters, VFs and
//! NICs to the policy and executes its actions. Operations on a VM can block; the VM's driver
//! executes them (`vms/vfs.rs`) and reports the results here.
//!
//! ```text
//! adapters, desired state ─► desk ─► policy/failover
//!            ▲                 │ give, take ──► VM driver ──► launcher, QEMU
//!            │                 └ path ────────► switch tables, embedded switch of the adapter
//!            └── reports ◄──────────────────── VM driver
//! ```

mod desk;
mod held;
mod look;
mod place;
mod status;
mod texts;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use suimon_contract::Name;
use suimon_ports::{VfChange, VfSettings};
use suimon_quantity::PciAddress;

use crate::shared::Shared;

pub(crate) use self::desk::IovDesk;
pub(crate) use self::place::{StoredVf, VfPlace, for_nic, for_nobody};

/// Report of a VM's driver about a NIC's VF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum VfReport {
    /// The VF is present in the guest.
    Ready { nic: Name, vf: VfPlace },
    /// The VF could not be plugged or has been lost, with the reason.
    Failed { nic: Name, vf: VfPlace, reason: String },
    /// The VF was returned to the host.
    Released { nic: Name, vf: VfPlace },
    /// A migration of the NIC's VM to another node has started, or has ended on this node.
    Migrating { nic: Name, is_moving: bool },
}

/// State that any thread can read.
#[derive(Debug, Default)]
struct View {
    /// VF path of each NIC that uses one.
    paths: BTreeMap<Name, VfPlace>,
    /// NIC that each VF is assigned to, by the VF's address, until the VF is released.
    given: BTreeMap<PciAddress, Name>,
    /// Reasons why NICs use the paravirtual path.
    reasons: BTreeMap<Name, String>,
}

impl Shared {
    /// Configures a VF. `change` derives the change from the current settings. Blocks on the
    /// adapter's driver.
    ///
    /// # Errors
    /// The adapter or the VF does not exist, or the driver rejects a setting; as text.
    pub(crate) fn set_vf(
        &self,
        vf: &VfPlace,
        change: impl FnOnce(&VfSettings) -> VfChange,
    ) -> Result<(), String> {
        let host = &self.sriov.host;
        let adapters = host.adapters().map_err(|error| error.detail)?;
        let pf = adapters.into_iter().find(|pf| pf.address == vf.adapter);
        let found = pf.and_then(|pf| pf.vfs.into_iter().find(|of| of.index == vf.index));
        let settings = found.ok_or_else(|| format!("{vf} is not there any more"))?.settings;
        let Some(is) = settings else {
            return Err(format!("the adapter's driver does not tell how {vf} is set up"));
        };
        let change = change(&is);
        if change.is_empty() {
            return Ok(());
        }
        host.change_vf(vf.adapter, vf.index, &change).map_err(|error| error.detail)
    }
}

/// Reports of VM drivers, and the state of NICs with VFs.
#[derive(Debug, Default)]
pub(crate) struct Iov {
    reports: Mutex<VecDeque<VfReport>>,
    view: Mutex<View>,
}

impl Iov {
    /// Queues a report for the control thread, which polls for reports several times per second.
    pub(crate) fn report(&self, report: VfReport) {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).push_back(report);
    }

    fn poll_report(&self) -> Option<VfReport> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the NIC that a VF is assigned to.
    pub(crate) fn nic_of_vf(&self, vf: PciAddress) -> Option<Name> {
        self.view().given.get(&vf).cloned()
    }

    /// Returns the NICs on the VF path.
    pub(crate) fn nics_on_vfs(&self) -> BTreeSet<Name> {
        self.view().paths.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests;
