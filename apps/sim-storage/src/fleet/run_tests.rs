//! Runs of fleets, and detection of faulty policies by checkers.

use suimon_sim_kernel::Options;

use crate::cluster::broken_machines::{Broken, FaultKind};
use crate::fleet::run::{run, run_with};
use crate::fleet::spec::FleetScenario;

const FLEET: &str = include_str!("../../../sim/scenarios/cluster-10000.toml");

/// Returns the scenario with fewer nodes, stores and seconds.
fn read(nodes: u32, stores: u32, seconds: u64) -> FleetScenario {
    let text = FLEET
        .replace("nodes = 10000\n", &format!("nodes = {nodes}\n"))
        .replace("stores = 1000\n", &format!("stores = {stores}\n"))
        .replace("seconds = 600\n", &format!("seconds = {seconds}\n"));
    suimon_sim_kernel::read(&text).unwrap()
}

fn run_options(seed: u64) -> Options {
    Options { seed, is_swarm: false, records_lines: false }
}

#[test]
fn a_hundred_nodes_keep_their_guarantees_during_faults() {
    let scenario = read(100, 10, 120);
    assert_eq!(scenario.disk_locations().len(), 1000);
    for seed in 1..=3 {
        let outcome = run(&scenario, run_options(seed)).unwrap();
        assert_eq!(outcome.violations, [], "seed {seed}");
        assert!(outcome.checks > 1000, "{}", outcome.checks);
        assert_eq!(outcome.trace_hash, run(&scenario, run_options(seed)).unwrap().trace_hash);
    }
}

/// Verifies that the number of writes to etcd per node is independent of the number of nodes.
#[test]
fn writes_to_etcd_per_node_do_not_depend_on_the_number_of_nodes() {
    let per_node = |nodes, stores| {
        let mut scenario = read(nodes, stores, 30);
        (scenario.faults.count, scenario.disks.limit_changes) = (0, 0);
        let outcome = run(&scenario, run_options(1)).unwrap();
        let requests = outcome.steps["etcd_requests"].as_u64().unwrap();
        requests as f64 / f64::from(nodes) / 30.0
    };
    let (per_small_fleet, per_large_fleet) = (per_node(100, 10), per_node(1000, 100));
    assert!(
        (per_small_fleet / per_large_fleet - 1.0).abs() < 0.1,
        "{per_small_fleet} and {per_large_fleet} a second and node"
    );
}

#[test]
fn a_leader_that_grants_too_much_is_detected() {
    let outcome =
        run_with(&read(40, 4, 30), run_options(1), Box::new(Broken(FaultKind::Generous))).unwrap();
    assert!(
        outcome.violations.iter().all(|complaint| complaint.checker == "caps"),
        "{:?}",
        outcome.violations
    );
    assert!(outcome.violation_count > 10);
}

#[test]
fn an_invalid_fleet_is_rejected_with_the_key() {
    let cases = [
        ("nodes = 10000\n", "nodes = 0\n", "nodes: 0 is outside of 1 to 100000"),
        ("stores_per_node = 2", "stores_per_node = 2000", "stores_per_node: 2000"),
        ("greedy_percent = 3\n", "greedy_percent = 90\n", "disks.greedy_percent and disks"),
        ("[faults]", "[faults]\nof = 1", "unknown field `of`"),
    ];
    for (from, to, message) in cases {
        assert!(FLEET.contains(from), "{from}");
        let error = suimon_sim_kernel::read::<FleetScenario>(&FLEET.replacen(from, to, 1))
            .unwrap_err()
            .to_string();
        assert!(error.contains(message), "{to}: {error}");
    }
}
