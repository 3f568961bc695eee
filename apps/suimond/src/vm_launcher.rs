//! The launcher of VMs: being one, and starting one for the daemon.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use suimon_qemu::{Launcher, LauncherSpec, start_launcher};

use crate::cli::Arguments;
use crate::notify::notify;

/// Is the launcher that listens at `socket`, until nobody needs it if it ends then.
///
/// # Errors
/// Another launcher is there, or the socket or the folder of VMs cannot be made.
pub fn serve(arguments: &Arguments, socket: &Path) -> Result<()> {
    let spec = LauncherSpec {
        socket: socket.to_owned(),
        root: arguments.vm_folder.clone(),
        qemu: None,
        ends_unneeded: arguments.vm_launcher_passes,
    };
    let launcher = Launcher::open(&spec).context("--vm-launcher")?;
    notify("READY=1");
    tracing::info!(socket = %socket.display(), "VMs can be started");
    launcher.serve().context("--vm-launcher")
}

/// Where the launcher of this daemon listens: beside the API.
pub fn socket(arguments: &Arguments) -> PathBuf {
    arguments.socket.with_file_name("launcher.sock")
}

/// Starts a launcher that ends when it is no longer needed, unless one answers. To be called
/// before the daemon gives up starting programs; its connection
/// ([`QemuHost::connect`](suimon_qemu::QemuHost::connect)) then keeps the launcher.
///
/// # Errors
/// This program cannot be started again, or does not listen.
pub fn start(arguments: &Arguments) -> Result<PathBuf> {
    let socket = socket(arguments);
    let program = std::env::current_exe().context("this program cannot be found")?;
    let mut command = Command::new(program);
    command.arg("--vm-launcher").arg(&socket).arg("--vm-launcher-passes");
    command.arg("--vm-folder").arg(&arguments.vm_folder).args(["--log", &arguments.log]);
    start_launcher(&socket, command).context("the launcher of VMs cannot be started")?;
    Ok(socket)
}
