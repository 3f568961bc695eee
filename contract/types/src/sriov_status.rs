//! Observed state of adapters with SR-IOV and of their virtual functions.

use core::fmt;

use serde::{Deserialize, Serialize};
use suimon_frame::{MacAddr, VlanId};
use utoipa::ToSchema;

use crate::{Condition, Name, PfConfig, VfLinkState};

/// Whether VMs could be given an adapter's virtual functions; if not, the first reason. The
/// words are those of Hyper-V's `SriovSupport`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum SriovSupport {
    /// They could.
    Supported,
    /// No driver drives the physical function, or one without SR-IOV.
    MissingPfDriver,
    /// The machine gave its virtual functions no memory addresses.
    NoVfBarSpace,
    /// There are not enough PCI bus numbers for all its virtual functions.
    NoBusResources,
    /// No IOMMU is at work. Virtual functions can be made, for network namespaces, but no VM
    /// can have one.
    NoIoMmuSupport,
    /// It shares its IOMMU group with devices that are no part of it.
    MissingAcs,
}

impl SriovSupport {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Supported,
        Self::MissingPfDriver,
        Self::NoVfBarSpace,
        Self::NoBusResources,
        Self::NoIoMmuSupport,
        Self::MissingAcs,
    ];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Supported => "Supported",
            Self::MissingPfDriver => "MissingPfDriver",
            Self::NoVfBarSpace => "NoVfBarSpace",
            Self::NoBusResources => "NoBusResources",
            Self::NoIoMmuSupport => "NoIoMmuSupport",
            Self::MissingAcs => "MissingAcs",
        }
    }

    /// What is to be done about it; `None` if nothing is.
    pub const fn remedy(self) -> Option<&'static str> {
        Some(match self {
            Self::Supported => return None,
            Self::MissingPfDriver => {
                "bind the adapter to its maker's driver, one with SR-IOV (`lspci -k` shows which \
                 it has)"
            }
            Self::NoVfBarSpace => {
                "allow SR-IOV and addresses above 4 GiB in the machine's firmware, or boot with \
                 pci=realloc; another slot may do"
            }
            Self::NoBusResources => {
                "boot with pci=assign-busses, allow SR-IOV or ARI in the machine's firmware, or \
                 take another slot; fewer VFs may do"
            }
            Self::NoIoMmuSupport => {
                "switch VT-d or AMD-Vi on in the machine's firmware, and on Intel boot with \
                 intel_iommu=on; until then VFs serve network namespaces only"
            }
            Self::MissingAcs => {
                "take a slot below a port with ACS: now its VFs can be had only together with the \
                 other devices of the IOMMU group"
            }
        })
    }
}

impl fmt::Display for SriovSupport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A network adapter with SR-IOV (its physical function), whether or not anything is desired
/// of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SriovAdapter {
    /// PCI address of its physical function.
    pub address: String,
    /// Its network device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The network namespace of the device, if it is another than the daemon's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netns: Option<String>,
    /// Name of the `[[pf]]` that says how it is to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pf: Option<Name>,
    /// Its driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Whether VMs could be given its virtual functions.
    pub support: SriovSupport,
    /// What is to be done about that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// Virtual functions that it can have.
    pub vfs_supported: u16,
    /// Virtual functions that it has.
    pub vfs_enabled: u16,
    /// Virtual functions that somebody uses.
    pub vfs_in_use: u16,
    /// Its IOMMU group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iommu_group: Option<u32>,
    /// The NUMA node that it is near.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa_node: Option<u16>,
    /// The virtual functions that it has.
    pub vfs: Vec<VfStatus>,
}

/// A virtual function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VfStatus {
    /// Its number among those of its adapter.
    pub index: u16,
    /// Its PCI address.
    pub address: String,
    /// Its driver; `vfio-pci` where VMs get it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Its IOMMU group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iommu_group: Option<u32>,
    /// Its network device, where one can be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The network namespace of the device, if it is another than the daemon's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netns: Option<String>,
    /// Who uses it, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_by: Option<String>,
    /// Its address as the adapter has it; absent while nobody gave it one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub mac: Option<MacAddr>,
    /// The VLAN that its frames are of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u16>)]
    pub vlan: Option<VlanId>,
    /// Whether the adapter drops what it sends from other addresses; absent if the driver
    /// does not tell, like all that follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spoof_check: Option<bool>,
    /// Whether it may change its address and receive what is not for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<bool>,
    /// Bits per second that it can always send; absent if nothing is promised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth_min_bps: Option<u64>,
    /// Bits per second that it may send; absent if as many as it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth_max_bps: Option<u64>,
    /// What it is told of its link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_state: Option<VfLinkState>,
}

/// What is desired of an adapter, and how it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PfStatus {
    /// As desired.
    pub config: PfConfig,
    /// Whether it is as desired, by what was read back.
    pub condition: Condition,
    /// The adapter; absent if it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<SriovAdapter>,
}
