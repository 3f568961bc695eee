//! Adapters with SR-IOV: found in sysfs, queried and configured through rtnetlink.
//!
//! sysfs contains the properties of PCI functions (`Documentation/ABI/testing/sysfs-bus-pci`):
//! driver, IOMMU group, current and maximum number of virtual functions. The settings of each
//! virtual function are available only from the physical function's network device, by rtnetlink(7)
//! (`IFLA_VFINFO_LIST`). Both are related by the PCI address that each network device has as its
//! parent.

mod adapters;
mod link_socket;
mod netdevs;
mod support;
mod sysfs;
mod vf_change;
mod vf_info;

pub use adapters::SriovAdapters;
