//! A suimond with disks in one store, and fio on all of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use serde_json::Value;
use suimon_rig::fio::{self, FioTarget};
use suimon_rig::{Daemon, Process, Rig, SlowDisk, run_any};
use tempfile::TempDir;

use super::plan::{Limits, Plan};
use super::record::{DiskSecond, Flow, Second};

/// How long fio may take to write its logs when it is asked to end.
const FIO_END_LIMIT: Duration = Duration::from_secs(30);
/// What writing all disks may take.
const FILL_LIMIT: Duration = Duration::from_secs(600);
/// What fio says at its end.
const RESULT: &str = "load.json";

/// Everything that runs. Dropped from the top.
pub(crate) struct Scene<'a> {
    load: Process,
    daemon: Daemon,
    store: PathBuf,
    _disk: Option<SlowDisk>,
    _folder: TempDir,
    socket: String,
    plan: &'a Plan,
    rig: &'a Rig,
    began: Instant,
    last: Look,
}

/// What the disks have done at a time.
struct Look {
    time: Instant,
    disks: Vec<(u64, Flow)>,
}

impl<'a> Scene<'a> {
    /// Makes the disks, writes all of each once, and starts the load.
    pub(crate) fn set(rig: &'a Rig, plan: &'a Plan) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("suimon-experiment-").tempdir_in(&plan.folder);
        let folder = folder.with_context(|| format!("folder {}", plan.folder))?;
        let bytes = plan.disks().len() as u64 * (plan.disk_mib << 20);
        let slow = |rate| SlowDisk::new(rig, folder.path(), bytes, rate);
        let disk = plan.store_bytes_per_s.map(slow).transpose()?;
        let store = disk.as_ref().map_or(folder.path(), SlowDisk::path).to_owned();
        let socket = rig.path("nbd.sock");
        let limits = vec![Limits::default(); plan.groups.len()];
        let host = host(plan, &store, &socket, None, &limits);
        let daemon = Daemon::start(rig, &host)?;
        write_all(rig, plan, &socket)?;
        let load = start_load(rig, plan, &socket)?;
        let last = look(&daemon, plan)?;
        let began = last.time;
        Ok(Self {
            load,
            daemon,
            store,
            _disk: disk,
            _folder: folder,
            socket,
            plan,
            rig,
            began,
            last,
        })
    }

    /// Seconds since the load began, at the last look.
    pub(crate) fn at_s(&self) -> f64 {
        self.last.time.duration_since(self.began).as_secs_f64()
    }

    /// Sets every disk's limits and the store's capability at once, as a user does who has
    /// changed his host file.
    pub(crate) fn set_limits(&mut self, capability_iops: u64, limits: &[Limits]) -> Result<()> {
        let capability = Some(capability_iops);
        let host = host(self.plan, &self.store, &self.socket, capability, limits);
        self.daemon.apply_ok(&host).map(drop)
    }

    /// What happened since the last look.
    pub(crate) fn second(&mut self, step: Option<usize>, is_change: bool) -> Result<Second> {
        self.load.check_running()?;
        let now = look(&self.daemon, self.plan)?;
        let unix = SystemTime::now().duration_since(UNIX_EPOCH)?;
        let span_s = now.time.duration_since(self.last.time).as_secs_f64();
        let disks = self.plan.disks().into_iter().zip(now.disks.iter().zip(&self.last.disks));
        let disks = disks.map(|((disk, _), ((bytes, flow), (before, _)))| {
            #[allow(clippy::cast_precision_loss, reason = "a rate for people")]
            let got_iops = bytes.saturating_sub(*before) as f64 / 8192.0 / span_s;
            DiskSecond { disk, got_iops, fio_iops: None, last_5_s: flow.clone() }
        });
        let second = Second {
            at_s: now.time.duration_since(self.began).as_secs_f64(),
            unix_ms: u64::try_from(unix.as_millis())?,
            span_s,
            step,
            is_change,
            disks: disks.collect(),
        };
        self.last = now;
        Ok(second)
    }

    /// The daemon's last events.
    pub(crate) fn events(&self) -> Result<Value> {
        Ok(self.daemon.http("GET", "/1.0/events?limit=200", None)?.json)
    }

    /// Ends the load and reads what fio says that each disk got.
    pub(crate) fn end_load(&mut self) -> Result<Vec<Vec<(u64, u64)>>> {
        self.load.signal(Signal::INT);
        self.load.wait(FIO_END_LIMIT)?;
        let result = fio::result(&std::fs::read_to_string(self.rig.path(RESULT))?)?;
        ensure!(result.errors == 0, "fio: {}", self.load.last_words());
        let disks = self.plan.disks().len();
        (0..disks).map(|at| fio::seconds(self.rig.folder(), at)).collect()
    }
}

/// The host file.
fn host(
    plan: &Plan,
    store: &Path,
    socket: &str,
    capability_iops: Option<u64>,
    limits: &[Limits],
) -> String {
    let mut host = format!(
        "[host]\nname = \"experiment\"\n[[store]]\nname = \"store\"\npath = \"{}\"\n\
         depth_max = {}\n",
        store.display(),
        plan.store_depth_max
    );
    if let Some(iops) = capability_iops {
        let _ = writeln!(host, "capability_iops = {iops}");
    }
    for (disk, group) in plan.disks() {
        let _ = write!(
            host,
            "[[disk]]\nname = \"{disk}\"\nstore = \"store\"\nformat = \"{}\"\nkind = \"{}\"\n\
             size_bytes = \"{} MiB\"\nnbd = {{ socket = \"{socket}\" }}\n[disk.qos]\n",
            plan.format, plan.disk_kind, plan.disk_mib
        );
        let limits = limits.get(group).copied().unwrap_or_default();
        for (key, value) in [("min_iops", limits.min_iops), ("max_iops", limits.max_iops)] {
            if let Some(value) = value {
                let _ = writeln!(host, "{key} = {value}");
            }
        }
    }
    host
}

/// Writes every disk once, so that none is faster than others for being new.
fn write_all(rig: &Rig, plan: &Plan, socket: &str) -> Result<()> {
    let job = format!("rw=write bs=1m iodepth=2 size={}m", plan.disk_mib);
    let file = job_file(rig, plan, socket, "fill.fio", &job)?;
    let folder = rig.folder().to_string_lossy().into_owned();
    let words = ["env", "--chdir", &folder, "fio", "--output-format=json", &file];
    let output = run_any(&words, FILL_LIMIT)?;
    ensure!(output.is_ok(), "fio: {}{}", output.stderr, output.stdout);
    Ok(())
}

/// fio on all disks, until it is told to end.
fn start_load(rig: &Rig, plan: &Plan, socket: &str) -> Result<Process> {
    let job = format!(
        "rw=randwrite bs={}k iodepth={} size={}m time_based runtime=30d",
        plan.block_kib, plan.depth, plan.disk_mib
    );
    let file = job_file(rig, plan, socket, "load.fio", &job)?;
    let output = format!("--output={}", rig.path(RESULT));
    Process::start(rig, "fio", &["fio", "--output-format=json", &output, &file])
}

fn job_file(rig: &Rig, plan: &Plan, socket: &str, name: &str, job: &str) -> Result<String> {
    let disks = plan.disks();
    let targets: Vec<FioTarget<'_>> =
        disks.iter().map(|(disk, _)| FioTarget::Nbd { socket, disk }).collect();
    let file = rig.path(name);
    std::fs::write(&file, fio::job_file(&targets, job))?;
    Ok(file)
}

fn look(daemon: &Daemon, plan: &Plan) -> Result<Look> {
    let before = Instant::now();
    let answer = daemon.http("GET", "/1.0/disks", None)?;
    ensure!(answer.status == 200, "GET /1.0/disks: {} {}", answer.status, answer.text);
    // The daemon looked somewhere between.
    let time = before + before.elapsed() / 2;
    let list = answer.json.as_array().context("no list of disks")?;
    let of_disk = |(name, _): (String, usize)| {
        let found = list.iter().find(|disk| disk["config"]["name"] == *name);
        let status = found.with_context(|| format!("no disk {name}"))?;
        let bytes = status["counters"]["writes"]["bytes"].as_u64().context("no counters")?;
        Ok((bytes, flow(&status["qos"]["last_5_s"])))
    };
    Ok(Look { time, disks: plan.disks().into_iter().map(of_disk).collect::<Result<_>>()? })
}

fn flow(told: &Value) -> Flow {
    let number = |key: &str| told[key].as_u64().unwrap_or(0);
    let waits = told["waits_ns"].as_object().into_iter().flatten();
    let waits = waits.map(|(cause, ns)| (cause.clone(), ns.as_u64().unwrap_or(0)));
    Flow {
        entitled_iops: number("entitled_iops"),
        demanded_iops: number("demanded_iops"),
        delivered_iops: number("delivered_iops"),
        waits_ns: waits.collect::<BTreeMap<_, _>>(),
    }
}
