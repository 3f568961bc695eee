//! Virtual functions (VFs) given to VMs through VFIO (Linux: `Documentation/driver-api/vfio.rst`).
//!
//! A VF is unbound from its driver and bound to `vfio-pci`. While a VM has the VF, the VM's user
//! owns the device file of the VF's IOMMU group, and may lock as much memory as the VM has, which a
//! device can access at any time. QEMU opens the file itself: it stays in its sandbox and gets no
//! further rights.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use suimon_ports::{VmError, VmErrorKind};
use suimon_quantity::PciAddress;

use super::launched::Launched;
use super::user::Rights;
use crate::process_facts;

const VFIO: &str = "vfio-pci";
/// PCI class code `PCI_BASE_CLASS_NETWORK`, as in sysfs.
const NETWORK: &str = "0x02";
/// Locked memory in bytes in addition to the VM's memory: registers and ROMs of devices, rounded up
/// as in libvirt.
const MORE_BYTES: u64 = 1 << 30;

/// Directories through which virtual functions are bound to drivers and opened.
#[derive(Debug)]
pub(crate) struct Vfs {
    /// `/sys`, or a test's replacement.
    sysfs: PathBuf,
    /// `/dev/vfio`, or a test's replacement.
    groups: PathBuf,
}

impl Default for Vfs {
    fn default() -> Self {
        Self { sysfs: "/sys".into(), groups: "/dev/vfio".into() }
    }
}

fn refused(text: String) -> VmError {
    VmError::new(VmErrorKind::Refused, text)
}

fn host(what: &str, error: &io::Error) -> VmError {
    VmError::new(VmErrorKind::Host, format!("{what}: {error}"))
}

fn link_name(path: &Path) -> Option<String> {
    Some(fs::read_link(path).ok()?.file_name()?.to_str()?.to_owned())
}

/// VF that can be given to a VM.
#[derive(Debug)]
struct Vf {
    address: PciAddress,
    folder: PathBuf,
    group: String,
}

impl Vf {
    fn driver(&self) -> Option<String> {
        link_name(&self.folder.join("driver"))
    }

    fn write(&self, file: &str, text: &str) -> Result<(), VmError> {
        let path = self.folder.join(file);
        fs::write(&path, text).map_err(|error| host(&format!("{}", path.display()), &error))
    }
}

impl Vfs {
    /// Makes a VF available to a VM exclusively.
    pub(crate) fn give(
        &self,
        vm: &Launched,
        address: PciAddress,
        memory_bytes: u64,
        rights: Rights,
    ) -> Result<(), VmError> {
        if rights != Rights::Root {
            let text =
                "the VM launcher does not run as root and cannot assign VFs; start it as root";
            return Err(refused(text.to_owned()));
        }
        let vf = self.find(address)?;
        let process = vm.identity.process;
        let user = process_facts::user(process).ok_or_else(|| {
            VmError::new(
                VmErrorKind::NotRunning,
                format!("process {process} does not exist any more"),
            )
        })?;
        let given = self.bind(&vf).and_then(|()| {
            raise_memlock(process, memory_bytes)?;
            self.own_group(&vf, user)
        });
        if given.is_err() {
            let _ = self.take(address);
        }
        given
    }

    /// Takes a VF back. Blocks until no process has it open, as the kernel does.
    pub(crate) fn take(&self, address: PciAddress) -> Result<(), VmError> {
        let Ok(vf) = self.find(address) else { return Ok(()) };
        // Done first: otherwise QEMU could open the VF again.
        if self.groups.join(&vf.group).exists() {
            self.own_group(&vf, 0)?;
        }
        // An empty line clears the override.
        vf.write("driver_override", "\n")?;
        if vf.driver().as_deref() == Some(VFIO) {
            vf.write("driver/unbind", &address.to_string())?;
            self.probe(&vf)?;
        }
        Ok(())
    }

    /// Returns the VF with this address. It must be a virtual function of a network adapter and
    /// alone in its IOMMU group.
    fn find(&self, address: PciAddress) -> Result<Vf, VmError> {
        let folder = self.sysfs.join("bus/pci/devices").join(address.to_string());
        if !folder.is_dir() {
            return Err(refused(format!("the PCI function {address} does not exist any more")));
        }
        let class = fs::read_to_string(folder.join("class")).unwrap_or_default();
        if !folder.join("physfn").exists() || !class.starts_with(NETWORK) {
            let text = format!("{address} is not a VF of a network adapter");
            return Err(refused(text));
        }
        let Some(group) = link_name(&folder.join("iommu_group")) else {
            let text = format!(
                "{address} is in no IOMMU group, because no IOMMU is active; enable it in the \
                 machine's firmware and boot with intel_iommu=on or amd_iommu=on"
            );
            return Err(refused(text));
        };
        let members = fs::read_dir(folder.join("iommu_group/devices"));
        let members = members.map_err(|error| host("the IOMMU group", &error))?.count();
        if members != 1 {
            let text = format!(
                "{address} shares IOMMU group {group} with {} more devices, which would be \
                 assigned too; use a slot whose ports have ACS",
                members.saturating_sub(1)
            );
            return Err(refused(text));
        }
        Ok(Vf { address, folder, group })
    }

    fn bind(&self, vf: &Vf) -> Result<(), VmError> {
        let driver = vf.driver();
        if driver.as_deref() == Some(VFIO) {
            return Ok(());
        }
        vf.write("driver_override", VFIO)?;
        if driver.is_some() {
            vf.write("driver/unbind", &vf.address.to_string())?;
        }
        self.probe(vf)?;
        if vf.driver().as_deref() == Some(VFIO) {
            return Ok(());
        }
        let text = format!(
            "driver {VFIO} did not bind {}; load it with `modprobe {VFIO}` and see the kernel's \
             log",
            vf.address
        );
        Err(VmError::new(VmErrorKind::Host, text))
    }

    fn probe(&self, vf: &Vf) -> Result<(), VmError> {
        let path = self.sysfs.join("bus/pci/drivers_probe");
        fs::write(path, vf.address.to_string())
            .map_err(|error| host("cannot probe a driver for the VF", &error))
    }

    fn own_group(&self, vf: &Vf, user: u32) -> Result<(), VmError> {
        let path = self.groups.join(&vf.group);
        let failed = |error| host(&format!("{}", path.display()), &error);
        // Accessible to its owner and root only, before and after the change.
        fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(failed)?;
        chown(&path, Some(user), Some(user)).map_err(failed)
    }
}

/// Sets the limit of locked memory of a VM's process to the VM's memory and [`MORE_BYTES`].
fn raise_memlock(process: u32, memory_bytes: u64) -> Result<(), VmError> {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| refused(format!("{process} is not a process ID")))?;
    let wanted = Some(memory_bytes.saturating_add(MORE_BYTES));
    prlimit(Some(pid), Resource::Memlock, Rlimit { current: wanted, maximum: wanted })
        .map(drop)
        .map_err(|errno| host("the VM has no permission to lock its memory", &errno.into()))
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, read_to_string, write};
    use std::os::unix::fs::symlink;

    use super::*;

    const ADDRESS: &str = "0000:01:10.0";

    /// Creates a sysfs tree with one VF with this driver, alone in its group. Writes have no effect
    /// on it.
    fn tree(driver: &str) -> (tempfile::TempDir, Vfs) {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        let folder = at("sys/bus/pci/devices").join(ADDRESS);
        for path in ["sys/kernel/iommu_groups/7/devices/x", "dev", "sys/pf", "sys/drivers"] {
            create_dir_all(at(path)).unwrap();
        }
        create_dir_all(at("sys/drivers").join(driver)).unwrap();
        create_dir_all(&folder).unwrap();
        write(folder.join("class"), "0x020000\n").unwrap();
        symlink(at("sys/pf"), folder.join("physfn")).unwrap();
        symlink(at("sys/kernel/iommu_groups/7"), folder.join("iommu_group")).unwrap();
        symlink(at("sys/drivers").join(driver), folder.join("driver")).unwrap();
        write(at("dev/7"), "").unwrap();
        let vfs = Vfs { sysfs: at("sys"), groups: at("dev") };
        (root, vfs)
    }

    fn error(vfs: &Vfs) -> String {
        vfs.find(ADDRESS.parse().unwrap()).unwrap_err().text
    }

    #[test]
    fn only_an_isolated_function_of_an_adapter_is_given() {
        let (root, vfs) = tree("igbvf");
        let at = |path: &str| root.path().join(path);
        assert_eq!(vfs.find(ADDRESS.parse().unwrap()).unwrap().group, "7");
        create_dir_all(at("sys/kernel/iommu_groups/7/devices/y")).unwrap();
        assert!(error(&vfs).contains("with 1 more devices"));
        let folder = at("sys/bus/pci/devices").join(ADDRESS);
        fs::remove_file(folder.join("iommu_group")).unwrap();
        assert!(error(&vfs).contains("intel_iommu=on"));
        fs::remove_file(folder.join("physfn")).unwrap();
        assert!(error(&vfs).contains("not a VF"));
        fs::remove_dir_all(&folder).unwrap();
        assert!(error(&vfs).contains("any more"));
        // A VF that no longer exists needs no taking back.
        vfs.take(ADDRESS.parse().unwrap()).unwrap();
    }

    #[test]
    fn a_function_that_vfio_does_not_take_is_said_so_and_one_that_is_taken_back_is_nobodys() {
        let (root, vfs) = tree("igbvf");
        let at = |path: &str| root.path().join(path);
        let vf = vfs.find(ADDRESS.parse().unwrap()).unwrap();
        let text = vfs.bind(&vf).unwrap_err().text;
        assert!(text.contains("modprobe vfio-pci"), "{text}");
        let folder = at("sys/bus/pci/devices").join(ADDRESS);
        assert_eq!(read_to_string(folder.join("driver_override")).unwrap(), VFIO);
        assert_eq!(read_to_string(at("sys/drivers/igbvf/unbind")).unwrap(), ADDRESS);
        assert_eq!(read_to_string(at("sys/bus/pci/drivers_probe")).unwrap(), ADDRESS);
        if Rights::of_this_process() == Rights::Own {
            return;
        }
        let (root, vfs) = tree(VFIO);
        let vf = vfs.find(ADDRESS.parse().unwrap()).unwrap();
        vfs.own_group(&vf, 70_000).unwrap();
        let owner = || {
            use std::os::unix::fs::MetadataExt;
            let found = fs::metadata(root.path().join("dev/7")).unwrap();
            (found.uid(), found.gid(), found.mode() & 0o777)
        };
        assert_eq!(owner(), (70_000, 70_000, 0o600));
        vfs.take(ADDRESS.parse().unwrap()).unwrap();
        assert_eq!(owner(), (0, 0, 0o600));
        assert_eq!(
            read_to_string(root.path().join("sys/drivers/vfio-pci/unbind")).unwrap(),
            ADDRESS
        );
    }
}
