//! Legacy NICs that were disconnected when the previous daemon ended.
//!
//! The stream netdev of QEMU before 8.0 does not reconnect. Such a NIC is unplugged and plugged
//! again, which the guest observes as a removed and a new device.

use suimon_contract::{Name, NicBackend};
use suimon_ports::{VmCommand, VmDevice, VmError, VmErrorKind};

use super::driver::Driver;

impl Driver {
    /// Requests the unplug of legacy NICs if this version of QEMU does not reconnect them. They are
    /// plugged again once the guest has released them. Until then, the VM's status reports them as
    /// failed plug operations with the reason.
    pub(super) fn replug_disconnected_nics(&mut self) {
        let Some(run) = &mut self.run else { return };
        let status = run.vm.status();
        if status.reconnects_streams {
            return;
        }
        let desired = self.shared.desired();
        let is_emulated = |name: &&Name| {
            let of_name = desired.config.nics.iter().find(|nic| nic.name == **name);
            of_name.is_some_and(|nic| nic.backend == NicBackend::Legacy)
        };
        let cut_off: Vec<Name> = run.stored.nics.iter().filter(is_emulated).cloned().collect();
        if cut_off.is_empty() {
            return;
        }
        for name in cut_off {
            let device = VmDevice::Nic(name.to_string());
            let result = run.vm.execute(&VmCommand::Unplug(device.clone()));
            let reason = result.err().unwrap_or_else(|| {
                let text = format!(
                    "QEMU {} does not reconnect a legacy NIC after a restart of the daemon; the \
                     NIC is plugged in again as soon as the guest releases it",
                    status.qemu_version
                );
                VmError::new(VmErrorKind::Refused, text)
            });
            run.unplugging.insert(device.clone());
            run.disconnected.insert(device, reason);
        }
        self.reconcile();
    }
}
