//! Runs of scenarios, and detection of violations by checkers.

use suimon_quantity::Time;
use suimon_sim_kernel::{Checker, Options, ScenarioResult, Violations};

use crate::network::checkers::{FrameOrderChecker, WorkerLimitChecker};
use crate::network::facts::Fact;
use crate::network::run::run;
use crate::network::spec::NetworkScenario;

const MAX_PROCESSORS: &str = include_str!("../../../sim/scenarios/vmq-max-processors.toml");
const TEAMING: &str = include_str!("../../../sim/scenarios/vmq-teaming.toml");

fn read(text: &str) -> NetworkScenario {
    suimon_sim_kernel::read(text).unwrap()
}

fn run_options(seed: u64, is_swarm: bool) -> Options {
    Options { seed, is_swarm, records_lines: false }
}

fn assert_agrees(outcome: &ScenarioResult) {
    for figure in &outcome.figures {
        assert!(figure.agrees, "{figure:?}");
    }
    assert_eq!(outcome.violations, []);
    assert!(outcome.checks > 10_000, "{}", outcome.checks);
}

#[test]
fn max_processors_changes_as_published() {
    assert_agrees(&run(&read(MAX_PROCESSORS), run_options(1, false)).unwrap());
}

/// Verifies that the assumed rate of a session does not determine the result: a quarter and four
/// times of it lead to the same figures.
#[test]
fn agreement_of_teams_does_not_depend_on_the_assumed_session_rate() {
    for mbit_s in [5, 40] {
        let replacement = [r#"combinations = ["all"]"#, r#"combinations = ["lacp/mac-addresses"]"#];
        let text = TEAMING.replacen(replacement[0], replacement[1], 1);
        let text = text.replacen("session_mbit_s = 8", &format!("session_mbit_s = {mbit_s}"), 1);
        let outcome = run(&read(&text), run_options(1, false)).unwrap();
        let figure_with =
            |count: &str| outcome.figures.iter().find(|figure| figure.published.contains(count));
        for published in ["1 CPU at few", "4 CPUs at many"] {
            assert!(figure_with(published).unwrap().agrees, "{mbit_s}: {:?}", outcome.figures);
        }
    }
}

#[test]
fn costs_determine_the_result() {
    let text = MAX_PROCESSORS.replacen("contention_permille = 111", "contention_permille = 0", 1);
    let outcome = run(&read(&text), run_options(1, false)).unwrap();
    let eight =
        outcome.figures.iter().find(|figure| figure.published == "about 15 Gbit/s").unwrap();
    assert!(!eight.agrees, "two links are the limit then: {eight:?}");
}

#[test]
fn the_same_seed_gives_the_same_trace_bit_for_bit() {
    let scenario = read(MAX_PROCESSORS);
    let run = |seed| run(&scenario, Options { seed, is_swarm: true, records_lines: true }).unwrap();
    let (first, second, other) = (run(3), run(3), run(4));
    assert!(first.lines == second.lines && first.trace_hash == second.trace_hash);
    assert_ne!(first.trace_hash, other.trace_hash);
}

#[test]
fn swarms_lose_nothing_but_where_a_link_fails() {
    let scenario = read(MAX_PROCESSORS);
    for seed in 1..=10 {
        let outcome = run(&scenario, run_options(seed, true)).unwrap();
        assert_eq!(outcome.violations, [], "seed {seed}");
    }
}

fn complaints(checker: &mut dyn Checker<Fact>, recorded_facts: &[(u64, Fact)]) -> Vec<String> {
    let mut complaints = Violations::default();
    for (ms, fact) in recorded_facts {
        checker.observe(Time::from_ns(ms * 1_000_000), fact, &mut complaints);
    }
    complaints.first.into_iter().map(|complaint| complaint.description).collect()
}

#[test]
fn checkers_detect_lost_duplicate_and_reordered_frames_stuck_moves_and_too_many_workers() {
    let sent = |number| Fact::Sent { vm: 1, session: 2, number };
    let received = |number| Fact::Received { vm: 1, session: 2, number, bytes: 1 };
    let lost = |number| Fact::Lost { vm: 1, session: 2, number, link_was_down: true };
    let link = Fact::LinkChanged { member: 0, is_up: false };
    let frames = |recorded_facts: &[Fact]| {
        let all_facts =
            [sent(1), sent(2), sent(3)].into_iter().chain(recorded_facts.iter().copied());
        let all_facts: Vec<(u64, Fact)> = (1000..).zip(all_facts).collect();
        complaints(&mut FrameOrderChecker::default(), &all_facts).len()
    };
    assert_eq!(frames(&[received(1), received(2), received(3)]), 0);
    assert_eq!(frames(&[received(2)]), 1, "one is missing");
    assert_eq!(frames(&[received(1), received(1)]), 1, "twice");
    assert_eq!(frames(&[received(1), received(3), received(2)]), 2, "out of order");
    assert_eq!(frames(&[received(1), lost(2)]), 1, "lost for nothing");
    assert_eq!(frames(&[link, received(1), lost(2), received(3)]), 0, "a link has failed");

    let limit = Fact::WorkerLimitChanged { max_processors: 4 };
    let used = |processors, moving| Fact::WorkersInUse { processors, moving };
    let limit_complaints = |recorded_facts: &[(u64, Fact)]| {
        complaints(&mut WorkerLimitChecker::default(), recorded_facts).len()
    };
    assert_eq!(limit_complaints(&[(0, limit), (250, used(5, 1)), (500, used(4, 0))]), 0);
    assert_eq!(limit_complaints(&[(0, limit), (250, used(5, 0))]), 1);
    assert_eq!(
        limit_complaints(&[(0, limit), (250, used(4, 1)), (500, used(4, 1)), (1500, used(4, 1))]),
        1
    );
}

#[test]
fn an_invalid_scenario_is_rejected_with_the_key() {
    let cases = [
        ("logical_cpus = 24", "logical_cpus = 0", "host.logical_cpus: 0 is outside of 1 to 1024"),
        (
            "hyper-v-port\"]",
            "hyper-v\"]",
            "team.combinations: \"switch-independent/hyper-v\" is no",
        ),
        ("mtu = 1500", "mtu = 15", "vms.mtu: 15 is outside of 576 to 9216"),
        ("seconds = 30", "seconds = 3", "step 1.seconds: 3 must exceed settle_s, 10"),
        ("count = 8\n", "count = 0\n", "vms.count: 0"),
        ("gbit_s = 10", "gbit_s = 10\ngbit = 1", "unknown field `gbit`"),
    ];
    for (from, to, message) in cases {
        assert!(MAX_PROCESSORS.contains(from), "{from}");
        let error =
            suimon_sim_kernel::read::<NetworkScenario>(&MAX_PROCESSORS.replacen(from, to, 1))
                .unwrap_err()
                .to_string();
        assert!(error.contains(message), "{to}: {error}");
    }
}

mod full {
    use super::*;

    #[test]
    fn experiments_of_the_network_agree_for_other_seeds() {
        for seed in 2..6 {
            assert_agrees(&run(&read(MAX_PROCESSORS), run_options(seed, false)).unwrap());
        }
    }

    #[test]
    fn all_combinations_of_teaming_are_on_one_worker_at_few_sessions_and_on_four_at_many() {
        let outcome = run(&read(TEAMING), run_options(1, false)).unwrap();
        assert_agrees(&outcome);
        assert_eq!(outcome.steps.as_array().unwrap().len(), 12 * 5);
    }
}
