//! Start of a QEMU process.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use suimon_ports::{
    MigrationRequirements, VmAccelerator, VmBoot, VmError, VmErrorKind, VmIdentity, VmSpec,
};

use suimon_qmp::Version;

use super::accelerator::{AcceleratorSelector, kvm_group};
use super::child::{ChildSpec, spawn};
use super::folder::{VmFolder, VmFolderRoot};
use super::launcher_user::{LauncherUser, open_as};
use super::logs::{CONSOLE_LOG, QEMU_LOG};
use super::qemu::QemuProgram;
use super::registry::{Registry, clean};
use super::vfs::Vfs;
use super::vm_process::{IDENTITY_FILE, VmProcess};
use super::{checks, control_group};
use crate::agent::AGENT_SOCKET;
use crate::command_line::{InheritedDescriptors, UEFI_VARIABLES_FILE, command_line};
use crate::devices::QemuProperties;
use crate::host::MONITOR_SOCKET;
use crate::messages::wait_readable;
use crate::process_facts::start_ticks;
use crate::spec_check;
use crate::vm::CONSOLE_SOCKET;
use crate::wire::StartedProcess;

/// Time limit for the end of a QEMU process that is about to exit.
const GOING_LIMIT: Duration = Duration::from_secs(2);
/// Maximum number of VMs of a launcher.
const VMS_MAX: usize = 1024;

/// State of the launcher that the start of a VM needs.
#[derive(Debug)]
pub(crate) struct Starter {
    pub(crate) root: VmFolderRoot,
    pub(crate) launcher_user: LauncherUser,
    pub(crate) qemu: QemuProgram,
    pub(crate) accelerators: AcceleratorSelector,
    pub(crate) registry: Registry,
    pub(crate) vfs: Vfs,
    /// Held from the checks before a start until the process is registered, so that the same VM is
    /// not started twice and no folder changes meanwhile. Taken before the lock of the registry,
    /// which is never held during a start: the registry also serves other VMs.
    pub(crate) starts: Mutex<()>,
}

#[cfg(test)]
impl Starter {
    /// Returns the state of a launcher without VMs.
    pub(crate) fn for_test(root: VmFolderRoot, rights: LauncherUser) -> Self {
        Self {
            root,
            launcher_user: rights,
            qemu: QemuProgram::new(None),
            accelerators: AcceleratorSelector::default(),
            registry: Registry::default(),
            vfs: Vfs::default(),
            starts: Mutex::default(),
        }
    }
}

fn host(operation: &str, error: &io::Error) -> VmError {
    VmError::new(VmErrorKind::Host, format!("{operation}: {error}"))
}

impl Starter {
    /// Checks whether a VM could be started. Returns the version and accelerator that it would use.
    pub(crate) fn probe(&self, spec: &VmSpec) -> Result<QemuProperties, VmError> {
        spec_check::check_vm(spec)?;
        let (path, version) = self.qemu.find()?;
        checks::check(spec, self.launcher_user)?;
        if let Some(arrival) = &spec.migration_requirements {
            check_version(arrival, *version)?;
        }
        let accelerator = self.accelerators.choose(spec.accelerator, path, self.launcher_user)?;
        Ok(QemuProperties { version: *version, accelerator })
    }

    /// Blocks until no VM is being started, and prevents starts until the guard is dropped.
    pub(crate) fn lock_starts(&self) -> MutexGuard<'_, ()> {
        self.starts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a VM in a prepared folder.
    pub(crate) fn start(&self, spec: &VmSpec) -> Result<StartedProcess, VmError> {
        let machine = self.probe(spec)?;
        let _starts = self.lock_starts();
        let folder = self.root.find_prepared(&spec.folder, spec.uid)?;
        check_unused(&self.registry, spec, &folder.name)?;
        let mut remarks = Vec::new();
        if self.launcher_user == LauncherUser::Unprivileged {
            let text = "the launcher does not run as root: VMs run as the launcher's user and can \
                        access each other";
            remarks.push(text.to_owned());
        }
        let launched = self.launch(spec, machine, folder, &mut remarks)?;
        let identity = launched.identity.clone();
        let name = launched.folder.name.clone();
        self.registry.lock().insert(name, Arc::new(launched));
        Ok(StartedProcess { identity, accelerator: machine.accelerator, remarks })
    }

    fn launch(
        &self,
        spec: &VmSpec,
        machine: QemuProperties,
        folder: VmFolder,
        remarks: &mut Vec<String>,
    ) -> Result<VmProcess, VmError> {
        let (program, _) = self.qemu.find()?;
        let in_folder = |error| host("the VM's folder cannot be used", &error);
        self.copy_variables(spec, &folder)?;
        let monitor = folder.listen(MONITOR_SOCKET).map_err(in_folder)?;
        let console = folder.listen(CONSOLE_SOCKET).map_err(in_folder)?;
        let agent = folder.listen(AGENT_SOCKET).map_err(in_folder)?;
        let log = folder.open_log(QEMU_LOG).map_err(in_folder)?;
        let console_log = folder.open_log(CONSOLE_LOG).map_err(in_folder)?;
        let group = control_group::make(&spec.name);
        if let Err(error) = &group {
            remarks.push(format!("the VM has no cgroup of its own: {error}"));
        }
        let inherited = InheritedDescriptors {
            monitor: monitor.as_raw_fd(),
            console: console.as_raw_fd(),
            console_log: console_log.as_raw_fd(),
            agent: agent.as_raw_fd(),
        };
        let is_kvm = machine.accelerator == VmAccelerator::Kvm;
        let child = spawn(&ChildSpec {
            program,
            arguments: &command_line(spec, machine, inherited),
            user: spec.uid,
            launcher_user: self.launcher_user,
            kvm_group: if is_kvm { kvm_group() } else { None },
            folder: folder.as_fd(),
            log: log.as_fd(),
            control_group: group.as_ref().ok().map(AsFd::as_fd),
            inherited: &inherited.all(),
        });
        let mut child = child.map_err(|error| {
            clean(&folder, &spec.name);
            host("QEMU cannot be started", &error)
        })?;
        let identity = VmIdentity {
            name: spec.name.clone(),
            folder: spec.folder.clone(),
            pid: child.id(),
            // A child that has ended remains a zombie until it is reaped, but its start time is not
            // available.
            started_ticks: start_ticks(child.id()).unwrap_or(0),
        };
        let record = serde_json::to_vec(&identity).unwrap_or_default();
        let recorded = folder.write(IDENTITY_FILE, &record);
        let give_up = |child: &mut std::process::Child, error: &io::Error| {
            let _ = child.kill();
            let _ = child.wait();
            host("cannot register the VM's process", error)
        };
        if let Err(error) = recorded {
            clean(&folder, &spec.name);
            return Err(give_up(&mut child, &error));
        }
        VmProcess::open(identity, folder, true)
            .ok_or_else(|| give_up(&mut child, &io::Error::last_os_error()))
    }

    fn copy_variables(&self, spec: &VmSpec, folder: &VmFolder) -> Result<(), VmError> {
        let VmBoot::Uefi { variables, .. } = &spec.boot else { return Ok(()) };
        let copied = open_as(spec.uid, self.launcher_user, variables).and_then(|mut file| {
            folder.copy_unless_exists(UEFI_VARIABLES_FILE, spec.uid, self.launcher_user, &mut file)
        });
        copied.map_err(|error| host("cannot copy the UEFI variable store", &error))
    }
}

/// Checks that the local QEMU is not older than that of the host from which the VM migrates.
fn check_version(arrival: &MigrationRequirements, local_version: Version) -> Result<(), VmError> {
    let version_text = &arrival.qemu_version;
    let source_version = Version::from_text(version_text).ok_or_else(|| {
        VmError::new(VmErrorKind::Refused, format!("{version_text:?} is not a version of QEMU"))
    })?;
    if (local_version.major, local_version.minor) >= (source_version.major, source_version.minor) {
        return Ok(());
    }
    let text = format!(
        "the destination has QEMU {local_version}, and the VM was started by QEMU {source_version}; install QEMU \
         {source_version} or later on the destination"
    );
    Err(VmError::new(VmErrorKind::Host, text))
}

/// Checks that no VM with this folder, name or user runs.
fn check_unused(registry: &Registry, spec: &VmSpec, folder: &str) -> Result<(), VmError> {
    let former = registry.lock().get(folder).cloned();
    if let Some(vm) = former {
        let _ = wait_readable([vm.descriptor()], Some(GOING_LIMIT));
    }
    let mut running = 0;
    for vm in registry.running() {
        running += 1;
        if vm.identity.name == spec.name || vm.folder.name == folder {
            let (name, process) = (&vm.identity.name, vm.identity.pid);
            let text = format!("VM {name} is already running as process {process}");
            return Err(VmError::new(VmErrorKind::AlreadyRunning, text));
        }
    }
    if running >= VMS_MAX {
        let text = format!("{running} VMs are running, the limit of one host");
        return Err(VmError::new(VmErrorKind::Refused, text));
    }
    Ok(())
}
