//! Path of a NIC's frames for the API, with the reason.

use suimon_contract::{IovPath, IovStatus, NicConfig};

use crate::shared::Shared;

impl Shared {
    /// Returns the path; `None` if the NIC neither has nor may have a VF.
    pub(crate) fn iov_status(&self, nic: &NicConfig) -> Option<IovStatus> {
        let on_vf = self.vf_assignments.view().active.get(&nic.name).cloned();
        if let Some(vf) = on_vf {
            return Some(IovStatus {
                path: IovPath::Vf,
                adapter: Some(vf.adapter.to_string()),
                vf_index: Some(vf.index),
                vf_address: Some(vf.pci_address.to_string()),
                reason: None,
            });
        }
        (nic.iov_weight > 0).then(|| IovStatus::paravirtual(self.paravirtual_reason(nic)))
    }

    fn paravirtual_reason(&self, nic: &NicConfig) -> String {
        let desired = self.desired();
        let switch = desired.config.switches.iter().find(|switch| switch.name == nic.switch);
        if switch.is_some_and(|switch| !switch.iov_enabled) {
            return format!(
                "its switch has iov = false; set it with `suimon switch set {} --iov`",
                nic.switch
            );
        }
        let vm = desired.config.vm_of_nic(&nic.name);
        let entry = vm.and_then(|vm| self.vms.find(&vm.name));
        if let Some(migration) = entry.as_ref().and_then(|entry| entry.view().migration.clone()) {
            let direction =
                if migration.is_outgoing { "is migrating to" } else { "is migrating from" };
            return format!("its VM {direction} node {}", migration.peer_node);
        }
        let run = entry.as_ref().and_then(|entry| entry.view().running.clone());
        let Some(run) = run.filter(|run| run.nics.contains(&nic.name)) else {
            return "no running VM has the NIC".to_owned();
        };
        if !run.standbys.contains(&nic.name) {
            return "the NIC was plugged in without iov_weight; restart its VM, or unplug and plug \
                    in the NIC"
                .to_owned();
        }
        if !run.failover_nics.contains(&nic.name) {
            return "the guest's driver does not negotiate VIRTIO_NET_F_STANDBY, so a VF cannot be \
                    used beside the NIC; Linux from 4.18 on supports it (net_failover)"
                .to_owned();
        }
        let reason = self.vf_assignments.view().reasons.get(&nic.name).cloned();
        reason.unwrap_or_else(|| "a VF is being assigned".to_owned())
    }
}
