//! Adapters with SR-IOV: found in sysfs, asked and told through rtnetlink.
//!
//! What a device is stands in sysfs (`Documentation/ABI/testing/sysfs-bus-pci`): its
//! driver, its IOMMU group, how many virtual functions it has and can have. How each of
//! them is set up only the physical function's network device knows, which rtnetlink(7)
//! asks (`IFLA_VFINFO_LIST`). The two meet by the PCI address that each network device
//! names as its parent.

mod adapters;
mod links;
mod netdevs;
mod support;
mod sysfs;
mod vf_change;
mod vf_info;

pub use adapters::SriovAdapters;
