//! NICs that were cut off when the daemon before this one ended.
//!
//! An emulated NIC of a QEMU before 8.0 does not connect again. It is unplugged and plugged in
//! again: the guest sees that its cable and its card were pulled, which is the least that helps.

use suimon_contract::NicBackend;
use suimon_ports::{VmCommand, VmDevice, VmError, VmErrorKind};

use super::driver::Driver;

impl Driver {
    /// Has the guest let go of the NICs that do not connect again. As soon as it has they are
    /// given to it again, as all that is desired; until then they are told to wait.
    pub(super) fn replug_cut_off(&mut self) {
        let Some(mut run) = self.run.take() else { return };
        let facts = run.vm.facts();
        let desired = self.shared.desired();
        let is_emulated = |name: &&suimon_contract::Name| {
            let of_name = desired.config.nics.iter().find(|nic| nic.name == **name);
            of_name.is_some_and(|nic| nic.backend == NicBackend::Legacy)
        };
        let plugged = run.stored.nics.clone();
        for name in plugged.iter().filter(|_| !facts.reconnects_streams).filter(is_emulated) {
            let device = VmDevice::Nic(name.to_string());
            let told = run.vm.tell(&VmCommand::Unplug(device.clone()));
            let text = match told {
                Ok(()) => format!(
                    "QEMU {} does not connect a legacy NIC again after the daemon was replaced; \
                     it is plugged in anew as soon as the guest lets go of it",
                    facts.qemu_version
                ),
                Err(error) => error.text,
            };
            self.refuse(&mut run, &device.to_string(), &VmError::new(VmErrorKind::Refused, text));
            run.leaving.insert(device);
        }
        self.run = Some(run);
        let state = self.entry.view().state;
        self.publish(state);
    }
}
