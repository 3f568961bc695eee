//! Desired state of adapters with SR-IOV, and of their virtual functions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use suimon_frame::{MacAddr, VlanId};
use utoipa::ToSchema;

use crate::Name;

/// Drivers know the rates of VFs in megabits per second.
pub(crate) const VF_RATE_STEP_BPS: u64 = 1_000_000;

/// What a VF is told of its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum VfLinkState {
    /// How the adapter's link is.
    Auto,
    /// That it is up, so that VFs reach each other without it.
    Enable,
    /// That it is down: nothing passes.
    Disable,
}

/// `[[pf]]`: a network adapter with SR-IOV (its physical function), and the virtual
/// functions that it is to have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PfConfig {
    /// Unique among adapters.
    pub name: Name,
    /// The adapter: its network device, or its PCI address, which never changes.
    pub device: String,
    /// Virtual functions that it has. Their number changes only while nobody uses one.
    #[serde(default)]
    pub vfs: u16,
    /// How they are set up. What is not written stays as it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vf: Vec<VfConfig>,
}

/// `[[pf.vf]]`: how an adapter has one of its virtual functions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VfConfig {
    /// Its number, 0 to one less than `vfs`.
    pub index: u16,
    /// Its address, which whoever has it cannot change unless it is trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "52:54:00:12:34:56")]
    pub mac: Option<MacAddr>,
    /// The VLAN that all of its frames are of; whoever has it sees no tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u16>, minimum = 1, maximum = 4094)]
    pub vlan: Option<VlanId>,
    /// Whether the adapter drops what it sends from other addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spoof_check: Option<bool>,
    /// Whether it may change its address and receive what is not for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<bool>,
    /// Bits per second that it can always send, a multiple of 1 000 000. Few adapters have
    /// that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth_min_bps: Option<u64>,
    /// Bits per second that it may send, a multiple of 1 000 000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth_max_bps: Option<u64>,
    /// What it is told of its link: how the adapter's is, that it is up, or that it is down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_state: Option<VfLinkState>,
}

impl VfConfig {
    /// A virtual function of which nothing is written.
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
    /// What is written of each virtual function.
    pub fn vf_by_index(&self) -> BTreeMap<u16, &VfConfig> {
        self.vf.iter().map(|vf| (vf.index, vf)).collect()
    }
}
