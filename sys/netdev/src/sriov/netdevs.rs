//! Finds the network devices of PCI functions, in this process's namespace and in named namespaces.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rustix::io::Errno;
use suimon_ports::{DeviceError, VfSettings};

use super::link_socket::{LinkSocket, NetDevice};
use super::sysfs;
use crate::errors::host_error;
use crate::namespace::{DIRECTORY, Namespace};

/// Maximum number of namespaces that are searched. Hosts with more namespaces do not have adapters
/// in all of them.
const NAMESPACES_MAX: usize = 1024;

/// Network device and its namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeviceInNetns {
    /// Name of the namespace; `None` for this process's namespace.
    pub(super) netns: Option<String>,
    pub(super) device: NetDevice,
}

/// Network devices of PCI functions, by the function's name in sysfs.
#[derive(Debug, Default)]
pub(super) struct NetDevs(BTreeMap<String, DeviceInNetns>);

impl NetDevs {
    /// Searches all namespaces. Devices of a namespace that cannot be queried are omitted.
    ///
    /// # Errors
    /// This process's namespace cannot be queried.
    pub(super) fn scan() -> Result<Self, DeviceError> {
        let mut by_parent = BTreeMap::new();
        let daemon_devices =
            list_devices().map_err(|errno| refused("listing network devices", errno))?;
        add(&mut by_parent, None, daemon_devices);
        for name in names() {
            let Ok(namespace) = Namespace::open(Some(&name)) else { continue };
            if namespace.is_daemon_netns() {
                continue;
            }
            let result = namespace
                .run(|| list_devices().map_err(|errno| refused("listing network devices", errno)));
            match result {
                Ok(devices) => add(&mut by_parent, Some(&name), devices),
                Err(error) => tracing::debug!(
                    netns = name,
                    %error,
                    "cannot read a network namespace"
                ),
            }
        }
        Ok(Self(by_parent))
    }

    /// Returns the network device of the function with the sysfs folder `folder`; `None` if it has
    /// none. Kernels before 5.14 do not report the function of a device; sysfs does, for devices in
    /// this process's namespace.
    pub(super) fn device_of_function(&self, folder: &Path) -> Option<DeviceInNetns> {
        let name = folder.file_name()?.to_str()?;
        if let Some(netdev) = self.0.get(name) {
            return Some(netdev.clone());
        }
        let device = sysfs::list_names(&folder.join("net")).into_iter().next()?;
        let class = folder.join("net").join(&device);
        let index = sysfs::read_number(&class.join("ifindex"))?;
        let flags = sysfs::read_hex(&class.join("flags")).unwrap_or_default();
        let is_up = flags & (libc::IFF_UP as u32) != 0;
        let device = NetDevice { index, name: device, is_up, mac: None, pci_function: None };
        Some(DeviceInNetns { netns: None, device })
    }
}

impl DeviceInNetns {
    /// Returns the settings of the VFs of the device, by VF index.
    ///
    /// # Errors
    /// The device does not exist.
    pub(super) fn vfs(&self) -> Result<BTreeMap<u16, VfSettings>, DeviceError> {
        let index = self.device.index;
        let name = &self.device.name;
        self.with_link_socket(|links| {
            let vfs = links.vfs(index);
            vfs.map_err(|errno| refused(&format!("reading the VFs of {name}"), errno))
        })
    }

    /// Executes `work` with an rtnetlink socket in the device's namespace.
    pub(super) fn with_link_socket<T: Send>(
        &self,
        work: impl FnOnce(&mut LinkSocket) -> Result<T, DeviceError> + Send,
    ) -> Result<T, DeviceError> {
        Namespace::open(self.netns.as_deref())?.run(|| {
            let mut links =
                LinkSocket::open().map_err(|errno| refused("opening a netlink socket", errno))?;
            work(&mut links)
        })
    }
}

fn refused(operation: &str, errno: Errno) -> DeviceError {
    host_error("device", operation, &errno.into())
}

fn list_devices() -> Result<Vec<NetDevice>, Errno> {
    LinkSocket::open()?.devices()
}

fn add(
    by_parent: &mut BTreeMap<String, DeviceInNetns>,
    netns: Option<&str>,
    devices: Vec<NetDevice>,
) {
    for device in devices {
        // A function with several devices is represented by the first, which is its own port.
        if let Some(parent) = device.pci_function.clone() {
            let netdev = DeviceInNetns { netns: netns.map(str::to_owned), device };
            by_parent.entry(parent).or_insert(netdev);
        }
    }
}

fn names() -> Vec<String> {
    let entries = fs::read_dir(DIRECTORY).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .take(NAMESPACES_MAX)
        .collect();
    names.sort_unstable();
    names
}
