//! Host with systemd as its service manager, and Suimon installed as an administrator does.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::command::{Output, run, run_any};
use crate::guest::{GuestConsole, guest_files};
use crate::loop_device::TEST_FOLDER;
use crate::process::Process;
use crate::programs::program;
use crate::rig::Rig;
use crate::wait::wait_for_value;

const BOOT_LIMIT: Duration = Duration::from_secs(180);
const COMMAND_LIMIT: Duration = Duration::from_secs(180);
/// Folder `dist` of the repository, and the target folder of its units.
const DIST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dist");
const UNITS: &str = "etc/systemd/system";

/// Container with this machine's `/usr` under another root, in which systemd is the first process
/// (`systemd-nspawn`). It has separate control groups, network and devices, and cannot change
/// kernel settings. Dropping it kills all its processes.
#[derive(Debug)]
pub struct ServiceHost {
    root: PathBuf,
    /// Process id of the container's first process, outside of the container.
    leader: String,
    process: Process,
    groups: Vec<PathBuf>,
}

impl ServiceHost {
    /// Installs programs, units and this host file, and boots. No unit of Suimon is started.
    ///
    /// # Errors
    /// systemd is not installed, or did not boot in time.
    pub fn boot(rig: &Rig, host_toml: &str) -> Result<Self> {
        Self::boot_with(rig, |root, usr| install(root, usr, host_toml))
    }

    /// Boots without Suimon, and with this machine's package database.
    ///
    /// # Errors
    /// systemd is not installed, or did not boot in time.
    pub fn boot_bare(rig: &Rig) -> Result<Self> {
        Self::boot_with(rig, |root, usr| {
            // Packages may start their services, regardless of this machine's policy.
            fs::create_dir_all(usr.join("sbin"))?;
            let policy = usr.join("sbin/policy-rc.d");
            fs::write(&policy, "#!/bin/sh\nexit 0\n")?;
            fs::set_permissions(&policy, fs::Permissions::from_mode(0o755))?;
            fs::create_dir_all(root.join("var/lib"))?;
            let database = root.join("var/lib/dpkg");
            run(&["cp", "-a", "/var/lib/dpkg", &database.to_string_lossy()])?;
            // The container has other groups than this machine.
            Ok(fs::write(database.join("statoverride"), "")?)
        })
    }

    fn boot_with(rig: &Rig, install: impl FnOnce(&Path, &Path) -> Result<()>) -> Result<Self> {
        let name = rig.unique("services");
        let root = rig.file(&name);
        let usr = rig.path(&format!("{name}-usr"));
        make_root(&root)?;
        fs::create_dir_all(format!("{usr}/bin"))?;
        install(&root, Path::new(&usr))?;
        // Control groups are global. scripts/isolated removes those of a killed test by the name of
        // the test's folder.
        let test = std::env::var(TEST_FOLDER).unwrap_or_default();
        let test = test.rsplit('/').next().unwrap_or_default();
        let folder = rig.folder().file_name().context("the rig's folder has no name")?;
        let machine = format!("suimon-test-{test}-{}", rig.unique(&folder.to_string_lossy()));
        let groups = make_groups(&machine)?;
        let joined: Vec<String> =
            groups.iter().map(|group| group.join("cgroup.procs").display().to_string()).collect();
        let mut arguments = vec![
            "sh".to_owned(),
            "-c".to_owned(),
            "for group in $GROUPS_OF_IT; do echo $$ >$group || exit; done; exec \"$@\"".to_owned(),
            "sh".to_owned(),
            "systemd-nspawn".to_owned(),
            format!("--directory={}", root.display()),
            format!("--overlay=/usr:{usr}:/usr"),
            format!("--machine={machine}"),
        ];
        // The container gets all capabilities, and only its units restrict themselves.
        let options = [
            "--boot",
            "--register=no",
            "--keep-unit",
            "--console=pipe",
            "--private-network",
            "--capability=all",
            "--system-call-filter=@known",
        ];
        arguments.extend(options.map(str::to_owned));
        let environment = [
            ("GROUPS_OF_IT", joined.join(" ")),
            ("SYSTEMD_NSPAWN_UNIFIED_HIERARCHY", "1".to_owned()),
        ];
        let process = Process::start_in(rig, "services", &arguments, &environment)?;
        let mut host = Self { root, leader: String::new(), process, groups };
        host.wait_booted()?;
        Ok(host)
    }

    fn wait_booted(&mut self) -> Result<()> {
        let id = self.process.id();
        let state = wait_for_value("service manager", BOOT_LIMIT, || {
            self.process.check_running()?;
            // Until this child exists, another process prepares its environment.
            let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"))?;
            let Some(leader) = children.split_whitespace().next() else { return Ok(None) };
            leader.clone_into(&mut self.leader);
            let state = self.run_any(&["systemctl", "is-system-running"])?.stdout;
            let state = state.trim().to_owned();
            Ok(["running", "degraded"].contains(&state.as_str()).then_some(state))
        })?;
        if state != "running" {
            bail!("not all of it runs: {}", self.run(&["systemctl", "--failed"])?);
        }
        Ok(())
    }

    /// Returns the path of a file outside of the container; not for files below `/run`.
    pub fn file(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Installs a drop-in for a unit, which applies from the unit's next start.
    ///
    /// # Errors
    /// The drop-in cannot be written, or systemd rejects it.
    pub fn drop_in(&self, unit: &str, name: &str, text: &str) -> Result<()> {
        let folder = self.file(&format!("{UNITS}/{unit}.d"));
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(name), text)?;
        self.run(&["systemctl", "daemon-reload"]).map(drop)
    }

    /// Installs the drop-in with this name from `dist/suimond.service.d`.
    ///
    /// # Errors
    /// There is none, or systemd rejects it.
    pub fn install_drop_in(&self, name: &str) -> Result<()> {
        let text = fs::read_to_string(format!("{DIST}/suimond.service.d/{name}"))?;
        self.drop_in("suimond.service", name, &text)
    }

    /// Runs a program in the container and returns its result.
    ///
    /// # Errors
    /// The program could not be started.
    pub fn run_any(&self, arguments: &[&str]) -> Result<Output> {
        let prefix = ["nsenter", "--target", &self.leader, "--all"];
        run_any(&[&prefix, arguments].concat(), COMMAND_LIMIT)
    }

    /// Runs a program in the container, which must succeed.
    ///
    /// # Errors
    /// The program failed, with its output and the end of the journal.
    pub fn run(&self, arguments: &[&str]) -> Result<String> {
        let output = self.run_any(arguments)?;
        if !output.is_ok() {
            let journal = ["journalctl", "--no-pager", "--lines=20", "--output=cat"];
            let journal = self.run_any(&journal)?.stdout;
            bail!("{arguments:?} failed with {}: {}\n{journal}", output.code, output.stderr.trim());
        }
        Ok(output.stdout)
    }

    /// Returns a property of a unit (`systemctl show --property`).
    ///
    /// # Errors
    /// systemd does not respond.
    pub fn property(&self, unit: &str, name: &str) -> Result<String> {
        let output = self.run(&["systemctl", "show", "--value", "--property", name, unit])?;
        Ok(output.trim().to_owned())
    }

    /// Returns the log of a unit, including systemd's messages about it.
    ///
    /// # Errors
    /// There is no journal.
    pub fn journal(&self, unit: &str) -> Result<String> {
        self.run(&["journalctl", "--no-pager", "--output=cat", "--unit", unit])
    }

    /// Connects to the console of a VM whose guest is booting.
    ///
    /// # Errors
    /// The guest does not boot in time.
    pub fn guest(&self, vm: &str) -> Result<GuestConsole> {
        GuestConsole::on(vm, &format!("/proc/{}/root/run/suimon/vms/{vm}", self.leader))
    }
}

impl Drop for ServiceHost {
    fn drop(&mut self) {
        for group in &self.groups {
            // Only groups of version 2 have this file; one is sufficient.
            let _ = fs::write(group.join("cgroup.kill"), "1");
        }
        self.process.kill();
        for group in &self.groups {
            remove_group(group);
        }
    }
}

/// Installs the files that an administrator installs by hand.
fn install(root: &Path, usr: &Path, host_toml: &str) -> Result<()> {
    for name in ["suimond", "suimon", "suimon-lab"] {
        fs::copy(program(name)?, usr.join("bin").join(name))?;
    }
    fs::create_dir_all(root.join("etc/suimon"))?;
    fs::write(root.join("etc/suimon/host.toml"), host_toml)?;
    for unit in ["suimond.service", "suimon-launcher.service", "suimon-lab.service"] {
        fs::copy(format!("{DIST}/{unit}"), root.join(UNITS).join(unit))?;
    }
    Ok(())
}

/// Creates a root with only the files that systemd needs, and a guest to boot.
fn make_root(root: &Path) -> Result<()> {
    for folder in ["usr", "proc", "sys", "dev", "run", "tmp", "var", "root", "srv/store"] {
        fs::create_dir_all(root.join(folder))?;
    }
    fs::create_dir_all(root.join(UNITS))?;
    for link in ["bin", "sbin", "lib", "lib64"] {
        symlink(format!("usr/{link}"), root.join(link))?;
    }
    // As on a machine that has been booted before: systemd requests no input, and enables no unit.
    let files = [
        ("etc/machine-id", "5369696d6f6e207269672c2074657374\n"),
        ("etc/os-release", "ID=suimon-rig\n"),
        ("etc/passwd", "root:x:0:0::/root:/bin/sh\n"),
        ("etc/group", "root:x:0:\n"),
    ];
    for (file, text) in files {
        fs::write(root.join(file), text)?;
    }
    let guest = guest_files()?;
    fs::copy(guest.kernel, root.join("srv/vmlinuz"))?;
    fs::copy(guest.initramfs, root.join("srv/initrd"))?;
    Ok(())
}

/// Creates control groups for the container, in version 2 and in systemd's hierarchy of version 1
/// where a machine has both.
fn make_groups(name: &str) -> Result<Vec<PathBuf>> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let mut groups = Vec::new();
    for line in mounts.lines() {
        let Some((mount_fields, kind)) = line.split_once(" - ") else { continue };
        if kind.starts_with("cgroup2 ") || kind.contains("name=systemd") {
            let mount = mount_fields.split(' ').nth(4).context("a mount without a place")?;
            groups.push(Path::new(mount).join(name));
        }
    }
    for group in &groups {
        fs::create_dir(group).with_context(|| format!("cannot make {}", group.display()))?;
    }
    Ok(groups)
}

/// Removes a group and its subgroups. Its processes end a moment after they were killed.
fn remove_group(group: &Path) {
    let arguments =
        ["find", &group.to_string_lossy(), "-depth", "-type", "d", "-exec", "rmdir", "{}", ";"]
            .map(str::to_owned);
    let _ = wait_for_value("end of the container", Duration::from_secs(60), || {
        let _ = run(&arguments);
        Ok((!group.exists()).then_some(()))
    });
}
