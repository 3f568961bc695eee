//! Which VF, and how it is set up for a NIC.

use serde::{Deserialize, Serialize};
use suimon_contract::NicConfig;
use suimon_frame::MacAddr;
use suimon_ports::{VfChange, VfSettings};
use suimon_quantity::PciAddress;

/// Adapters count megabits per second.
const MBPS: u64 = 1_000_000;

/// A VF of an adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VfPlace {
    /// The adapter's physical function.
    pub(crate) adapter: PciAddress,
    /// Its number there.
    pub(crate) index: u16,
    /// Its own address.
    pub(crate) address: PciAddress,
}

impl std::fmt::Display for VfPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "VF {} of {} ({})", self.index, self.adapter, self.address)
    }
}

/// The same as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredVf {
    adapter: String,
    index: u16,
    address: String,
}

impl From<&VfPlace> for StoredVf {
    fn from(vf: &VfPlace) -> Self {
        let VfPlace { adapter, index, address } = vf;
        Self { adapter: adapter.to_string(), index: *index, address: address.to_string() }
    }
}

impl StoredVf {
    /// Which it is; `None` if what is kept makes no sense.
    pub(crate) fn place(&self) -> Option<VfPlace> {
        let (adapter, address) = (self.adapter.parse().ok()?, self.address.parse().ok()?);
        Some(VfPlace { adapter, index: self.index, address })
    }
}

/// What a VF has to be told so that it is as its NIC: the same address, VLAN and limit, and no
/// more trusted than it.
pub(crate) fn for_nic(is: &VfSettings, nic: &NicConfig) -> VfChange {
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

/// What takes it back to how drivers begin: it is for nobody's address.
pub(crate) fn for_nobody(is: &VfSettings) -> VfChange {
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

/// What a driver does not tell it is not asked for.
fn difference(is: &VfSettings, wanted: &VfSettings) -> VfChange {
    let flag =
        |is: Option<bool>, wanted: Option<bool>| wanted.filter(|_| is.is_some() && is != wanted);
    let rates = (wanted.rate_min_mbps, wanted.rate_max_mbps);
    VfChange {
        mac: (is.mac != wanted.mac).then_some(wanted.mac),
        vlan: (is.vlan != wanted.vlan).then_some(wanted.vlan),
        spoof_check: flag(is.spoof_check, wanted.spoof_check),
        trust: flag(is.trust, wanted.trust),
        rates_mbps: (rates != (is.rate_min_mbps, is.rate_max_mbps)).then_some(rates),
        link_state: None,
    }
}
