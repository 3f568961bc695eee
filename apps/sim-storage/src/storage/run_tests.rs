//! Runs of scenarios, and detection of violations by checkers.

use suimon_quantity::{Iops, Time, TimedRateLimit};
use suimon_sim_kernel::{FigurePurpose, Options, ScenarioResult};
use suimon_storage_qos::{ConfigStep, Limits, NextAction, StoreScheduler, StoreSpec};

use crate::cluster::ProductionFactory;
use crate::storage::node_store::Scheduler;
use crate::storage::run::{PolicyFactories, run, run_with};
use crate::storage::{StorageScenario, calibrate};

const HOST: &str = include_str!("../../../sim/scenarios/qos-host.toml");
const SHARED: &str = include_str!("../../../sim/scenarios/qos-cluster-min.toml");
const CLUSTER_MIN: &str = include_str!("../../../sim/scenarios/qos-cluster-min-per-node.toml");
const CLUSTER_MAX: &str = include_str!("../../../sim/scenarios/qos-cluster-max.toml");

fn read(text: &str) -> StorageScenario {
    suimon_sim_kernel::read(text).unwrap()
}

fn run_options(seed: u64, is_swarm: bool) -> Options {
    Options { seed, is_swarm, records_lines: false }
}

fn differing(outcome: &ScenarioResult) -> Vec<&str> {
    let differing = outcome.figures.iter().filter(|figure| !figure.agrees);
    differing.map(|figure| figure.published.as_str()).collect()
}

#[test]
fn qos_host_agrees_with_published_figures_with_every_seed() {
    let scenario = read(HOST);
    for seed in [1, 2, 3] {
        let outcome = run(&scenario, run_options(seed, false)).unwrap();
        assert_eq!(differing(&outcome), [""; 0], "{:?}", outcome.figures);
        assert_eq!(outcome.violations, [], "seed {seed}");
        assert!(outcome.checks >= 50, "{}: each minimum each five seconds", outcome.checks);
        assert!(outcome.notices.is_empty(), "{:?}", outcome.notices);
        assert!(outcome.figures.iter().any(|figure| figure.purpose == FigurePurpose::HeldOut));
    }
}

/// Verifies that minimums kept by each node independently are violated, as published. Two figures
/// differ; docs/simulator.md explains the reasons.
#[test]
fn minimums_of_independent_nodes_are_violated_as_published() {
    let outcome = run(&read(CLUSTER_MIN), run_options(1, false)).unwrap();
    let known_differences =
        ["the event appears about 60 s after step 2", "24 MB/s each, by the text"];
    assert_eq!(differing(&outcome), known_differences);
    assert_eq!(outcome.violation_count, 0);
}

#[test]
fn maximums_of_a_cluster_hold_as_published() {
    let outcome = run(&read(CLUSTER_MAX), run_options(1, false)).unwrap();
    assert_eq!(differing(&outcome), [""; 0]);
    assert_eq!(outcome.violation_count, 0);
}

#[test]
fn the_parameter_in_the_scenario_equals_the_calibrated_one() {
    let calibrated = calibrate(&read(HOST), 1).unwrap();
    assert_eq!(calibrated.best_value, calibrated.scenario_value, "{calibrated:?}");
    assert!(calibrated.iops.abs_diff(calibrated.target_iops) < 200, "{calibrated:?}");
}

#[test]
fn the_same_seed_gives_the_same_trace_bit_for_bit() {
    let scenario = read(HOST);
    let run =
        |seed, is_swarm| run(&scenario, Options { seed, is_swarm, records_lines: true }).unwrap();
    for is_swarm in [false, true] {
        let (first, second, other) = (run(5, is_swarm), run(5, is_swarm), run(6, is_swarm));
        assert!(first.lines.len() > 1_000_000 && first.facts == first.lines.lines().count() as u64);
        assert_eq!(first.trace_hash, second.trace_hash);
        assert!(first.lines == second.lines, "the traces differ although their hashes do not");
        assert_ne!(first.trace_hash, other.trace_hash);
    }
}

/// Scheduler with a fault, to test that checkers detect it.
struct Broken {
    scheduler: StoreScheduler,
    how: How,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// Maximums are 5 % too high.
    Generous,
    /// Minimums are ignored.
    Forgetful,
    /// For 100 ms of every 20 s, the scheduler reports that no request is eligible.
    Sleepy,
    /// The node's limit is exceeded by half of it while it is leased.
    Unheld,
}

impl Scheduler for Broken {
    fn production(&self) -> &StoreScheduler {
        &self.scheduler
    }

    fn production_mut(&mut self) -> &mut StoreScheduler {
        &mut self.scheduler
    }

    fn apply(&mut self, now: Time, change: ConfigStep) {
        let change = match change {
            ConfigStep::SetFlow { flow, owner: holder, limits } => {
                let limits = match self.how {
                    How::Generous => {
                        let raised = |max: Iops| Iops::new(max.per_second() * 105 / 100);
                        Limits { max_iops: limits.max_iops.and_then(raised), ..limits }
                    }
                    How::Forgetful => Limits { min_iops: None, ..limits },
                    How::Sleepy | How::Unheld => limits,
                };
                ConfigStep::SetFlow { flow, owner: holder, limits }
            }
            ConfigStep::SetCap(Some(cap)) if self.how == How::Unheld => {
                let leased = cap.leased_iops_until.map(|(iops, until)| (iops * 3 / 2, until));
                ConfigStep::SetCap(Some(TimedRateLimit { leased_iops_until: leased, ..cap }))
            }
            other => other,
        };
        self.scheduler.apply(now, change);
    }

    fn poll(&mut self, now: Time) -> NextAction {
        // The interval of the fault: 100 ms of every 20 s.
        if self.how == How::Sleepy && now.as_ns() / 100_000_000 % 200 == 150 {
            return NextAction::Idle;
        }
        self.scheduler.poll(now)
    }
}

fn with(scheduler: &dyn Fn(StoreSpec) -> Box<dyn Scheduler>) -> PolicyFactories<'_> {
    PolicyFactories { scheduler, machines: &|| Box::new(ProductionFactory) }
}

fn broken(defect: How, scenario: &str) -> ScenarioResult {
    let make = |spec: StoreSpec| -> Box<dyn Scheduler> {
        Box::new(Broken { scheduler: StoreScheduler::new(spec), how: defect })
    };
    run_with(&read(scenario), run_options(1, false), &with(&make)).unwrap()
}

#[test]
fn each_faulty_scheduler_is_detected_by_the_checker_for_its_fault() {
    for (defect, checker, scenario) in [
        (How::Generous, "maximum", HOST),
        (How::Forgetful, "minimum", HOST),
        (How::Sleepy, "idle", HOST),
        (How::Unheld, "within", SHARED),
    ] {
        let outcome = broken(defect, scenario);
        let checkers: Vec<&str> =
            outcome.violations.iter().map(|complaint| complaint.checker).collect();
        assert!(checkers.contains(&checker), "{checkers:?} and not {checker}");
    }
}

#[test]
fn a_swarm_detects_a_faulty_scheduler_and_no_fault_in_production() {
    let scenario = read(HOST);
    let make = |spec: StoreSpec| -> Box<dyn Scheduler> {
        Box::new(Broken { scheduler: StoreScheduler::new(spec), how: How::Generous })
    };
    let (mut found_count, mut judged) = (0, 0);
    for seed in 1..=20 {
        let outcome = run(&scenario, run_options(seed, true)).unwrap();
        assert_eq!(outcome.violations, [], "seed {seed}");
        judged += outcome.checks;
        let outcome = run_with(&scenario, run_options(seed, true), &with(&make)).unwrap();
        found_count += u32::from(outcome.violation_count > 0);
    }
    assert!(found_count >= 3, "{found_count} of 20");
    assert!(judged >= 50, "{judged}");
}

#[test]
fn an_invalid_scenario_is_rejected_with_the_key() {
    let cases = [
        ("pairs = 5", "pairs = 0", "array.pairs: 0 is outside of 1 to 1024"),
        ("pairs = 5", "pears = 5", "unknown field `pears`"),
        ("pairs = 5", "pairs = \"five\"", "invalid type: string \"five\", expected u32"),
        ("node = \"host\"", "node = \"guest\"", "clients 1.node: there is no node \"guest\""),
        (
            "max_iops = 1000",
            "max_iops = 1000\nmin_iops = 2000",
            "step 2.set 1: min_iops 2000 exceeds",
        ),
        (
            "disks = \"VM01..VM05\"\nmax",
            "disks = \"VM01..VM11\"\nmax",
            "step 2.set 1.disks: \"VM01..VM11\"",
        ),
        ("seconds = 80", "seconds = 8", "step 3.seconds: 8 must exceed settle_s, 10"),
        ("reorder = 1", "reorder = 0", "array.drive.reorder: 0"),
        ("\"VM02\"", "\"VM01\"", "clients.names: VM01 is listed twice"),
        ("size_gb = 30", "size_gb = 3000", "array.drive.capacity_gb: all disks have 30000 GiB"),
        ("step = \"1 nothing set\"", "step = \"1\"", "there is no step \"1\""),
    ];
    for (from, to, message) in cases {
        assert!(HOST.contains(from), "{from}");
        let error = suimon_sim_kernel::read::<StorageScenario>(&HOST.replacen(from, to, 1))
            .unwrap_err()
            .to_string();
        assert!(error.contains(message), "{to}: {error}");
    }
    let over_capacity = HOST.replacen("min_iops = 3000", "min_iops = 4000", 1);
    let error = run(&read(&over_capacity), run_options(1, false)).unwrap_err().to_string();
    assert!(error.contains("minimums is 16000 IOPS"), "{error}");
}
