//! Network adapters with SR-IOV: discovery and configuration of virtual functions.

use suimon_frame::{MacAddr, VlanId};
use suimon_quantity::PciAddress;

use crate::DeviceError;

/// SR-IOV of this host. Callable from any thread; blocks on the kernel and the adapter's driver.
pub trait SriovHost: Send + Sync {
    /// Returns the current state of all SR-IOV capable network adapters (physical functions),
    /// ordered by address.
    ///
    /// # Errors
    /// Fails if the host cannot be queried.
    fn adapters(&self) -> Result<Vec<PfProperties>, DeviceError>;

    /// Sets the number of virtual functions of a physical function (`sriov_numvfs`). Existing
    /// functions are removed first if their number differs.
    ///
    /// # Errors
    /// Fails if the adapter does not exist, supports fewer functions, or its driver rejects the
    /// change.
    fn set_vf_count(&self, pf: PciAddress, count: u16) -> Result<(), DeviceError>;

    /// Changes a virtual function. Fields that are `None` are unchanged.
    ///
    /// # Errors
    /// Fails if the function does not exist or the driver does not support a setting, which `field`
    /// names.
    fn change_vf(
        &self,
        pf: PciAddress,
        index: u16,
        change: &VfSettingsChange,
    ) -> Result<(), DeviceError>;

    /// Adds (`is_there`) or removes an address of the physical function in the adapter's embedded
    /// switch. Virtual functions reach addresses behind the physical function only if they are
    /// added. Idempotent.
    ///
    /// # Errors
    /// Fails if the adapter does not exist or its driver rejects the change.
    fn set_embedded_switch_address(
        &self,
        pf: PciAddress,
        mac: MacAddr,
        is_there: bool,
    ) -> Result<(), DeviceError>;
}

/// State of a physical function and its virtual functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PfProperties {
    /// PCI address of the physical function.
    pub address: PciAddress,
    /// Name of the network device (`eth0`); `None` if the driver creates none or it is not visible
    /// to the daemon.
    pub device: Option<String>,
    /// Network namespace of the device; `None`: the daemon's namespace.
    pub netns: Option<String>,
    /// Name of the PCI driver; `None` if unbound.
    pub driver: Option<String>,
    /// Maximum number of virtual functions (`sriov_totalvfs`).
    pub vfs_max: u16,
    /// Number of the IOMMU group.
    pub iommu_group: Option<u32>,
    /// Nearest NUMA node; `None` on a machine with one node or if unknown.
    pub numa_node: Option<u16>,
    /// Suitability of the virtual functions for passthrough.
    pub support: SriovSupport,
    /// Existing virtual functions, by ascending index.
    pub vfs: Vec<VfProperties>,
}

/// Suitability of an adapter's virtual functions for passthrough to VMs; if several reasons prevent
/// it, the first in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SriovSupport {
    /// Passthrough to VMs is possible.
    Supported,
    /// The physical function has no driver, or one without SR-IOV support.
    MissingPfDriver,
    /// The firmware assigned no memory addresses to the virtual functions' BARs.
    NoVfBarSpace,
    /// The PCI bus numbers do not suffice for all virtual functions.
    NoBusResources,
    /// The host has no active IOMMU.
    NoIommu,
    /// The IOMMU group contains devices that are not part of the adapter (missing ACS isolation).
    MissingAcs,
}

/// State of a virtual function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VfProperties {
    /// Index among the virtual functions of its physical function.
    pub index: u16,
    /// PCI address of the virtual function.
    pub address: PciAddress,
    /// Name of the driver: `vfio-pci` for passthrough to VMs.
    pub driver: Option<String>,
    /// Number of the IOMMU group.
    pub iommu_group: Option<u32>,
    /// Name of the network device (`eth0`); `None` if the driver creates none.
    pub device: Option<String>,
    /// Network namespace of the device; `None`: the daemon's namespace.
    pub netns: Option<String>,
    /// True if the device is administratively up.
    pub is_up: bool,
    /// Settings reported by the physical function; `None` if not reported.
    pub settings: Option<VfSettings>,
}

/// Settings of a virtual function in its physical function (`ip link_properties set PF vf N …`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VfSettings {
    /// MAC address; all zero if unassigned.
    pub mac: MacAddr,
    /// VLAN tag that the adapter inserts on transmit and removes on receive.
    pub vlan: Option<VlanId>,
    /// True if frames with other source addresses are dropped; `None` if the driver does not report
    /// it.
    pub spoof_check: Option<bool>,
    /// True if the function has privileges such as promiscuous mode; `None` if the driver does not
    /// report it.
    pub trust: Option<bool>,
    /// Guaranteed transmit rate in Mbit/s; 0: none.
    pub rate_min_mbps: u32,
    /// Maximum transmit rate in Mbit/s; 0: unlimited.
    pub rate_max_mbps: u32,
    /// Link state reported to the function; `None` if the driver does not report it.
    pub link_state: Option<VfLinkState>,
}

/// Link state reported to a virtual function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VfLinkState {
    /// State of the adapter's physical link.
    Auto,
    /// Link always reported as up.
    Enable,
    /// Link always reported as down.
    Disable,
}

/// Change of a virtual function's settings. Fields that are `None` are unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VfSettingsChange {
    /// MAC address of the function.
    pub mac: Option<MacAddr>,
    /// VLAN; `Some(None)` removes it.
    pub vlan: Option<Option<VlanId>>,
    /// True to drop frames with other source addresses.
    pub spoof_check: Option<bool>,
    /// True to grant privileges such as promiscuous mode.
    pub trust: Option<bool>,
    /// Guaranteed and maximum transmit rate in Mbit/s; 0: none.
    pub rates_mbps: Option<(u32, u32)>,
    /// Link state reported to the function.
    pub link_state: Option<VfLinkState>,
}

impl VfSettingsChange {
    /// Returns true if no field is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
