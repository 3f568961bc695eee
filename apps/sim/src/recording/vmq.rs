//! Placement of queues by VMQ under other settings.
//!
//! The cost of a queue is assumed to be independent of its worker, and so is the other load of a
//! worker. On an overloaded worker, each queue gets a proportional share. Moves take effect
//! immediately. Additional demand of queues that would have received more CPU time is therefore not
//! modelled.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use suimon_quantity::{QueueId, Time, WorkerId};
use suimon_recording::{ObjectNames, Policy, RecordError, VmqInitialState, VmqInput, decode_json};
use suimon_vmq::{Load, Measurements, QueueBusy, Vmq, VmqSpec, WorkerBusy};

use crate::recording::calculation::{Row, WhatIf};
use crate::recording::settings::Setting;

/// Utilisation in thousandths above which a worker counts as saturated.
const SATURATED: u64 = 980;

/// Totals of VMQ with one set of settings.
#[derive(Clone, Debug, Default)]
struct Sum {
    moves: u64,
    ns: u64,
    /// Number of workers with queues, multiplied by time in ns.
    used: u64,
    used_max: usize,
    /// Utilisation in thousandths of the busiest worker, multiplied by time in ns.
    busiest: u64,
    /// Time in ns for which the busiest worker was saturated.
    saturated_ns: u64,
    /// CPU time in ns that queues demanded and their overloaded workers did not provide.
    short_ns: u64,
}

/// What-if calculation for VMQ under other settings; the module documentation states its
/// assumptions.
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
                spec.water_marks.high =
                    Load::from_ppm(setting.value::<u32>()?.saturating_mul(10_000));
            }
            _ => {
                return setting.unknown_setting_error(
                    "max_workers, mode, enabled, base_worker, max_worker_number, parking and \
                     high_percent",
                );
            }
        }
    }
    Ok(spec)
}

impl VmqWhatIf {
    pub(crate) fn begin(time: Time, initial_state: &[u8], settings: Vec<Setting>) -> Result<Self> {
        let VmqInitialState { spec, workers: processors } = decode_json(initial_state)?;
        let other = set(&settings, spec.clone())?;
        Ok(Self {
            settings,
            recorded: Vmq::new(spec, &processors, time)?,
            other: Vmq::new(other, &processors, time).context("VMQ with this setting")?,
            was: Sum::default(),
            would: Sum::default(),
        })
    }

    /// Returns the measurements that would have resulted from the calculated placement, and the CPU
    /// time in ns that queues would have lacked.
    fn measured(&self, measurements: &Measurements) -> (Measurements, u64) {
        let recorded: BTreeMap<QueueId, WorkerId> = self.recorded.placement().collect();
        let what_if: BTreeMap<QueueId, WorkerId> = self.other.placement().collect();
        let sum = |placement: &BTreeMap<QueueId, WorkerId>| {
            let mut sum = BTreeMap::<WorkerId, u64>::new();
            for QueueBusy { queue, busy_ns } in &measurements.queues {
                if let Some(worker) = placement.get(queue) {
                    *sum.entry(*worker).or_default() += busy_ns;
                }
            }
            sum
        };
        let (own_was, own_would) = (sum(&recorded), sum(&what_if));
        let period = u64::try_from(measurements.period.as_nanos()).unwrap_or(u64::MAX);
        let mut capacities = BTreeMap::new();
        let mut processors = Vec::new();
        for WorkerBusy { worker: processor, busy_ns } in &measurements.workers {
            let load_of =
                |sums: &BTreeMap<_, u64>| sums.get(processor).copied().unwrap_or_default();
            let others = busy_ns.saturating_sub(load_of(&own_was)).min(period);
            let own_ns = load_of(&own_would).min(period - others);
            capacities.insert(*processor, (own_ns, load_of(&own_would)));
            processors.push(WorkerBusy { worker: *processor, busy_ns: others + own_ns });
        }
        let mut short = 0;
        let queues = measurements.queues.iter().map(|QueueBusy { queue, busy_ns }| {
            let worker = what_if.get(queue).and_then(|capacity| capacities.get(capacity));
            let busy_ns = match worker {
                Some((available_ns, required_ns)) if available_ns < required_ns => {
                    let part =
                        u128::from(*busy_ns) * u128::from(*available_ns) / u128::from(*required_ns);
                    let part = u64::try_from(part).unwrap_or(u64::MAX);
                    short += busy_ns - part;
                    part
                }
                _ => *busy_ns,
            };
            QueueBusy { queue: *queue, busy_ns }
        });
        let queues = queues.collect();
        (Measurements { period: measurements.period, queues, workers: processors }, short)
    }
}

/// Passes an input to the policy and completes the resulting moves of queues immediately. Returns
/// the number of moves.
fn carry_out(vmq: &mut Vmq, time: Time, input: &VmqInput) -> u64 {
    let decision = vmq.step(time, input);
    for queue_move in decision.moves() {
        vmq.handle_moved(queue_move.queue, queue_move.to, time);
    }
    decision.moves().len() as u64
}

impl WhatIf for VmqWhatIf {
    fn step(&mut self, time: Time, input: &[u8]) -> Result<(), RecordError> {
        let input: VmqInput = decode_json(input)?;
        let mut replayed_input = match &input {
            VmqInput::Configure(VmqInitialState { spec, workers: processors }) => {
                let spec = set(&self.settings, spec.clone());
                let spec = spec.map_err(|error| RecordError::InvalidBody(error.to_string()))?;
                Some(VmqInput::Configure(VmqInitialState { spec, workers: processors.clone() }))
            }
            // These inputs report results of moves, which apply to the recorded placement only.
            VmqInput::QueueMovedExternally { .. } | VmqInput::QueueMoved { .. } => None,
            other => Some(other.clone()),
        };
        if let VmqInput::Observe(measurements) = &input {
            let (other, short) = self.measured(measurements);
            self.was.observe(&self.recorded, measurements);
            self.would.observe(&self.other, &other);
            self.would.short_ns += short;
            replayed_input = Some(VmqInput::Observe(other));
        }
        self.was.moves += self.recorded.step(time, &input).moves().len() as u64;
        if let Some(replayed_input) = replayed_input {
            self.would.moves += carry_out(&mut self.other, time, &replayed_input);
        }
        Ok(())
    }

    fn calculate(&self, _names: &ObjectNames) -> Result<(Vec<Row>, Vec<String>)> {
        let Self { was: recorded, would: what_if, .. } = self;
        let values_of = |value: fn(&Sum) -> String| (value(recorded), value(what_if));
        let row =
            |title: &str, (recorded, what_if): (String, String)| Row::new(title, recorded, what_if);
        let rows = vec![
            row("moves", values_of(|sum| sum.moves.to_string())),
            row("workers with load by queues, mean", values_of(Sum::used_mean)),
            row("workers with load by queues, maximum", values_of(|sum| sum.used_max.to_string())),
            row("busiest worker, mean load", values_of(Sum::busiest_mean)),
            row("seconds of saturated workers", values_of(|sum| seconds(sum.saturated_ns))),
            row("seconds of load without a worker", values_of(|sum| seconds(sum.short_ns))),
        ];
        let mut notes = vec![format!(
            "{} s; the load of a queue is assumed to be as recorded on any worker, and moves to \
             take no time",
            seconds(recorded.ns)
        )];
        if recorded.saturated_ns > 0 {
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
    fn observe(&mut self, vmq: &Vmq, measurements: &Measurements) {
        let period = u64::try_from(measurements.period.as_nanos()).unwrap_or(u64::MAX);
        if period == 0 {
            return;
        }
        let active_queues: BTreeSet<QueueId> = measurements
            .queues
            .iter()
            .filter(|queue| queue.busy_ns > period / 1000)
            .map(|queue| queue.queue)
            .collect();
        let placements = vmq.placement().filter(|(queue, _)| active_queues.contains(queue));
        let used: BTreeSet<WorkerId> = placements.map(|(_, worker)| worker).collect();
        let busiest = measurements
            .workers
            .iter()
            .map(|worker_busy| worker_busy.busy_ns)
            .max()
            .unwrap_or_default();
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
