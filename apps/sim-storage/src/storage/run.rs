//! Execution and summary of a storage scenario.

use anyhow::{Result, bail};
use serde::Serialize;
use suimon_cluster_qos::Parameters;
use suimon_quantity::{Time, TimedRateLimit};
use suimon_sim_kernel::{
    Checker, Figure, InvalidKeys, Observer, Options, SECOND_NS, Scenario, ScenarioResult, Trace,
};
use suimon_storage_qos::{
    Capacity, ConfigStep, LimitsOwner, Store, StoreEvent, StoreScheduler, StoreSpec, UnmetMinimum,
};

use crate::cluster::{
    CapacityChecker, CheckerParameters, ClusterMinimumChecker, ClusterModel, ClusterSpec,
    LeaseChecker, ProductionFactory, StateMachineFactory, Topology, UnusedCapacityChecker,
};
use crate::storage::capacity::measure_capacity;
use crate::storage::checkers::{
    DispatchOrderChecker, MaximumChecker, MinimumChecker, NodeLimitChecker, WorkConservationChecker,
};
use crate::storage::facts::Fact;
use crate::storage::intervention::Intervention;
use crate::storage::ledger::{Ledger, SLICE_NS};
use crate::storage::node_store::{NodeStore, Scheduler};
use crate::storage::random_interventions;
use crate::storage::shared_store_state::SharedStoreState;
use crate::storage::spec::{Expectation, NodeSpec, StorageScenario, cost};
use crate::storage::world::World;

/// Results of one step of the scenario.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StepReport {
    pub(crate) name: String,
    pub(crate) disks: Vec<DiskReport>,
}

/// Results of a disk in a step, without the step's settling time.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DiskReport {
    pub(crate) disk: String,
    /// Rate in normalised operations per second.
    pub(crate) iops: f64,
    /// Throughput as in the published experiments: 8 KB per operation.
    pub(crate) mb_s: f64,
    /// Latency of the array in ms, without queueing in the node.
    pub(crate) latency_ms: f64,
}

impl Scenario for StorageScenario {
    fn name(&self) -> &str {
        &self.name
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn has_swarm(&self) -> bool {
        self.swarm.is_some()
    }

    fn check(&self, invalid: &mut InvalidKeys) {
        self.check_keys(invalid);
    }

    fn run(&self, options: Options) -> Result<ScenarioResult> {
        run(self, options)
    }
}

/// Runs a scenario with the production scheduler.
///
/// # Errors
/// The store rejects a limit of the scenario.
pub(crate) fn run(scenario: &StorageScenario, options: Options) -> Result<ScenarioResult> {
    let makers = PolicyFactories {
        scheduler: &|spec| Box::new(StoreScheduler::new(spec)),
        machines: &|| Box::new(ProductionFactory),
    };
    run_with(scenario, options, &makers)
}

/// Factories of schedulers and state machines. Tests use faulty ones, which violate guarantees.
pub(crate) struct PolicyFactories<'m> {
    pub(crate) scheduler: &'m dyn Fn(StoreSpec) -> Box<dyn Scheduler>,
    pub(crate) machines: &'m dyn Fn() -> Box<dyn StateMachineFactory>,
}

/// Runs a scenario with the given factories.
pub(crate) fn run_with(
    scenario: &StorageScenario,
    options: Options,
    makers: &PolicyFactories<'_>,
) -> Result<ScenarioResult> {
    let Options { seed, is_swarm, records_lines: keeps_lines } = options;
    let capacity = measure_capacity(scenario, seed);
    let (interventions, seconds) = match &scenario.swarm {
        Some(spec) if is_swarm => {
            (random_interventions::draw_all(scenario, spec, seed, capacity), spec.seconds)
        }
        None if is_swarm => {
            bail!("the scenario has no table `[swarm]`; add one, or run it without random changes")
        }
        _ => (steps(scenario), scenario.step.iter().map(|step| step.seconds).sum()),
    };
    let nodes = nodes(scenario, capacity, makers.scheduler);
    let checkers = checkers(scenario, capacity);
    let control = scenario.cluster.as_ref().map(|spec| {
        let topology = Topology {
            clocks: scenario.node.iter().map(NodeSpec::clock).collect(),
            stores: vec![vec![0]; nodes.len()],
            capacities: vec![declared(spec, capacity)],
        };
        ClusterModel::new(spec, topology, seed, (makers.machines)())
    });
    let observer = Observer::new(Trace::new(keeps_lines), checkers);
    let mut world = World::new(scenario, seed, nodes, control, interventions, observer);
    world.run(Time::from_ns(seconds * SECOND_NS));
    if let Some(refusal) = &world.rejection {
        bail!("step: limits were rejected: {refusal}");
    }
    let is_reported = !is_swarm;
    let sum = Sum { scenario, ledger: &world.ledger, can: capacity };
    let mut notes = vec![format!(
        "the measured capacity of the array is {capacity} operations of 8 KB per second"
    )];
    notes.extend(world.cluster_model.as_ref().map(|control| control.counts.to_string()));
    let mut outcome = ScenarioResult {
        events: world.processed_events(),
        virtual_s: seconds,
        parameters: notes,
        steps: if is_reported {
            serde_json::to_value(sum.steps())?
        } else {
            serde_json::Value::Null
        },
        table: if is_reported { sum.table() } else { Vec::new() },
        figures: if is_reported { sum.figures() } else { Vec::new() },
        notices: sum.notices_text(),
        ..ScenarioResult::default()
    };
    outcome.set_trace(&world.observer.trace);
    outcome.add_violations(world.observer.violations);
    Ok(outcome)
}

/// Returns the declared capacity of the store for all nodes together, given the measured one.
fn declared(cluster: &ClusterSpec, capacity: u64) -> u64 {
    capacity * cluster.declared_capacity_percent / 100
}

fn nodes(
    scenario: &StorageScenario,
    capacity: u64,
    make: &dyn Fn(StoreSpec) -> Box<dyn Scheduler>,
) -> Vec<NodeStore> {
    let node_of = |node: &NodeSpec| {
        let mut store = Store::default();
        let mut scheduler = make(StoreSpec::default());
        let clock = node.clock();
        let change: ConfigStep = store.set_capacity(Capacity::Measured(capacity));
        scheduler.apply(clock.local_time(Time::ZERO), change);
        let mut node = NodeStore::new(store, scheduler, clock);
        if scenario.cluster.is_some() {
            // The node has no limit yet, and may not dispatch requests until it receives one.
            node.shared = Some(SharedStoreState::default());
            node.apply(Time::ZERO, ConfigStep::SetCap(Some(TimedRateLimit::default())));
        }
        node
    };
    scenario.node.iter().map(node_of).collect()
}

fn checkers(scenario: &StorageScenario, capacity: u64) -> Vec<Box<dyn Checker<Fact>>> {
    let clocks = scenario.disks().iter().map(|disk| scenario.node[disk.node].clock()).collect();
    let mut checkers: Vec<Box<dyn Checker<Fact>>> =
        vec![Box::new(MaximumChecker::new(clocks)), Box::new(DispatchOrderChecker::default())];
    let swarm = scenario.swarm.as_ref();
    let recovery_s = swarm.map_or(0, |swarm| swarm.recovery_s);
    if let Some(cluster) = &scenario.cluster {
        let terms = Parameters::default();
        let declared = declared(cluster, capacity);
        let disks: Vec<(u32, u32)> =
            scenario.disks().iter().map(|disk| (disk.node as u32, 0)).collect();
        let largest = scenario.disks().iter().map(|disk| disk.load.block_kb << 10).max();
        let locations = CheckerParameters {
            disk_locations: disks,
            capacities: vec![declared],
            nodes_per_store: vec![scenario.node.len() as u64],
            report_interval_ns: 1,
            request_cost_max: u64::from(cost(largest.unwrap_or_default())),
            recovery_ns: swarm.map_or(0, |swarm| swarm.cluster_recovery_s) * SECOND_NS,
            store_recovery_ns: recovery_s * SECOND_NS,
        };
        checkers.push(Box::new(CapacityChecker::new(&[declared])));
        checkers.push(Box::new(LeaseChecker::new(&terms)));
        checkers.push(Box::new(NodeLimitChecker::new(&locations)));
        checkers.push(Box::new(ClusterMinimumChecker::new(&locations, &terms)));
        checkers.push(Box::new(UnusedCapacityChecker::new(&locations, &terms)));
    } else if scenario.node.len() == 1 {
        // These properties require that a single node uses the array: independent nodes cannot
        // guarantee minimums.
        checkers.push(Box::new(MinimumChecker::new(capacity, recovery_s)));
        checkers.push(Box::new(WorkConservationChecker::default()));
    }
    checkers
}

fn steps(scenario: &StorageScenario) -> Vec<(u64, Intervention)> {
    let (mut start, mut interventions) = (0, Vec::new());
    for step in &scenario.step {
        for set in &step.limit_changes {
            let (disks, limits) = (scenario.disks_in_range(&set.disks), set.limits());
            interventions
                .push((start, Intervention::Limit { disks, limits, may_be_refused: false }));
        }
        start += step.seconds * SECOND_NS;
    }
    interventions
}

/// Data from which the report about the steps is computed.
struct Sum<'s> {
    scenario: &'s StorageScenario,
    ledger: &'s Ledger,
    /// Capacity of the array in normalised operations per second.
    can: u64,
}

/// Converts a rate as the published experiments do: 8 KB per operation.
fn mb_s(iops: f64) -> f64 {
    iops * 8.0 / 1000.0
}

impl Sum<'_> {
    /// Returns the start and end of a step in ns.
    fn bounds(&self, step: usize) -> (u64, u64) {
        let seconds =
            |until: usize| self.scenario.step[..until].iter().map(|step| step.seconds).sum();
        let (start, until): (u64, u64) = (seconds(step), seconds(step + 1));
        (start * SECOND_NS, until * SECOND_NS)
    }

    /// Returns the rate of a disk in a step without the settling time, in normalised operations per
    /// second.
    fn mean(&self, step: usize, disk: u32) -> f64 {
        let (start, until) = self.bounds(step);
        self.ledger.iops(disk, start + self.scenario.settle_s * SECOND_NS, until)
    }

    fn steps(&self) -> Vec<StepReport> {
        let names = self.scenario.disks();
        let step_report = |step: usize| {
            let (start, until) = self.bounds(step);
            let start = start + self.scenario.settle_s * SECOND_NS;
            let disks = (0..names.len() as u32).map(|disk| {
                let iops = self.mean(step, disk);
                let latency_ms = self.ledger.latency_ms(disk, start, until);
                let name = names[disk as usize].name.to_owned();
                DiskReport { disk: name, iops, mb_s: mb_s(iops), latency_ms }
            });
            StepReport { name: self.scenario.step[step].name.clone(), disks: disks.collect() }
        };
        (0..self.scenario.step.len()).map(step_report).collect()
    }

    /// Returns a table with one row per step and one column per disk, in MB/s.
    fn table(&self) -> Vec<Vec<String>> {
        let mut rows = vec![vec!["MB/s".to_owned()]];
        rows[0].extend(self.scenario.disks().iter().map(|disk| disk.name.to_owned()));
        rows[0].push("sum".to_owned());
        for step in self.steps() {
            let mut row = vec![step.name];
            row.extend(step.disks.iter().map(|disk| format!("{:.1}", disk.mb_s)));
            row.push(format!("{:.1}", step.disks.iter().map(|disk| disk.mb_s).sum::<f64>()));
            rows.push(row);
        }
        rows
    }

    fn notices_text(&self) -> Vec<String> {
        let notices = self.ledger.notices.iter().map(|(time, node, event)| {
            let name = &self.scenario.node[*node as usize].name;
            format!("{:.1} s, {name}: {}", *time as f64 / SECOND_NS as f64, self.event_text(event))
        });
        notices.collect()
    }

    fn event_text(&self, event: &StoreEvent) -> String {
        let owner_text = |holder: &LimitsOwner| match holder {
            LimitsOwner::Disk(disk) => self.scenario.disks()[disk.0 as usize].name.to_owned(),
            LimitsOwner::Policy(policy) => format!("policy {}", policy.0),
        };
        match event {
            StoreEvent::MinimumUnmet(UnmetMinimum {
                owner: holder,
                guaranteed_iops,
                delivered_iops,
                reason: shortfall,
                unmet_for: lasting,
                ..
            }) => {
                let seconds = lasting.as_secs();
                let holder = owner_text(holder);
                format!(
                    "{holder} gets {delivered_iops} of {guaranteed_iops} guaranteed IOPS for \
                     {seconds} s: {shortfall:?}"
                )
            }
            StoreEvent::MinimumMet { owner: holder, .. } => {
                format!("{} gets its minimum again", owner_text(holder))
            }
            StoreEvent::CapacityLow(low) => format!(
                "the store delivers {} IOPS and needs {}",
                low.estimate_iops, low.needed_iops
            ),
            StoreEvent::CapacitySufficient { .. } => "the store delivers enough again".to_owned(),
        }
    }

    fn figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for (number, step) in self.scenario.step.iter().enumerate() {
            for figure in &step.figure {
                let disks = self.scenario.disks_in_range(&figure.disks);
                let (result_text, agrees) = self.evaluate(number, &disks, &figure.expectation);
                figures.push(Figure {
                    step: step.name.clone(),
                    quantity: figure.disks.clone(),
                    published: figure.published.clone(),
                    simulated_value: result_text,
                    agrees,
                    purpose: figure.purpose,
                });
            }
        }
        figures
    }

    /// Returns the result of a step as text, and true if it meets the expectation.
    fn evaluate(&self, step: usize, disks: &[u32], expect: &Expectation) -> (String, bool) {
        let means: Vec<f64> = disks.iter().map(|disk| self.mean(step, *disk)).collect();
        let (lowest, highest) = (fold(&means, f64::min), fold(&means, f64::max));
        let range_text = format!("{:.1} to {:.1} MB/s each", mb_s(lowest), mb_s(highest));
        let other = |name: &str| {
            let step_number = self.scenario.step.iter().position(|step| step.name == name);
            step_number.unwrap_or_default()
        };
        let other_means = |name: &str| -> Vec<f64> {
            disks.iter().map(|disk| self.mean(other(name), *disk)).collect()
        };
        match expect {
            Expectation::EachDisk { iops, within_percent } => {
                let (iops, tolerance) = (*iops as f64, *within_percent as f64 / 100.0);
                let agrees = means.iter().all(|mean| (mean / iops - 1.0).abs() <= tolerance);
                (range_text, agrees)
            }
            Expectation::EachDiskBelow { iops } => (range_text, highest < *iops as f64),
            Expectation::SumBelow { iops } => {
                let sum: f64 = means.iter().sum();
                (format!("{:.1} MB/s in total", mb_s(sum)), sum < *iops as f64)
            }
            Expectation::Equal { within_percent } => {
                (range_text, highest - lowest <= highest * *within_percent as f64 / 100.0)
            }
            Expectation::Above { step } => {
                let agrees = means.iter().zip(&other_means(step)).all(|(mean, other)| mean > other);
                (range_text, agrees)
            }
            Expectation::Below { step } => {
                let agrees = means.iter().zip(&other_means(step)).all(|(mean, other)| mean < other);
                (range_text, agrees)
            }
            Expectation::ReachedWithin { iops, seconds } => {
                self.time_to_rate(step, disks, *iops, *seconds)
            }
            Expectation::CapacityUsed { percent } => {
                let sum: f64 = means.iter().sum();
                let used = sum * 100.0 / self.can as f64;
                (format!("{used:.1} % of the capacity of the array"), used >= *percent as f64)
            }
            Expectation::MinimumsRejected { within_s } => {
                let (start, until) = self.bounds(step);
                let refusals = self.ledger.rejections.iter().map(|(time, _)| *time);
                let first = refusals.filter(|time| (start..until).contains(time)).min();
                let Some(first) = first else { return ("not rejected".to_owned(), false) };
                let after = first - start;
                (
                    format!("rejected after {:.1} s", after as f64 / SECOND_NS as f64),
                    after <= within_s * SECOND_NS,
                )
            }
            Expectation::UnmetNoticeAfter { step, seconds, within_s } => {
                let (start, _) = self.bounds(other(step));
                let first_notices =
                    disks.iter().filter_map(|disk| self.ledger.unmet_notified_at(*disk, start));
                let Some(first) = first_notices.min() else { return ("never".to_owned(), false) };
                let after = (first - start) as f64 / SECOND_NS as f64;
                let agrees = (after - *seconds as f64).abs() <= *within_s as f64;
                (format!("after {after:.1} s"), agrees)
            }
        }
    }

    /// Returns a text about the time from the start of the step at which all disks have reached 95
    /// % of `iops` for good, measured in windows of 2 s; and true if this time is at most
    /// `seconds`.
    fn time_to_rate(&self, step: usize, disks: &[u32], iops: u64, seconds: u64) -> (String, bool) {
        const WINDOW_NS: u64 = 2 * SECOND_NS;
        let (start, until) = self.bounds(step);
        let has_rate = |start_ns: u64| {
            let rate = |disk: &u32| self.ledger.iops(*disk, start_ns, start_ns + WINDOW_NS);
            disks.iter().all(|disk| rate(disk) >= iops as f64 * 0.95)
        };
        let mut first = until - WINDOW_NS;
        while first >= start && has_rate(first) {
            first -= SLICE_NS;
            if first < start || first < SLICE_NS {
                break;
            }
        }
        let after = (first + SLICE_NS).saturating_sub(start);
        let result_text = match has_rate(until - WINDOW_NS) {
            true => format!("from {:.1} s on", after as f64 / SECOND_NS as f64),
            false => "never".to_owned(),
        };
        (result_text, has_rate(until - WINDOW_NS) && after <= seconds * SECOND_NS)
    }
}

fn fold(values: &[f64], combine: fn(f64, f64) -> f64) -> f64 {
    values.iter().copied().reduce(combine).unwrap_or_default()
}
