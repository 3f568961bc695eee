//! Path of a NIC's frames for the API, with the reason.

use suimon_contract::{IovPath, IovStatus, NicConfig};

use crate::shared::Shared;

impl Shared {
    /// Returns the path; `None` if the NIC neither has nor may have a VF.
    pub(crate) fn iov_status(&self, nic: &NicConfig) -> Option<IovStatus> {
        let on_vf = self.iov.view().paths.get(&nic.name).cloned();
        if let Some(vf) = on_vf {
            return Some(IovStatus {
                path: IovPath::Vf,
                adapter: Some(vf.adapter.to_string()),
                vf: Some(vf.index),
                address: Some(vf.address.to_string()),
                reason: None,
            });
        }
        (nic.iov_weight > 0).then(|| IovStatus::synthetic(self.why_synthetic(nic)))
    }

    fn why_synthetic(&self, nic: &NicConfig) -> String {
        let desired = self.desired();
        let switch = desired.config.switches.iter().find(|switch| switch.name == nic.switch);
        if switch.is_some_and(|switch| !switch.iov) {
            return format!(
                "its switch has no `iov`; `suimon switch set {} --iov` gives it that",
                nic.switch
            );
        }
        let vm = desired.config.vm_of_nic(&nic.name);
        let entry = vm.and_then(|vm| self.vms.find(&vm.name));
        if let Some(moving) = entry.as_ref().and_then(|entry| entry.view().moving.clone()) {
            let way = if moving.leaves { "is being moved to" } else { "comes from" };
            return format!("its VM {way} node {}", moving.node);
        }
        let run = entry.as_ref().and_then(|entry| entry.view().running.clone());
        let Some(run) = run.filter(|run| run.nics.contains(&nic.name)) else {
            return "no VM that runs has it".to_owned();
        };
        if !run.standbys.contains(&nic.name) {
            return "it was plugged in when it had no iov_weight; it can have a VF from its VM's \
                    next start on, or after it was taken away and plugged in again"
                .to_owned();
        }
        if !run.takers.contains(&nic.name) {
            return "the guest's driver takes no VF beside it (VIRTIO_NET_F_STANDBY); Linux does \
                    from 4.18 on, with net_failover"
                .to_owned();
        }
        let reason = self.iov.view().reasons.get(&nic.name).cloned();
        reason.unwrap_or_else(|| "it is being given a VF".to_owned())
    }
}
