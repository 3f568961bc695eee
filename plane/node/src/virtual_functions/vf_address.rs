//! Identification of VFs, and the VF settings derived from a NIC.

use serde::{Deserialize, Serialize};
use suimon_contract::NicConfig;
use suimon_frame::MacAddr;
use suimon_ports::{VfSettings, VfSettingsChange};
use suimon_quantity::PciAddress;

/// Bits per second in 1 Mbit/s, the unit of VF rates.
const MBPS: u64 = 1_000_000;

/// Address of a VF: its adapter and index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VfAddress {
    /// PCI address of the physical function.
    pub(crate) adapter: PciAddress,
    /// Index of the VF on its adapter, from 0.
    pub(crate) index: u16,
    /// PCI address of the VF.
    pub(crate) pci_address: PciAddress,
}

impl std::fmt::Display for VfAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "VF {} of {} ({})", self.index, self.adapter, self.pci_address)
    }
}

/// Serialized form of a [`VfAddress`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredVfId {
    adapter: String,
    index: u16,
    address: String,
}

impl From<&VfAddress> for StoredVfId {
    fn from(vf: &VfAddress) -> Self {
        let VfAddress { adapter, index, pci_address: address } = vf;
        Self { adapter: adapter.to_string(), index: *index, address: address.to_string() }
    }
}

impl StoredVfId {
    /// Returns the location of the VF; `None` if the stored adapter or PCI address cannot be
    /// parsed.
    pub(crate) fn address(&self) -> Option<VfAddress> {
        let (adapter, address) = (self.adapter.parse().ok()?, self.address.parse().ok()?);
        Some(VfAddress { adapter, index: self.index, pci_address: address })
    }
}

/// Returns the changes after which a VF has the NIC's MAC address, VLAN and bandwidth limit. The VF
/// is trusted and unchecked only if the NIC permits MAC spoofing. Rates are rounded up to 1 Mbit/s.
pub(crate) fn settings_for_nic(current: &VfSettings, nic: &NicConfig) -> VfSettingsChange {
    let max_mbps = nic.bandwidth_max_bps.map_or(0, |bps| bps.div_ceil(MBPS));
    let max_mbps = u32::try_from(max_mbps).unwrap_or(u32::MAX);
    let required = VfSettings {
        mac: nic.mac.unwrap_or_default(),
        vlan: nic.vlan,
        spoof_check: Some(!nic.mac_spoofing),
        trust: Some(nic.mac_spoofing),
        rate_min_mbps: 0,
        rate_max_mbps: max_mbps,
        link_state: None,
    };
    difference(current, &required)
}

/// Returns the changes that restore a driver's initial settings, without a MAC address.
pub(crate) fn unassigned_settings(current: &VfSettings) -> VfSettingsChange {
    let required = VfSettings {
        mac: MacAddr::default(),
        vlan: None,
        spoof_check: Some(true),
        trust: Some(false),
        rate_min_mbps: 0,
        rate_max_mbps: 0,
        link_state: None,
    };
    difference(current, &required)
}

/// Returns the changes from `current` to `required`, without flags that the driver does not report.
fn difference(current: &VfSettings, required: &VfSettings) -> VfSettingsChange {
    let flag = |current: Option<bool>, required: Option<bool>| {
        required.filter(|_| current.is_some() && current != required)
    };
    let rates = (required.rate_min_mbps, required.rate_max_mbps);
    VfSettingsChange {
        mac: (current.mac != required.mac).then_some(required.mac),
        vlan: (current.vlan != required.vlan).then_some(required.vlan),
        spoof_check: flag(current.spoof_check, required.spoof_check),
        trust: flag(current.trust, required.trust),
        rates_mbps: (rates != (current.rate_min_mbps, current.rate_max_mbps)).then_some(rates),
        link_state: None,
    }
}
