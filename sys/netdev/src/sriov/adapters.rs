//! [`SriovAdapters`]: finds and configures SR-IOV adapters of this host.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use suimon_frame::MacAddr;
use suimon_ports::{
    DeviceError, DeviceErrorKind, PfProperties, SriovHost, VfProperties, VfSettings,
    VfSettingsChange,
};
use suimon_quantity::PciAddress;

use super::link_socket::LinkSocket;
use super::netdevs::NetDevs;
use super::support::support;
use super::sysfs::{self, Sysfs};
use super::vf_change::encode_messages;
use crate::errors::{device_error, host_error};

/// PCI base class of network controllers (`PCI_BASE_CLASS_NETWORK`).
const NETWORK: u32 = 0x02;

/// Time after a change of the number of VFs during which rejected settings are retried. A driver
/// resets its adapter then, and may reject rates until the link is up, which takes some seconds.
const RETRY_TIME: Duration = Duration::from_secs(10);
/// Pause between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// SR-IOV network adapters of this host, as sysfs and rtnetlink report them.
#[derive(Debug)]
pub struct SriovAdapters {
    sysfs: Sysfs,
    /// Time of the last change of the number of VFs, by physical function.
    vf_count_set_at: Mutex<BTreeMap<PciAddress, Instant>>,
}

impl SriovAdapters {
    /// Finds adapters in the sysfs tree at `sysfs`, which is `/sys` except in tests.
    pub fn new(sysfs: impl Into<PathBuf>) -> Self {
        Self { sysfs: Sysfs::new(sysfs.into()), vf_count_set_at: Mutex::default() }
    }

    /// Returns the path of `sriov_numvfs` of each present adapter.
    pub fn vf_count_files(&self) -> Vec<PathBuf> {
        let folders = self.sysfs.pci_devices().unwrap_or_default().into_iter();
        let adapters = folders.filter(|folder| pf_address(folder).is_some());
        adapters.map(|folder| folder.join("sriov_numvfs")).collect()
    }

    fn vf_count_set_at(&self) -> MutexGuard<'_, BTreeMap<PciAddress, Instant>> {
        self.vf_count_set_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the sysfs folder of a physical function.
    ///
    /// # Errors
    /// There is no such adapter.
    fn folder(&self, pf: PciAddress) -> Result<PathBuf, DeviceError> {
        let folder = self.sysfs.pci_device(pf);
        if pf_address(&folder).is_some() {
            return Ok(folder);
        }
        let text = format!("the SR-IOV adapter {pf} does not exist any more");
        Err(device_error(DeviceErrorKind::Missing, "device", text))
    }
}

impl SriovHost for SriovAdapters {
    fn adapters(&self) -> Result<Vec<PfProperties>, DeviceError> {
        let folders = self.sysfs.pci_devices();
        let folders = folders.map_err(|cause| host_error("device", "reading sysfs", &cause))?;
        let adapter_folders: Vec<_> =
            folders.into_iter().filter_map(|folder| Some((pf_address(&folder)?, folder))).collect();
        if adapter_folders.is_empty() {
            return Ok(Vec::new());
        }
        let devices = NetDevs::scan()?;
        let mut adapters: Vec<_> = adapter_folders
            .iter()
            .map(|(address, folder)| adapter(*address, folder, &devices))
            .collect();
        adapters.sort_by_key(|adapter| adapter.address);
        Ok(adapters)
    }

    fn set_vf_count(&self, pf: PciAddress, count: u16) -> Result<(), DeviceError> {
        let folder = self.folder(pf)?;
        let file = folder.join("sriov_numvfs");
        let now: u16 = sysfs::read_number(&file).unwrap_or_default();
        if now == count {
            return Ok(());
        }
        // The kernel changes between two non-zero numbers only by way of 0.
        let numbers = if now > 0 && count > 0 { vec![0, count] } else { vec![count] };
        for number in numbers {
            sysfs::write(&file, &number.to_string())
                .map_err(|cause| refused_count(pf, number, vfs_max(&folder), &cause))?;
        }
        self.vf_count_set_at().insert(pf, Instant::now());
        Ok(())
    }

    fn change_vf(
        &self,
        pf: PciAddress,
        index: u16,
        change: &VfSettingsChange,
    ) -> Result<(), DeviceError> {
        let folder = self.folder(pf)?;
        let devices = NetDevs::scan()?;
        let netdev = devices.device_of_function(&folder).ok_or_else(|| no_device(pf))?;
        let name = netdev.device.name.clone();
        let messages = encode_messages(netdev.device.index, index, change);
        let count_set_at = self.vf_count_set_at().get(&pf).copied();
        netdev.with_link_socket(|links| {
            messages.iter().try_for_each(|(field, body)| {
                let changed = change_settled(links, body, count_set_at);
                changed.map_err(|errno| refused_change(&name, index, field, errno))
            })
        })
    }

    fn set_embedded_switch_address(
        &self,
        pf: PciAddress,
        mac: MacAddr,
        is_there: bool,
    ) -> Result<(), DeviceError> {
        let folder = self.folder(pf)?;
        let devices = NetDevs::scan()?;
        let netdev = devices.device_of_function(&folder).ok_or_else(|| no_device(pf))?;
        let (name, index) = (netdev.device.name.clone(), netdev.device.index);
        netdev.with_link_socket(|links| {
            links.set_fdb_entry(index, mac, is_there).map_err(|errno| {
                let operation = format!("adding the address {mac} to {name}");
                let text = format!("{operation}: {errno}; VFs cannot reach that address");
                device_error(DeviceErrorKind::Unsupported, "iov", text)
            })
        })
    }
}

fn no_device(pf: PciAddress) -> DeviceError {
    let text = format!(
        "the driver of {pf} has no network device, or its device is in a namespace without a \
         name; the VFs of the adapter cannot be configured"
    );
    device_error(DeviceErrorKind::Missing, "device", text)
}

/// Sends a change of a device to the kernel. If the driver rejects it within [`RETRY_TIME`] after
/// `count_set_at`, retries until then.
///
/// # Errors
/// The errno of the kernel or of the device's driver.
fn change_settled(
    links: &mut LinkSocket,
    body: &[u8],
    count_set_at: Option<Instant>,
) -> Result<(), Errno> {
    loop {
        let changed = links.send_change(body);
        let settles = count_set_at.is_some_and(|count_set_at| count_set_at.elapsed() < RETRY_TIME);
        if !settles || !matches!(changed, Err(Errno::INVAL | Errno::AGAIN | Errno::BUSY)) {
            return changed;
        }
        thread::sleep(RETRY_INTERVAL);
    }
}

/// Returns the PCI address of the function with this sysfs folder; `None` unless it is the physical
/// function of an SR-IOV network adapter.
fn pf_address(folder: &Path) -> Option<PciAddress> {
    let address = folder.file_name()?.to_str()?.parse().ok()?;
    let is_network = sysfs::read_hex(&folder.join("class"))? >> 16 == NETWORK;
    let _has_sriov: u16 = sysfs::read_number(&folder.join("sriov_totalvfs"))?;
    is_network.then_some(address)
}

fn vfs_max(folder: &Path) -> u16 {
    sysfs::read_number(&folder.join("sriov_totalvfs")).unwrap_or_default()
}

fn adapter(address: PciAddress, folder: &Path, devices: &NetDevs) -> PfProperties {
    let vfs_max = vfs_max(folder);
    let netdev = devices.device_of_function(folder);
    let settings = netdev.as_ref().map(|netdev| netdev.vfs()).transpose();
    let settings = settings.unwrap_or_else(|error| {
        tracing::debug!(pf = %address, %error, "cannot read the VFs of an adapter");
        None
    });
    PfProperties {
        address,
        netns: netdev.as_ref().and_then(|netdev| netdev.netns.clone()),
        device: netdev.map(|netdev| netdev.device.name),
        driver: sysfs::read_link_name(&folder.join("driver")),
        vfs_max,
        iommu_group: iommu_group(folder),
        numa_node: numa_node(folder),
        support: support(folder, address, vfs_max),
        vfs: vfs(folder, &settings.unwrap_or_default(), devices),
    }
}

fn vfs(
    folder: &Path,
    settings: &BTreeMap<u16, VfSettings>,
    devices: &NetDevs,
) -> Vec<VfProperties> {
    let links = sysfs::list_names(folder).into_iter().filter_map(|name| {
        let index: u16 = name.strip_prefix("virtfn")?.parse().ok()?;
        let address: PciAddress = sysfs::read_link_name(&folder.join(&name))?.parse().ok()?;
        Some((index, address))
    });
    let by_index: BTreeMap<u16, PciAddress> = links.collect();
    let vf = |(index, address): (u16, PciAddress)| {
        let folder = folder.with_file_name(address.to_string());
        let netdev = devices.device_of_function(&folder);
        VfProperties {
            index,
            address,
            driver: sysfs::read_link_name(&folder.join("driver")),
            iommu_group: iommu_group(&folder),
            is_up: netdev.as_ref().is_some_and(|netdev| netdev.device.is_up),
            netns: netdev.as_ref().and_then(|netdev| netdev.netns.clone()),
            device: netdev.map(|netdev| netdev.device.name),
            settings: settings.get(&index).cloned(),
        }
    };
    by_index.into_iter().map(vf).collect()
}

fn iommu_group(folder: &Path) -> Option<u32> {
    sysfs::read_link_name(&folder.join("iommu_group"))?.parse().ok()
}

/// Returns the NUMA node; `None` for −1, the value of machines without NUMA nodes.
fn numa_node(folder: &Path) -> Option<u16> {
    sysfs::read_number::<i32>(&folder.join("numa_node")).and_then(|node| u16::try_from(node).ok())
}

/// Creates the error for a rejected number of VFs, with the kernel's reason (`sriov_numvfs_store`,
/// drivers/pci).
fn refused_count(pf: PciAddress, count: u16, max: u16, cause: &io::Error) -> DeviceError {
    let operation = format!("creating {count} VFs on {pf}");
    let errno = cause.raw_os_error().map(Errno::from_raw_os_error);
    let (kind, advice) = match errno {
        Some(Errno::NOENT) => (
            DeviceErrorKind::Unsupported,
            "the PF has no driver, or one without SR-IOV; load the driver of the adapter's vendor"
                .to_owned(),
        ),
        Some(Errno::RANGE) => {
            (DeviceErrorKind::Unsupported, format!("the adapter supports at most {max} VFs"))
        }
        Some(Errno::NOMEM | Errno::NOSPC) => (
            DeviceErrorKind::Unsupported,
            "the machine has too few PCI bus numbers or addresses; enable SR-IOV in its firmware, \
             boot with pci=realloc, or set fewer VFs"
                .to_owned(),
        ),
        Some(Errno::BUSY | Errno::PERM) => (
            DeviceErrorKind::Busy,
            "the driver does not remove the existing VFs, because a VM may use one of them"
                .to_owned(),
        ),
        Some(Errno::ACCESS | Errno::ROFS) => (
            DeviceErrorKind::Denied,
            "the daemon can write this file only of adapters that existed when it started, and \
             only if its unit permits writes to /sys/devices; restart it"
                .to_owned(),
        ),
        _ => return host_error("vfs", &operation, cause),
    };
    device_error(kind, "vfs", format!("{operation}: {cause}; {advice}"))
}

fn refused_change(device: &str, index: u16, field: &'static str, errno: Errno) -> DeviceError {
    let operation = format!("setting {field} of VF {index} of {device}");
    let advice = match (errno, field) {
        (Errno::OPNOTSUPP, _) => {
            "the adapter's driver does not support this setting; remove the key"
        }
        (Errno::INVAL, "bandwidth_max_bps" | "bandwidth_min_bps") => {
            "the adapter accepts only a rate below the speed of its link, which must be up, and \
             possibly no minimum"
        }
        (Errno::INVAL, _) => "the adapter's driver rejects this value",
        _ => return host_error(field, &operation, &errno.into()),
    };
    device_error(DeviceErrorKind::Unsupported, field, format!("{operation}: {errno}; {advice}"))
}

#[cfg(test)]
#[path = "adapters_tests.rs"]
mod tests;
