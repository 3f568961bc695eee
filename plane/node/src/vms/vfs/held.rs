//! VFs that were unplugged and that QEMU keeps open.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use suimon_contract::Name;
use suimon_quantity::PciAddress;

use crate::virtual_functions::VfAddress;

/// VFs of a VM that QEMU keeps open, by address. At most one per VF of the host.
#[derive(Debug, Default)]
pub(in crate::vms) struct HeldVfs(pub(super) BTreeMap<PciAddress, HeldVf>);

/// VF that QEMU keeps open, with the attempts to return it.
#[derive(Clone, Debug)]
pub(super) struct HeldVf {
    pub(super) nic: Name,
    pub(super) vf: VfAddress,
    pub(super) since: Instant,
    pub(super) retry_at: Instant,
    pub(super) interval: Duration,
    pub(super) is_reported: bool,
}

impl HeldVfs {
    /// Returns true if QEMU keeps this VF open; its return will be reported.
    pub(super) fn holds(&self, vf: &VfAddress) -> bool {
        self.0.contains_key(&vf.address)
    }

    /// Returns the time of the next attempt to return a VF.
    pub(in crate::vms) fn deadline(&self) -> Option<Instant> {
        self.0.values().map(|held| held.retry_at).min()
    }
}
