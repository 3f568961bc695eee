//! Placement of queues by VMQ under other settings.
//!
//! The cost of a queue is assumed to be independent of its worker, and so is the other load of a
//! worker. On an overloaded worker, each queue gets a proportional share. Moves take effect
//! immediately. Additional demand of queues that would have received more CPU time is therefore not
//! modelled.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use suimon_quantity::{QueueId, Time, WorkerId};
use suimon_recording::{Names, Policy, RecordError, VmqInitialState, VmqInput, decode};
use suimon_vmq::{Load, Measurements, QueueBusy, Vmq, VmqSpec, WorkerBusy};

use crate::recording::calculation::{Row, WhatIf};
use crate::recording::settings::Setting;

/// Utilisation in thousandths above which a worker counts as saturated.
const SATURATED: u64 = 980;

/// Totals of VMQ under one setting.
#[derive(Clone, Debug, Default)]
struct Sum {
    moves: u64,
    ns: u64,
    /// Number of workers with queues, multiplied by time.
    used: u64,
    used_max: usize,
    /// Utilisation of the busiest worker in thousandths, multiplied by time.
    busiest: u64,
    /// Time in ns for which the busiest worker was saturated.
    saturated_ns: u64,
    /// CPU time in ns that queues demanded and their workers lacked.
    short_ns: u64,
}

/// Calculation for VMQ under other settings; see the module documentation.
pub(crate) struct VmqWhatIf {
    settings: Vec<Setting>,
    recorded: Vmq,
    other: Vmq,
    was: Sum,
    would: Sum,
}

/// Returns `spec` with the settings applied. Keys have the names of the host file; former names are
/// accepted, too.
fn set(settings: &[Setting], mut spec: VmqSpec) -> Result<VmqSpec> {
    for setting in settings {
        match setting.field.as_str() {
            "max_workers" | "max_processors" => spec.max_workers = setting.value()?,
            "mode" => spec.mode = setting.value()?,
            "enabled" => spec.enabled = setting.value()?,
            "base_worker" | "base_processor" => spec.base_worker = setting.value()?,
            "max_worker_number" | "max_processor_number" => {
                spec.max_worker_number = setting.value()?;
            }
            "parking" => spec.parking = setting.value()?,
            "high_percent" => {
                spec.water.high = Load::from_ppm(setting.value::<u32>()?.saturating_mul(10_000));
            }
            _ => {
                return setting.unknown(
                    "max_workers, mode, enabled, base_worker, max_worker_number, parking and \
                     high_percent",
                );
            }
        }
    }
    Ok(spec)
}

impl VmqWhatIf {
    pub(crate) fn begin(at: Time, birth: &[u8], settings: Vec<Setting>) -> Result<Self> {
        let VmqInitialState { spec, workers: processors } = decode(birth)?;
        let other = set(&settings, spec.clone())?;
        Ok(Self {
            settings,
            recorded: Vmq::new(spec, &processors, at)?,
            other: Vmq::new(other, &processors, at).context("VMQ with this setting")?,
            was: Sum::default(),
            would: Sum::default(),
        })
    }

    /// Returns the measurements that would have resulted.
    fn measured(&self, of: &Measurements) -> (Measurements, u64) {
        let was: BTreeMap<QueueId, WorkerId> = self.recorded.placement().collect();
        let would: BTreeMap<QueueId, WorkerId> = self.other.placement().collect();
        let sum = |places: &BTreeMap<QueueId, WorkerId>| {
            let mut sum = BTreeMap::<WorkerId, u64>::new();
            for QueueBusy { queue, busy_ns } in &of.queues {
                if let Some(at) = places.get(queue) {
                    *sum.entry(*at).or_default() += busy_ns;
                }
            }
            sum
        };
        let (own_was, own_would) = (sum(&was), sum(&would));
        let period = u64::try_from(of.period.as_nanos()).unwrap_or(u64::MAX);
        let mut room = BTreeMap::new();
        let mut processors = Vec::new();
        for WorkerBusy { worker: processor, busy_ns } in &of.workers {
            let of = |sums: &BTreeMap<_, u64>| sums.get(processor).copied().unwrap_or_default();
            let others = busy_ns.saturating_sub(of(&own_was)).min(period);
            let own = of(&own_would).min(period - others);
            room.insert(*processor, (own, of(&own_would)));
            processors.push(WorkerBusy { worker: *processor, busy_ns: others + own });
        }
        let mut short = 0;
        let queues = of.queues.iter().map(|QueueBusy { queue, busy_ns }| {
            let at = would.get(queue).and_then(|at| room.get(at));
            let busy_ns = match at {
                Some((got, wanted)) if got < wanted => {
                    let part = u128::from(*busy_ns) * u128::from(*got) / u128::from(*wanted);
                    let part = u64::try_from(part).unwrap_or(u64::MAX);
                    short += busy_ns - part;
                    part
                }
                _ => *busy_ns,
            };
            QueueBusy { queue: *queue, busy_ns }
        });
        let queues = queues.collect();
        (Measurements { period: of.period, queues, workers: processors }, short)
    }
}

/// Carries out moves of queues immediately.
fn carry_out(vmq: &mut Vmq, at: Time, input: &VmqInput) -> u64 {
    let decision = vmq.step(at, input);
    for of in decision.moves() {
        vmq.handle_moved(of.queue, of.to, at);
    }
    decision.moves().len() as u64
}

impl WhatIf for VmqWhatIf {
    fn step(&mut self, at: Time, input: &[u8]) -> Result<(), RecordError> {
        let input: VmqInput = decode(input)?;
        let mut told = match &input {
            VmqInput::Configure(VmqInitialState { spec, workers: processors }) => {
                let spec = set(&self.settings, spec.clone());
                let spec = spec.map_err(|error| RecordError::Body(error.to_string()))?;
                Some(VmqInput::Configure(VmqInitialState { spec, workers: processors.clone() }))
            }
            // Results of moves were reported for the recorded placement only.
            VmqInput::Found { .. } | VmqInput::Moved { .. } => None,
            other => Some(other.clone()),
        };
        if let VmqInput::Observe(measurements) = &input {
            let (other, short) = self.measured(measurements);
            self.was.observe(&self.recorded, measurements);
            self.would.observe(&self.other, &other);
            self.would.short_ns += short;
            told = Some(VmqInput::Observe(other));
        }
        self.was.moves += self.recorded.step(at, &input).moves().len() as u64;
        if let Some(told) = told {
            self.would.moves += carry_out(&mut self.other, at, &told);
        }
        Ok(())
    }

    fn calculate(&self, _names: &Names) -> Result<(Vec<Row>, Vec<String>)> {
        let Self { was, would, .. } = self;
        let both = |of: fn(&Sum) -> String| (of(was), of(would));
        let row = |what: &str, (was, would): (String, String)| Row::new(what, was, would);
        let rows = vec![
            row("moves", both(|of| of.moves.to_string())),
            row("workers with load by queues, mean", both(Sum::used_mean)),
            row("workers with load by queues, maximum", both(|of| of.used_max.to_string())),
            row("busiest worker, mean load", both(Sum::busiest_mean)),
            row("seconds of saturated workers", both(|of| seconds(of.saturated_ns))),
            row("seconds of load without a worker", both(|of| seconds(of.short_ns))),
        ];
        let mut notes = vec![format!(
            "{} s; the load of a queue is assumed to be as recorded on any worker, and moves to \
             take no time",
            seconds(was.ns)
        )];
        if was.saturated_ns > 0 {
            notes.push(
                "while a worker was saturated, the load of its queues may have been higher than \
                 recorded"
                    .to_owned(),
            );
        }
        Ok((rows, notes))
    }
}

impl Sum {
    fn observe(&mut self, vmq: &Vmq, of: &Measurements) {
        let period = u64::try_from(of.period.as_nanos()).unwrap_or(u64::MAX);
        if period == 0 {
            return;
        }
        let works: BTreeSet<QueueId> = of
            .queues
            .iter()
            .filter(|queue| queue.busy_ns > period / 1000)
            .map(|queue| queue.queue)
            .collect();
        let places = vmq.placement().filter(|(queue, _)| works.contains(queue));
        let used: BTreeSet<WorkerId> = places.map(|(_, at)| at).collect();
        let busiest = of.workers.iter().map(|of| of.busy_ns).max().unwrap_or_default();
        let busiest = (busiest.saturating_mul(1000) / period).min(1000);
        self.ns += period;
        self.used += used.len() as u64 * period;
        self.used_max = self.used_max.max(used.len());
        self.busiest += busiest * period;
        if busiest >= SATURATED {
            self.saturated_ns += period;
        }
    }

    fn used_mean(&self) -> String {
        format!("{:.2}", self.used as f64 / self.ns.max(1) as f64)
    }

    fn busiest_mean(&self) -> String {
        format!("{:.1} %", self.busiest as f64 / self.ns.max(1) as f64 / 10.0)
    }
}

fn seconds(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1e9)
}
