//! Files, a loop device, and a suimond with disks beside them.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use suimon_rig::fio::{self, FioTarget};
use suimon_rig::{Daemon, Rig, run};
use tempfile::TempDir;

use super::plan::{Pattern, Plan, Subject, Target};

/// Everything that is measured. Dropped from the top.
pub(crate) struct Scene<'a> {
    _daemon: Daemon,
    loop_device: Option<LoopDevice>,
    native: String,
    socket: String,
    plan: &'a Plan,
    rig: &'a Rig,
    _folder: TempDir,
}

/// A block device on a file; detached when it is dropped.
struct LoopDevice {
    path: String,
}

impl LoopDevice {
    fn attach(file: &str) -> Result<Self> {
        // Past the page cache, as all the others are.
        let said = run(&["losetup", "--find", "--show", "--direct-io=on", file])?;
        Ok(Self { path: said.trim().to_owned() })
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = run(&["losetup", "--detach", &self.path]);
    }
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
        let device = loop_device.as_ref().map(|device| device.path.as_str());
        let daemon = Daemon::start(rig, &host(plan, folder.path(), device, &socket))?;
        let scene =
            Self { _daemon: daemon, loop_device, native, socket, plan, rig, _folder: folder };
        for subject in plan.subjects() {
            if let Subject::Disk(..) = subject {
                fill(rig, plan, scene.fio_target(subject)?)?;
            }
        }
        Ok(scene)
    }

    /// Requests per second.
    pub(crate) fn measure(&self, subject: Subject, pattern: &Pattern, depth: u64) -> Result<f64> {
        let job = format!(
            "{} --iodepth={depth} --size={}m --time_based --runtime={}",
            pattern.words(),
            self.plan.disk_mib,
            self.plan.seconds
        );
        let result = fio::run_on(self.rig.folder(), self.fio_target(subject)?, &job)?;
        let iops = result.read_iops + result.write_iops;
        ensure!(result.errors == 0 && iops > 0.0, "{}: {job}: {result:?}", subject.text());
        Ok(iops)
    }

    fn fio_target(&self, subject: Subject) -> Result<FioTarget<'_>> {
        Ok(match subject {
            Subject::NativeFile => FioTarget::File(&self.native),
            Subject::NativeLoop => {
                FioTarget::File(&self.loop_device.as_ref().context("there is no loop device")?.path)
            }
            Subject::Disk(target, _) => {
                FioTarget::Nbd { socket: &self.socket, disk: target.name() }
            }
        })
    }
}

fn fill(rig: &Rig, plan: &Plan, target: FioTarget<'_>) -> Result<()> {
    let job = format!("--rw=write --bs=1m --iodepth=2 --size={}m --end_fsync=1", plan.disk_mib);
    fio::run_on(rig.folder(), target, &job).map(drop)
}

fn host(plan: &Plan, folder: &Path, loop_device: Option<&str>, socket: &str) -> String {
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
    }
    host
}
