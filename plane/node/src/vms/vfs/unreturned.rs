//! VFs that were unplugged, or whose VM has ended, and that are not back at the host.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use suimon_contract::Name;
use suimon_quantity::PciAddress;

use crate::virtual_functions::{StoredVfId, VfAddress};
use crate::vms::records::StoredRun;

/// First interval between attempts to return a VF: QEMU closes a VF shortly after it has reported
/// the unplug.
pub(super) const RETRY_FIRST: Duration = Duration::from_millis(10);

/// VFs of a VM that are not back at the host, by address, usually because QEMU keeps them open. At
/// most one per VF of the host.
#[derive(Debug, Default)]
pub(in crate::vms) struct UnreturnedVfs(pub(super) BTreeMap<PciAddress, UnreturnedVf>);

/// VF that is not back at the host, with the attempts to return it.
#[derive(Clone, Debug)]
pub(super) struct UnreturnedVf {
    pub(super) nic: Name,
    pub(super) vf: VfAddress,
    pub(super) since: Instant,
    pub(super) retry_at: Instant,
    pub(super) interval: Duration,
    pub(super) is_reported: bool,
}

impl UnreturnedVf {
    /// Returns a VF whose next attempt is due after `pause`.
    pub(super) fn new(nic: Name, vf: VfAddress, pause: Duration) -> Self {
        let now = Instant::now();
        let (retry_at, interval) = (now + pause, RETRY_FIRST);
        Self { nic, vf, since: now, retry_at, interval, is_reported: false }
    }
}

impl UnreturnedVfs {
    /// Returns the VFs that the previous daemon has recorded. Attempts are due immediately.
    pub(in crate::vms) fn restore(recorded: &[(Name, StoredVfId)]) -> Self {
        let held_vfs = recorded.iter().filter_map(|(nic, stored)| {
            let vf = stored.address()?;
            Some((vf.pci_address, UnreturnedVf::new(nic.clone(), vf, Duration::ZERO)))
        });
        Self(held_vfs.collect())
    }

    /// Returns the VFs that are recorded with the VM, in addition to those recorded in `run`.
    pub(in crate::vms) fn stored(&self, run: Option<&StoredRun>) -> Vec<(Name, StoredVfId)> {
        let stored =
            self.0.values().map(|held_vf| (held_vf.nic.clone(), StoredVfId::from(&held_vf.vf)));
        let is_of_run =
            |nic: &Name, vf: &StoredVfId| run.and_then(|run| run.vfs.get(nic)) == Some(vf);
        stored.filter(|(nic, vf)| !is_of_run(nic, vf)).collect()
    }

    /// Returns true if this VF is not back at the host. Its return will be reported by a
    /// [`VfReport`](crate::virtual_functions::VfReport).
    pub(super) fn holds(&self, vf: &VfAddress) -> bool {
        self.0.contains_key(&vf.pci_address)
    }

    /// Returns the time of the next attempt to return a VF.
    pub(in crate::vms) fn deadline(&self) -> Option<Instant> {
        self.0.values().map(|held_vf| held_vf.retry_at).min()
    }
}
