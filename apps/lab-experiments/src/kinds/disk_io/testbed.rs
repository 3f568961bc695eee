//! Setup: files, a loop device, disks of the engine, and a daemon with disks.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use suimon_rig::fio::{self, FioTarget};
use suimon_rig::{
    Daemon, EngineAsks, EngineDisks, Guest, GuestDisk, GuestSpec, LoopDevice, Process, Rig,
    example, run,
};

use super::payload::Payload;
use super::settings::{AccessMethod, Combination, Pattern, Settings, Target};
use crate::environment::Environment;

/// Memory of the guest. fio with its libraries takes 80 MB, twice while the guest boots.
const GUEST_MIB: u32 = 768;
const FIO: &str = "/usr/bin/fio";
/// Time limit of fio in a guest, in addition to the measuring time.
const FIO_LIMIT: Duration = Duration::from_secs(120);
/// CPU of the thread that submits requests to the files: fio for native access, otherwise the
/// worker.
const SERVER_CPU: u16 = 1;
/// CPU of the daemon's clients. `disk_speed` runs on it by default.
const CLIENT_CPU: u16 = 0;
/// Warm-up time before each measurement.
const WARM_UP: Duration = Duration::from_millis(100);
/// Length of the additional measurement after one without completions. A device that writes back
/// earlier data may stall for some tenths of a second.
const PATIENT_WINDOW: Duration = Duration::from_secs(2);

/// Setup that all measurements share. Fields are dropped in order of declaration.
pub(super) struct Testbed {
    guest: Option<Guest>,
    _daemon: Option<Daemon>,
    engine: Option<EngineDisks>,
    loop_device: Option<LoopDevice>,
    /// Payloads of the daemon's disks in the order of the settings; empty without a daemon.
    daemon_payloads: Vec<Payload>,
    /// Payloads of the engine's disks; empty without them.
    engine_payloads: Vec<Payload>,
    socket: String,
    settings: Settings,
    files: Rig,
    rig: Rig,
}

impl Testbed {
    /// Creates all disks and writes them once, since first writes to new space take longer.
    pub(super) fn set_up(settings: &Settings, environment: &Environment<'_>) -> Result<Self> {
        let (rig, files) = (environment.create_rig()?, environment.create_large_rig()?);
        let loop_device = written_loop_device(&rig, settings, &files.path("loop"))?;
        environment.check_not_stopped()?;
        let mut testbed = Self {
            guest: None,
            _daemon: None,
            engine: None,
            loop_device,
            daemon_payloads: Vec::new(),
            engine_payloads: Vec::new(),
            socket: rig.path("nbd.sock"),
            settings: settings.clone(),
            files,
            rig,
        };
        if settings.access_methods.contains(&AccessMethod::Engine) {
            testbed.make_engine_disks()?;
        }
        environment.check_not_stopped()?;
        if settings.access_methods.iter().any(|method| method.has_daemon()) {
            testbed.start_daemon(environment)?;
        }
        Ok(testbed)
    }

    fn make_engine_disks(&mut self) -> Result<()> {
        let (rig, settings) = (&self.rig, &self.settings);
        let folder = self.files.file("engine");
        fs::create_dir(&folder)?;
        let device = written_loop_device(rig, settings, &self.files.path("engine-loop"))?;
        let forms: Vec<_> =
            settings.targets.iter().map(|target| target.format_and_kind()).collect();
        let bytes = settings.disk_mib << 20;
        let engine = EngineDisks::make(&folder, &forms, device, bytes, SERVER_CPU)?;
        let payload =
            |target: &Target| payload(*target, &engine.file(target.format_and_kind())?, bytes);
        self.engine_payloads = settings.targets.iter().map(payload).collect::<Result<_>>()?;
        self.engine = Some(engine);
        Ok(())
    }

    fn start_daemon(&mut self, environment: &Environment<'_>) -> Result<()> {
        let (rig, settings) = (&self.rig, &self.settings);
        let folder = self.files.file("disks");
        fs::create_dir(&folder)?;
        let device = self.loop_device.as_ref().map(LoopDevice::path);
        let host = host(rig, settings, &folder, device, &self.socket);
        self._daemon = Some(Daemon::start(rig, &host)?);
        for target in &settings.targets {
            environment.check_not_stopped()?;
            fill(rig, settings, FioTarget::Nbd { socket: &self.socket, disk: target.name() })?;
            let file = folder.join(format!("{}.{}", target.name(), target.host_file_values().0));
            let file = match device {
                Some(device) if *target == Target::PassThrough => PathBuf::from(device),
                _ => file,
            };
            self.daemon_payloads.push(payload(*target, &file, settings.disk_mib << 20)?);
        }
        if settings.access_methods.contains(&AccessMethod::Vm) {
            self.guest = Some(start_guest(rig, settings)?);
        }
        Ok(())
    }

    /// Measures a disk and native access to its blocks. Returns the two rates in requests per
    /// second, in this order.
    pub(super) fn measure_with_native(
        &mut self,
        subject: Combination<'_>,
        is_native_first: bool,
        environment: &Environment<'_>,
    ) -> Result<(f64, f64)> {
        let native_first = is_native_first.then(|| self.native(subject)).transpose()?;
        let profile = environment.start_profiling();
        let measured = self.measure(subject)?;
        drop(profile);
        Ok((measured, native_first.map_or_else(|| self.native(subject), Ok)?))
    }

    /// Returns the native rate in requests per second while the client's CPU is busy, as it is with
    /// a polling front-end. `None` for access methods that do not keep the CPU busy.
    pub(super) fn measure_native_with_busy_cpu(
        &self,
        subject: Combination<'_>,
    ) -> Result<Option<f64>> {
        if !subject.access_method.occupies_cpu() {
            return Ok(None);
        }
        let cpu = CLIENT_CPU.to_string();
        let command = ["taskset", "--cpu-list", &cpu, "sh", "-c", "while :; do :; done"];
        let busy = Process::start(&self.rig, "busy", &command)?;
        let iops = self.native(subject);
        drop(busy);
        iops.map(Some)
    }

    fn measure(&mut self, subject: Combination<'_>) -> Result<f64> {
        let window = self.settings.window();
        let measured = with_completions(window, |window| self.measure_for(subject, window));
        measured.with_context(|| subject.id())
    }

    fn measure_for(&mut self, subject: Combination<'_>, window: Duration) -> Result<f64> {
        let Combination { target, access_method: method, pattern, depth } = subject;
        let mib = self.settings.disk_mib;
        match method {
            AccessMethod::Engine => self.by_engine(subject, window),
            AccessMethod::VhostUser => self.by_front_end(subject, window, &[]),
            AccessMethod::VhostUserWaiting => self.by_front_end(subject, window, &["--wait"]),
            AccessMethod::Nbd => {
                let size = format!("--size={mib}m --cpus_allowed={CLIENT_CPU}");
                let job = job(pattern, depth, &size, window);
                rate(fio::run(self.rig.folder(), &self.socket, target.name(), &job)?)
            }
            AccessMethod::Vm => {
                let job = job(pattern, depth, &format!("--size={mib}m"), window);
                rate(self.in_guest(target, &job, window)?)
            }
        }
    }

    fn native(&self, subject: Combination<'_>) -> Result<f64> {
        let payload = match subject.access_method {
            AccessMethod::Engine => &self.engine_payloads,
            _ => &self.daemon_payloads,
        };
        let index = self.settings.targets.iter().position(|target| *target == subject.target);
        let payload = index.and_then(|index| payload.get(index)).context("unknown disk")?;
        let location = format!("{} --cpus_allowed={SERVER_CPU}", payload.fio_options());
        let path = payload.path().to_string_lossy();
        let measured = with_completions(self.settings.window(), |window| {
            let job = job(subject.pattern, subject.depth, &location, window);
            let fio_result = fio::run_on(self.rig.folder(), FioTarget::File(&path), &job);
            payload.restore_metadata()?;
            rate(fio_result?)
        });
        measured.with_context(|| format!("{}: natively", subject.id()))
    }

    fn by_engine(&self, subject: Combination<'_>, window: Duration) -> Result<f64> {
        let Combination { target, pattern, depth, .. } = subject;
        let engine = self.engine.as_ref().context("the engine has no disks")?;
        let engine_load = EngineAsks {
            read_percent: pattern.read_percent,
            is_random: pattern.is_random,
            depth: u32::try_from(depth)?,
            bytes: u32::try_from(pattern.block_kib << 10)?,
        };
        engine.rate(target.format_and_kind(), engine_load, WARM_UP, window)
    }

    /// Measures with the front-end of the program `disk_speed`, connected to the socket of a disk.
    /// Returns requests per second.
    fn by_front_end(
        &self,
        subject: Combination<'_>,
        window: Duration,
        options: &[&str],
    ) -> Result<f64> {
        let Combination { target, pattern, depth, .. } = subject;
        let (program, socket) = (example("disk_speed")?, vm_socket(&self.rig, target));
        let numbers =
            [pattern.block_kib, pattern.read_percent.into(), self.settings.disk_mib, depth];
        let [block, reads, disk, depth] = numbers.map(|number| number.to_string());
        let seconds = window.as_secs_f64().to_string();
        let mut command = vec![&*program, "--json", "--socket", &socket];
        command.extend(["--block-kib", &block, "--read-percent", &reads, "--disk-mib", &disk]);
        command.extend(options);
        command.extend((!pattern.is_random).then_some("--sequential"));
        command.extend(["1", &seconds, &depth]);
        let output = run(&command)?;
        let result: Value = serde_json::from_str(&output)
            .with_context(|| format!("disk_speed printed no JSON: {output}"))?;
        let rate = result[0]["rounds"][0]["requests_per_second"].as_f64();
        rate.with_context(|| format!("disk_speed printed no rate: {output}"))
    }

    fn in_guest(&mut self, target: Target, job: &str, window: Duration) -> Result<fio::FioResult> {
        let index = self.settings.targets.iter().position(|disk_target| *disk_target == target);
        let letter =
            index.and_then(|index| ('a'..='z').nth(index)).context("unknown disk in the VM")?;
        let device = format!("/dev/vd{letter}");
        let command = fio::words(FioTarget::File(&device), job).join(" ");
        let guest = self.guest.as_mut().context("the VM does not run")?;
        let output = guest.run_any(&command, FIO_LIMIT + window)?;
        ensure!(output.is_ok(), "{command} in the VM: {}", output.stdout);
        fio::result(&output.stdout)
    }
}

/// Calls `measure` for a window and returns its rate. If no request completed in it, measures a
/// second, longer window and returns the mean rate over both, so that a stall does not increase the
/// result.
fn with_completions(
    window: Duration,
    mut measure: impl FnMut(Duration) -> Result<f64>,
) -> Result<f64> {
    let iops = measure(window)?;
    if iops > 0.0 {
        return Ok(iops);
    }
    let longer = window.max(PATIENT_WINDOW);
    let iops = measure(longer)?;
    ensure!(
        iops > 0.0,
        "no request completed within {} ms; check with `dmesg` and `iostat` whether the device \
         responds",
        longer.as_millis()
    );
    Ok(iops * longer.as_secs_f64() / (window + longer).as_secs_f64())
}

/// Returns the options of fio for a measurement; `options` contains those that select the target.
fn job(pattern: &Pattern, depth: u64, options: &str, window: Duration) -> String {
    format!(
        "{} --iodepth={depth} {options} --time_based --runtime={}ms --ramp_time={}ms",
        pattern.fio_options(),
        window.as_millis(),
        WARM_UP.as_millis()
    )
}

fn rate(result: fio::FioResult) -> Result<f64> {
    ensure!(result.errors == 0, "fio: {result:?}");
    Ok(result.read_iops + result.write_iops)
}

fn payload(target: Target, file: &Path, bytes: u64) -> Result<Payload> {
    match target {
        Target::PassThrough => Ok(Payload::first_bytes(file, bytes)),
        _ => Payload::find(file, bytes),
    }
}

/// Creates a file with a loop device, and writes the whole device, if the settings include
/// pass-through disks; otherwise returns `None`.
fn written_loop_device(rig: &Rig, settings: &Settings, file: &str) -> Result<Option<LoopDevice>> {
    if !settings.targets.contains(&Target::PassThrough) {
        return Ok(None);
    }
    fill(rig, settings, FioTarget::File(file))?;
    Ok(Some(LoopDevice::attach(file)?))
}

/// Starts a VM with all disks in the order of the settings.
fn start_guest(rig: &Rig, settings: &Settings) -> Result<Guest> {
    let disk = |target: &Target| GuestDisk::new(vm_socket(rig, *target));
    let spec = GuestSpec {
        name: "vm".to_owned(),
        disks: settings.targets.iter().map(disk).collect(),
        programs: vec![PathBuf::from(FIO)],
        memory_mib: GUEST_MIB,
        ..GuestSpec::default()
    };
    Guest::start(rig, &spec)
}

fn vm_socket(rig: &Rig, target: Target) -> String {
    rig.path(&format!("{}.sock", target.name()))
}

fn fill(rig: &Rig, settings: &Settings, target: FioTarget<'_>) -> Result<()> {
    let job = format!(
        "--rw=write --bs=1m --iodepth=2 --size={}m --end_fsync=1 --zero_buffers",
        settings.disk_mib
    );
    fio::run_on(rig.folder(), target, &job).map(drop)
}

fn host(
    rig: &Rig,
    settings: &Settings,
    folder: &Path,
    loop_device: Option<&str>,
    socket: &str,
) -> String {
    let mut host = format!(
        "[host]\nname = \"experiment\"\nworker_cpus = [{SERVER_CPU}]\n\
         [[store]]\nname = \"files\"\npath = \"{}\"\n",
        folder.display()
    );
    if let Some(device) = loop_device {
        let _ = write!(host, "[[store]]\nname = \"loop\"\npath = \"{device}\"\n");
    }
    for target in &settings.targets {
        let (format, kind) = target.host_file_values();
        let is_loop = *target == Target::PassThrough;
        let _ = write!(
            host,
            "[[disk]]\nname = \"{}\"\nstore = \"{}\"\nformat = \"{format}\"\n\
             nbd = {{ socket = \"{socket}\" }}\n",
            target.name(),
            if is_loop { "loop" } else { "files" },
        );
        if !is_loop {
            let mib = settings.disk_mib;
            let _ = writeln!(host, "kind = \"{kind}\"\nsize_bytes = \"{mib} MiB\"");
        }
        if settings.access_methods.iter().any(|method| method.is_vhost_user()) {
            let _ = writeln!(host, "vhost_user = {{ socket = \"{}\" }}", vm_socket(rig, *target));
        }
    }
    host
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_millis(100);

    #[test]
    fn a_measurement_without_completions_is_extended() {
        let mut windows = Vec::new();
        let measured = with_completions(WINDOW, |window| {
            windows.push(window);
            Ok(if window > WINDOW { 7.0 } else { 0.0 })
        });
        // 14 requests in 2.1 s.
        assert!((measured.unwrap() - 14.0 / 2.1).abs() < 1e-9);
        assert_eq!(windows, [WINDOW, PATIENT_WINDOW]);
    }

    #[test]
    fn a_device_without_completions_is_reported_in_bounded_time() {
        let mut windows = 0;
        let measured = with_completions(WINDOW, |_| {
            windows += 1;
            Ok(0.0)
        });
        assert!(measured.unwrap_err().to_string().contains("2000 ms"));
        assert_eq!(windows, 2);
    }
}
