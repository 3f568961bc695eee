//! Observed state of SR-IOV adapters and of their virtual functions.

use core::fmt;

use serde::{Deserialize, Serialize};
use suimon_frame::{MacAddr, VlanId};
use utoipa::ToSchema;

use crate::{Condition, Name, PfConfig, VfLinkState};

/// Availability of an adapter's virtual functions for VMs; the first obstacle if not available. The
/// names are those of Hyper-V's `SriovSupport`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum SriovSupport {
    /// Virtual functions are available to VMs.
    Supported,
    /// The physical function has no driver, or one without SR-IOV support.
    MissingPfDriver,
    /// The firmware assigned no memory addresses (BARs) to virtual functions.
    NoVfBarSpace,
    /// PCI bus numbers do not suffice for all virtual functions.
    NoBusResources,
    /// No IOMMU is enabled. Virtual functions can be created for network namespaces, but not
    /// assigned to VMs.
    NoIoMmuSupport,
    /// The adapter shares its IOMMU group with other devices.
    MissingAcs,
}

impl SriovSupport {
    /// Values, `Supported` first.
    pub const ALL: [Self; 6] = [
        Self::Supported,
        Self::MissingPfDriver,
        Self::NoVfBarSpace,
        Self::NoBusResources,
        Self::NoIoMmuSupport,
        Self::MissingAcs,
    ];

    /// Returns the name of the value.
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

    /// Returns the action to take; `None` if none is required.
    pub const fn remedy(self) -> Option<&'static str> {
        Some(match self {
            Self::Supported => return None,
            Self::MissingPfDriver => {
                "bind the adapter to its vendor's driver with SR-IOV support (`lspci -k` lists \
                 the modules)"
            }
            Self::NoVfBarSpace => {
                "enable SR-IOV and addresses above 4 GiB in the machine's firmware, boot with \
                 pci=realloc, or use another slot"
            }
            Self::NoBusResources => {
                "boot with pci=assign-busses, enable SR-IOV or ARI in the machine's firmware, use \
                 another slot, or set fewer VFs"
            }
            Self::NoIoMmuSupport => {
                "enable VT-d or AMD-Vi in the machine's firmware, and on Intel boot with \
                 intel_iommu=on; until then only network namespaces can use VFs"
            }
            Self::MissingAcs => {
                "use a slot below a port with ACS; until then a VF can be assigned only together \
                 with the other devices of its IOMMU group"
            }
        })
    }
}

impl fmt::Display for SriovSupport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// SR-IOV network adapter (physical function), whether or not it is configured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SriovAdapter {
    /// PCI address of the physical function.
    pub address: String,
    /// Name of the network device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Network namespace of the device; absent if it is that of the daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netns: Option<String>,
    /// Name of the `[[pf]]` that configures the adapter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pf: Option<Name>,
    /// Driver of the physical function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Availability of virtual functions for VMs.
    pub support: SriovSupport,
    /// Action to make virtual functions available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// Largest number of virtual functions.
    pub vfs_supported: u16,
    /// Current number of virtual functions.
    pub vfs_enabled: u16,
    /// Number of virtual functions in use.
    pub vfs_in_use: u16,
    /// Number of the adapter's IOMMU group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iommu_group: Option<u32>,
    /// NUMA node of the adapter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa_node: Option<u16>,
    /// Virtual functions that currently exist.
    pub vfs: Vec<VfStatus>,
}

/// Observed state of a virtual function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VfStatus {
    /// Number of the virtual function on its adapter.
    pub index: u16,
    /// PCI address of the virtual function.
    pub address: String,
    /// Driver; `vfio-pci` for assignment to VMs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Number of the virtual function's IOMMU group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iommu_group: Option<u32>,
    /// Network device; absent if there is none or it is not visible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Network namespace of the device; absent if it is that of the daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netns: Option<String>,
    /// User of the virtual function, as text; absent if unused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_by: Option<String>,
    /// MAC address set by the adapter; absent if none was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub mac: Option<MacAddr>,
    /// VLAN of the virtual function's frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u16>)]
    pub vlan: Option<VlanId>,
    /// True if the adapter drops frames sent with another source address. This and the following
    /// values are absent if the driver does not report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spoof_check: Option<bool>,
    /// True if the user may change the MAC address and receive frames addressed to others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<bool>,
    /// Guaranteed transmit rate in bits per second; absent if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth_min_bps: Option<u64>,
    /// Limit of the transmit rate in bits per second; absent if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth_max_bps: Option<u64>,
    /// Link state presented to the virtual function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_state: Option<VfLinkState>,
}

/// Desired and observed state of an adapter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PfStatus {
    /// Desired state of the adapter.
    pub config: PfConfig,
    /// Agreement of the settings read back with the desired state.
    pub condition: Condition,
    /// Observed state of the adapter; absent if it does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<SriovAdapter>,
}
