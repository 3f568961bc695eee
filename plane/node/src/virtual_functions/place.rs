//! Identification of VFs, and the VF settings derived from a NIC.

use serde::{Deserialize, Serialize};
use suimon_contract::NicConfig;
use suimon_frame::MacAddr;
use suimon_ports::{VfSettings, VfSettingsChange};
use suimon_quantity::PciAddress;

/// Unit of VF rates: 1 Mbit/s.
const MBPS: u64 = 1_000_000;

/// Address of a VF: its adapter and index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VfAddress {
    /// PCI address of the physical function.
    pub(crate) adapter: PciAddress,
    /// Index of the VF on its adapter, from 0.
    pub(crate) index: u16,
    /// PCI address of the VF.
    pub(crate) address: PciAddress,
}

impl std::fmt::Display for VfAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "VF {} of {} ({})", self.index, self.adapter, self.address)
    }
}

/// Record of a [`VfAddress`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredVfId {
    adapter: String,
    index: u16,
    address: String,
}

impl From<&VfAddress> for StoredVfId {
    fn from(vf: &VfAddress) -> Self {
        let VfAddress { adapter, index, address } = vf;
        Self { adapter: adapter.to_string(), index: *index, address: address.to_string() }
    }
}

impl StoredVfId {
    /// Returns the location of the VF; `None` if the stored adapter or PCI address cannot be
    /// parsed.
    pub(crate) fn address(&self) -> Option<VfAddress> {
        let (adapter, address) = (self.adapter.parse().ok()?, self.address.parse().ok()?);
        Some(VfAddress { adapter, index: self.index, address })
    }
}

/// Returns the changes after which a VF has the NIC's MAC address, VLAN and bandwidth limit. The VF
/// is trusted and unchecked only if the NIC permits MAC spoofing. Rates are rounded up to 1 Mbit/s.
pub(crate) fn settings_for_nic(is: &VfSettings, nic: &NicConfig) -> VfSettingsChange {
    let most = nic.bandwidth_max_bps.map_or(0, |bps| bps.div_ceil(MBPS));
    let most = u32::try_from(most).unwrap_or(u32::MAX);
    let wanted = VfSettings {
        mac: nic.mac.unwrap_or_default(),
        vlan: nic.vlan,
        spoof_check: Some(!nic.mac_spoofing),
        trust: Some(nic.mac_spoofing),
        rate_min_mbps: 0,
        rate_max_mbps: most,
        link_state: None,
    };
    difference(is, &wanted)
}

/// Returns the changes that restore a driver's initial settings, without a MAC address.
pub(crate) fn settings_unused(is: &VfSettings) -> VfSettingsChange {
    let wanted = VfSettings {
        mac: MacAddr::default(),
        vlan: None,
        spoof_check: Some(true),
        trust: Some(false),
        rate_min_mbps: 0,
        rate_max_mbps: 0,
        link_state: None,
    };
    difference(is, &wanted)
}

/// Returns the changes from `is` to `wanted`, without flags that the driver does not report.
fn difference(is: &VfSettings, wanted: &VfSettings) -> VfSettingsChange {
    let flag =
        |is: Option<bool>, wanted: Option<bool>| wanted.filter(|_| is.is_some() && is != wanted);
    let rates = (wanted.rate_min_mbps, wanted.rate_max_mbps);
    VfSettingsChange {
        mac: (is.mac != wanted.mac).then_some(wanted.mac),
        vlan: (is.vlan != wanted.vlan).then_some(wanted.vlan),
        spoof_check: flag(is.spoof_check, wanted.spoof_check),
        trust: flag(is.trust, wanted.trust),
        rates_mbps: (rates != (is.rate_min_mbps, is.rate_max_mbps)).then_some(rates),
        link_state: None,
    }
}
