//! Runs of scenarios, and detection of violations by checkers.

use suimon_quantity::Time;
use suimon_sim_kernel::{Checker, FigurePurpose, Options, ScenarioResult, Violations};

use crate::host::HostScenario;
use crate::host::checkers::{
    ClockChecker, CpuAssignmentChecker, RequestPathChecker, SwitchingChecker,
};
use crate::host::facts::Fact;
use crate::host::resolved_case::ResolvedCase;
use crate::host::run::run;

const OFFLOAD: &str = include_str!("../../../sim/scenarios/offload-ftp.toml");
const SRIOV: &str = include_str!("../../../sim/scenarios/sriov-host-cpu.toml");
const VM_TO_VM: &str = include_str!("../../../sim/scenarios/net-vm-to-vm.toml");
const POWER: &str = include_str!("../../../sim/scenarios/power-plan.toml");
const WEB: &str = include_str!("../../../sim/scenarios/web.toml");
const TILES: &str = include_str!("../../../sim/scenarios/tiles.toml");

fn read(text: &str) -> HostScenario {
    suimon_sim_kernel::read(text).unwrap()
}

fn run_once(text: &str, seed: u64) -> ScenarioResult {
    run(&read(text), Options { seed, is_swarm: false, records_lines: false }).unwrap()
}

/// Runs a scenario with one text replaced.
fn changed(text: &str, from: &str, to: &str) -> ScenarioResult {
    assert!(text.contains(from), "{from}");
    run_once(&text.replace(from, to), 1)
}

fn differing(outcome: &ScenarioResult) -> Vec<&str> {
    let differing = outcome.figures.iter().filter(|figure| !figure.agrees);
    differing.map(|figure| figure.published.as_str()).collect()
}

/// Runs each experiment with each seed, and compares its figures with the published ones.
fn check_published(seeds: std::ops::Range<u64>) {
    let known_differences = ["NDIS: 10^2 with, 10^3 to 10^4 without"];
    let cases: [(&str, &[&str]); 6] = [
        (OFFLOAD, &[]),
        (SRIOV, &known_differences),
        (VM_TO_VM, &[]),
        (POWER, &[]),
        (WEB, &[]),
        (TILES, &[]),
    ];
    for (text, known_differences) in cases {
        for seed in seeds.clone() {
            let outcome = run_once(text, seed);
            assert_eq!(
                differing(&outcome),
                known_differences,
                "seed {seed}: {:#?}",
                outcome.figures
            );
            assert_eq!(outcome.violations, [], "seed {seed}");
            assert!(outcome.checks > 10_000, "{}", outcome.checks);
            assert!(outcome.figures.iter().any(|figure| figure.purpose == FigurePurpose::HeldOut));
        }
    }
}

#[test]
fn experiments_agree_with_published_figures() {
    check_published(1..2);
}

#[test]
fn the_same_seed_gives_the_same_trace_bit_for_bit() {
    let scenario = read(SRIOV);
    let run =
        |seed| run(&scenario, Options { seed, is_swarm: false, records_lines: true }).unwrap();
    let (first, second, other) = (run(3), run(3), run(4));
    assert!(first.lines == second.lines && first.trace_hash == second.trace_hash);
    assert_ne!(first.trace_hash, other.trace_hash);
    let swarm = Options { seed: 1, is_swarm: true, records_lines: false };
    assert!(super::run::run(&scenario, swarm).is_err(), "the scenario has no swarm");
}

/// Verifies that assumed, unpublished parameters do not determine the result: half and twice of
/// each cost lead to the same figures.
#[test]
fn agreement_of_offloads_does_not_depend_on_assumed_costs() {
    for (from, half, doubled) in [
        ("byte_ps = 654", "byte_ps = 327", "byte_ps = 1308"),
        ("byte_ps = 327", "byte_ps = 163", "byte_ps = 654"),
        ("packet_ns = 490", "packet_ns = 245", "packet_ns = 980"),
        ("block_ns = 15000", "block_ns = 7500", "block_ns = 30000"),
        ("cut_ns = 2000", "cut_ns = 1000", "cut_ns = 4000"),
        ("ack_ns = 330", "ack_ns = 165", "ack_ns = 660"),
    ] {
        for to in [half, doubled] {
            let outcome = changed(OFFLOAD, from, to);
            let held_out =
                outcome.figures.iter().filter(|figure| figure.purpose == FigurePurpose::HeldOut);
            // With twice the cost of packets, segmentation contributes more than half of the total.
            let figures = held_out.filter(|figure| !figure.published.contains("20 to 50 %"));
            figures.for_each(|figure| assert!(figure.agrees, "{to}: {figure:?}"));
        }
    }
    for (from, to) in
        [("request_ns = 3000", "request_ns = 2000"), ("request_ns = 3000", "request_ns = 15000")]
    {
        let outcome = changed(SRIOV, from, to);
        assert!(outcome.figures[0].agrees, "{to}: {:?}", outcome.figures[0]);
    }
}

/// Verifies that models and policies determine the result: without each of them, the figure
/// differs.
#[test]
fn models_and_policies_determine_the_result() {
    let features = r#"features = ["tx-checksum-ipv4", "tx-checksum-ipv6", "tx-tcp-segmentation", "rx-checksum"]"#;
    let cases = [
        // NICs without features: no offloads are requested of them.
        (OFFLOAD, features, "features = []", "CPU use falls by 20 to 50 %"),
        (
            OFFLOAD,
            "segmentation = false",
            "segmentation = true",
            "segmentation has a visible effect of its own",
        ),
        (
            OFFLOAD,
            "fifo_frames = 2",
            "fifo_frames = 64",
            "throughput falls by less than 4 % with some NICs",
        ),
        (SRIOV, "iov_weight = 100", "iov_weight = 0", "ten to a hundred times less host CPU"),
        (SRIOV, "vfs = 63", "vfs = 0", "ten to a hundred times less host CPU"),
        (VM_TO_VM, "block_ns = 700", "block_ns = 9000", "hardly depends on block size"),
        (VM_TO_VM, "frame_ns = 3000", "frame_ns = 100", "one VM to several: no gain over one"),
        (
            POWER,
            "plan = \"high-performance\"",
            "plan = \"balanced\", performance_percent_min = 100",
            "36 % against 26 %: 8 % more than with a minimum state of 100 %",
        ),
        (
            POWER,
            "turbo_mhz = [2800, 2800, 2667, 2667]",
            "turbo_mhz = [2533]",
            "36 % against 26 %: 8 % more than with a minimum state of 100 %",
        ),
        (WEB, "request_ns = 195000", "request_ns = 1000", "R2 over 2008: more than double"),
        (
            WEB,
            "enabled = false, max_processors = 1",
            "enabled = true, max_processors = 4",
            "VMQ raises throughput",
        ),
        (TILES, "sibling_percent = 65", "sibling_percent = 100", "5.31"),
        (TILES, "contention_permille = 40", "contention_permille = 0", "1.97"),
    ];
    for (text, from, to, published) in cases {
        let outcome = changed(text, from, to);
        assert!(differing(&outcome).contains(&published), "{to}: {:#?}", outcome.figures);
        assert_eq!(outcome.violations, [], "{to}");
    }
}

fn complaints(checker: &mut dyn Checker<Fact>, recorded_facts: &[Fact]) -> Vec<String> {
    let mut complaints = Violations::default();
    for (ms, fact) in (1..).zip(recorded_facts) {
        checker.observe(Time::from_ns(ms * 1_000_000), fact, &mut complaints);
    }
    complaints.first.into_iter().map(|complaint| complaint.description).collect()
}

#[test]
fn checkers_detect_double_execution_needless_waiting_and_wrong_paths() {
    let start = |cpu, worker| Fact::WorkerStarted { cpu, worker };
    let stopped = |cpu, worker| Fact::WorkerStopped { cpu, worker };
    let waits = Fact::WorkerWaiting { worker: 3 };
    let work = |recorded_facts: &[Fact]| {
        complaints(&mut CpuAssignmentChecker::new(2), recorded_facts).len()
    };
    assert_eq!(work(&[start(0, 1), start(1, 2), waits, stopped(0, 1)]), 0);
    assert_eq!(work(&[start(0, 1), start(0, 2)]), 1, "two at once");
    assert_eq!(work(&[start(0, 1), start(1, 1)]), 1, "at two places");
    assert_eq!(work(&[start(0, 1), waits, start(1, 2)]), 1, "one waits while processor 1 is idle");

    let request = Fact::RequestStarted { session: 1, vm: 7, legs: 2 };
    let passed = |leg, by_queue| Fact::LegCompleted { session: 1, leg, is_queue_leg: by_queue };
    let (done, vf) = (Fact::RequestCompleted { session: 1 }, Fact::VfAssigned { vm: 7, vf: 0 });
    let path_complaints = |recorded_facts: &[Fact]| {
        complaints(&mut RequestPathChecker::default(), recorded_facts).len()
    };
    assert_eq!(path_complaints(&[request, passed(0, true), passed(1, false), done, request]), 0);
    assert_eq!(path_complaints(&[request, passed(1, false)]), 1, "one leg is missing");
    assert_eq!(path_complaints(&[request, passed(0, false), done]), 1, "not all is done");
    assert_eq!(path_complaints(&[request, request]), 1, "two at once");
    assert_eq!(path_complaints(&[passed(0, false)]), 1, "not asked");
    assert_eq!(
        path_complaints(&[vf, request, passed(0, true)]),
        1,
        "the queue, though it has a function"
    );
    assert_eq!(
        path_complaints(&[vf, Fact::VfAssigned { vm: 8, vf: 0 }]),
        1,
        "two with one function"
    );
}

/// Verifies that incorrect switches and governors are detected.
#[test]
fn checkers_detect_leaking_and_misrouted_frames_and_excessive_clocks() {
    let forwarded = |target, receivers, out| Fact::Forwarded {
        vm: 1,
        to: target,
        receivers,
        has_left_host: out,
    };
    let switching =
        |forwarded_fact| complaints(&mut SwitchingChecker::new(4), &[forwarded_fact]).len();
    assert_eq!(switching(forwarded(2, 2, false)), 0);
    assert_eq!(switching(forwarded(2, 3, false)), 1, "to another one");
    assert_eq!(switching(forwarded(2, 2, true)), 1, "outside as well");
    assert_eq!(switching(forwarded(1, 3, true)), 0, "a broadcast");
    assert_eq!(switching(forwarded(1, 2, true)), 1, "a broadcast that does not come to all");

    let scenario = read(POWER);
    let clock = |case: usize, mhz| {
        let plan = ResolvedCase::new(&scenario, &scenario.case[case]);
        complaints(&mut ClockChecker::new(&plan), &[Fact::Clock { cpu: 0, mhz }]).len()
    };
    assert_eq!((clock(0, 1600), clock(0, 2533)), (0, 0));
    assert_eq!(clock(0, 2667), 1, "turbo under Balanced");
    assert_eq!(clock(1, 2400), 1, "less than 100 %");
    assert_eq!((clock(2, 2800), clock(2, 2400)), (0, 1), "High performance");
}

#[test]
fn an_invalid_scenario_is_rejected_with_the_key() {
    let cases = [
        (WEB, "logical_cpus = 16", "logical_cpus = 0", "machine 1.logical_cpus: 0 is outside of 1"),
        (
            WEB,
            "unless = [\"vmq\"]",
            "unless = [\"vqm\"]",
            "there is no \"vqm\"; existing: checksum-by-nic",
        ),
        (
            WEB,
            "vmq = { enabled = false, max_processors = 1 }\n",
            "",
            "case 1.vmq: missing; stages of a queue",
        ),
        (WEB, "at = \"queue\"", "at = \"que\"", "unknown variant `que`"),
        (WEB, "share = 756", "share = 0", "vms 1.request 1.share: 0"),
        (WEB, "against = \"1 VM\"", "against = \"one VM\"", "there is no \"one VM\""),
        (
            SRIOV,
            "iov_weight = 100",
            "iov_weight = 101",
            "vms 1.iov_weight: 101 is outside of 0 to 100",
        ),
        (
            SRIOV,
            "\"X520 without VFs\"\nvms",
            "\"X521\"\nvms",
            "case 4.nic: there is no \"X521\"; existing: X520",
        ),
        (SRIOV, "rx-checksum", "rx-sum", "unknown variant `rx-sum`"),
        (VM_TO_VM, "talk = [[1, 2]]", "talk = [[1, 9]]", "case 1.talk: 9 is outside of 1 to 2"),
        (VM_TO_VM, "talk = [[1, 2]]", "talk = [[2, 2]]", "VM 2 cannot send to itself"),
        (
            POWER,
            "mhz = [1600, 1733",
            "mhz = [1733, 1600",
            "clocks and voltages must be in ascending order",
        ),
        (POWER, "plan = \"balanced\"", "plan = \"fast\"", "unknown variant `fast`"),
        (POWER, "percent_min = 100", "percent_min = 101", "performance_percent_min: 101"),
        (OFFLOAD, "offload = { segmentation", "offload = { tso", "unknown field `tso`"),
        (TILES, "web = 128", "wed = 128", "takes_percent: there is no \"wed\"; existing: Java"),
        (TILES, "measure_ms = 1000", "measure_ms = 0", "measure_ms: 0 is outside of 1"),
    ];
    for (text, from, to, message) in cases {
        assert!(text.contains(from), "{from}");
        let error = suimon_sim_kernel::read::<HostScenario>(&text.replace(from, to))
            .unwrap_err()
            .to_string();
        assert!(error.contains(message), "{to}: {error}");
    }
}

mod full {
    #[test]
    fn experiments_agree_with_published_figures_for_other_seeds() {
        super::check_published(2..6);
    }
}
