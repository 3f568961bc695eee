//! Desired state of SR-IOV adapters and of their virtual functions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use suimon_frame::{MacAddr, VlanId};
use utoipa::ToSchema;

use crate::Name;

/// Resolution of VF rates in bits per second: drivers use megabits per second.
pub const VF_RATE_STEP_BPS: u64 = 1_000_000;

/// Link state presented to a VF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum VfLinkState {
    /// State of the adapter's link.
    Auto,
    /// Always up, so that VFs reach each other while the adapter's link is down.
    Enable,
    /// Always down: the VF transmits and receives no frames.
    Disable,
}

/// `[[pf]]`: an SR-IOV network adapter (its physical function) and its virtual functions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PfConfig {
    /// Name of the adapter, unique among adapters.
    pub name: Name,
    /// Adapter: its network device, or its PCI address, which does not change when the device is
    /// renamed.
    pub device: String,
    /// Number of virtual functions (VFs), from 0 to the number that the adapter supports (`suimon
    /// vf list`). It can change only while no VF is in use. A change resets the adapter: its link
    /// is down for some seconds.
    #[serde(default)]
    #[serde(rename = "vfs")]
    pub vf_count: u16,
    /// Settings of single VFs. Keys that are absent leave the setting of the VF as it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "vf")]
    pub vf_settings: Vec<VfConfig>,
}

/// `[[pf.vf]]`: settings of one virtual function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VfConfig {
    /// Number of the VF, from 0 to `vfs` - 1.
    pub index: u16,
    /// MAC address of the VF; unchanged if absent. Its user can change it only if `trust` is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "52:54:00:12:34:56")]
    pub mac: Option<MacAddr>,
    /// VLAN of all frames of the VF; unchanged if absent. Its user sends and receives them
    /// untagged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u16>, minimum = 1, maximum = 4094)]
    pub vlan: Option<VlanId>,
    /// True if the adapter drops frames that the VF sends from another MAC address; unchanged if
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spoof_check: Option<bool>,
    /// True if the user of the VF may change its MAC address and receive frames for other
    /// addresses; unchanged if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<bool>,
    /// Guaranteed transmit rate in bits per second, a multiple of 1 000 000; unchanged if absent.
    /// Few adapters support it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth_min_bps: Option<u64>,
    /// Limit of the transmit rate in bits per second, a multiple of 1 000 000; unchanged if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth_max_bps: Option<u64>,
    /// Link state that the VF sees: `auto` (that of the adapter), `enable` (always up) or `disable`
    /// (always down); unchanged if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_state: Option<VfLinkState>,
}

impl VfConfig {
    /// Returns settings of a virtual function without any value.
    pub const fn new(index: u16) -> Self {
        Self {
            index,
            mac: None,
            vlan: None,
            spoof_check: None,
            trust: None,
            bandwidth_min_bps: None,
            bandwidth_max_bps: None,
            link_state: None,
        }
    }
}

impl PfConfig {
    /// Returns the settings by number of the virtual function.
    pub fn vf_by_index(&self) -> BTreeMap<u16, &VfConfig> {
        self.vf_settings.iter().map(|vf| (vf.index, vf)).collect()
    }
}
