//! VMs known to this launcher: those that it has started, and those found in their folders.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use suimon_ports::{VmError, VmErrorKind, VmIdentity};

use super::folder::{Folder, Root};
use super::launched::{IDENTITY_FILE, VmProcess};
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
    pub(crate) fn restore(&self, root: &Root) {
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
            if let Some(vm) = VmProcess::find(identity, folder, false) {
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
            let (name, process) = (&identity.name, identity.process);
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
        self.running().iter().any(|vm| vm.identity.process == process)
    }

    /// Reaps processes that have ended, and truncates and limits logs. Must be called once a
    /// second.
    pub(crate) fn maintain(&self) {
        let vms: Vec<_> = self.lock().values().cloned().collect();
        for vm in vms {
            if vm.poll_end().is_some() {
                clean(&vm.folder, &vm.identity.name);
            }
            if let Err(error) = vm.limit_files() {
                let vm = vm.identity.name.as_str();
                tracing::warn!(vm, %error, "the VM's logs have no limit while no launcher runs");
            }
            for log in [logs::QEMU_LOG, logs::CONSOLE_LOG] {
                if let Err(error) = logs::cut(&vm.folder, log) {
                    tracing::debug!(vm = vm.identity.name, log, %error, "cannot truncate a log");
                }
            }
        }
    }
}

/// Removes the files of an ended VM's process, except its logs and firmware variables, and its
/// control group.
pub(crate) fn clean(folder: &Folder, vm: &str) {
    for name in [MONITOR_SOCKET, CONSOLE_SOCKET, AGENT_SOCKET, IDENTITY_FILE] {
        if let Err(error) = folder.forget(name) {
            tracing::warn!(vm, name, %error, "cannot remove a file of an ended VM");
        }
    }
    control_group::remove(vm);
}
