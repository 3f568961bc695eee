//! VFs of VMs: drivers of guests, and the use of VFs by QEMU and other processes.

use std::collections::BTreeMap;
use std::sync::Arc;

use suimon_ports::{VmDevice, VmNotice};

use super::FakeVms;

impl FakeVms {
    /// Sets whether guests' drivers support VFs.
    pub(crate) fn take_vfs(&self, takes_vfs: bool) {
        self.world().takes_no_vfs = !takes_vfs;
    }

    /// Sets whether guests boot, so that no driver has initialized their NICs.
    pub(crate) fn boot(&self, is_booting: bool) {
        self.world().is_booting = is_booting;
    }

    /// Sets whether requests to return a VF exceed their time limit, as with a launcher of an
    /// earlier version while QEMU keeps the VF open.
    pub(crate) fn ignore_returns(&self, ignores_returns: bool) {
        self.world().ignores_returns = ignores_returns;
    }

    /// Opens a VF in a process that is not one of the VMs.
    pub(crate) fn open_elsewhere(&self, vf: &str) {
        self.world().open_elsewhere.insert(vf.to_owned());
    }

    /// Sets whether QEMU keeps VFs open that were unplugged.
    pub(crate) fn hold_vfs(&self, holds_vfs: bool) {
        self.world().holds_vfs = holds_vfs;
    }

    /// Returns the number of attempts to take back a VF that QEMU keeps open.
    pub(crate) fn held_vfs(&self) -> u32 {
        self.world().held_vfs
    }

    /// Returns the number of queries of the failover state of NICs.
    pub(crate) fn standby_queries(&self) -> u32 {
        self.world().standby_queries
    }

    /// Returns the VFs bound to `vfio-pci`.
    pub(crate) fn vfs(&self) -> Vec<String> {
        self.world().vfs.iter().cloned().collect()
    }

    /// Returns the VFs in a guest, by NIC.
    pub(crate) fn plugged_vfs(&self, name: &str) -> BTreeMap<String, String> {
        self.world().running.get(name).map(|guest| guest.vfs.clone()).unwrap_or_default()
    }

    /// Has a guest release the VF of a NIC.
    pub(crate) fn release_vf(&self, name: &str, nic: &str) {
        if let Some(guest) = self.world().running.get_mut(name) {
            guest.vfs.remove(nic);
        }
        self.guest(name, VmNotice::Unplugged(VmDevice::Vf(nic.to_owned())));
    }

    /// Has guests release devices on request from now on. `look` is called before each release is
    /// reported.
    pub(crate) fn release_vfs(&self, look: impl Fn() + Send + Sync + 'static) {
        self.world().on_unplug = Some(Arc::new(look));
    }
}
