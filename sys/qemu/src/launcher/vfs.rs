//! Virtual functions (VFs) assigned to VMs through VFIO (Linux:
//! `Documentation/driver-api/vfio.rst`).
//!
//! A VF is unbound from its driver and bound to `vfio-pci`. While the VF is assigned, the VM's user
//! owns the device file of the VF's IOMMU group. The user may also lock as much memory as the VM
//! has, because a device can access all of it at any time. QEMU opens the file itself. It stays in
//! its sandbox and needs no further permissions.
//!
//! A QEMU process that keeps a VF open can delay unbinding indefinitely. A VF is therefore unbound
//! only if no process has its IOMMU group open, and always by a child process with a time limit
//! (`sysfs_writer.rs`). One change of a VF is in progress at a time. The change holds a lock of the
//! VF's folder in sysfs; if the launcher exits, the child keeps the lock.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use suimon_ports::{VmError, VmErrorKind};
use suimon_quantity::PciAddress;

use super::launcher_user::LauncherUser;
use super::sysfs_writer::{SysfsWrite, SysfsWriter, SysfsWriters};
use super::vm_process::VmProcess;
use crate::process_facts;

const VFIO: &str = "vfio-pci";
/// PCI class code `PCI_BASE_CLASS_NETWORK`, as in sysfs.
const NETWORK: &str = "0x02";
/// Number of bytes that a VM with VFs may lock in addition to its memory, for registers and ROMs of
/// devices. The value is rounded up as in libvirt.
const MORE_BYTES: u64 = 1 << 30;
/// Time limit for a change of a VF's driver. Some drivers take seconds to initialize a VF.
const CHANGE_LIMIT: Duration = Duration::from_secs(10);
/// Maximum number of driver changes in progress, including those that have exceeded their time
/// limit.
const CHANGES_MAX: usize = 256;

/// Assignment of VFs to VMs, and the directories that it uses.
#[derive(Debug)]
pub(crate) struct Vfs {
    /// Path of sysfs: `/sys`, or a directory of a test.
    sysfs: PathBuf,
    /// Path of the group files: `/dev/vfio`, or a directory of a test.
    groups: PathBuf,
    /// Function that returns true if a process has the file of an IOMMU group, or of a device of
    /// the group, open.
    is_open: fn(&Path) -> bool,
    /// Time limit of a change: [`CHANGE_LIMIT`], or that of a test.
    limit: Duration,
    /// Maximum number of changes: [`CHANGES_MAX`], or that of a test.
    changes_max: usize,
    writers: SysfsWriters,
    /// Child processes of changes that have exceeded their time limit. They count towards
    /// `changes_max`.
    unfinished: Mutex<Vec<SysfsWriter>>,
}

impl Default for Vfs {
    fn default() -> Self {
        Self {
            sysfs: "/sys".into(),
            groups: "/dev/vfio".into(),
            is_open: is_group_open,
            limit: CHANGE_LIMIT,
            changes_max: CHANGES_MAX,
            writers: SysfsWriters::default(),
            unfinished: Mutex::default(),
        }
    }
}

/// Returns true if a process has the file of an IOMMU group, or of one of its devices, open. VFIO
/// permits one open file of a group, and an open device keeps that file open.
/// (`vfio_group_fops_open` in `drivers/vfio/group.c`; with `CONFIG_IOMMUFD_VFIO_CONTAINER` a device
/// may be open without it.)
fn is_group_open(group: &Path) -> bool {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    matches!(open(group, flags, Mode::empty()), Err(Errno::BUSY))
}

fn refused(text: String) -> VmError {
    VmError::new(VmErrorKind::Refused, text)
}

fn host(operation: &str, error: &io::Error) -> VmError {
    VmError::new(VmErrorKind::Host, format!("{operation}: {error}"))
}

fn link_name(path: &Path) -> Option<String> {
    Some(fs::read_link(path).ok()?.file_name()?.to_str()?.to_owned())
}

/// VF that can be assigned to a VM, with its folder in sysfs and its IOMMU group.
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
}

impl Vfs {
    /// Binds a VF to `vfio-pci`, and gives the VM's user access to it.
    pub(crate) fn assign_to_vm(
        &self,
        vm: &VmProcess,
        address: PciAddress,
        memory_bytes: u64,
        rights: LauncherUser,
    ) -> Result<(), VmError> {
        if rights != LauncherUser::Root {
            let text =
                "the VM launcher does not run as root and cannot assign VFs; start it as root";
            return Err(refused(text.to_owned()));
        }
        let vf = self.find(address)?;
        let lock = lock(&vf)?;
        if (self.is_open)(&self.groups.join(&vf.group)) {
            return Err(is_open(address));
        }
        let process = vm.identity.pid;
        let user = process_facts::process_user(process).ok_or_else(|| {
            VmError::new(
                VmErrorKind::NotRunning,
                format!("process {process} does not exist any more"),
            )
        })?;
        let result = self.bind(&vf, &lock).and_then(|()| {
            raise_memlock(process, memory_bytes)?;
            self.own_group(&vf, user)
        });
        // A further change must wait until the change in progress has ended.
        if result.as_ref().is_err_and(|error| error.kind != VmErrorKind::Busy) {
            let _ = self.release(&vf, &lock);
        }
        result
    }

    /// Removes access to a VF from the VM named `vm`, and binds the VF to the host's driver. Does
    /// not wait for processes that have the VF open.
    ///
    /// # Errors
    /// [`VmErrorKind::Busy`] while a process has the VF open, or a change of its driver is in
    /// progress.
    pub(crate) fn remove_from_vm(&self, address: PciAddress, vm: &str) -> Result<(), VmError> {
        let Ok(vf) = self.find(address) else { return Ok(()) };
        let result = lock(&vf).and_then(|lock| {
            let group = self.groups.join(&vf.group);
            // This comes first. Otherwise QEMU could open the VF again.
            if group.exists() {
                self.own_group(&vf, 0)?;
            }
            if (self.is_open)(&group) {
                return Err(is_open(address));
            }
            self.release(&vf, &lock)
        });
        result.map_err(|error| match error.kind {
            VmErrorKind::Busy if !vm.is_empty() => {
                let reason = error.text;
                let text = format!(
                    "{reason}; if QEMU of VM {vm} has it open, `suimon vm kill {vm}` ends QEMU"
                );
                VmError::new(VmErrorKind::Busy, text)
            }
            _ => error,
        })
    }

    /// Reaps child processes of changes that exceeded their time limit. Must be called once a
    /// second, and is called before each change.
    pub(crate) fn maintain(&self) {
        let mut unfinished = self.unfinished.lock().unwrap_or_else(PoisonError::into_inner);
        unfinished.retain(|writer| writer.wait(Duration::ZERO).is_none());
    }

    /// Unbinds a VF from `vfio-pci` and binds the host's driver to it.
    fn release(&self, vf: &Vf, lock: &OwnedFd) -> Result<(), VmError> {
        // An empty line clears the override.
        let mut writes = vec![(vf.folder.join("driver_override"), "\n".to_owned())];
        if vf.driver().as_deref() == Some(VFIO) {
            writes.push((vf.folder.join("driver/unbind"), vf.address.to_string()));
            writes.push(self.probe(vf));
        }
        self.write(vf, lock, &writes)
    }

    /// Writes texts to files of sysfs, in order, in a child process with a time limit. The child
    /// holds a copy of `lock`.
    fn write(&self, vf: &Vf, lock: &OwnedFd, writes: &[(PathBuf, String)]) -> Result<(), VmError> {
        let failed =
            |error| host(&format!("cannot change the driver of VF {}", vf.address), &error);
        let writes = writes.iter().map(|(path, text)| SysfsWrite::new(path, text));
        let writes = writes.collect::<io::Result<Vec<_>>>().map_err(failed)?;
        self.maintain();
        let writer = self.writers.start(&writes, lock.as_fd(), self.changes_max);
        let writer = writer.map_err(|error| match error.kind() {
            io::ErrorKind::ResourceBusy => VmError::new(VmErrorKind::Busy, error.to_string()),
            _ => failed(error),
        })?;
        match writer.wait(self.limit) {
            Some(result) => result.map_err(failed),
            None => {
                self.unfinished.lock().unwrap_or_else(PoisonError::into_inner).push(writer);
                Err(changing(vf.address))
            }
        }
    }

    /// Returns the VF with this address.
    ///
    /// # Errors
    /// It is not a virtual function of a network adapter, or not alone in its IOMMU group.
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

    fn bind(&self, vf: &Vf, lock: &OwnedFd) -> Result<(), VmError> {
        let driver = vf.driver();
        if driver.as_deref() == Some(VFIO) {
            return Ok(());
        }
        let mut writes = vec![(vf.folder.join("driver_override"), VFIO.to_owned())];
        if driver.is_some() {
            writes.push((vf.folder.join("driver/unbind"), vf.address.to_string()));
        }
        writes.push(self.probe(vf));
        self.write(vf, lock, &writes)?;
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

    /// Returns the sysfs write that makes the kernel bind a driver to the VF.
    fn probe(&self, vf: &Vf) -> (PathBuf, String) {
        (self.sysfs.join("bus/pci/drivers_probe"), vf.address.to_string())
    }

    fn own_group(&self, vf: &Vf, user: u32) -> Result<(), VmError> {
        let path = self.groups.join(&vf.group);
        let failed = |error| host(&format!("{}", path.display()), &error);
        // The file is accessible only to its owner and root, before and after the change.
        fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(failed)?;
        chown(&path, Some(user), Some(user)).map_err(failed)
    }
}

/// Locks a VF's folder in sysfs for a change of its driver.
///
/// # Errors
/// Another change is in progress.
fn lock(vf: &Vf) -> Result<OwnedFd, VmError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let failed = |errno: Errno| host(&format!("VF {} cannot be locked", vf.address), &errno.into());
    let folder = open(&vf.folder, flags, Mode::empty()).map_err(failed)?;
    match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(folder),
        Err(Errno::WOULDBLOCK) => Err(changing(vf.address)),
        Err(errno) => Err(failed(errno)),
    }
}

/// Returns the error for a VF that a process has open.
fn is_open(address: PciAddress) -> VmError {
    let text = format!(
        "a process has VF {address} open; the VF can be assigned when that process closes it"
    );
    VmError::new(VmErrorKind::Busy, text)
}

/// Returns the error for a VF whose driver is being changed. The error names no cause: the kernel
/// may wait for a process that has the VF open, and drivers can take long.
fn changing(address: PciAddress) -> VmError {
    let text = format!(
        "the change of the driver of VF {address} has not ended, because a driver does not respond \
         or a process has the VF open; see the kernel's log"
    );
    VmError::new(VmErrorKind::Busy, text)
}

/// Sets the limit of locked memory of a VM's process to `memory_bytes` plus [`MORE_BYTES`].
fn raise_memlock(process: u32, memory_bytes: u64) -> Result<(), VmError> {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| refused(format!("{process} is not a process ID")))?;
    let limit = Some(memory_bytes.saturating_add(MORE_BYTES));
    prlimit(Some(pid), Resource::Memlock, Rlimit { current: limit, maximum: limit })
        .map(drop)
        .map_err(|errno| host("the VM has no permission to lock its memory", &errno.into()))
}

#[cfg(test)]
#[path = "vfs_tests.rs"]
mod tests;
