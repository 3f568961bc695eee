//! Bounds of state that other parties can enlarge: names on the store, and reports of nodes.

use core::time::Duration;

use suimon_cluster_qos::{
    Allocator, AllocatorAction, AllocatorEvent, Demand, ExternalUser, LoadReport, NodeId, NodeLoad,
    Notice, POLICIES_MAX, PROTOCOL_VERSION, Parameters, PolicyKey, PolicyLimits, PolicyLoad,
    ReportId, SharedStoreCapacity, Term,
};
use suimon_quantity::Time;

fn time_at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

fn leader() -> Allocator {
    leader_with(Vec::new())
}

fn leader_with(policies: Vec<(PolicyKey, PolicyLimits)>) -> Allocator {
    let mut allocator = Allocator::new(Parameters::default());
    let capacity = SharedStoreCapacity::Declared(10_000);
    let records = Vec::new();
    let elected = AllocatorEvent::Elected { term: Term(1), capacity, records, policies };
    allocator.handle(time_at(0), &elected);
    allocator
}

fn notices(allocator: &mut Allocator) -> Vec<Notice> {
    let actions = std::iter::from_fn(|| allocator.poll_action());
    let notice = |action| match action {
        AllocatorAction::Notify { notice } => Some(notice),
        _ => None,
    };
    actions.filter_map(notice).collect()
}

fn detect(allocator: &mut Allocator, now: Time, name: &str) -> usize {
    let stranger = ExternalUser { name: name.to_owned(), delivered_iops: 1 };
    allocator.handle(now, &AllocatorEvent::ExternalUserDetected { external_user: stranger });
    let is_user = |notice: &Notice| matches!(notice, Notice::ExternalUserDetected(_));
    notices(allocator).into_iter().filter(is_user).count()
}

/// Anyone who can create files in the store's directory can create heartbeats under new names.
#[test]
fn external_users_under_ever_new_names_are_bounded_and_later_ones_are_detected() {
    let mut allocator = leader();
    let sum: usize = (0..10_000)
        .map(|number| detect(&mut allocator, time_at(5), &format!("node {number}")))
        .sum();
    assert!(sum <= 64, "{sum} notices");
    assert_eq!(detect(&mut allocator, time_at(6), "node 0"), 0, "it is known");
    // Names that are not detected any more are replaced by new ones.
    assert_eq!(detect(&mut allocator, time_at(600), "node of another cluster"), 1);
    assert_eq!(detect(&mut allocator, time_at(601), "node of another cluster"), 0);
}

fn report(number: u64, policies: impl Iterator<Item = u32>) -> AllocatorEvent {
    let load = |policy| PolicyLoad {
        policy: PolicyKey(policy),
        demand_iops: 0,
        delivered_iops: 0,
        weight: 1,
    };
    let report = LoadReport {
        version: PROTOCOL_VERSION,
        node: NodeId(7),
        id: ReportId { incarnation: 1, number },
        acknowledged: None,
        reserved_iops: 0,
        applies_leases: true,
        load: NodeLoad::default(),
        demand: Demand::default(),
        policies: policies.map(load).collect(),
        disks_over_guarantee: Vec::new(),
        disks_below_guarantee: Vec::new(),
    };
    AllocatorEvent::Reported { report }
}

/// A node of another version reports for as long as it is not upgraded.
#[test]
fn another_version_of_a_node_is_noticed_once() {
    let mut allocator = leader();
    let mut noticed = 0;
    for number in 1..=100_u32 {
        let AllocatorEvent::Reported { mut report } = report(number.into(), std::iter::empty())
        else {
            unreachable!("`report` returns a report");
        };
        report.version = if number == 50 { PROTOCOL_VERSION } else { PROTOCOL_VERSION + 1 };
        allocator.handle(time_at(number.into()), &AllocatorEvent::Reported { report });
        let is_version = |notice: &Notice| matches!(notice, Notice::OtherVersion { .. });
        noticed += notices(&mut allocator).into_iter().filter(is_version).count();
    }
    assert_eq!(noticed, 2, "once, and once more after a report of the right version");
}

#[test]
fn unknown_policies_in_reports_of_a_node_are_bounded_and_later_ones_are_noticed() {
    let mut allocator = leader();
    let mut sum = 0;
    let is_unknown = |notice: &Notice| matches!(notice, Notice::PolicyUnknown { .. });
    for number in 1..=10_u32 {
        let first = number * 10_000;
        allocator.handle(time_at(number.into()), &report(number.into(), first..first + 1000));
        sum += notices(&mut allocator).into_iter().filter(is_unknown).count();
    }
    assert!(sum <= 10 * 256, "{sum} notices");
    allocator.handle(time_at(20), &report(20, std::iter::empty()));
    allocator.handle(time_at(21), &report(21, std::iter::once(5)));
    let noticed = notices(&mut allocator).into_iter().filter(is_unknown).count();
    assert_eq!(noticed, 1, "the others are not used any more");
}

/// The leader stores the report of each node, and divides each policy among the nodes.
#[test]
fn policies_beyond_the_maximum_of_a_cluster_are_ignored() {
    let limits = PolicyLimits { min_iops: 0, max_iops: Some(100) };
    let known = |count: u32| (0..count).map(|policy| (PolicyKey(policy), limits)).collect();
    let shares = |allocator: &mut Allocator| {
        allocator.handle(time_at(1), &report(1, 0..5000));
        let actions = std::iter::from_fn(|| allocator.poll_action());
        let grants = actions.filter_map(|action| match action {
            AllocatorAction::Write { grants, .. } => Some(grants),
            _ => None,
        });
        grants.flatten().map(|(_, grant)| grant.policies.len()).collect::<Vec<_>>()
    };
    assert_eq!(shares(&mut leader_with(known(5000))), [POLICIES_MAX]);
    assert_eq!(shares(&mut leader_with(known(10))), [10], "others are unknown");
}
