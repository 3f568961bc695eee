//! Guests of VMs that the daemon starts.

use std::fs;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::channel::Channel;
use super::command_line::KERNEL_OPTIONS;
use super::files::{GuestFiles, guest_files, initramfs_with, machine_files};
use super::shell::GuestShell;
use crate::daemon::Daemon;
use crate::rig::Rig;
use crate::wait::wait_for_value;

const BOOT_LIMIT: Duration = Duration::from_secs(300);
/// Time until QEMU accepts a connection to the console.
const CONSOLE_LIMIT: Duration = Duration::from_secs(90);

/// Options for a guest whose only serial port carries commands. Its kernel prints only oopses and
/// panics there, so that results of commands are not disturbed.
const CONSOLE: &str = "console=ttyS0 loglevel=1 line=ttyS0";

/// Folder of the VMs of a rig's daemon, and the files that they boot.
#[derive(Debug)]
pub struct HostedVms {
    folder: String,
    kernel: String,
    initrd: String,
}

impl HostedVms {
    /// Copies the guests' files to a folder that the VMs' users can read.
    ///
    /// # Errors
    /// The guests' files cannot be created.
    pub fn new(rig: &Rig) -> Result<Self> {
        Self::with(rig, &[])
    }

    /// Copies the files with additional programs of the host.
    ///
    /// # Errors
    /// A program does not exist, or the guests' files cannot be created.
    pub fn with(rig: &Rig, programs: &[PathBuf]) -> Result<Self> {
        Self::with_files(rig, guest_files()?, programs)
    }

    /// Copies the files of guests whose kernel has drivers for the machines that QEMU emulates,
    /// instead of virtio drivers.
    ///
    /// # Errors
    /// The guests' files cannot be created.
    pub fn of_machines(rig: &Rig) -> Result<Self> {
        Self::with_files(rig, machine_files()?, &[])
    }

    fn with_files(rig: &Rig, files: GuestFiles, programs: &[PathBuf]) -> Result<Self> {
        let GuestFiles { kernel, initramfs } = files;
        let initramfs = initramfs_with(rig, initramfs, programs)?;
        // VMs run as separate users, which must be able to search the folder.
        fs::set_permissions(rig.folder(), fs::Permissions::from_mode(0o755))?;
        let copy = |from: &Path, name: &str| -> Result<String> {
            let to = rig.file(name);
            fs::copy(from, &to)?;
            fs::set_permissions(&to, fs::Permissions::from_mode(0o644))?;
            Ok(rig.path(name))
        };
        Ok(Self {
            // The launcher creates its parent folder too.
            folder: rig.path("state/vms"),
            kernel: copy(&kernel, "vmlinuz")?,
            initrd: copy(&initramfs, "initrd")?,
        })
    }

    /// Returns the VMs of a further daemon, which boot the same files.
    pub fn beside(&self, rig: &Rig, name: &str) -> Self {
        let folder = rig.path(&format!("{name}/vms"));
        Self { folder, kernel: self.kernel.clone(), initrd: self.initrd.clone() }
    }

    /// Returns the `vm_folder` of the host file.
    pub fn folder(&self) -> &str {
        &self.folder
    }

    /// Replaces `{vms}`, `{kernel}` and `{initrd}` in a host file.
    pub fn fill_in(&self, host: &str) -> String {
        let host = host.replace("{vms}", &self.folder);
        host.replace("{kernel}", &self.kernel).replace("{initrd}", &self.initrd)
    }

    /// Returns the `[[vm]]` table of a VM with these additional keys.
    pub fn table(&self, name: &str, keys: &str) -> String {
        self.table_of(name, 256, keys)
    }

    /// Returns the table of a VM with `mib` MiB of memory, half of which is available for the
    /// guest's files.
    pub fn table_of(&self, name: &str, mib: u32, keys: &str) -> String {
        format!(
            "[[vm]]\nname = \"{name}\"\nmemory_bytes = \"{mib} MiB\"\nkernel = \"{}\"\n\
             initrd = \"{}\"\ncommand_line = \"{KERNEL_OPTIONS} {CONSOLE}\"\n{keys}\n",
            self.kernel, self.initrd
        )
    }

    /// Starts a VM and waits until its guest accepts commands.
    ///
    /// # Errors
    /// The VM cannot be started, or does not boot in time.
    pub fn start(&self, daemon: &Daemon, name: &str) -> Result<GuestConsole> {
        daemon.ok(&["vm", "start", name])?;
        self.attach(name)
    }

    /// Connects to the console of a VM whose guest is booting.
    ///
    /// # Errors
    /// The guest does not boot in time.
    pub fn attach(&self, name: &str) -> Result<GuestConsole> {
        GuestConsole::on(name, &format!("{}/{name}", self.folder))
    }
}

impl HostedVms {
    /// Reconnects to a guest that was migrated from another daemon.
    ///
    /// # Errors
    /// The guest's console is not available.
    pub fn follow(&self, guest: &mut GuestConsole, name: &str) -> Result<()> {
        let console = format!("{}/{name}/console.sock", self.folder);
        wait_for_value("console of the VM", CONSOLE_LIMIT, || {
            Ok(guest.shell.connect_again(Path::new(&console)).ok())
        })
    }
}

impl Drop for HostedVms {
    /// Kills processes that would outlive the test: VMs and their launcher, whose arguments name
    /// the folder.
    fn drop(&mut self) {
        let Ok(processes) = fs::read_dir("/proc") else { return };
        for process in processes.filter_map(Result::ok) {
            let command_line = fs::read(process.path().join("cmdline")).unwrap_or_default();
            let is_ours = String::from_utf8_lossy(&command_line).contains(&self.folder);
            let id = process.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
            if let Some(id) = id.filter(|_| is_ours).and_then(rustix::process::Pid::from_raw) {
                let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
            }
        }
    }
}

/// Guest that executes commands, in a VM that the daemon has started.
#[derive(Debug)]
pub struct GuestConsole {
    shell: GuestShell,
}

impl GuestConsole {
    /// Connects to the console of a VM whose guest is booting: `console.sock` in this folder.
    ///
    /// # Errors
    /// The guest does not boot in time.
    pub fn on(name: &str, folder: &str) -> Result<Self> {
        let console = format!("{folder}/console.sock");
        let channel = wait_for_value("console of the VM", CONSOLE_LIMIT, || {
            Ok(Channel::connect(Path::new(&console)).ok())
        })?;
        let mut shell = GuestShell::new(name, channel);
        shell.wait_ready(BOOT_LIMIT, || Ok(())).with_context(|| {
            fs::read_to_string(format!("{folder}/qemu.log")).unwrap_or_default()
        })?;
        Ok(Self { shell })
    }

    /// Releases the console with an interactive shell on it.
    ///
    /// # Errors
    /// The guest has ended.
    pub fn leave_a_shell(mut self) -> Result<()> {
        self.shell.run("a shell").map(drop)
    }

    /// Makes the guest shut down when its power button is pressed.
    ///
    /// # Errors
    /// The guest lacks the modules.
    pub fn shut_down_on_power_button(&mut self) -> Result<()> {
        // Some kernels have them built in.
        self.run(
            "for m in button evdev; do [ ! -e /modules/$m.ko ] || insmod /modules/$m.ko; done",
        )?;
        let command = "for e in /dev/input/event*; do (dd if=$e bs=24 count=1 of=/dev/null; \
                    poweroff -f) >/dev/null 2>&1 & done; ls /dev/input";
        let devices = self.run(command)?;
        ensure!(devices.contains("event"), "the guest has no power button");
        Ok(())
    }
}

impl Deref for GuestConsole {
    type Target = GuestShell;

    fn deref(&self) -> &GuestShell {
        &self.shell
    }
}

impl DerefMut for GuestConsole {
    fn deref_mut(&mut self) -> &mut GuestShell {
        &mut self.shell
    }
}
