//! What the host does meanwhile: CPU time by CPU, and power where it is known.

use std::fs;
use std::time::Instant;

use anyhow::Result;
use suimon_rig::Daemon;

use crate::record::{Part, Series};

/// Samples of each second.
pub(super) struct Samples {
    began: Instant,
    last: Vec<Ticks>,
    /// By CPU, what part of it worked, in percent.
    cpus: Vec<Vec<(f64, f64)>>,
    watts: Vec<(f64, f64)>,
}

/// Of one CPU since it began.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ticks {
    busy: f64,
    all: f64,
}

impl Samples {
    pub(super) fn begin() -> Result<Self> {
        let last = ticks(&fs::read_to_string("/proc/stat")?);
        let cpus = vec![Vec::new(); last.len()];
        Ok(Self { began: Instant::now(), last, cpus, watts: Vec::new() })
    }

    /// Takes one; call it each second.
    pub(super) fn take(&mut self, daemon: &Daemon) -> Result<()> {
        let at_s = self.began.elapsed().as_secs_f64();
        let now = ticks(&fs::read_to_string("/proc/stat")?);
        for ((points, before), after) in self.cpus.iter_mut().zip(&self.last).zip(&now) {
            let all = after.all - before.all;
            if all > 0.0 {
                points.push((at_s, (after.busy - before.busy) * 100.0 / all));
            }
        }
        self.last = now;
        let power = daemon.http("GET", "/1.0/power", None)?.json;
        if let Some(milliwatts) = power["energy"]["milliwatts"].as_f64() {
            self.watts.push((at_s, milliwatts / 1e3));
        }
        Ok(())
    }

    /// What was sampled becomes series; returns watts, where they are known.
    pub(super) fn finish(self, part: &mut Part) -> Option<f64> {
        let all = self.cpus.iter().flatten().map(|(_, percent)| *percent);
        if let Some(mean) = mean(all) {
            part.value("host-cpu", mean);
        }
        let series = |group: &str, name: String, unit: &str, points| Series {
            group: group.to_owned(),
            name,
            unit: unit.to_owned(),
            points,
        };
        for (number, points) in self.cpus.into_iter().enumerate() {
            part.series.push(series("cpu", format!("CPU {number}"), "%", points));
        }
        let watts = mean(self.watts.iter().map(|(_, watts)| *watts));
        if watts.is_some() {
            part.series.push(series("power", "host".to_owned(), "W", self.watts));
        }
        watts
    }
}

fn mean(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let numbers: Vec<f64> = numbers.collect();
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
}

/// Lines `cpu0 user nice system idle iowait irq softirq steal …` of `/proc/stat` (proc(5)). Time
/// that a hypervisor gave to others is not ours.
fn ticks(stat: &str) -> Vec<Ticks> {
    let of_cpu = |line: &str| {
        let (name, numbers) = line.split_once(' ')?;
        let number = name.strip_prefix("cpu")?;
        number.parse::<u32>().ok()?;
        let numbers: Vec<f64> =
            numbers.split_whitespace().take(8).filter_map(|of| of.parse().ok()).collect();
        let [user, nice, system, idle, waits, irq, softirq, steal] = numbers.try_into().ok()?;
        let busy = user + nice + system + irq + softirq;
        Some(Ticks { busy, all: busy + idle + waits + steal })
    };
    stat.lines().filter_map(of_cpu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cpu_is_read_and_their_sum_is_not_one() {
        let stat = "cpu  300 0 60 1640 0 0 0 0 0 0\n\
                    cpu0 100 1 20 800 5 2 3 4 0 0\ncpu1 200 0 40 760 0 0 0 0 0 0\nintr 5 1\n";
        let read = ticks(stat);
        assert_eq!(read, [Ticks { busy: 126.0, all: 935.0 }, Ticks { busy: 240.0, all: 1000.0 }]);
    }
}
