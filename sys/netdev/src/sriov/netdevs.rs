//! The network devices of PCI functions, in our namespace and in those that have a name.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rustix::io::Errno;
use suimon_ports::{DeviceError, VfSettings};

use super::links::{Links, NetDevice};
use super::sysfs;
use crate::explain::host;
use crate::namespace::{DIRECTORY, Namespace};

/// Namespaces that are looked into; hosts with more light guests than that have no adapters
/// in them all.
const NAMESPACES_MAX: usize = 1024;

/// A network device and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    /// `None` if it is our namespace.
    pub(super) netns: Option<String>,
    pub(super) device: NetDevice,
}

/// The network devices of PCI functions, by the function's name in sysfs.
#[derive(Debug, Default)]
pub(super) struct NetDevs(BTreeMap<String, Placed>);

impl NetDevs {
    /// Looks into all namespaces. One that cannot be looked into hides what is in it.
    ///
    /// # Errors
    /// Our own cannot be asked.
    pub(super) fn find() -> Result<Self, DeviceError> {
        let mut found = BTreeMap::new();
        let ours = all().map_err(|errno| refused("listing network devices", errno))?;
        add(&mut found, None, ours);
        for name in names() {
            let Ok(namespace) = Namespace::open(Some(&name)) else { continue };
            if namespace.is_ours() {
                continue;
            }
            let there =
                namespace.run(|| all().map_err(|errno| refused("listing network devices", errno)));
            match there {
                Ok(devices) => add(&mut found, Some(&name), devices),
                Err(error) => tracing::debug!(netns = name, %error, "a namespace is not seen"),
            }
        }
        Ok(Self(found))
    }

    /// The device of the function in this folder. Kernels before 5.14 do not tell whose a
    /// device is; sysfs does, of those in our namespace.
    pub(super) fn of(&self, folder: &Path) -> Option<Placed> {
        let name = folder.file_name()?.to_str()?;
        if let Some(placed) = self.0.get(name) {
            return Some(placed.clone());
        }
        let device = sysfs::names(&folder.join("net")).into_iter().next()?;
        let class = folder.join("net").join(&device);
        let index = sysfs::number(&class.join("ifindex"))?;
        let flags = sysfs::hex(&class.join("flags")).unwrap_or_default();
        let is_up = flags & (libc::IFF_UP as u32) != 0;
        let device = NetDevice { index, name: device, is_up, mac: None, parent: None };
        Some(Placed { netns: None, device })
    }
}

impl Placed {
    /// What the device says of its virtual functions.
    ///
    /// # Errors
    /// It is gone.
    pub(super) fn vfs(&self) -> Result<BTreeMap<u16, VfSettings>, DeviceError> {
        let index = self.device.index;
        let name = &self.device.name;
        self.with_links(|links| {
            let vfs = links.vfs(index);
            vfs.map_err(|errno| refused(&format!("asking {name} for its VFs"), errno))
        })
    }

    /// Does something where the device is.
    pub(super) fn with_links<T: Send>(
        &self,
        work: impl FnOnce(&mut Links) -> Result<T, DeviceError> + Send,
    ) -> Result<T, DeviceError> {
        Namespace::open(self.netns.as_deref())?.run(|| {
            let mut links =
                Links::open().map_err(|errno| refused("opening a netlink socket", errno))?;
            work(&mut links)
        })
    }
}

fn refused(what: &str, errno: Errno) -> DeviceError {
    host("device", what, &errno.into())
}

fn all() -> Result<Vec<NetDevice>, Errno> {
    Links::open()?.all()
}

fn add(found: &mut BTreeMap<String, Placed>, netns: Option<&str>, devices: Vec<NetDevice>) {
    for device in devices {
        // A function with several devices is known by the first, which is its own port.
        if let Some(parent) = device.parent.clone() {
            let placed = Placed { netns: netns.map(str::to_owned), device };
            found.entry(parent).or_insert(placed);
        }
    }
}

fn names() -> Vec<String> {
    let found = fs::read_dir(DIRECTORY).into_iter().flatten().flatten();
    let mut names: Vec<_> = found
        .filter_map(|entry| entry.file_name().into_string().ok())
        .take(NAMESPACES_MAX)
        .collect();
    names.sort_unstable();
    names
}
