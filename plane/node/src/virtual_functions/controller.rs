//! VF management of the control thread: reports events to the failover policy and executes its
//! actions.

mod control;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use suimon_contract::Name;
use suimon_failover::{AdapterId, Failover, FailoverReason, FailoverSpec, VfId};
use suimon_frame::MacAddr;
use suimon_quantity::{PciAddress, PortId};

use super::VfAddress;
use super::nic_numbers::NicNumbers;

/// State of a NIC's MAC address in an adapter's embedded switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FdbState {
    /// Added for the physical function.
    Here,
    /// To be added, but the adapter's driver has rejected it.
    Refused,
    /// Removed from the physical function.
    Away,
}

/// State of NICs and VFs in the control thread.
#[derive(Debug)]
pub(crate) struct VfController {
    policy: Failover,
    /// Numbers of NICs in the failover policy.
    nics: NicNumbers,
    /// Numbers of adapters in the failover policy, which are never reused. Bounded by the PCI
    /// addresses of the host.
    adapters: BTreeMap<PciAddress, AdapterId>,
    /// Weight and adapters of each NIC, as last reported to the policy.
    pub(super) reported_nics: BTreeMap<Name, (u8, Vec<AdapterId>)>,
    pub(super) reported_vfs: BTreeMap<VfId, VfAddress>,
    unbound: BTreeSet<PciAddress>,
    /// NICs that release their VF on request, with the reason. Frames use the VF until it is
    /// released.
    leaving: BTreeMap<Name, FailoverReason>,
    /// Reason why the last VF of a NIC could not be used, as reported by the VM's driver.
    failures: BTreeMap<Name, String>,
    /// State of addresses that were last added to or removed from embedded switches, by adapter
    /// (PCI address) and MAC address.
    led: BTreeMap<(PciAddress, MacAddr), FdbState>,
    looked_at: Option<Instant>,
}

impl Default for VfController {
    fn default() -> Self {
        Self {
            policy: Failover::new(FailoverSpec::default()),
            nics: NicNumbers::default(),
            adapters: BTreeMap::new(),
            reported_nics: BTreeMap::new(),
            reported_vfs: BTreeMap::new(),
            unbound: BTreeSet::new(),
            leaving: BTreeMap::new(),
            failures: BTreeMap::new(),
            led: BTreeMap::new(),
            looked_at: None,
        }
    }
}

impl VfController {
    pub(super) fn assign_nic_number(&mut self, name: &Name) -> PortId {
        self.nics.assign_number(name)
    }

    fn name(&self, nic: PortId) -> Option<Name> {
        self.nics.name(nic).cloned()
    }

    /// Forgets the NICs that are neither configured nor hold a VF (`assigned`).
    fn forget_nics(&mut self, configured: &BTreeSet<&Name>, assigned: &BTreeSet<Name>) {
        let Self { nics, reported_nics, leaving: leaving_nics, failures, .. } = self;
        let is_retained = |name: &Name| configured.contains(name) || assigned.contains(name);
        failures.retain(|name, _| is_retained(name));
        nics.retain(|name| {
            is_retained(name) || reported_nics.contains_key(name) || leaving_nics.contains_key(name)
        });
    }

    fn adapter(&mut self, address: PciAddress) -> AdapterId {
        let next = AdapterId(u32::try_from(self.adapters.len()).unwrap_or(u32::MAX));
        *self.adapters.entry(address).or_insert(next)
    }

    pub(super) fn assign_vf_id(&mut self, address: &VfAddress) -> VfId {
        VfId { adapter: self.adapter(address.adapter), index: address.index }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::name;

    #[test]
    fn nics_that_are_not_configured_are_forgotten() {
        let mut controller = VfController::default();
        let (kept_nic, assigned) = (name("kept"), name("held"));
        let numbers =
            [controller.assign_nic_number(&kept_nic), controller.assign_nic_number(&assigned)];
        let (configured, of_vfs) =
            (BTreeSet::from([&kept_nic]), BTreeSet::from([assigned.clone()]));
        let mut seen_numbers = BTreeSet::from(numbers);
        for round in 0..1000 {
            let other = name(&format!("nic{}", round % 3));
            let number = controller.assign_nic_number(&other);
            assert!(seen_numbers.insert(number), "a number is not assigned twice");
            assert_eq!(controller.name(number), Some(other.clone()));
            controller.failures.insert(other, "no".to_owned());
            controller.forget_nics(&configured, &of_vfs);
            assert_eq!(controller.name(number), None);
            assert!(controller.failures.is_empty());
        }
        assert_eq!(
            [controller.assign_nic_number(&kept_nic), controller.assign_nic_number(&assigned)],
            numbers
        );
        assert_eq!(numbers.map(|number| controller.name(number)), [Some(kept_nic), Some(assigned)]);
    }
}
