//! VFs that were assigned when the previous daemon ended.

use suimon_contract::{HostConfig, Name};
use suimon_failover::FailoverEvent;

use super::VfAddress;
use crate::control::Controller;
use crate::vms::RecordedVm;

impl Controller {
    /// Registers recorded VFs as assigned and in use, because the VMs have continued to run. Called
    /// before tables are published and devices are opened, also for VMs that do not respond. If
    /// such a VF has been lost, the VM's driver reports that later.
    pub(crate) fn register_stored_vfs(&mut self, config: &HostConfig, recorded: &[RecordedVm]) {
        for (nic, vf) in
            recorded.iter().filter_map(|vm| vm.previous_state.run.as_ref()).flat_map(|run| &run.vfs)
        {
            if let Some(vf) = vf.address() {
                self.hold_vf(config, nic, vf);
            }
        }
        // VFs of ended VMs that are not back at the host.
        for (nic, vf) in recorded.iter().flat_map(|vm| &vm.previous_state.unreturned_vfs) {
            let Some(vf) = vf.address() else { continue };
            self.shared.vf_assignments.view().assigned.insert(vf.pci_address, nic.clone());
            let (nic, vf) =
                (self.vf_controller.assign_nic_number(nic), self.vf_controller.assign_vf_id(&vf));
            self.notify_policy(&FailoverEvent::VfUnplugPending { nic, vf });
        }
    }

    fn hold_vf(&mut self, config: &HostConfig, nic: &Name, vf: VfAddress) {
        let (id, vf_id) =
            (self.vf_controller.assign_nic_number(nic), self.vf_controller.assign_vf_id(&vf));
        let mut view = self.shared.vf_assignments.view();
        view.assigned.insert(vf.pci_address, nic.clone());
        view.active.insert(nic.clone(), vf.clone());
        drop(view);
        self.vf_controller.reported_vfs.insert(vf_id, vf);
        let weight = config.nics.iter().find(|nic_config| nic_config.name == *nic);
        let iov_weight = weight.map_or(0, |nic_config| nic_config.iov_weight);
        let adapters = vec![vf_id.adapter];
        self.vf_controller.reported_nics.insert(nic.clone(), (iov_weight, adapters.clone()));
        self.notify_policy(&FailoverEvent::VfInUse { nic: id, iov_weight, adapters, vf: vf_id });
        self.execute_policy_actions(config);
    }
}
