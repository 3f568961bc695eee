//! Assignment of virtual functions to VMs: decisions of `policy/failover`, called as by
//! `plane/node`.

use core::cmp::Reverse;
use suimon_failover::{
    AdapterId, DataPath, Failover, FailoverAction, FailoverEvent, FailoverSpec, VfId,
};
use suimon_quantity::{PortId, Time};

const ADAPTER: AdapterId = AdapterId(0);

/// Returns the number of the virtual function assigned to each VM; `None` for a VM without one.
/// `weights` has the VMs' `iov_weight`, and `vfs` is the number of virtual functions. Guests accept
/// an assignment immediately.
pub(crate) fn assign_vfs(weights: &[u8], vfs: u16) -> Vec<Option<u16>> {
    let mut failover = Failover::new(FailoverSpec::default());
    for index in 0..vfs {
        let vf = VfId { adapter: ADAPTER, index };
        failover.handle(Time::ZERO, &FailoverEvent::VfFound { vf });
    }
    // All NICs exist from the start. The policy receives them in descending order of their weights.
    let mut nics: Vec<(u32, u8)> = (0..).zip(weights.iter().copied()).collect();
    nics.sort_by_key(|(_, iov_weight)| Reverse(*iov_weight));
    for (vm, iov_weight) in nics {
        let nic = PortId(vm);
        let adapters = vec![ADAPTER];
        failover.handle(Time::ZERO, &FailoverEvent::NicSet { nic, iov_weight, adapters });
    }
    while let Some(action) = failover.poll_action() {
        if let FailoverAction::PlugVf { nic, vf, .. } = action {
            failover.handle(Time::ZERO, &FailoverEvent::VfPathReady { nic, vf });
        }
    }
    let path = |vm| match failover.path(PortId(vm)) {
        Some(DataPath::Vf(vf)) => Some(vf.index),
        _ => None,
    };
    (0..weights.len() as u32).map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_weights_get_a_function_and_weight_zero_gets_none() {
        assert_eq!(assign_vfs(&[0, 50, 100], 1), [None, None, Some(0)]);
        assert_eq!(assign_vfs(&[50, 0, 100], 4).iter().flatten().count(), 2);
        assert_eq!(assign_vfs(&[50], 0), [None]);
    }
}
