//! VMs known to this launcher: those that it has started, and those found in their folders.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use suimon_ports::{VmError, VmErrorKind, VmIdentity};

use super::folder::{VmFolder, VmFolderRoot};
use super::vm_process::{IDENTITY_FILE, VmProcess};
use super::{control_group, logs};
use crate::agent::AGENT_SOCKET;
use crate::host::MONITOR_SOCKET;
use crate::vm::CONSOLE_SOCKET;

/// Known VMs by the names of their folders.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    vms: Mutex<BTreeMap<String, Arc<VmProcess>>>,
}

pub(crate) type Vms<'a> = MutexGuard<'a, BTreeMap<String, Arc<VmProcess>>>;

impl Registry {
    pub(crate) fn lock(&self) -> Vms<'_> {
        self.vms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers the VMs that earlier launchers have started and that still run.
    pub(crate) fn restore(&self, root: &VmFolderRoot) {
        let names = root.names().unwrap_or_default();
        let mut vms = self.lock();
        for name in names {
            let path = root.path_of(&name);
            let Ok(folder) = root.find(&path) else { continue };
            let record = folder.read(IDENTITY_FILE);
            let record = record.and_then(|text| serde_json::from_slice::<VmIdentity>(&text).ok());
            let Some(identity) = record.filter(|identity| identity.folder == path) else {
                continue;
            };
            if let Some(vm) = VmProcess::open(identity, folder, false) {
                tracing::info!(vm = vm.identity.name, "adopted a running VM");
                vms.insert(name, Arc::new(vm));
            }
        }
    }

    /// Returns the VM with this identity.
    ///
    /// # Errors
    /// `NotRunning`: there is no such VM.
    pub(crate) fn find(&self, identity: &VmIdentity) -> Result<Arc<VmProcess>, VmError> {
        let vms = self.lock();
        vms.values().find(|vm| vm.identity == *identity).cloned().ok_or_else(|| {
            let (name, process) = (&identity.name, identity.pid);
            let text = format!("VM {name}: process {process} does not exist any more");
            VmError::new(VmErrorKind::NotRunning, text)
        })
    }

    /// Returns the VMs with a running process.
    pub(crate) fn running(&self) -> Vec<Arc<VmProcess>> {
        let vms = self.lock();
        vms.values().filter(|vm| vm.poll_end().is_none()).cloned().collect()
    }

    /// Returns true if the process id is that of a registered VM.
    pub(crate) fn has_process(&self, process: u32) -> bool {
        self.running().iter().any(|vm| vm.identity.pid == process)
    }

    /// Reaps processes that have ended, cleans their folders, and truncates and limits logs. Must
    /// be called once a second.
    ///
    /// `starts` is held by a start of a VM. A folder is not cleaned during a start, because it may
    /// be that of the VM which is being started again. The next call cleans it.
    pub(crate) fn maintain(&self, starts: &Mutex<()>) {
        let vms: Vec<_> = self.lock().values().cloned().collect();
        for vm in vms {
            if vm.poll_end().is_some() {
                self.clean_ended(&vm, starts);
            }
            if let Err(error) = vm.limit_files()
                && !vm.is_limit_error_reported.swap(true, Relaxed)
            {
                let vm = vm.identity.name.as_str();
                tracing::warn!(
                    vm, %error,
                    "the VM's logs have no limit while no launcher runs; trying again every second"
                );
            }
            for log in [logs::QEMU_LOG, logs::CONSOLE_LOG] {
                if let Err(error) = logs::truncate_log(&vm.folder, log) {
                    tracing::debug!(vm = vm.identity.name, log, %error, "cannot truncate a log");
                }
            }
        }
    }

    /// Cleans the folder of an ended VM, unless a VM is being started or the folder belongs to
    /// another process meanwhile.
    fn clean_ended(&self, vm: &Arc<VmProcess>, starts: &Mutex<()>) {
        let _starts = match starts.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        let registered = self.lock().get(&vm.folder.name).cloned();
        if registered.is_some_and(|registered| Arc::ptr_eq(&registered, vm)) {
            clean(&vm.folder, &vm.identity.name);
        }
    }
}

/// Removes the files of an ended VM's process, except its logs and firmware variables, and its
/// control group.
pub(crate) fn clean(folder: &VmFolder, vm: &str) {
    for name in [MONITOR_SOCKET, CONSOLE_SOCKET, AGENT_SOCKET, IDENTITY_FILE] {
        if let Err(error) = folder.remove_file(name) {
            tracing::warn!(vm, name, %error, "cannot remove a file of an ended VM");
        }
    }
    control_group::remove(vm);
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::launcher::launcher_user::LauncherUser;
    use crate::process_facts::start_ticks;

    /// Returns a VM in this folder whose process has ended.
    fn ended_vm(root: &VmFolderRoot, name: &str) -> Arc<VmProcess> {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let folder = root.path_of(name);
        let identity = VmIdentity {
            name: name.to_owned(),
            folder: folder.clone(),
            pid: child.id(),
            started_ticks: start_ticks(child.id()).unwrap(),
        };
        let vm = VmProcess::open(identity, root.find(&folder).unwrap(), false).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        Arc::new(vm)
    }

    #[test]
    fn the_folder_of_an_ended_vm_is_not_cleaned_while_it_is_started_again() {
        let root_folder = tempfile::tempdir().unwrap();
        let root = VmFolderRoot::open(root_folder.path(), LauncherUser::Unprivileged).unwrap();
        let path = root.path_of("restarted");
        root.prepare(&path, 0).unwrap();
        let (registry, starts) = (Registry::default(), Mutex::new(()));
        let former = ended_vm(&root, "restarted");
        registry.lock().insert("restarted".to_owned(), Arc::clone(&former));
        let file = path.join(IDENTITY_FILE);
        std::fs::write(&file, "{}").unwrap();

        let start = starts.lock().unwrap();
        registry.maintain(&starts);
        assert!(file.exists());
        drop(start);
        registry.maintain(&starts);
        assert!(!file.exists());

        // A round that began before the start ended finds the process of the former run.
        std::fs::write(&file, "{}").unwrap();
        registry.lock().insert("restarted".to_owned(), ended_vm(&root, "restarted"));
        registry.clean_ended(&former, &starts);
        assert!(file.exists());
    }
}
