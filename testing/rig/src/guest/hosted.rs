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
use crate::wait::until_some;

const BOOT_LIMIT: Duration = Duration::from_secs(300);
/// Time until QEMU accepts a connection to the console.
const CONSOLE_LIMIT: Duration = Duration::from_secs(90);

/// Options for a guest whose only serial port takes commands. Its kernel prints there what ends it,
/// an oops or a panic, and nothing else, so that answers to commands stay as they are.
const CONSOLE: &str = "console=ttyS0 loglevel=1 line=ttyS0";

/// Where VMs of a rig's daemon are, and what they boot.
#[derive(Debug)]
pub struct HostedVms {
    folder: String,
    kernel: String,
    initrd: String,
}

impl HostedVms {
    /// Puts what guests boot where their users can read it.
    ///
    /// # Errors
    /// The guest's files cannot be made.
    pub fn new(rig: &Rig) -> Result<Self> {
        Self::with(rig, &[])
    }

    /// The same with programs of the host that guests get beside those that every guest has.
    ///
    /// # Errors
    /// A program is not there, or the guest's files cannot be made.
    pub fn with(rig: &Rig, programs: &[PathBuf]) -> Result<Self> {
        Self::of(rig, guest_files()?, programs)
    }

    /// The same for guests without drivers for virtio that matter: their kernel has those of the
    /// machines that QEMU emulates.
    ///
    /// # Errors
    /// The guest's files cannot be made.
    pub fn of_machines(rig: &Rig) -> Result<Self> {
        Self::of(rig, machine_files()?, &[])
    }

    fn of(rig: &Rig, files: GuestFiles, programs: &[PathBuf]) -> Result<Self> {
        let GuestFiles { kernel, initramfs } = files;
        let initramfs = initramfs_with(rig, initramfs, programs)?;
        // VMs run as users of their own, who have to get through.
        fs::set_permissions(rig.folder(), fs::Permissions::from_mode(0o755))?;
        let put = |from: &Path, name: &str| -> Result<String> {
            let to = rig.file(name);
            fs::copy(from, &to)?;
            fs::set_permissions(&to, fs::Permissions::from_mode(0o644))?;
            Ok(rig.path(name))
        };
        Ok(Self {
            // The folder above it is the launcher's to make, too.
            folder: rig.path("state/vms"),
            kernel: put(&kernel, "vmlinuz")?,
            initrd: put(&initramfs, "initrd")?,
        })
    }

    /// VMs of another daemon beside these, which boot the same.
    pub fn beside(&self, rig: &Rig, name: &str) -> Self {
        let folder = rig.path(&format!("{name}/vms"));
        Self { folder, kernel: self.kernel.clone(), initrd: self.initrd.clone() }
    }

    /// The `vm_folder` of the host file.
    pub fn folder(&self) -> &str {
        &self.folder
    }

    /// A host file in which `{vms}`, `{kernel}` and `{initrd}` stand for these.
    pub fn fill_in(&self, host: &str) -> String {
        let host = host.replace("{vms}", &self.folder);
        host.replace("{kernel}", &self.kernel).replace("{initrd}", &self.initrd)
    }

    /// The `[[vm]]` table of a VM with these other keys.
    pub fn table(&self, name: &str, keys: &str) -> String {
        self.table_of(name, 256, keys)
    }

    /// The same, with so many MiB of memory: half of it is there for the guest's files.
    pub fn table_of(&self, name: &str, mib: u32, keys: &str) -> String {
        format!(
            "[[vm]]\nname = \"{name}\"\nmemory_bytes = \"{mib} MiB\"\nkernel = \"{}\"\n\
             initrd = \"{}\"\ncommand_line = \"{KERNEL_OPTIONS} {CONSOLE}\"\n{keys}\n",
            self.kernel, self.initrd
        )
    }

    /// Starts a VM and waits until its guest takes commands.
    ///
    /// # Errors
    /// It cannot be started, or does not boot in time.
    pub fn start(&self, daemon: &Daemon, name: &str) -> Result<HostedGuest> {
        daemon.ok(&["vm", "start", name])?;
        self.attach(name)
    }

    /// Gets on the console of a VM whose guest is booting.
    ///
    /// # Errors
    /// It does not boot in time.
    pub fn attach(&self, name: &str) -> Result<HostedGuest> {
        HostedGuest::on(name, &format!("{}/{name}", self.folder))
    }
}

impl HostedVms {
    /// Goes on with a guest that has come from another daemon.
    ///
    /// # Errors
    /// Its console cannot be had.
    pub fn follow(&self, guest: &mut HostedGuest, name: &str) -> Result<()> {
        let console = format!("{}/{name}/console.sock", self.folder);
        until_some("console of the VM", CONSOLE_LIMIT, || {
            Ok(guest.shell.connect_again(Path::new(&console)).ok())
        })
    }
}

impl Drop for HostedVms {
    /// Ends what would outlive the test: VMs and their launcher, whose words name the folder.
    fn drop(&mut self) {
        let Ok(processes) = fs::read_dir("/proc") else { return };
        for process in processes.filter_map(Result::ok) {
            let words = fs::read(process.path().join("cmdline")).unwrap_or_default();
            let is_ours = String::from_utf8_lossy(&words).contains(&self.folder);
            let id = process.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
            if let Some(id) = id.filter(|_| is_ours).and_then(rustix::process::Pid::from_raw) {
                let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
            }
        }
    }
}

/// A guest that takes commands, in a VM that the daemon has started.
#[derive(Debug)]
pub struct HostedGuest {
    shell: GuestShell,
}

impl HostedGuest {
    /// Gets on the console of a VM whose guest is booting: `console.sock` in this folder.
    ///
    /// # Errors
    /// It does not boot in time.
    pub fn on(name: &str, folder: &str) -> Result<Self> {
        let console = format!("{folder}/console.sock");
        let channel = until_some("console of the VM", CONSOLE_LIMIT, || {
            Ok(Channel::connect(Path::new(&console)).ok())
        })?;
        let mut shell = GuestShell::new(name, channel);
        shell.wait_ready(BOOT_LIMIT, || Ok(())).with_context(|| {
            fs::read_to_string(format!("{folder}/qemu.log")).unwrap_or_default()
        })?;
        Ok(Self { shell })
    }

    /// Leaves the console to whoever comes next, with a shell for a person on it.
    ///
    /// # Errors
    /// The guest is gone.
    pub fn leave_a_shell(mut self) -> Result<()> {
        self.shell.run("a shell").map(drop)
    }

    /// Has the guest turn itself off when its power button is pressed.
    ///
    /// # Errors
    /// It lacks the modules.
    pub fn heed_power_button(&mut self) -> Result<()> {
        // Some kernels have them built in.
        self.run(
            "for m in button evdev; do [ ! -e /modules/$m.ko ] || insmod /modules/$m.ko; done",
        )?;
        let each = "for e in /dev/input/event*; do (dd if=$e bs=24 count=1 of=/dev/null; \
                    poweroff -f) >/dev/null 2>&1 & done; ls /dev/input";
        let found = self.run(each)?;
        ensure!(found.contains("event"), "the guest has no power button");
        Ok(())
    }
}

impl Deref for HostedGuest {
    type Target = GuestShell;

    fn deref(&self) -> &GuestShell {
        &self.shell
    }
}

impl DerefMut for HostedGuest {
    fn deref_mut(&mut self) -> &mut GuestShell {
        &mut self.shell
    }
}
