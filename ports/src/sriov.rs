//! Network adapters with SR-IOV: what they have, and what they are told.

use suimon_frame::{MacAddr, VlanId};
use suimon_quantity::PciAddress;

use crate::DeviceError;

/// The SR-IOV of this host. May be called from any thread; blocks for as long as the
/// kernel and the adapter's driver take.
pub trait SriovHost: Send + Sync {
    /// The physical functions of network adapters that have SR-IOV, by address, as they are
    /// now.
    ///
    /// # Errors
    /// The host cannot be asked.
    fn adapters(&self) -> Result<Vec<PfFacts>, DeviceError>;

    /// Has a physical function make this many virtual functions. Those that it has go first
    /// if their number is another.
    ///
    /// # Errors
    /// There is no such adapter, it cannot have as many, or its driver refuses.
    fn set_vf_count(&self, pf: PciAddress, count: u16) -> Result<(), DeviceError>;

    /// Changes a virtual function. What is absent stays as it is.
    ///
    /// # Errors
    /// There is no such function, or the adapter's driver cannot do one of these, which
    /// `field` names.
    fn change_vf(&self, pf: PciAddress, index: u16, change: &VfChange) -> Result<(), DeviceError>;

    /// Has the switch in an adapter give the physical function what is for this address, or not
    /// any more. Virtual functions reach addresses behind the physical one only so. What is so
    /// already is fine.
    ///
    /// # Errors
    /// There is no such adapter, or its driver refuses.
    fn lead_to_pf(&self, pf: PciAddress, mac: MacAddr, is_there: bool) -> Result<(), DeviceError>;
}

/// A physical function, and the virtual functions that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PfFacts {
    /// Where it is.
    pub address: PciAddress,
    /// Its network device; `None` if no driver makes one, or where nobody can look.
    pub device: Option<String>,
    /// The network namespace that the device is in; `None` if it is ours.
    pub netns: Option<String>,
    /// Its driver.
    pub driver: Option<String>,
    /// Virtual functions that it can have.
    pub vfs_max: u16,
    /// Its IOMMU group.
    pub iommu_group: Option<u32>,
    /// The NUMA node that it is near; `None` if the machine has one or does not say.
    pub numa_node: Option<u16>,
    /// Whether VMs could be given its virtual functions.
    pub support: SriovSupport,
    /// Virtual functions that there are, by rising index.
    pub vfs: Vec<VfFacts>,
}

/// Whether VMs could be given an adapter's virtual functions, and if not the first reason
/// in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SriovSupport {
    /// They could.
    Supported,
    /// No driver drives the physical function, or one without SR-IOV.
    MissingPfDriver,
    /// The machine gave its virtual functions no memory addresses.
    NoVfBarSpace,
    /// There are not enough PCI bus numbers for all its virtual functions.
    NoBusResources,
    /// No IOMMU is at work.
    NoIoMmuSupport,
    /// It shares its IOMMU group with devices that are no part of it.
    MissingAcs,
}

/// A virtual function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VfFacts {
    /// Its number among those of its physical function.
    pub index: u16,
    /// Where it is.
    pub address: PciAddress,
    /// Its driver: `vfio-pci` where VMs get it.
    pub driver: Option<String>,
    /// Its IOMMU group.
    pub iommu_group: Option<u32>,
    /// Its network device.
    pub device: Option<String>,
    /// The network namespace that the device is in; `None` if it is ours.
    pub netns: Option<String>,
    /// Whether the device was set up by an administrator.
    pub is_up: bool,
    /// How its physical function has it; `None` if that does not say.
    pub settings: Option<VfSettings>,
}

/// How a physical function has one of its virtual functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VfSettings {
    /// Its address; all zero until somebody gives it one.
    pub mac: MacAddr,
    /// The VLAN whose tag it gets and loses.
    pub vlan: Option<VlanId>,
    /// Whether frames from other addresses are dropped; `None` if the driver cannot tell.
    pub spoof_check: Option<bool>,
    /// Whether it may do what only trusted ones may, such as being promiscuous; `None` if
    /// the driver cannot tell.
    pub trust: Option<bool>,
    /// Megabits per second that it may always send; 0 if nothing is promised.
    pub rate_min_mbps: u32,
    /// Megabits per second that it may send at most; 0 if as many as it can.
    pub rate_max_mbps: u32,
    /// What it is told of its link; `None` if the driver cannot tell.
    pub link_state: Option<VfLinkState>,
}

/// What a virtual function is told of its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VfLinkState {
    /// How the adapter's link is.
    Auto,
    /// That it is up.
    Enable,
    /// That it is down.
    Disable,
}

/// A change of a virtual function. What is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VfChange {
    /// Its address.
    pub mac: Option<MacAddr>,
    /// Its VLAN; `Some(None)` takes it out.
    pub vlan: Option<Option<VlanId>>,
    /// Whether frames from other addresses are dropped.
    pub spoof_check: Option<bool>,
    /// Whether it is trusted.
    pub trust: Option<bool>,
    /// Megabits per second, at least and at most; 0 is none.
    pub rates_mbps: Option<(u32, u32)>,
    /// What it is told of its link.
    pub link_state: Option<VfLinkState>,
}

impl VfChange {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
