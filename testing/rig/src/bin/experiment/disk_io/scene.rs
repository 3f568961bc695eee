//! Files, a loop device, and a suimond with disks beside them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use suimon_rig::fio::{self, FioTarget};
use suimon_rig::{Daemon, Guest, GuestDisk, GuestSpec, LoopDevice, Rig};
use tempfile::TempDir;

use super::plan::{Pattern, Plan, Subject, Target, Way};

/// fio with its libraries is 80 MB, and is in the guest's memory twice while it boots.
const GUEST_MIB: u32 = 768;
const FIO: &str = "/usr/bin/fio";
/// What fio may take in a guest, beside the time it measures.
const FIO_LIMIT: Duration = Duration::from_secs(120);

/// Everything that is measured. Dropped from the top.
pub(crate) struct Scene<'a> {
    guest: Option<Guest>,
    _daemon: Daemon,
    loop_device: Option<LoopDevice>,
    native: String,
    socket: String,
    plan: &'a Plan,
    rig: &'a Rig,
    _folder: TempDir,
}

impl<'a> Scene<'a> {
    /// Makes everything, and writes all of it once: space that is new costs more.
    pub(crate) fn set(rig: &'a Rig, plan: &'a Plan) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("suimon-experiment-").tempdir_in(&plan.folder);
        let folder = folder.with_context(|| format!("folder {}", plan.folder))?;
        let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let native = path("native");
        fill(rig, plan, FioTarget::File(&native))?;
        let loop_device = if plan.targets.contains(&Target::PassThrough) {
            let file = path("loop");
            fill(rig, plan, FioTarget::File(&file))?;
            Some(LoopDevice::attach(&file)?)
        } else {
            None
        };
        let socket = rig.path("nbd.sock");
        let device = loop_device.as_ref().map(LoopDevice::path);
        let daemon = Daemon::start(rig, &host(rig, plan, folder.path(), device, &socket))?;
        for target in &plan.targets {
            fill(rig, plan, FioTarget::Nbd { socket: &socket, disk: target.name() })?;
        }
        let guest = plan.ways.contains(&Way::Vm).then(|| start_guest(rig, plan)).transpose()?;
        Ok(Self { guest, _daemon: daemon, loop_device, native, socket, plan, rig, _folder: folder })
    }

    /// Requests per second.
    pub(crate) fn measure(
        &mut self,
        subject: Subject,
        pattern: &Pattern,
        depth: u64,
    ) -> Result<f64> {
        let job = format!(
            "{} --iodepth={depth} --size={}m --time_based --runtime={}",
            pattern.words(),
            self.plan.disk_mib,
            self.plan.seconds
        );
        let native = |path: &str| fio::run_on(self.rig.folder(), FioTarget::File(path), &job);
        let result = match subject {
            Subject::NativeFile => native(&self.native)?,
            Subject::NativeLoop => {
                native(self.loop_device.as_ref().context("there is no loop device")?.path())?
            }
            Subject::Disk(target, Way::Nbd) => {
                fio::run(self.rig.folder(), &self.socket, target.name(), &job)?
            }
            Subject::Disk(target, Way::Vm) => self.in_guest(target, &job)?,
        };
        let iops = result.read_iops + result.write_iops;
        ensure!(result.errors == 0 && iops > 0.0, "{}: {job}: {result:?}", subject.text());
        Ok(iops)
    }

    fn in_guest(&mut self, target: Target, job: &str) -> Result<fio::FioResult> {
        let at = self.plan.targets.iter().position(|of| *of == target);
        let letter = at.and_then(|at| ('a'..='z').nth(at)).context("no such disk in the VM")?;
        let device = format!("/dev/vd{letter}");
        let words = fio::words(FioTarget::File(&device), job).join(" ");
        let limit = FIO_LIMIT + Duration::from_secs(self.plan.seconds);
        let output = self.guest.as_mut().context("there is no VM")?.run_any(&words, limit)?;
        ensure!(output.is_ok(), "{words} in the VM: {}", output.stdout);
        fio::result(&output.stdout)
    }
}

/// A VM with all disks, in the order of the plan.
fn start_guest(rig: &Rig, plan: &Plan) -> Result<Guest> {
    let disk = |target: &Target| GuestDisk::new(vm_socket(rig, *target));
    let spec = GuestSpec {
        name: "vm".to_owned(),
        disks: plan.targets.iter().map(disk).collect(),
        programs: vec![PathBuf::from(FIO)],
        memory_mib: GUEST_MIB,
        ..GuestSpec::default()
    };
    Guest::start(rig, &spec)
}

fn vm_socket(rig: &Rig, target: Target) -> String {
    rig.path(&format!("{}.sock", target.name()))
}

fn fill(rig: &Rig, plan: &Plan, target: FioTarget<'_>) -> Result<()> {
    let job = format!("--rw=write --bs=1m --iodepth=2 --size={}m --end_fsync=1", plan.disk_mib);
    fio::run_on(rig.folder(), target, &job).map(drop)
}

fn host(rig: &Rig, plan: &Plan, folder: &Path, loop_device: Option<&str>, socket: &str) -> String {
    let mut host = format!(
        "[host]\nname = \"experiment\"\n[[store]]\nname = \"files\"\npath = \"{}\"\n",
        folder.display()
    );
    if let Some(device) = loop_device {
        let _ = write!(host, "[[store]]\nname = \"loop\"\npath = \"{device}\"\n");
    }
    for target in &plan.targets {
        let (format, kind) = target.form();
        let is_loop = *target == Target::PassThrough;
        let _ = write!(
            host,
            "[[disk]]\nname = \"{}\"\nstore = \"{}\"\nformat = \"{format}\"\n\
             nbd = {{ socket = \"{socket}\" }}\n",
            target.name(),
            if is_loop { "loop" } else { "files" },
        );
        if !is_loop {
            let _ = writeln!(host, "kind = \"{kind}\"\nsize_bytes = \"{} MiB\"", plan.disk_mib);
        }
        if plan.ways.contains(&Way::Vm) {
            let _ = writeln!(host, "vhost_user = {{ socket = \"{}\" }}", vm_socket(rig, *target));
        }
    }
    host
}
