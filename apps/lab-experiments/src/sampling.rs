//! Sampling of the machine and a daemon during a load: CPU time of each CPU, of the daemon's
//! threads and of its workers' stages, and power where the machine reports it.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;
use suimon_lab_run::Series;
use suimon_rig::Daemon;

use crate::environment::Environment;

/// Default interval of samples.
pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// Prefix of the names of worker threads in `/proc/PID/task/TID/comm`.
const WORKER_PREFIX: &str = "processor-";
/// Suffix of the names of stages in responses of the API, removed for measures.
const NS: &str = "_ns";

/// Sampler of the machine and, if given, a daemon.
pub(crate) struct Sampler<'a> {
    daemon: Option<&'a Daemon>,
    started: Instant,
    samples: Vec<Sample>,
}

/// Counters at a point in time.
#[derive(Clone, Debug, Default)]
struct Sample {
    /// Time since the first sample.
    elapsed: Duration,
    cpus: Vec<CpuTicks>,
    /// CPU time of the daemon's worker threads since their start.
    workers: Duration,
    control: Duration,
    /// Time of all workers by stage in ns.
    stages: BTreeMap<String, u64>,
    energy: Option<Energy>,
}

/// Clock ticks of a CPU since the machine's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CpuTicks {
    busy: u64,
    total: u64,
}

#[derive(Clone, Copy, Debug)]
struct Energy {
    microjoules: u64,
    read_ns: u64,
}

/// Resources used between the first and the last sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ResourceUsage {
    pub(crate) span_s: f64,
    /// Utilisation of all CPUs together in percent, 0 to 100.
    pub(crate) cpu_percent: f64,
    /// CPU time of all CPUs together in ns, of any process.
    pub(crate) cpu_ns: f64,
    /// CPU time of the daemon's workers.
    pub(crate) workers_ns: f64,
    /// CPU time of the daemon's other threads.
    pub(crate) control_ns: f64,
    /// Time of all workers by stage, including `idle`; empty without a daemon.
    pub(crate) stages_ns: BTreeMap<String, f64>,
    /// Power of packages and memory in W; absent if the machine does not report it.
    pub(crate) watts: Option<f64>,
}

impl<'a> Sampler<'a> {
    /// Takes the first sample.
    ///
    /// # Errors
    /// The daemon does not respond.
    pub(crate) fn begin(daemon: Option<&'a Daemon>) -> Result<Self> {
        let mut sampler = Self { daemon, started: Instant::now(), samples: Vec::new() };
        sampler.sample()?;
        Ok(sampler)
    }

    /// Takes a sample.
    ///
    /// # Errors
    /// The daemon does not respond.
    pub(crate) fn sample(&mut self) -> Result<()> {
        let stat = fs::read_to_string("/proc/stat").context("/proc/stat")?;
        let mut sample =
            Sample { elapsed: self.started.elapsed(), cpus: cpus_in(&stat)?, ..Sample::default() };
        if let Some(daemon) = self.daemon {
            sample.workers = daemon.threads_cpu_time(WORKER_PREFIX)?;
            sample.control = daemon.cpu_time()?.saturating_sub(sample.workers);
            let top = daemon.get("/1.0/top")?;
            sample.stages = stages_in(&top);
            sample.energy = energy_in(&top);
        }
        self.samples.push(sample);
        Ok(())
    }

    /// Takes a sample at the end of every `period` for the given time. Fails immediately if a stop
    /// is requested.
    ///
    /// # Errors
    /// The daemon does not respond, or a stop was requested.
    pub(crate) fn sample_for(
        &mut self,
        environment: &Environment<'_>,
        time: Duration,
        period: Duration,
    ) -> Result<()> {
        let started = Instant::now();
        let mut next = period;
        while next <= time {
            environment.wait(next.saturating_sub(started.elapsed()))?;
            self.sample()?;
            next += period;
        }
        Ok(())
    }

    /// Returns the CPU time, power and stage times between the first and the last sample.
    pub(crate) fn resource_usage(&self) -> ResourceUsage {
        match (self.samples.first(), self.samples.last()) {
            (Some(first), Some(last)) => between(first, last),
            _ => ResourceUsage::default(),
        }
    }

    /// Returns the series of charts: groups `cpu` (percent of each CPU), `suimond` (its threads)
    /// and `stage` (of its workers), both in percent of one CPU, and `power`.
    pub(crate) fn series(&self) -> Vec<Series> {
        let mut all_series: Vec<Series> = Vec::new();
        for pair in self.samples.windows(2) {
            let [before, after] = pair else { continue };
            let at_s = after.elapsed.as_secs_f64();
            let mut add = |group: &str, name: &str, unit: &str, value: f64| {
                let known_series = all_series
                    .iter_mut()
                    .find(|series| series.group == group && series.name == name);
                match known_series {
                    Some(series) => series.points.push((at_s, value)),
                    None => all_series.push(Series {
                        group: group.to_owned(),
                        name: name.to_owned(),
                        unit: unit.to_owned(),
                        points: vec![(at_s, value)],
                    }),
                }
            };
            for (number, (before_ticks, after_ticks)) in
                before.cpus.iter().zip(&after.cpus).enumerate()
            {
                add(
                    "cpu",
                    &format!("CPU {number}"),
                    "%",
                    percent_busy(*before_ticks, *after_ticks),
                );
            }
            let sums = between(before, after);
            let of_a_cpu = |ns: f64| ns / (sums.span_s * 1e9).max(1.0) * 100.0;
            if self.daemon.is_some() {
                add("suimond", "processors", "%", of_a_cpu(sums.workers_ns));
                add("suimond", "control", "%", of_a_cpu(sums.control_ns));
            }
            for (stage, ns) in sums.stages_ns.iter().filter(|(stage, _)| *stage != "idle") {
                add("stage", stage, "%", of_a_cpu(*ns));
            }
            if let Some(watts) = sums.watts {
                add("power", "packages", "W", watts);
            }
        }
        all_series
    }
}

impl ResourceUsage {
    /// Returns the time in ns of the workers by stage, except idle time and polling.
    pub(crate) fn busy_stages(&self) -> impl Iterator<Item = (&str, f64)> {
        let stages = self.stages_ns.iter().map(|(stage, ns)| (stage.as_str(), *ns));
        stages.filter(|(stage, _)| !["idle", "poll"].contains(stage))
    }
}

fn between(first: &Sample, last: &Sample) -> ResourceUsage {
    let span_s = last.elapsed.saturating_sub(first.elapsed).as_secs_f64();
    let sum = |sample: &Sample| {
        let add = |sum: CpuTicks, ticks: &CpuTicks| CpuTicks {
            busy: sum.busy + ticks.busy,
            total: sum.total + ticks.total,
        };
        sample.cpus.iter().fold(CpuTicks::default(), add)
    };
    let (before_ticks, after_ticks) = (sum(first), sum(last));
    let tick_ns = 1e9 / rustix::param::clock_ticks_per_second() as f64;
    let ns = |before_time: Duration, after_time: Duration| {
        after_time.saturating_sub(before_time).as_nanos() as f64
    };
    let grown = last.stages.iter().map(|(stage, ns)| {
        let before_ns = first.stages.get(stage).copied().unwrap_or(0);
        (stage.clone(), ns.saturating_sub(before_ns) as f64)
    });
    ResourceUsage {
        span_s,
        cpu_percent: percent_busy(before_ticks, after_ticks),
        cpu_ns: after_ticks.busy.saturating_sub(before_ticks.busy) as f64 * tick_ns,
        workers_ns: ns(first.workers, last.workers),
        control_ns: ns(first.control, last.control),
        stages_ns: grown.collect(),
        watts: first
            .energy
            .zip(last.energy)
            .and_then(|(before_energy, after_energy)| watts(before_energy, after_energy)),
    }
}

fn percent_busy(before_ticks: CpuTicks, after_ticks: CpuTicks) -> f64 {
    let total = after_ticks.total.saturating_sub(before_ticks.total);
    after_ticks.busy.saturating_sub(before_ticks.busy) as f64 * 100.0 / total.max(1) as f64
}

/// Returns the mean power in W between two readings of the energy; `None` if they do not differ in
/// time or a counter was reset.
fn watts(before_energy: Energy, after_energy: Energy) -> Option<f64> {
    let span = after_energy.read_ns.checked_sub(before_energy.read_ns).filter(|span| *span > 0)?;
    let used = after_energy.microjoules.checked_sub(before_energy.microjoules)?;
    Some(used as f64 * 1e3 / span as f64)
}

/// Parses the CPUs in `/proc/stat` (proc(5)): user, nice, system, idle, iowait, irq, softirq,
/// steal. `user` includes time of guests. Stolen time counts as neither busy nor idle.
fn cpus_in(stat: &str) -> Result<Vec<CpuTicks>> {
    let lines = stat.lines().filter_map(|line| line.strip_prefix("cpu"));
    lines
        .filter(|line| !line.starts_with(' '))
        .map(|line| {
            let ticks: Result<Vec<u64>, _> =
                line.split_whitespace().skip(1).take(8).map(str::parse).collect();
            let ticks = ticks.with_context(|| format!("/proc/stat: cpu{line}"))?;
            let [user, nice, system, idle, iowait, irq, softirq, ..] = ticks.as_slice() else {
                anyhow::bail!("/proc/stat: cpu{line}");
            };
            let busy = user + nice + system + irq + softirq;
            Ok(CpuTicks { busy, total: ticks.iter().sum::<u64>().max(busy + idle + iowait) })
        })
        .collect()
}

/// Returns the time of all workers in ns by stage, from a response of `/1.0/top`.
fn stages_in(top: &Value) -> BTreeMap<String, u64> {
    let mut sum = BTreeMap::new();
    let processors = top["workers"].as_array().into_iter().flatten();
    for (name, ns) in processors.filter_map(|worker| worker["stages"].as_object()).flatten() {
        let name = name.strip_suffix(NS).unwrap_or(name);
        *sum.entry(name.to_owned()).or_default() += ns.as_u64().unwrap_or(0);
    }
    sum
}

fn energy_in(top: &Value) -> Option<Energy> {
    let power = &top["power"];
    Some(Energy {
        microjoules: power["energy_uj"].as_u64()?,
        read_ns: power["read_monotonic_ns"].as_u64()?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BEFORE: &str = "cpu  300 20 100 800 30 0 50 10 0 0\n\
                          cpu0 100 10 50 400 20 0 20 0 0 0\n\
                          cpu1 200 10 50 400 10 0 30 10 0 0\nintr 7 cpu 1\n";
    const AFTER: &str = "cpu  380 20 120 880 30 0 60 20 0 0\n\
                         cpu0 160 10 60 420 20 0 30 0 0 0\n\
                         cpu1 220 10 60 460 10 0 30 20 0 0\nintr 9 cpu 1\n";

    fn sample(second: u64, stat: &str, copy_in: u64, energy: u64) -> Sample {
        let top = json!({
            "workers": [
                { "stages": { "copy_in_ns": copy_in, "idle_ns": 5 } },
                { "stages": { "copy_in_ns": copy_in, "poll_ns": 1 } },
            ],
            "power": { "energy_uj": energy, "read_monotonic_ns": second * 1_000_000_000 },
        });
        Sample {
            elapsed: Duration::from_secs(second),
            cpus: cpus_in(stat).unwrap(),
            workers: Duration::from_millis(second * 100),
            control: Duration::from_millis(second * 10),
            stages: stages_in(&top),
            energy: energy_in(&top),
        }
    }

    #[test]
    fn sums_are_the_resources_used_between_two_samples() {
        let sums =
            between(&sample(1, BEFORE, 1000, 5_000_000), &sample(3, AFTER, 4000, 65_000_000));
        assert!((sums.span_s - 2.0).abs() < 1e-9);
        // 80 and 20 busy ticks of 100 each; 10 ticks of CPU 1 were stolen.
        assert!((sums.cpu_percent - 55.0).abs() < 1e-9, "{sums:?}");
        let tick_ns = 1e9 / rustix::param::clock_ticks_per_second() as f64;
        assert!((sums.cpu_ns - 110.0 * tick_ns).abs() < 1.0, "{sums:?}");
        assert!((sums.workers_ns - 2e8).abs() < 1.0 && (sums.control_ns - 2e7).abs() < 1.0);
        assert!((sums.stages_ns["copy_in"] - 6000.0).abs() < 1e-9, "{sums:?}");
        assert_eq!(sums.busy_stages().map(|(stage, _)| stage).collect::<Vec<_>>(), ["copy_in"]);
        assert!((sums.watts.unwrap() - 30.0).abs() < 1e-9, "{sums:?}");
    }

    #[test]
    fn series_have_a_point_for_each_pair_of_samples() {
        let samples = vec![sample(0, BEFORE, 0, 0), sample(1, AFTER, 10, 7)];
        let sampler = Sampler { daemon: None, started: Instant::now(), samples };
        let series = sampler.series();
        let cpu = series.iter().find(|series| series.name == "CPU 0").unwrap();
        assert_eq!((cpu.group.as_str(), cpu.points.len()), ("cpu", 1));
        assert!((cpu.points[0].1 - 80.0).abs() < 1e-9, "{cpu:?}");
        assert!(series.iter().all(|series| series.name != "idle"), "{series:?}");
    }

    #[test]
    fn a_strange_stat_is_an_error_with_the_line() {
        let error = cpus_in("cpu0 1 2 x\n").unwrap_err();
        assert!(format!("{error:#}").contains("cpu0 1 2 x"), "{error:#}");
        assert!(cpus_in("cpu0 1 2 3\n").is_err());
    }
}
