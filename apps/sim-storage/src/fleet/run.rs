//! Execution and summary of a fleet scenario.

use anyhow::Result;
use suimon_cluster_qos::Parameters;
use suimon_quantity::Time;
use suimon_sim_kernel::{
    Checker, InvalidKeys, Observer, Options, RandomStream, SECOND_NS, Scenario, ScenarioResult,
    Trace,
};

use crate::cluster::{
    CapacityChecker, CheckerParameters, Clock, ClusterMinimumChecker, ClusterModel, LeaseChecker,
    ProductionFactory, StateMachineFactory, TICK_NS, Topology, UnusedCapacityChecker,
};
use crate::fleet::facts::Fact;
use crate::fleet::random_interventions::draw_all;
use crate::fleet::spec::FleetScenario;
use crate::fleet::world::World;

impl Scenario for FleetScenario {
    fn name(&self) -> &str {
        &self.name
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn has_swarm(&self) -> bool {
        true
    }

    fn check(&self, invalid: &mut InvalidKeys) {
        self.check_keys(invalid);
    }

    fn run(&self, options: Options) -> Result<ScenarioResult> {
        run(self, options)
    }
}

/// Runs a scenario with the production policy.
///
/// # Errors
/// None in this version; the signature is common to all kinds of scenarios.
pub(crate) fn run(scenario: &FleetScenario, options: Options) -> Result<ScenarioResult> {
    run_with(scenario, options, Box::new(ProductionFactory))
}

/// Runs a scenario with the state machines of `machines`.
pub(crate) fn run_with(
    scenario: &FleetScenario,
    options: Options,
    machines: Box<dyn StateMachineFactory>,
) -> Result<ScenarioResult> {
    let Options { seed, records_lines: keeps_lines, .. } = options;
    let locations = scenario.disk_locations();
    let (disks, interventions) = draw_all(scenario, &locations, seed);
    let capabilities = vec![scenario.declared_iops(); scenario.stores as usize];
    let mut random = RandomStream::new(seed, "clocks");
    let ppm = u64::from(scenario.clock_ppm);
    let clock = |_| Clock {
        offset_ns: random.draw_below(1 << 50),
        drift_ppm: random.draw_below(2 * ppm + 1) as i32 - ppm as i32,
    };
    let topology = Topology {
        clocks: (0..scenario.nodes).map(clock).collect(),
        stores: (0..scenario.nodes).map(|node| scenario.node_stores(node).collect()).collect(),
        capacities: capabilities.clone(),
    };
    let control = ClusterModel::new(&scenario.cluster, topology, seed, machines);
    let checkers = checkers(scenario, locations, &capabilities);
    let observer = Observer::new(Trace::new(keeps_lines), checkers);
    let mut world = World::new(scenario, seed, control, &disks, interventions, observer);
    world.run(Time::from_ns(scenario.seconds * SECOND_NS));
    let counts = world.cluster_model.counts;
    let per_second = |count: u64| format!("{:.1}", count as f64 / scenario.seconds as f64);
    let row =
        |label: &str, count: u64| vec![label.to_owned(), count.to_string(), per_second(count)];
    let head = ["", "IN ALL", "A SECOND"].map(str::to_owned).to_vec();
    let FleetScenario { nodes, stores, .. } = scenario;
    let mut outcome = ScenarioResult {
        events: world.processed_events(),
        virtual_s: scenario.seconds,
        parameters: vec![
            format!("{nodes} nodes, {} disks, {stores} stores", disks.len()),
            counts.to_string(),
        ],
        steps: serde_json::json!({
            "reports": counts.reports,
            "grants": counts.grants,
            "etcd_requests": counts.requests,
            "terms": counts.terms,
            "resigned": counts.resignations,
        }),
        table: vec![
            head,
            row("reports", counts.reports),
            row("grants", counts.grants),
            row("requests to etcd", counts.requests),
        ],
        ..ScenarioResult::default()
    };
    outcome.set_trace(&world.observer.trace);
    outcome.add_violations(world.observer.violations);
    Ok(outcome)
}

fn checkers(
    scenario: &FleetScenario,
    locations: Vec<(u32, u32)>,
    capabilities: &[u64],
) -> Vec<Box<dyn Checker<Fact>>> {
    let terms = Parameters::default();
    let mut nodes = vec![0; scenario.stores as usize];
    for (_, store) in locations.iter().step_by(scenario.disks_per_store as usize) {
        nodes[*store as usize] += 1;
    }
    let locations = CheckerParameters {
        disk_locations: locations,
        capacities: capabilities.to_vec(),
        nodes_per_store: nodes,
        report_interval_ns: TICK_NS,
        request_cost_max: 1,
        recovery_ns: scenario.faults.recovery_s * SECOND_NS,
        store_recovery_ns: scenario.faults.node_recovery_s * SECOND_NS,
    };
    vec![
        Box::new(CapacityChecker::new(capabilities)),
        Box::new(LeaseChecker::new(&terms)),
        Box::new(ClusterMinimumChecker::new(&locations, &terms)),
        Box::new(UnusedCapacityChecker::new(&locations, &terms)),
    ]
}
