//! Setup: namespace guests, an external network and a disk on one daemon.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use suimon_lab_run::LocalizedText;
use suimon_rig::fio::{self, FioTarget};
use suimon_rig::{Daemon, Namespace, NamespaceGuest, Rig, Veth, example, run, wait_until};

use super::sessions::Sessions;
use super::settings::Settings;
use crate::environment::Environment;

const READY_LIMIT: Duration = Duration::from_secs(30);
/// IP address of the peer in the external network.
const FAR: &str = "10.77.0.1";
/// Time under load until VMQ has assigned the queues. VMQ evaluates the load over several periods
/// before it moves a queue.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// Setup of all measurements. Fields are dropped in order.
pub(super) struct Testbed {
    sessions: Sessions,
    process: u32,
    daemon: Daemon,
    _guests: Vec<NamespaceGuest>,
    _wire: Veth,
    _far: Namespace,
    settings: Settings,
    _files: Rig,
    rig: Rig,
}

/// Load on the daemon during a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    Idle,
    /// Requests over TCP between namespace guests and the external network.
    Sessions,
    /// Random reads of 4 KiB at queue depth 1, by a client that sleeps while it waits.
    VhostUser,
    /// Random reads of 4 KiB at queue depth 1 over NBD.
    Nbd,
}

impl Load {
    pub(super) const ALL: [Self; 4] = [Self::Idle, Self::Sessions, Self::VhostUser, Self::Nbd];

    /// Returns the name in ids of measures.
    pub(super) const fn id(self) -> &'static str {
        match self {
            Self::Idle => "nothing",
            Self::Sessions => "tcp",
            Self::VhostUser => "vhost-user",
            Self::Nbd => "nbd",
        }
    }

    pub(super) fn description(self) -> LocalizedText {
        match self {
            Self::Idle => LocalizedText::new("no load", "無負荷"),
            Self::Sessions => LocalizedText::new("TCP requests", "TCP の要求"),
            Self::VhostUser => LocalizedText::new("reads over vhost-user", "vhost-user のリード"),
            Self::Nbd => LocalizedText::new("reads over NBD", "NBD のリード"),
        }
    }
}

/// Result of a measurement under one load.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadResult {
    /// Transactions per second; `None` if the measurement has no transactions.
    pub(super) transactions_per_second: Option<f64>,
    /// CPU time of the daemon per transaction in µs.
    pub(super) cpu_us_per_transaction: Option<f64>,
    /// CPU time of the daemon in percent of one CPU.
    pub(super) cpu_percent: f64,
    /// Power of packages and memory in W; `None` if the machine does not report it.
    pub(super) watts: Option<f64>,
}

impl Testbed {
    pub(super) fn set_up(settings: &Settings, environment: &Environment<'_>) -> Result<Self> {
        let (rig, files) = (environment.create_rig()?, environment.create_large_rig()?);
        let far = Namespace::new(&rig, "far")?;
        let (near_end, far_end) = (rig.device("n"), rig.device("f"));
        let wire = Veth::new(&near_end, &far_end, &far)?;
        far.address(&far_end, &format!("{FAR}/24"))?;
        let guests: Vec<NamespaceGuest> = (0..2)
            .map(|number| NamespaceGuest::new(&rig, &format!("vm{number}"), 10 + number))
            .collect::<Result<_>>()?;
        let mut host = format!(
            "[host]\nname = \"experiment\"\nfloating_workers = 2\n[[switch]]\nname = \
             \"wan\"\nkind = \"external\"\nuplink = \"up\"\n[[uplink]]\nname = \"up\"\ndevice = \
             \"{near_end}\"\n[[store]]\nname = \"files\"\npath = \"{}\"\n[[disk]]\nname = \
             \"data\"\nstore = \"files\"\nformat = \"raw\"\nsize_bytes = \"{} MiB\"\nnbd = {{ \
             socket = \"{}\" }}\nvhost_user = {{ socket = \"{}\" }}\n",
            files.folder().display(),
            settings.disk_mib,
            rig.path("nbd.sock"),
            rig.path("disk.sock"),
        );
        for guest in &guests {
            host += &guest.nic_toml("wan", "");
        }
        let mut daemon = Daemon::start(&rig, &host)?;
        for guest in &guests {
            guest.bring_up()?;
        }
        wait_until("guests with access to the outside", READY_LIMIT, || {
            Ok(guests.iter().all(|guest| guest.namespace.ping(FAR).unwrap_or(false)))
        })?;
        let sources: Vec<&Namespace> = guests.iter().map(|guest| &guest.namespace).collect();
        let sessions = Sessions::connect(&sources, &far, FAR, settings.sessions)?;
        let fill = format!("--rw=write --bs=1m --size={}m --zero_buffers", settings.disk_mib);
        let nbd = rig.path("nbd.sock");
        fio::run_on(rig.folder(), FioTarget::Nbd { socket: &nbd, disk: "data" }, &fill)?;
        let process = daemon.process().id();
        Ok(Self {
            sessions,
            process,
            daemon,
            _guests: guests,
            _wire: wire,
            _far: far,
            settings: settings.clone(),
            _files: files,
            rig,
        })
    }

    /// Sets a power plan. Returns the settings that this machine does not support, with reasons,
    /// one text each.
    pub(super) fn set_plan(&self, name: &str) -> Result<Vec<String>> {
        self.daemon.ok(&["power", "set", name])?;
        let status = self.daemon.json(&["power", "show"])?;
        // The assignment of queues follows the load and does not change without it.
        self.sessions.run(SETTLED_AFTER)?;
        let settings = status["settings"].as_array().cloned().unwrap_or_default();
        let missing = settings.iter().filter(|setting| setting["in_effect"] != true);
        let text = |setting: &Value, key: &str| setting[key].as_str().unwrap_or("?").to_owned();
        let missing = missing
            .map(|setting| format!("{}: {}", text(setting, "setting"), text(setting, "why_not")));
        let energy = status["energy"]["unavailable_reason"].as_str();
        Ok(missing
            .chain(energy.map(|lacking| format!("the energy is unknown: {lacking}")))
            .collect())
    }

    pub(super) fn measure(&self, load: Load, environment: &Environment<'_>) -> Result<LoadResult> {
        let window = Duration::from_millis(self.settings.window_ms);
        let seconds = window.as_secs_f64();
        let energy = self.energy_uj()?;
        let (started, cpu, reads) = (Instant::now(), self.cpu_ns(), self.reads()?);
        let (per_second, exchanges) = match load {
            Load::Idle => {
                environment.wait(window)?;
                (None, 0)
            }
            Load::Sessions => {
                let exchanges = self.sessions.run(window)?;
                (Some(exchanges as f64 / seconds), exchanges)
            }
            Load::VhostUser => (Some(self.by_front_end(seconds)?), self.reads()? - reads),
            Load::Nbd => (Some(self.by_fio()?), self.reads()? - reads),
        };
        let (cpu_ns, elapsed) = ((self.cpu_ns() - cpu) as f64, started.elapsed().as_secs_f64());
        let used_uj =
            self.energy_uj()?.zip(energy).and_then(|(now, before)| now.checked_sub(before));
        Ok(LoadResult {
            transactions_per_second: per_second,
            cpu_us_per_transaction: (exchanges > 0).then(|| cpu_ns / 1e3 / exchanges as f64),
            cpu_percent: cpu_ns / 1e7 / elapsed,
            watts: used_uj.map(|uj| uj as f64 / 1e6 / elapsed),
        })
    }

    /// Measures the disk with a vhost-user front-end that sleeps until it is interrupted, like a
    /// guest, for `seconds`. Returns reads per second.
    fn by_front_end(&self, seconds: f64) -> Result<f64> {
        let (program, socket) = (example("disk_speed")?, self.rig.path("disk.sock"));
        let (disk, seconds) = (self.settings.disk_mib.to_string(), seconds.to_string());
        let output = run(&[
            &*program,
            "--json",
            "--socket",
            &socket,
            "--wait",
            "--block-kib",
            "4",
            "--read-percent",
            "100",
            "--disk-mib",
            &disk,
            "1",
            &seconds,
            "1",
        ])?;
        let result: Value = serde_json::from_str(&output).with_context(|| output.clone())?;
        result[0]["rounds"][0]["requests_per_second"].as_f64().with_context(|| output)
    }

    fn by_fio(&self) -> Result<f64> {
        let job = format!(
            "--rw=randread --bs=4k --iodepth=1 --size={}m --time_based --runtime={}ms",
            self.settings.disk_mib, self.settings.window_ms
        );
        let result = fio::run(self.rig.folder(), &self.rig.path("nbd.sock"), "data", &job)?;
        ensure!(result.errors == 0, "fio: {result:?}");
        Ok(result.read_iops)
    }

    /// Returns the number of reads of the disk so far.
    fn reads(&self) -> Result<u64> {
        let disk = self.daemon.json(&["disk", "show", "data"])?;
        disk["counters"]["reads"]["requests"].as_u64().context("the disk has no counters")
    }

    /// Returns the energy of packages and memory so far in µJ; `None` if the machine does not
    /// report it.
    fn energy_uj(&self) -> Result<Option<u64>> {
        let status = self.daemon.json(&["power", "show"])?;
        let zones = status["energy"]["zones"].as_array().cloned().unwrap_or_default();
        let counted = zones.iter().filter(|zone| zone["counted"] == true);
        let energies: Vec<u64> = counted.filter_map(|zone| zone["energy_uj"].as_u64()).collect();
        Ok((!energies.is_empty()).then(|| energies.iter().sum()))
    }

    /// Returns the CPU time of the daemon's threads so far in ns (`/proc/PID/task/TID/schedstat`).
    fn cpu_ns(&self) -> u64 {
        let threads = fs::read_dir(format!("/proc/{}/task", self.process));
        let of_thread = |thread: std::io::Result<fs::DirEntry>| {
            let text = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        };
        threads.map_or(0, |threads| threads.filter_map(of_thread).sum())
    }
}
