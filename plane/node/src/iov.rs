//! NICs of VMs that have virtual functions (VFs) of adapters with SR-IOV.
//!
//! The control thread drives `policy/failover` (`desk.rs`): it tells it what adapters, VFs and
//! NICs there are and does what it answers. What a VM has to do with that its own driver does
//! (`vms/vfs.rs`), which takes its time, and reports here.
//!
//! ```text
//! adapters, desired state ─► desk ─► policy/failover
//!            ▲                 │ give, take ──► VM's driver ──► launcher, QEMU
//!            │                 └ path ────────► tables of the switch, the adapter's addresses
//!            └── reports ◄──────────────────── VM's driver
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

/// What a VM's driver tells of a NIC's VF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum VfReport {
    /// The VM has it.
    Ready { nic: Name, vf: VfPlace },
    /// It could not be plugged in, or is not there any more, and why.
    Failed { nic: Name, vf: VfPlace, reason: String },
    /// Nobody has it any more.
    Released { nic: Name, vf: VfPlace },
    /// The NIC's VM is being moved to another host, or is not any more.
    Migrating { nic: Name, is_moving: bool },
}

/// What everybody may know of NICs with VFs.
#[derive(Debug, Default)]
struct View {
    /// NICs whose frames take a VF.
    paths: BTreeMap<Name, VfPlace>,
    /// Which NIC was given which VF, by the VF's address, until it is released.
    given: BTreeMap<PciAddress, Name>,
    /// Why NICs are without.
    reasons: BTreeMap<Name, String>,
}

impl Shared {
    /// Sets a VF up, from how it is.
    ///
    /// # Errors
    /// The adapter, the VF or a setting of it is not to be had; in words.
    pub(crate) fn set_vf(
        &self,
        vf: &VfPlace,
        change: impl FnOnce(&VfSettings) -> VfChange,
    ) -> Result<(), String> {
        let host = &self.sriov.host;
        let adapters = host.adapters().map_err(|error| error.detail)?;
        let pf = adapters.into_iter().find(|pf| pf.address == vf.adapter);
        let found = pf.and_then(|pf| pf.vfs.into_iter().find(|of| of.index == vf.index));
        let settings = found.ok_or_else(|| format!("{vf} does not exist any more"))?.settings;
        let Some(is) = settings else {
            return Err(format!("the adapter's driver does not report the settings of {vf}"));
        };
        let change = change(&is);
        if change.is_empty() {
            return Ok(());
        }
        host.change_vf(vf.adapter, vf.index, &change).map_err(|error| error.detail)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Iov {
    reports: Mutex<VecDeque<VfReport>>,
    view: Mutex<View>,
}

impl Iov {
    /// Tells the control thread, which looks several times a second.
    pub(crate) fn report(&self, report: VfReport) {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).push_back(report);
    }

    fn poll_report(&self) -> Option<VfReport> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The NIC that was given a VF, if one was.
    pub(crate) fn nic_of_vf(&self, vf: PciAddress) -> Option<Name> {
        self.view().given.get(&vf).cloned()
    }

    /// NICs whose frames take a VF.
    pub(crate) fn nics_on_vfs(&self) -> BTreeSet<Name> {
        self.view().paths.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests;
