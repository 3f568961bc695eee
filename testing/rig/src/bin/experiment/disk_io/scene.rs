//! Files, a loop device, disks of the engine, and a suimond with disks beside them.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use suimon_rig::fio::{self, FioTarget};
use suimon_rig::{Daemon, Guest, GuestDisk, GuestSpec, LoopDevice, Rig, example, run};
use tempfile::TempDir;

use super::engine::EngineDisks;
use super::payload::Payload;
use super::plan::{Pattern, Plan, Subject, Target, Way};

/// fio with its libraries is 80 MB, and is in the guest's memory twice while it boots.
const GUEST_MIB: u32 = 768;
const FIO: &str = "/usr/bin/fio";
/// What fio may take in a guest, beside the time it measures.
const FIO_LIMIT: Duration = Duration::from_secs(120);
/// Where requests are put to the files: fio's thread if it is native, else the processor.
pub(crate) const SERVER_CPU: u16 = 1;
/// Where clients of the daemon run; `disk_speed` goes there by itself.
const CLIENT_CPU: u16 = 0;
/// Before each measurement.
pub(crate) const WARM_UP: Duration = Duration::from_millis(100);

/// Everything that is measured. Dropped from the top.
pub(crate) struct Scene<'a> {
    guest: Option<Guest>,
    _daemon: Option<Daemon>,
    engine: Option<EngineDisks>,
    loop_device: Option<LoopDevice>,
    /// What disks of the daemon hold, in the order of the plan; empty without a daemon.
    held_by_daemon: Vec<Payload>,
    /// What those of the engine hold; empty without them.
    held_by_engine: Vec<Payload>,
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
        let root = folder.path().to_owned();
        let path = |name: &str| root.join(name).to_string_lossy().into_owned();
        let loop_device = written_loop_device(rig, plan, &path("loop"))?;
        let mut scene = Self {
            guest: None,
            _daemon: None,
            engine: None,
            loop_device,
            held_by_daemon: Vec::new(),
            held_by_engine: Vec::new(),
            socket: rig.path("nbd.sock"),
            plan,
            rig,
            _folder: folder,
        };
        if plan.ways.contains(&Way::Engine) {
            let own = PathBuf::from(path("engine"));
            fs::create_dir(&own)?;
            let device = written_loop_device(rig, plan, &path("engine-loop"))?;
            let engine = EngineDisks::make(plan, &own, device)?;
            let held: Result<_> = plan.targets.iter().map(|of| engine.payload(*of)).collect();
            scene.held_by_engine = held?;
            scene.engine = Some(engine);
        }
        if plan.ways.iter().any(|way| way.has_daemon()) {
            scene.start_daemon(&root)?;
        }
        Ok(scene)
    }

    fn start_daemon(&mut self, folder: &Path) -> Result<()> {
        let (rig, plan) = (self.rig, self.plan);
        let device = self.loop_device.as_ref().map(LoopDevice::path);
        self._daemon = Some(Daemon::start(rig, &host(rig, plan, folder, device, &self.socket))?);
        for target in &plan.targets {
            fill(rig, plan, FioTarget::Nbd { socket: &self.socket, disk: target.name() })?;
            let bytes = plan.disk_mib << 20;
            self.held_by_daemon.push(match device {
                Some(device) if *target == Target::PassThrough => {
                    Payload::whole(Path::new(device), bytes)
                }
                _ => Payload::find(&folder.join(file_name(*target)), bytes)?,
            });
        }
        if plan.ways.contains(&Way::Vm) {
            self.guest = Some(start_guest(rig, plan)?);
        }
        Ok(())
    }

    /// Requests per second of a disk, and natively on its blocks.
    pub(crate) fn measure_beside(
        &mut self,
        subject: Subject,
        pattern: &Pattern,
        depth: u64,
        is_native_first: bool,
    ) -> Result<(f64, f64)> {
        if is_native_first {
            let native = self.native(subject, pattern, depth)?;
            return Ok((self.measure(subject, pattern, depth)?, native));
        }
        Ok((self.measure(subject, pattern, depth)?, self.native(subject, pattern, depth)?))
    }

    fn measure(&mut self, subject: Subject, pattern: &Pattern, depth: u64) -> Result<f64> {
        let plan = self.plan;
        let window = Duration::from_millis(plan.window_ms);
        let Subject { target, way } = subject;
        let iops = match way {
            Way::Engine => {
                let engine = self.engine.as_ref().context("there are no disks of the engine")?;
                engine.measure(target, pattern, depth, window)?
            }
            Way::VhostUser => {
                by_front_end(&vm_socket(self.rig, target), plan, pattern, depth, &[])?
            }
            Way::VhostUserWaiting => {
                by_front_end(&vm_socket(self.rig, target), plan, pattern, depth, &["--wait"])?
            }
            Way::Nbd => {
                let size = format!("--size={}m --cpus_allowed={CLIENT_CPU}", plan.disk_mib);
                let job = job(plan, pattern, depth, &size);
                rate(fio::run(self.rig.folder(), &self.socket, target.name(), &job)?)?
            }
            Way::Vm => {
                let size = format!("--size={}m", plan.disk_mib);
                rate(self.in_guest(target, &job(plan, pattern, depth, &size))?)?
            }
        };
        ensure!(iops > 0.0, "{}, {}, depth {depth}: nothing", subject.text(), pattern.name);
        Ok(iops)
    }

    fn native(&self, subject: Subject, pattern: &Pattern, depth: u64) -> Result<f64> {
        let held = match subject.way {
            Way::Engine => &self.held_by_engine,
            _ => &self.held_by_daemon,
        };
        let at = self.plan.targets.iter().position(|of| *of == subject.target);
        let held = at.and_then(|at| held.get(at)).context("no such disk")?;
        let place = format!("{} --cpus_allowed={SERVER_CPU}", held.words());
        let (job, path) = (job(self.plan, pattern, depth, &place), held.path().to_string_lossy());
        let told = fio::run_on(self.rig.folder(), FioTarget::File(&path), &job);
        held.put_back()?;
        let iops = rate(told?)?;
        ensure!(iops > 0.0, "{}, {}, depth {depth}: nothing", path, pattern.name);
        Ok(iops)
    }

    fn in_guest(&mut self, target: Target, job: &str) -> Result<fio::FioResult> {
        let at = self.plan.targets.iter().position(|of| *of == target);
        let letter = at.and_then(|at| ('a'..='z').nth(at)).context("no such disk in the VM")?;
        let device = format!("/dev/vd{letter}");
        let words = fio::words(FioTarget::File(&device), job).join(" ");
        let limit = FIO_LIMIT + Duration::from_millis(self.plan.window_ms);
        let output = self.guest.as_mut().context("there is no VM")?.run_any(&words, limit)?;
        ensure!(output.is_ok(), "{words} in the VM: {}", output.stdout);
        fio::result(&output.stdout)
    }
}

/// fio's words for a measurement; `place` has those for where it is done.
fn job(plan: &Plan, pattern: &Pattern, depth: u64, place: &str) -> String {
    format!(
        "{} --iodepth={depth} {place} --time_based --runtime={}ms --ramp_time={}ms",
        pattern.words(),
        plan.window_ms,
        WARM_UP.as_millis()
    )
}

fn rate(result: fio::FioResult) -> Result<f64> {
    ensure!(result.errors == 0, "fio: {result:?}");
    Ok(result.read_iops + result.write_iops)
}

/// By the front-end of `disk_speed`, at the socket of a disk.
fn by_front_end(
    socket: &str,
    plan: &Plan,
    pattern: &Pattern,
    depth: u64,
    options: &[&str],
) -> Result<f64> {
    let program = example("disk_speed")?;
    let [block, reads, disk, depth] =
        [pattern.block_kib, pattern.read_percent, plan.disk_mib, depth].map(|of| of.to_string());
    let seconds = Duration::from_millis(plan.window_ms).as_secs_f64().to_string();
    let mut words = vec![&*program, "--json", "--socket", socket];
    words.extend(["--block-kib", &block, "--read-percent", &reads, "--disk-mib", &disk]);
    words.extend(options);
    words.extend((!pattern.random).then_some("--sequential"));
    words.extend(["1", &seconds, &depth]);
    let said = run(&words)?;
    let told: Value = serde_json::from_str(&said).with_context(|| format!("no JSON: {said}"))?;
    let rate = told[0]["rounds"][0]["requests_per_second"].as_f64();
    rate.with_context(|| format!("no rate: {said}"))
}

/// A written file with a loop device, if one is wanted.
fn written_loop_device(rig: &Rig, plan: &Plan, file: &str) -> Result<Option<LoopDevice>> {
    if !plan.targets.contains(&Target::PassThrough) {
        return Ok(None);
    }
    fill(rig, plan, FioTarget::File(file))?;
    Ok(Some(LoopDevice::attach(file)?))
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

/// The file that the daemon makes for a disk.
fn file_name(target: Target) -> String {
    format!("{}.{}", target.name(), target.form().0)
}

fn vm_socket(rig: &Rig, target: Target) -> String {
    rig.path(&format!("{}.sock", target.name()))
}

fn fill(rig: &Rig, plan: &Plan, target: FioTarget<'_>) -> Result<()> {
    let job = format!(
        "--rw=write --bs=1m --iodepth=2 --size={}m --end_fsync=1 --zero_buffers",
        plan.disk_mib
    );
    fio::run_on(rig.folder(), target, &job).map(drop)
}

fn host(rig: &Rig, plan: &Plan, folder: &Path, loop_device: Option<&str>, socket: &str) -> String {
    let mut host = format!(
        "[host]\nname = \"experiment\"\nprocessors = [{SERVER_CPU}]\n[[store]]\nname = \"files\"\npath = \"{}\"\n",
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
        if plan.ways.iter().any(|way| way.is_vhost_user()) {
            let _ = writeln!(host, "vhost_user = {{ socket = \"{}\" }}", vm_socket(rig, *target));
        }
    }
    host
}
