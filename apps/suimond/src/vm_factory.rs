//! Launcher of VMs, as the node uses it. It is found or started before confinement prohibits
//! starting programs.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result};
use suimon_confine::{Confinement, ThreadRole};
use suimon_node::VmDependencies;
use suimon_ports::{
    ThreadInit, Vm, VmBoot, VmError, VmErrorKind, VmHost, VmIdentity, VmObserver, VmSpec,
};
use suimon_qemu::{Launcher, LauncherSpec, QemuHost, start_launcher};
use suimon_quantity::PciAddress;

use crate::notify::notify;

/// File name of the launcher's socket, beside the API's socket.
const LAUNCHER_SOCKET: &str = "launcher.sock";
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Returns the id of the host's current boot.
pub(crate) fn boot_id() -> String {
    std::fs::read_to_string(BOOT_ID).unwrap_or_default().trim().to_owned()
}

/// Launcher found or started, or the reason why there is none.
pub(crate) struct LauncherConnection {
    socket: PathBuf,
    result: Result<()>,
    boot_id: String,
}

impl LauncherConnection {
    /// Finds the launcher of the daemon with this API socket, or starts one. The folders of its VMs
    /// are in `folder`. Must be called before the process is confined.
    pub(crate) fn find_or_start(api_socket: &Path, folder: &Path) -> Self {
        let socket = api_socket.with_file_name(LAUNCHER_SOCKET);
        let result = Self::start(&socket, folder);
        let boot_id = boot_id();
        Self { socket, result, boot_id }
    }

    fn start(socket: &Path, folder: &Path) -> Result<()> {
        let program = std::env::current_exe().context("cannot determine the path of suimond")?;
        let mut command = Command::new(program);
        command.arg("--vm-launcher").arg(socket).arg("--vm-folder").arg(folder);
        command.arg("--vm-launcher-ends");
        let is_new = start_launcher(socket, command)?;
        tracing::info!(socket = %socket.display(), is_new, "the VM launcher is running");
        Ok(())
    }

    /// Returns the dependencies of the node that concern VMs.
    pub(crate) fn into_vm_dependencies(self, confinement: &Confinement) -> VmDependencies {
        let confinement = confinement.clone();
        let on_start: ThreadInit =
            Arc::new(move || confinement.confine_thread(ThreadRole::FrontEnd).map_err(Into::into));
        let vm_host = self.result.map_err(|error| format!("{error:#}"));
        let connected = vm_host
            .and_then(|()| QemuHost::connect(&self.socket, on_start).map_err(|error| error.text));
        match connected {
            Ok(host) => VmDependencies { host: Arc::new(host), boot_id: self.boot_id },
            Err(reason) => {
                tracing::warn!(reason, "VMs cannot be started");
                VmDependencies { boot_id: self.boot_id, ..unavailable_vm_dependencies(reason) }
            }
        }
    }
}

/// Runs this process as launcher: until it is stopped, or with `exits_when_unused` until no VM runs
/// and no daemon is connected.
pub(crate) fn run_launcher(socket: &Path, folder: &Path, exits_when_unused: bool) -> Result<()> {
    suimon_confine::confine_launcher()
        .context("--vm-launcher: cannot drop the unneeded capabilities")?;
    let spec = LauncherSpec {
        socket: socket.to_owned(),
        root: folder.to_owned(),
        qemu: None,
        exits_when_unused,
    };
    let launcher = Launcher::open(&spec).inspect_err(|error| {
        if exits_when_unused {
            // The daemon that started the launcher reads the reason of the failure from standard
            // output.
            let _ = writeln!(std::io::stdout(), "{error}");
        }
    });
    let launcher = launcher.context("--vm-launcher")?;
    notify("READY=1");
    tracing::info!(socket = %socket.display(), "VMs can be started");
    launcher.serve().context("--vm-launcher")
}

/// Returns the dependencies of the node for a host that cannot start VMs, with the reason.
pub fn unavailable_vm_dependencies(reason: impl Into<String>) -> VmDependencies {
    VmDependencies { host: Arc::new(NoVms { reason: reason.into() }), boot_id: String::new() }
}

/// Host that cannot start VMs.
struct NoVms {
    reason: String,
}

impl NoVms {
    fn error<T>(&self) -> Result<T, VmError> {
        let text = format!(
            "VMs cannot be started, because the VM launcher does not run ({}); remove the cause \
             and restart the daemon",
            self.reason
        );
        Err(VmError::new(VmErrorKind::Host, text))
    }
}

impl VmHost for NoVms {
    fn uefi_firmware(&self) -> Option<VmBoot> {
        None
    }

    fn cpu_flags(&self) -> Vec<String> {
        Vec::new()
    }

    fn running_vms(&self) -> Result<Vec<VmIdentity>, VmError> {
        self.error()
    }

    fn probe(&self, _spec: &VmSpec) -> Result<(), VmError> {
        self.error()
    }

    fn kill(&self, _identity: &VmIdentity) -> Result<(), VmError> {
        self.error()
    }

    fn remove_folder(&self, _folder: &Path) -> Result<(), VmError> {
        self.error()
    }

    fn create_folder(&self, _folder: &Path, _user: u32) -> Result<(), VmError> {
        self.error()
    }

    fn start(
        &self,
        _spec: &VmSpec,
        _observer: Arc<dyn VmObserver>,
    ) -> Result<Box<dyn Vm>, VmError> {
        self.error()
    }

    fn assign_vf(
        &self,
        _identity: &VmIdentity,
        _vf: PciAddress,
        _memory_bytes: u64,
    ) -> Result<(), VmError> {
        self.error()
    }

    fn reclaim_vf(&self, _vm: &str, _vf: PciAddress) -> Result<(), VmError> {
        self.error()
    }

    fn adopt(
        &self,
        _identity: &VmIdentity,
        _observer: Arc<dyn VmObserver>,
    ) -> Result<Box<dyn Vm>, VmError> {
        self.error()
    }
}
