//! Nodes that share an array: results, and detection of violations by checkers.

use suimon_sim_kernel::{Options, ScenarioResult};
use suimon_storage_qos::StoreScheduler;

use crate::cluster::broken_machines::{Broken, FaultKind};
use crate::storage::StorageScenario;
use crate::storage::run::{PolicyFactories, run, run_with};

const CLUSTER_MIN: &str = include_str!("../../../sim/scenarios/qos-cluster-min.toml");

fn read() -> StorageScenario {
    suimon_sim_kernel::read(CLUSTER_MIN).unwrap()
}

fn run_options(seed: u64, is_swarm: bool) -> Options {
    Options { seed, is_swarm, records_lines: false }
}

/// Verifies that the minimum holds, in contrast to the published per-node ones. One figure differs;
/// docs/simulator.md explains the reason.
#[test]
fn qos_cluster_min_meets_its_minimum_with_every_seed() {
    let scenario = read();
    for seed in [1, 2, 3] {
        let outcome = run(&scenario, run_options(seed, false)).unwrap();
        let differing = outcome.figures.iter().filter(|figure| !figure.agrees);
        let differing: Vec<&str> = differing.map(|figure| figure.published.as_str()).collect();
        assert_eq!(differing, ["24 MB/s each, by the text"], "{:?}", outcome.figures);
        assert_eq!(outcome.violations, [], "seed {seed}");
        assert!(outcome.checks >= 100, "{}", outcome.checks);
    }
}

#[test]
fn a_cluster_repeats_bit_for_bit() {
    let scenario = read();
    for is_swarm in [false, true] {
        let [first, second, other] =
            [5, 5, 6].map(|seed| run(&scenario, run_options(seed, is_swarm)).unwrap().trace_hash);
        assert_eq!(first, second);
        assert_ne!(first, other);
    }
}

fn broken(defect: FaultKind, options: Options) -> ScenarioResult {
    let makers = PolicyFactories {
        scheduler: &|spec| Box::new(StoreScheduler::new(spec)),
        machines: &move || Box::new(Broken(defect)),
    };
    run_with(&read(), options, &makers).unwrap()
}

#[test]
fn each_faulty_policy_is_detected_by_the_checker_for_its_fault() {
    for (defect, checker) in [
        (FaultKind::Generous, "caps"),
        (FaultKind::Stingy, "spare"),
        (FaultKind::Clinging, "leases"),
        (FaultKind::Silent, "minimums"),
    ] {
        let outcome = broken(defect, run_options(1, false));
        let checkers: Vec<&str> =
            outcome.violations.iter().map(|complaint| complaint.checker).collect();
        assert!(checkers.contains(&checker), "{defect:?}: {checkers:?} and not {checker}");
    }
}

/// Verifies detection of a fault that only occurs with other faults: a leader that ignores grants
/// of an earlier one.
#[test]
fn a_swarm_detects_a_policy_that_is_faulty_during_faults_only_and_no_fault_in_production() {
    let scenario = read();
    assert_eq!(broken(FaultKind::Forgetful, run_options(1, false)).violations, []);
    let (mut found_count, mut judged) = (0, 0);
    for seed in 1..=20 {
        let outcome = run(&scenario, run_options(seed, true)).unwrap();
        assert_eq!(outcome.violations, [], "seed {seed}");
        judged += outcome.checks;
        let outcome = broken(FaultKind::Forgetful, run_options(seed, true));
        found_count +=
            u32::from(outcome.violations.iter().any(|complaint| complaint.checker == "caps"));
    }
    assert!(found_count >= 3, "{found_count} of 20");
    assert!(judged >= 200, "{judged}");
}

#[test]
fn an_invalid_cluster_is_rejected_with_the_key() {
    let cases = [
        ("members = 3", "members = 0", "cluster.etcd.members: 0 is outside of 1 to 9"),
        ("session_s = 5", "session_s = 0", "cluster.etcd.session_s: 0"),
        ("delay_us = 100", "delay_us = 9000000", "cluster.network.delay_us"),
        ("declared_percent = 98", "declared_percent = 0", "cluster.declared_percent"),
        ("declared_percent = 98", "declared = 98", "unknown field `declared`"),
        ("clock_ppm = 90", "clock_ppm = 900000", "node.clock_ppm: 900000"),
    ];
    for (from, to, message) in cases {
        assert!(CLUSTER_MIN.contains(from), "{from}");
        let error = suimon_sim_kernel::read::<StorageScenario>(&CLUSTER_MIN.replacen(from, to, 1))
            .unwrap_err()
            .to_string();
        assert!(error.contains(message), "{to}: {error}");
    }
}
