//! Node: a daemon with its disks in the store, and fio on all of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use serde_json::Value;
use suimon_rig::fio::{self, FioTarget};
use suimon_rig::{Daemon, Process, Rig};

use super::record::{DiskSample, Flow};
use super::settings::{Limits, Settings};
use crate::environment::Environment;

/// Time limit for fio to write its logs after a request to end.
const FIO_END_LIMIT: Duration = Duration::from_secs(30);
/// Time limit for writing all disks.
const FILL_LIMIT: Duration = Duration::from_secs(600);
/// Interval of checks for the end of writing.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Name of the file that contains the result of fio.
const RESULT: &str = "load.json";

/// Daemon with disks and load. Fields are dropped in order.
pub(super) struct Node {
    load: Option<Process>,
    daemon: Daemon,
    site: NodeSpec,
    /// Names of the disks, each with the index of its group.
    disks: Vec<(String, usize)>,
    last: Option<CounterSample>,
}

/// Paths and configuration of a node.
pub(super) struct NodeSpec {
    /// First part of the host file: name of the host, and cluster.
    pub(super) host_file_header: String,
    pub(super) store: String,
    pub(super) socket: String,
    /// Folder in which fio runs.
    pub(super) folder: String,
}

/// Counters of all disks at one point in time.
struct CounterSample {
    time: Instant,
    disks: Vec<(u64, Flow)>,
}

impl Node {
    /// Starts the daemon and creates its disks without limits.
    pub(super) fn start(
        rig: &Rig,
        settings: &Settings,
        site: NodeSpec,
        disks: Vec<(String, usize)>,
        capacity_iops: Option<u64>,
    ) -> Result<Self> {
        let limits = vec![Limits::default(); settings.groups.len()];
        let host = host(settings, &site, &disks, capacity_iops, &limits);
        let daemon = Daemon::start(rig, &host)?;
        Ok(Self { load: None, daemon, site, disks, last: None })
    }

    pub(super) fn daemon(&self) -> &Daemon {
        &self.daemon
    }

    /// Starts writing every disk once, so that first writes to new space do not distort
    /// measurements.
    pub(super) fn start_fill(&mut self, rig: &Rig, settings: &Settings) -> Result<()> {
        let job = format!("rw=write bs=1m iodepth=2 size={}m", settings.disk_mib);
        self.load = Some(self.fio(rig, "fill", &job)?);
        Ok(())
    }

    /// Waits until all disks are written.
    pub(super) fn wait_written(&mut self, environment: &Environment<'_>) -> Result<()> {
        let started = Instant::now();
        let mut fio = self.load.take().context("no data was written")?;
        while fio.is_running() {
            environment.wait(POLL_INTERVAL)?;
            let limit = FILL_LIMIT;
            ensure!(
                started.elapsed() < limit,
                "fio did not complete writing the disks within {limit:?}"
            );
        }
        let status = fio.wait(FIO_END_LIMIT)?;
        ensure!(status.success(), "fio: {}", fio.last_words());
        Ok(())
    }

    /// Starts fio on all disks; it runs until requested to end.
    pub(super) fn begin_load(&mut self, rig: &Rig, settings: &Settings) -> Result<()> {
        let job = format!(
            "rw=randwrite bs={}k iodepth={} size={}m time_based runtime=30d",
            settings.block_kib, settings.depth, settings.disk_mib
        );
        self.load = Some(self.fio(rig, "load", &job)?);
        self.last = Some(self.sample()?);
        Ok(())
    }

    fn fio(&self, rig: &Rig, name: &str, job: &str) -> Result<Process> {
        let socket = &self.site.socket;
        let targets: Vec<FioTarget<'_>> =
            self.disks.iter().map(|(disk, _)| FioTarget::Nbd { socket, disk }).collect();
        let file = format!("{}/{name}.fio", self.site.folder);
        std::fs::write(&file, fio::job_file(&targets, job)).with_context(|| file.clone())?;
        let output = format!("--output={RESULT}");
        let command = ["env", "--chdir", &self.site.folder, "fio"];
        let command = [&command[..], &["--output-format=json", &output, &file]].concat();
        Process::start(rig, "fio", &command)
    }

    /// Sets the limits of all disks and the store's capacity at once by applying a changed host
    /// file. Returns the daemon's error message if it rejects the file, otherwise `None`.
    pub(super) fn set_limits(
        &mut self,
        settings: &Settings,
        capacity_iops: u64,
        limits: &[Limits],
    ) -> Result<Option<String>> {
        let host = host(settings, &self.site, &self.disks, Some(capacity_iops), limits);
        let output = self.daemon.apply(&host, &[])?;
        Ok((!output.is_ok()).then(|| output.stderr.trim().to_owned()))
    }

    /// Reads the counters. Returns the time since the previous call in seconds, and the rates of
    /// each disk in this time.
    pub(super) fn read_second(&mut self) -> Result<(f64, Vec<DiskSample>)> {
        self.load.as_mut().context("the load is not running")?.check_running()?;
        let now = self.sample()?;
        let before = self.last.as_ref().context("there is no earlier reading")?;
        let span_s = now.time.duration_since(before.time).as_secs_f64();
        let disks = now.disks.iter().zip(&before.disks);
        let disks = disks.map(|((bytes, flow), (before, _))| {
            let got_iops = bytes.saturating_sub(*before) as f64 / 8192.0 / span_s;
            DiskSample { delivered_iops: got_iops, fio_iops: None, last_5_s: flow.clone() }
        });
        let disks = disks.collect();
        self.last = Some(now);
        Ok((span_s, disks))
    }

    /// Ends the load. Returns fio's bandwidth log of each disk: end of each interval in ms, and
    /// bytes per second.
    pub(super) fn end_load(&mut self) -> Result<Vec<Vec<(u64, u64)>>> {
        let mut load = self.load.take().context("the load is not running")?;
        load.signal(Signal::INT);
        load.wait(FIO_END_LIMIT)?;
        let folder = Path::new(&self.site.folder);
        let output = std::fs::read_to_string(folder.join(RESULT))
            .context("the output of fio cannot be read")?;
        let result = fio::result(&output)?;
        ensure!(result.errors == 0, "fio: {}", load.last_words());
        (0..self.disks.len()).map(|index| fio::seconds(folder, index)).collect()
    }

    fn sample(&self) -> Result<CounterSample> {
        let before = Instant::now();
        let answer = self.daemon.http("GET", "/1.0/disks", None)?;
        ensure!(answer.status == 200, "GET /1.0/disks: {} {}", answer.status, answer.text);
        // The daemon read its counters at some time between request and response.
        let time = before + before.elapsed() / 2;
        let list = answer.json.as_array().context("the response has no list of disks")?;
        let of_disk = |(name, _): &(String, usize)| {
            let disk_status = list.iter().find(|disk| disk["config"]["name"] == **name);
            let status = disk_status.with_context(|| format!("the response has no disk {name}"))?;
            let bytes = status["counters"]["writes"]["bytes"]
                .as_u64()
                .context("the disk has no counters")?;
            Ok((bytes, flow(&status["qos"]["last_5_s"])))
        };
        Ok(CounterSample { time, disks: self.disks.iter().map(of_disk).collect::<Result<_>>()? })
    }
}

/// Returns the text of the daemon's host file.
fn host(
    settings: &Settings,
    site: &NodeSpec,
    disks: &[(String, usize)],
    capacity_iops: Option<u64>,
    limits: &[Limits],
) -> String {
    let mut host = format!(
        "{}[[store]]\nname = \"store\"\npath = \"{}\"\ndepth_max = {}\n",
        site.host_file_header, site.store, settings.store_depth_max
    );
    // Nodes of a cluster divide the capacity of their common store through etcd.
    if site.host_file_header.contains("[cluster]") {
        host += "shared = true\n";
    }
    if let Some(iops) = capacity_iops {
        let _ = writeln!(host, "capacity_iops = {iops}");
    }
    for (disk, group) in disks {
        let _ = write!(
            host,
            "[[disk]]\nname = \"{disk}\"\nstore = \"store\"\nformat = \"{}\"\nkind = \"{}\"\n\
             size_bytes = \"{} MiB\"\nnbd = {{ socket = \"{}\" }}\n[disk.qos]\n",
            settings.format, settings.disk_kind, settings.disk_mib, site.socket
        );
        let limits = limits.get(*group).copied().unwrap_or_default();
        for (key, value) in [("min_iops", limits.min_iops), ("max_iops", limits.max_iops)] {
            if let Some(value) = value {
                let _ = writeln!(host, "{key} = {value}");
            }
        }
    }
    host
}

fn flow(flow_status: &Value) -> Flow {
    let number = |key: &str| flow_status[key].as_u64().unwrap_or(0);
    let queued = flow_status["queued_ns"].as_object().into_iter().flatten();
    let queued = queued.map(|(cause, ns)| (cause.clone(), ns.as_u64().unwrap_or(0)));
    Flow {
        guaranteed_iops: number("guaranteed_iops"),
        demand_iops: number("demand_iops"),
        queued_ns: queued.collect::<BTreeMap<_, _>>(),
    }
}
