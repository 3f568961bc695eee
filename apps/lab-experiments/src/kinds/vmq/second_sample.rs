//! Values of each second, and their evaluation by phase.

use std::collections::BTreeMap;

use suimon_lab_run::{Repetition, Series};

/// Values of about one second.
#[derive(Clone, Debug)]
pub(crate) struct SecondSample {
    /// Seconds since the start of the first phase.
    pub(crate) at_s: f64,
    /// Throughput of all NICs, the sum of both directions, in bit/s.
    pub(crate) bits_per_second: f64,
    pub(crate) workers: Vec<WorkerLoad>,
}

/// Worker that VMQ may use.
#[derive(Clone, Debug)]
pub(crate) struct WorkerLoad {
    pub(crate) worker: u64,
    /// Number of queues assigned to the worker.
    pub(crate) queues: u64,
    pub(crate) load_percent: f64,
}

impl SecondSample {
    fn used(&self) -> usize {
        self.workers.iter().filter(|worker| worker.queues > 0).count()
    }
}

/// Adds the values of a phase to the repetition: number of workers used, and throughput in Mbit/s,
/// as medians over the second half of the phase; and the time in s until the number of workers
/// reached its final value.
pub(crate) fn add_phase_values(part: &mut Repetition, phase: usize, seconds: &[SecondSample]) {
    let half = seconds.get(seconds.len() / 2..).unwrap_or_default();
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(0.0)
    };
    let used = half.iter().map(|second| second.used() as f64).collect();
    part.set_value(&format!("processors-{phase}"), median(used));
    let rates = half.iter().map(|second| second.bits_per_second / 1e6).collect();
    part.set_value(&format!("carried-{phase}"), median(rates));
    let Some(last) = seconds.last().map(SecondSample::used) else { return };
    let other = seconds.iter().rposition(|second| second.used() != last);
    let settled_s = other
        .and_then(|settled_index| seconds.get(settled_index))
        .map_or(0.0, |second| second.at_s);
    let start_s = seconds.first().map_or(0.0, |first| first.at_s - 1.0);
    let after = other.map_or(0.0, |_| settled_s - start_s);
    part.set_value(&format!("settled-{phase}"), after);
}

/// Returns the series shown in charts.
pub(crate) fn series(seconds: &[SecondSample]) -> Vec<Series> {
    let mut queues: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
    let mut loads: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
    for second in seconds {
        for worker in &second.workers {
            queues.entry(worker.worker).or_default().push((second.at_s, worker.queues as f64));
            loads.entry(worker.worker).or_default().push((second.at_s, worker.load_percent));
        }
    }
    // Workers that never had a queue are omitted, since there may be many.
    queues.retain(|_, points| points.iter().any(|(_, count)| *count > 0.0));
    let series = |group: &str, unit: &str, processor: u64, points| Series {
        group: group.to_owned(),
        name: format!("P{processor}"),
        unit: unit.to_owned(),
        points,
    };
    let mut all_series: Vec<Series> = Vec::new();
    for (processor, points) in queues {
        if let Some(points) = loads.remove(&processor) {
            all_series.push(series("load", "%", processor, points));
        }
        all_series.push(series("queues", "", processor, points));
    }
    let throughput =
        seconds.iter().map(|second| (second.at_s, second.bits_per_second / 1e6)).collect();
    all_series.push(Series {
        group: "carried".to_owned(),
        name: "NICs".to_owned(),
        unit: "Mbit/s".to_owned(),
        points: throughput,
    });
    all_series
}
