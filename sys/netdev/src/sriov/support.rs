//! Check whether an adapter's virtual functions can be assigned to VMs.

use std::path::Path;

use suimon_ports::SriovSupport;
use suimon_quantity::PciAddress;

use super::sysfs;

/// Indices of the lines of sysfs file `resource` for the BARs of VFs. Six BARs and the ROM precede
/// them (`include/linux/pci.h`).
const VF_BARS: core::ops::Range<usize> = 7..13;
/// Flag of a BAR to which no address was assigned: `IORESOURCE_UNSET` (`include/linux/ioport.h`).
const UNSET: u64 = 0x2000_0000;
/// PCI class of bridges: `PCI_CLASS_BRIDGE_PCI`.
const BRIDGE: u32 = 0x0604;
/// Drivers that only pass a function on to a VM or program, and create no VFs.
const STUBS: [&str; 3] = ["vfio-pci", "pci-stub", "uio_pci_generic"];

/// Returns whether VFs of an adapter can be assigned to VMs, or the first reason against it.
/// `folder` is the sysfs folder of the physical function.
pub(super) fn support(folder: &Path, address: PciAddress, vfs_max: u16) -> SriovSupport {
    let driver = sysfs::read_link_name(&folder.join("driver"));
    let is_driven = driver.is_some_and(|driver| !STUBS.contains(&driver.as_str()));
    if !is_driven || vfs_max == 0 {
        return SriovSupport::MissingPfDriver;
    }
    if lacks_bar_space(folder) {
        return SriovSupport::NoVfBarSpace;
    }
    if lacks_buses(folder, address, vfs_max) {
        return SriovSupport::NoBusResources;
    }
    if sysfs::read_link_name(&folder.join("iommu_group")).is_none() {
        return SriovSupport::NoIommu;
    }
    if shares_group(folder, address) {
        return SriovSupport::MissingAcs;
    }
    SriovSupport::Supported
}

/// Returns true if no address was assigned to any BAR of VFs. VFs have at least one BAR. Returns
/// false if the file cannot be read.
fn lacks_bar_space(folder: &Path) -> bool {
    let Some(text) = sysfs::read_text(&folder.join("resource")) else { return false };
    let lines: Vec<&str> = text.lines().collect();
    let Some(bars) = lines.get(VF_BARS) else { return false };
    let flags = |line: &&str| {
        let last = line.split_whitespace().nth(2)?.strip_prefix("0x")?;
        u64::from_str_radix(last, 16).ok()
    };
    let flags: Vec<u64> = bars.iter().filter_map(flags).collect();
    flags.iter().all(|flags| *flags == 0) || flags.iter().any(|flags| flags & UNSET != 0)
}

/// Returns true if the last VF would be on a bus number beyond those of the bridge above the
/// adapter.
fn lacks_buses(folder: &Path, address: PciAddress, vfs_max: u16) -> bool {
    let file = |name: &str| sysfs::read_number::<u32>(&folder.join(name));
    let (Some(offset), Some(stride)) = (file("sriov_offset"), file("sriov_stride")) else {
        return false;
    };
    // `..` must be that of the device's directory; the entry in `bus/pci/devices` is a link.
    let Ok(real) = folder.canonicalize() else { return false };
    let bus_file = real.parent().map(|parent| parent.join("subordinate_bus_number"));
    let Some(last_bus) = bus_file.and_then(|path| sysfs::read_number::<u32>(&path)) else {
        return false;
    };
    let steps = stride.saturating_mul(u32::from(vfs_max).saturating_sub(1));
    let first = u32::from(address.device_function()).saturating_add(offset);
    let bus = u32::from(address.bus).saturating_add(first.saturating_add(steps) >> 8);
    bus > last_bus
}

/// Returns true if the IOMMU group contains a device that is neither a function of the same adapter
/// nor a bridge.
fn shares_group(folder: &Path, address: PciAddress) -> bool {
    let group = folder.join("iommu_group/devices");
    sysfs::list_names(&group).iter().any(|name| {
        let Ok(other) = name.parse::<PciAddress>() else { return false };
        let is_same = (other.domain, other.bus, other.device)
            == (address.domain, address.bus, address.device);
        let path = |file: &str| group.join(name).join(file);
        let is_bridge = sysfs::read_hex(&path("class")).is_some_and(|class| class >> 8 == BRIDGE);
        let is_own = sysfs::read_link_name(&path("physfn")) == Some(address.to_string());
        !is_same && !is_bridge && !is_own
    })
}
