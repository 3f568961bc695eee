//! Single VM of a test.

use std::fs::{self, OpenOptions};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::guest::accelerator::Accelerator;
use crate::guest::channel::Channel;
use crate::guest::command_line::command_line;
use crate::guest::files::{guest_files, initramfs_with};
use crate::guest::monitor::Monitor;
use crate::guest::shell::GuestShell;
use crate::guest::spec::{Boot, GuestSpec};
use crate::process::Process;
use crate::rig::Rig;
use crate::wait::{wait_for_value, wait_until};

/// Time limit for booting, which takes three seconds without hardware virtualization on an idle
/// machine.
const BOOT_LIMIT: Duration = Duration::from_secs(300);
/// Time until QEMU accepts a connection, from this program or from another QEMU.
const LINE_LIMIT: Duration = Duration::from_secs(90);
/// Time limit for a guest under KVM; one that takes longer does not run at all.
const PROBE_LIMIT: Duration = Duration::from_secs(20);
/// Time limit for a migration.
const MIGRATION_LIMIT: Duration = Duration::from_secs(300);

/// VM that executes commands; dropping it turns it off.
#[derive(Debug)]
pub struct Guest {
    shell: GuestShell,
    process: Process,
    /// Socket of QEMU's monitor.
    monitor: String,
    /// File with its console output.
    console: PathBuf,
}

impl Deref for Guest {
    type Target = GuestShell;

    fn deref(&self) -> &GuestShell {
        &self.shell
    }
}

impl DerefMut for Guest {
    fn deref_mut(&mut self) -> &mut GuestShell {
        &mut self.shell
    }
}

impl Guest {
    /// Boots a VM and waits until it accepts commands.
    ///
    /// # Errors
    /// QEMU rejected the configuration, or the guest did not boot in time, with the end of its log.
    pub fn start(rig: &Rig, spec: &GuestSpec) -> Result<Self> {
        let mut guest = Self::boot(rig, spec, accelerator()?, BOOT_LIMIT)?;
        if spec.boot != Boot::Firmware {
            guest.load_disk_drivers(spec)?;
        }
        Ok(guest)
    }

    fn boot(
        rig: &Rig,
        spec: &GuestSpec,
        accelerator: Accelerator,
        limit: Duration,
    ) -> Result<Self> {
        let console = rig.path(&rig.unique("console"));
        let mut guest = Self::launch(rig, spec, accelerator, &console, &[])?;
        if spec.boot == Boot::Firmware {
            return Ok(guest);
        }
        let Self { process, shell, .. } = &mut guest;
        let booted = shell.wait_ready(limit, || process.check_running());
        if let Err(error) = booted {
            // If QEMU itself has ended, its output explains why.
            let status = process.wait(Duration::from_millis(500));
            let status = status.map_or("still runs".to_owned(), |status| status.to_string());
            let console_text = fs::read_to_string(&console).unwrap_or_default();
            let lines: Vec<&str> = console_text.lines().collect();
            let tail = lines[lines.len().saturating_sub(10)..].join("\n");
            bail!("{error:#}; QEMU ({status}): {}; console:\n{tail}", process.last_words());
        }
        Ok(guest)
    }

    /// Starts QEMU and connects to its sockets.
    fn launch(
        rig: &Rig,
        spec: &GuestSpec,
        accelerator: Accelerator,
        console: &str,
        extra: &[String],
    ) -> Result<Self> {
        let line = rig.path(&rig.unique("serial"));
        let monitor = rig.path(&rig.unique("monitor"));
        let initramfs = initramfs_with(rig, spec.files()?.initramfs, &spec.programs)?;
        let mut arguments = command_line(spec, accelerator, console, &line, &initramfs)?;
        arguments.extend(["-qmp".to_owned(), format!("unix:{monitor},server=on,wait=off")]);
        arguments.extend_from_slice(extra);
        let mut process = Process::start(rig, &format!("qemu-{}", spec.name), &arguments)?;
        // QEMU starts the guest only after the connection.
        let channel = wait_for_value("serial line of the guest", LINE_LIMIT, || {
            process.check_running()?;
            Ok(Channel::connect(Path::new(&line)).ok())
        })?;
        let console = PathBuf::from(console);
        let records = vec![console.clone(), process.log_file().to_owned()];
        let shell = GuestShell::new(&spec.name, channel.with_records(records));
        Ok(Self { shell, process, monitor, console })
    }

    /// Starts the QEMU to which a running VM will be migrated: the same machine, with NICs at other
    /// ports of the switch. [`Guest::migrate`] migrates the VM.
    ///
    /// # Errors
    /// QEMU rejected the configuration.
    pub fn destination(rig: &Rig, spec: &GuestSpec, address: &str) -> Result<Self> {
        let console = rig.path(&rig.unique("console"));
        let extra = ["-incoming".to_owned(), format!("unix:{address}")];
        let mut guest = Self::launch(rig, spec, accelerator()?, &console, &extra)?;
        wait_until("QEMU of the migrating guest", LINE_LIMIT, || {
            guest.process.check_running()?;
            Ok(Path::new(address).exists())
        })?;
        Ok(guest)
    }

    /// Migrates this running VM to the QEMU that listens at `address`, and returns the downtime.
    /// The bandwidth is limited to `bytes_per_second`, so that the guest writes to its memory
    /// meanwhile.
    ///
    /// # Errors
    /// QEMU reports why it failed.
    pub fn migrate(&mut self, address: &str, bytes_per_second: u64) -> Result<Duration> {
        let mut monitor = Monitor::connect(Path::new(&self.monitor))?;
        let limits = json!({ "max-bandwidth": bytes_per_second, "downtime-limit": 200 });
        monitor.execute("migrate-set-parameters", &limits)?;
        monitor.execute("migrate", &json!({ "uri": format!("unix:{address}") }))?;
        let status = wait_for_value("end of the migration", MIGRATION_LIMIT, || {
            let status = monitor.execute("query-migrate", &json!({}))?;
            match status["status"].as_str() {
                Some("completed") => Ok(Some(status)),
                Some("failed" | "cancelled") => bail!("the migration failed: {status}"),
                _ => Ok(None),
            }
        })?;
        Ok(Duration::from_millis(status["downtime"].as_u64().unwrap_or(0)))
    }

    /// Returns the receive filter that the guest has set for its first NIC (QMP's
    /// `query-rx-filter`).
    ///
    /// # Errors
    /// QEMU has ended, or has no NIC.
    pub fn receive_filter(&self) -> Result<Value> {
        let mut monitor = Monitor::connect(Path::new(&self.monitor))?;
        let mut nics = monitor.execute("query-rx-filter", &json!({}))?;
        nics.get_mut(0).map(Value::take).context("the machine has no NIC")
    }

    /// Sets the link state of a NIC, counted from 0, in QEMU: the guest loses or gets its carrier.
    /// The switch is not notified; frames in both directions are lost.
    ///
    /// # Errors
    /// QEMU has ended, or has no such NIC.
    pub fn set_link(&self, nic: usize, up: bool) -> Result<()> {
        let mut monitor = Monitor::connect(Path::new(&self.monitor))?;
        monitor.execute("set_link", &json!({ "name": format!("net{nic}"), "up": up }))?;
        Ok(())
    }

    /// Executes a QMP command and returns its result.
    ///
    /// # Errors
    /// QEMU rejects the command, or has ended.
    pub fn execute_qmp(&self, command: &str, arguments: &Value) -> Result<Value> {
        Monitor::connect(Path::new(&self.monitor))?.execute(command, arguments)
    }

    /// Returns the console output of the guest's kernel or firmware.
    pub fn console(&self) -> String {
        fs::read(&self.console)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// Returns QEMU's process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}

/// Returns KVM if a guest really runs with it, otherwise TCG. The device node is not sufficient: it
/// can be opened on machines whose CPU cannot run a guest.
///
/// # Errors
/// The guest's files cannot be created.
pub fn accelerator() -> Result<Accelerator> {
    static FOUND: OnceLock<Accelerator> = OnceLock::new();
    guest_files()?;
    Ok(*FOUND.get_or_init(|| if kvm_runs() { Accelerator::Kvm } else { Accelerator::Tcg }))
}

fn kvm_runs() -> bool {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let capable = cpu
        .lines()
        .find(|line| line.starts_with("flags"))
        .is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "vmx" || flag == "svm"));
    if !capable || OpenOptions::new().read(true).write(true).open("/dev/kvm").is_err() {
        return false;
    }
    let spec = GuestSpec { name: "probe".to_owned(), ..GuestSpec::default() };
    Rig::new()
        .and_then(|rig| Guest::boot(&rig, &spec, Accelerator::Kvm, PROBE_LIMIT).map(drop))
        .is_ok()
}
