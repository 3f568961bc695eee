//! Query of adapters, VFs and NICs.

use std::collections::{BTreeMap, BTreeSet};

use suimon_contract::{HostConfig, Name, NicConfig, SwitchConfig};
use suimon_frame::MacAddr;
use suimon_ports::{PfProperties, VfProperties};
use suimon_quantity::PciAddress;

use super::VfAddress;
use crate::adapters::{find_vf_user, refers_to};
use crate::shared::Shared;

/// Adapters, VFs and NICs found by one query of the host.
pub(super) struct HostQuery {
    /// Configured adapters, by PCI address of the physical function; true if a driver is bound.
    pub(super) has_driver_by_adapter: BTreeMap<PciAddress, bool>,
    /// VFs that NICs may use, whether they are assigned or not.
    pub(super) vfs: Vec<VfAddress>,
    /// Adapter behind the uplink of each switch.
    pub(super) adapter_by_switch: BTreeMap<Name, PciAddress>,
    pub(super) properties: Vec<PfProperties>,
}

impl HostQuery {
    pub(super) fn new(shared: &Shared, config: &HostConfig, properties: Vec<PfProperties>) -> Self {
        let mut result = Self {
            has_driver_by_adapter: BTreeMap::new(),
            vfs: Vec::new(),
            adapter_by_switch: config
                .switches
                .iter()
                .filter_map(|switch| {
                    Some((switch.name.clone(), adapter_of(config, switch, &properties)?))
                })
                .collect(),
            properties: Vec::new(),
        };
        for pf in &properties {
            let Some(described) =
                config.pfs.iter().find(|pf_config| refers_to(pf, &pf_config.device))
            else {
                continue;
            };
            result.has_driver_by_adapter.insert(pf.address, pf.driver.is_some());
            // VFs with explicit settings in the configuration are reserved for other users.
            let written: BTreeSet<u16> = described.vf_settings.iter().map(|vf| vf.index).collect();
            let is_for_nics = |vf: &&VfProperties| {
                shared.vf_assignments.nic_of_vf(vf.address).is_some()
                    || (vf.iommu_group.is_some()
                        && !written.contains(&vf.index)
                        && find_vf_user(config, vf).is_none())
            };
            result.vfs.extend(pf.vfs.iter().filter(is_for_nics).map(|vf| VfAddress {
                adapter: pf.address,
                index: vf.index,
                pci_address: vf.address,
            }));
        }
        result.properties = properties;
        result
    }

    /// Returns the state of a VF.
    pub(super) fn vf(&self, vf: &VfAddress) -> Option<&VfProperties> {
        let pf = self.properties.iter().find(|pf| pf.address == vf.adapter)?;
        pf.vfs.iter().find(|properties| properties.index == vf.index)
    }

    /// Returns the addresses of NICs by adapter, and whether VFs reach them through the physical
    /// function: true unless the NIC uses a VF or its VM runs on another node.
    pub(super) fn nic_addresses(
        &self,
        config: &HostConfig,
        is_elsewhere: impl Fn(&NicConfig) -> bool,
    ) -> BTreeMap<(PciAddress, MacAddr), bool> {
        let mut addresses = BTreeMap::new();
        for nic in &config.nics {
            let (Some(adapter), Some(mac)) = (self.adapter_by_switch.get(&nic.switch), nic.mac)
            else {
                continue;
            };
            *addresses.entry((*adapter, mac)).or_default() |= !is_elsewhere(nic);
        }
        addresses
    }
}

/// Returns the adapter behind the uplink of a switch with `iov`, if the adapter is configured.
fn adapter_of(
    config: &HostConfig,
    switch: &SwitchConfig,
    properties: &[PfProperties],
) -> Option<PciAddress> {
    let name = switch.uplink.as_ref().filter(|_| switch.iov_enabled)?;
    let uplink = config.uplinks.iter().find(|uplink| uplink.name == *name)?;
    let is_its = |pf: &&PfProperties| {
        pf.netns.is_none() && pf.device.as_deref() == Some(uplink.device.as_str())
    };
    let pf = properties.iter().find(is_its)?;
    let is_described = config.pfs.iter().any(|pf_config| refers_to(pf, &pf_config.device));
    is_described.then_some(pf.address)
}

/// Returns the NICs whose guests support failover to a VF now, and those that had a VF when the
/// previous daemon ended.
pub(super) fn eligible_nics(shared: &Shared, config: &HostConfig) -> BTreeSet<Name> {
    let mut nics = BTreeSet::new();
    for vm in &config.vms {
        let Some(entry) = shared.vms.find(&vm.name) else { continue };
        let view = entry.view();
        let failover_nics: Vec<Name> = match &view.running {
            Some(run) => run.failover_nics.intersection(&run.nics).cloned().collect(),
            None => view.recorded_vfs.iter().cloned().collect(),
        };
        nics.extend(failover_nics.into_iter().filter(|nic| vm.nics.contains(nic)));
    }
    nics
}
