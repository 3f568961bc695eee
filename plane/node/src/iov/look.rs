//! What adapters, VFs and NICs there are.

use std::collections::{BTreeMap, BTreeSet};

use suimon_contract::{HostConfig, Name, NicConfig, SwitchConfig};
use suimon_frame::MacAddr;
use suimon_ports::{PfFacts, VfFacts};
use suimon_quantity::PciAddress;

use super::VfPlace;
use crate::shared::Shared;
use crate::sriov::{is_meant, user_of};

/// What was seen at one moment.
pub(super) struct Seen {
    /// Adapters that are described, and whether a driver has them.
    pub(super) adapters: BTreeMap<PciAddress, bool>,
    /// Their VFs that NICs may have, those that NICs have included.
    pub(super) vfs: Vec<VfPlace>,
    /// The adapter of each switch that has one.
    pub(super) by_switch: BTreeMap<Name, PciAddress>,
    pub(super) facts: Vec<PfFacts>,
}

impl Seen {
    pub(super) fn new(shared: &Shared, config: &HostConfig, facts: Vec<PfFacts>) -> Self {
        let mut seen = Self {
            adapters: BTreeMap::new(),
            vfs: Vec::new(),
            by_switch: config
                .switches
                .iter()
                .filter_map(|switch| {
                    Some((switch.name.clone(), adapter_of(config, switch, &facts)?))
                })
                .collect(),
            facts: Vec::new(),
        };
        for pf in &facts {
            let Some(described) = config.pfs.iter().find(|of| is_meant(pf, &of.device)) else {
                continue;
            };
            seen.adapters.insert(pf.address, pf.driver.is_some());
            // What somebody has set up by hand is for somebody else.
            let written: BTreeSet<u16> = described.vf.iter().map(|vf| vf.index).collect();
            let is_for_nics = |vf: &&VfFacts| {
                shared.iov.nic_of_vf(vf.address).is_some()
                    || (vf.iommu_group.is_some()
                        && !written.contains(&vf.index)
                        && user_of(config, vf).is_none())
            };
            seen.vfs.extend(pf.vfs.iter().filter(is_for_nics).map(|vf| VfPlace {
                adapter: pf.address,
                index: vf.index,
                address: vf.address,
            }));
        }
        seen.facts = facts;
        seen
    }

    /// The facts of a VF.
    pub(super) fn vf(&self, vf: &VfPlace) -> Option<&VfFacts> {
        let pf = self.facts.iter().find(|pf| pf.address == vf.adapter)?;
        pf.vfs.iter().find(|of| of.index == vf.index)
    }

    /// Addresses of NICs, and whether VFs are to find them behind their adapter: where the NIC is
    /// not elsewhere, on a VF or on another node.
    pub(super) fn addresses(
        &self,
        config: &HostConfig,
        is_elsewhere: impl Fn(&NicConfig) -> bool,
    ) -> BTreeMap<(PciAddress, MacAddr), bool> {
        let mut found = BTreeMap::new();
        for nic in &config.nics {
            let (Some(adapter), Some(mac)) = (self.by_switch.get(&nic.switch), nic.mac) else {
                continue;
            };
            *found.entry((*adapter, mac)).or_default() |= !is_elsewhere(nic);
        }
        found
    }
}

/// The adapter that a switch with `iov` has behind its uplink, if it is described.
fn adapter_of(config: &HostConfig, switch: &SwitchConfig, facts: &[PfFacts]) -> Option<PciAddress> {
    let name = switch.uplink.as_ref().filter(|_| switch.iov)?;
    let uplink = config.uplinks.iter().find(|uplink| uplink.name == *name)?;
    let is_its =
        |pf: &&PfFacts| pf.netns.is_none() && pf.device.as_deref() == Some(uplink.device.as_str());
    let pf = facts.iter().find(is_its)?;
    let is_described = config.pfs.iter().any(|of| is_meant(pf, &of.device));
    is_described.then_some(pf.address)
}

/// NICs whose guests could be given VFs now, and those that had them when their VMs were last heard
/// of.
pub(super) fn takers(shared: &Shared, config: &HostConfig) -> BTreeSet<Name> {
    let mut found = BTreeSet::new();
    for vm in &config.vms {
        let Some(entry) = shared.vms.find(&vm.name) else { continue };
        let view = entry.view();
        let takes: Vec<Name> = match &view.running {
            Some(run) => run.takers.intersection(&run.nics).cloned().collect(),
            None => view.vfs_left.iter().cloned().collect(),
        };
        found.extend(takes.into_iter().filter(|nic| vm.nics.contains(nic)));
    }
    found
}
