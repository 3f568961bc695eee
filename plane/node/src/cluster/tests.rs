//! Tests of several nodes with a cluster store in memory, and of failures between them.

use suimon_contract::{ErrorCode, EventKind, Health, OperationState, QosPolicyConfig};
use suimon_ports::{ClusterChange, ClusterKvStore, StoreFiles};
use suimon_quantity::{DiskId, StoreId, Time, TimedRateLimit, WorkerId};
use suimon_storage::{StoreRole, StoreView, WorkerStoreStatus};
use suimon_storage_qos::{Delivery, DiskFlow, DiskQosCounters, Limits, LimitsOwner};

use crate::testing::{
    DISK_STORE, FakeCluster, FakeDisks, Faults, Harness, MemoryStore, host, name, wait_until,
};
use crate::{ChangeOptions, ClusterEdit, Edit, ResourceEdit};

/// Key of the report of the first node on store `san`.
pub(super) const REPORT: &str = "/suimon/lab/reports/san/0000000001";
/// Key of the shared policy `batch`.
pub(super) const BATCH: &str = "/suimon/lab/policies/batch";

/// Returns the configuration of a node with one disk that has this minimum; 0: none.
pub(super) fn config(node: &str, min: u64) -> String {
    let qos = if min == 0 { String::new() } else { format!("qos = {{ min_iops = {min} }}\n") };
    format!(
        "[cluster]\nname = \"lab\"\nnode = \"{node}\"\nendpoints = [\"http://etcd:2379\"]\n\
         [[store]]\nname = \"san\"\npath = \"{DISK_STORE}\"\nshared = true\n\
         capability_iops = 10000\n\
         [[disk]]\nname = \"d-{node}\"\nstore = \"san\"\nformat = \"raw\"\nsize_bytes = \"1 MiB\"\n{qos}"
    )
}

/// Starts a node that shares the store's directory with the other nodes of its cluster.
pub(super) fn node(cluster: &FakeCluster, node: &str, min: u64) -> Harness {
    let disks = FakeDisks::default();
    disks.put_store(DISK_STORE, cluster.files());
    let harness = Harness::in_cluster(MemoryStore::default(), disks, cluster.clone());
    harness.apply_ok(&host(&config(node, min)));
    harness
}

/// Returns the limit of the only store.
pub(super) fn cap(of: &Harness) -> TimedRateLimit {
    of.disks.caps().first().copied().unwrap_or_default()
}

pub(super) fn now(of: &Harness) -> u64 {
    cap(of).iops_at(of.plane_now())
}

/// Simulates a disk that has demanded and received this rate since the start.
pub(super) fn load(of: &Harness, iops: u64) {
    let seconds = of.plane_now().as_ns() / 1_000_000;
    let done = iops * seconds / 1000;
    let flow = DiskFlow {
        disk: DiskId(0),
        holder: LimitsOwner::Disk(DiskId(0)),
        limits: Limits::default(),
        waiting: 32,
        in_flight: 1,
        done: DiskQosCounters { demanded: done, delivered: done, ..DiskQosCounters::default() },
        short: Delivery::default(),
        long: Delivery::default(),
    };
    let status = WorkerStoreStatus {
        role: StoreRole::Sole,
        waiting: 32,
        in_flight_of_worker: 1,
        in_flight: 1,
        depth: 8,
        latency_ns: 100_000,
        estimate: None,
    };
    let view = StoreView {
        store: StoreId(0),
        worker: WorkerId(0),
        status,
        at: Time::ZERO,
        flows: vec![flow],
        is_current: true,
    };
    of.disks.set_views(vec![view]);
}

pub(super) fn was_told(of: &Harness, kind: EventKind) -> bool {
    !of.events(kind.id()).is_empty()
}

#[test]
fn two_nodes_share_a_store_and_never_more_than_it_can_do() {
    let cluster = FakeCluster::default();
    let one = node(&cluster, "n1", 2000);
    // Numbers are assigned in the order of joining.
    wait_until("the first joins", || was_told(&one, EventKind::ClusterJoined));
    let two = node(&cluster.other(), "n2", 3000);
    wait_until("both have what is reserved", || {
        cap(&one).reserved_iops == 2064 && cap(&two).reserved_iops == 3064
    });
    assert!(was_told(&one, EventKind::ClusterJoined) && was_told(&two, EventKind::ClusterJoined));
    let leads = |of: &Harness| was_told(of, EventKind::ClusterLeads);
    // A leader writes grants before its event is published.
    wait_until("one of them leads", || leads(&one) != leads(&two));
    // Only one node has demand beyond its reservation.
    wait_until("what is spare goes to who wants it", || {
        load(&one, 4000);
        now(&one) > 4500
    });
    assert!(now(&one) + now(&two) <= 10_000);
    wait_until("the second node lists both nodes and their shares", || {
        let status = two.node.cluster();
        let has_shares = status.stores.first().is_some_and(|store| store.shares.len() == 2);
        has_shares && status.members.iter().filter(|of| of.is_alive).count() == 2
    });
    let status = two.node.cluster();
    assert_eq!(status.condition.health, Health::Up, "{status:?}");
    let members: Vec<_> =
        status.members.iter().map(|of| (of.name.as_str(), of.id, of.is_alive)).collect();
    assert_eq!(members, [("n1", 1, true), ("n2", 2, true)]);
    let store = &status.stores[0];
    assert_eq!(store.shares.len(), 2, "{store:?}");
    assert!(store.leader.is_some() && store.limit_iops == Some(10_000), "{store:?}");
    wait_until("the second node shows the disk of the first", || {
        load(&one, 4000);
        let flows = two.node.cluster_flows().unwrap();
        let mut of_one = flows.iter().filter(|flow| flow.node == "n1");
        of_one.any(|flow| flow.disk == "d-n1" && flow.delivered_iops > 3000)
    });
}

#[test]
fn what_is_lent_ends_where_nobody_answers_and_what_is_reserved_stays() {
    let cluster = FakeCluster::default();
    let (one, there) = (node(&cluster, "n1", 2000), cluster.other());
    let two = node(&there, "n2", 1000);
    wait_until("it has a lease", || {
        load(&two, 4000);
        now(&two) > 3500
    });
    there.set(Faults { is_unreachable: true, ..Faults::default() });
    wait_until("it keeps to what is reserved", || {
        load(&two, 4000);
        now(&two) == 1064
    });
    wait_until("that is told", || was_told(&two, EventKind::SharedLeaseLapsed));
    wait_until("and that etcd does not respond", || was_told(&two, EventKind::ClusterUnreachable));
    assert_eq!(two.node.cluster().condition.health, Health::Down);
    assert!(now(&one) + now(&two) <= 10_000);
    // Changes on this node are not delayed by the outage.
    two.apply_ok(&host(&config("n2", 900)));
    there.set(Faults::default());
    wait_until("it has a lease again", || {
        load(&two, 4000);
        now(&two) > 3500
    });
    wait_until("that etcd responds is told", || was_told(&two, EventKind::ClusterReachable));
}

#[test]
fn a_leader_that_does_not_know_what_was_written_resigns_and_another_goes_on() {
    let cluster = FakeCluster::default();
    let there = cluster.other();
    let one = node(&cluster, "n1", 2000);
    wait_until("it leads", || was_told(&one, EventKind::ClusterLeads));
    let two = node(&there, "n2", 1000);
    wait_until("both have theirs", || now(&one) >= 2064 && now(&two) >= 1064);
    cluster.set(Faults { loses_answers: true, ..Faults::default() });
    wait_until("the other leads", || was_told(&two, EventKind::ClusterLeads));
    wait_until("the first leads no more", || was_told(&one, EventKind::ClusterLeadLost));
    cluster.set(Faults::default());
    wait_until("both go on", || {
        load(&one, 5000);
        now(&one) > 5500
    });
    assert!(now(&one) + now(&two) <= 10_000);
}

#[test]
fn leases_of_the_cluster_that_end_are_taken_again() {
    let cluster = FakeCluster::default();
    let one = node(&cluster, "n1", 2000);
    wait_until("it leads", || was_told(&one, EventKind::ClusterLeads));
    cluster.end_leases();
    wait_until("it leads again", || one.events(EventKind::ClusterLeads.id()).len() == 2);
    wait_until("and lives", || cluster.keys("/suimon/lab/alive/").len() == 1);
    wait_until("and has a cap", || now(&one) >= 2064);
}

/// The leader writes nothing during the outage, so that no failed write makes it resign.
#[test]
fn a_leader_that_did_not_reach_etcd_while_nothing_changed_goes_on() {
    let cluster = FakeCluster::default();
    let one = node(&cluster, "n1", 2000);
    wait_until("it leads", || was_told(&one, EventKind::ClusterLeads));
    wait_until("it has what is reserved", || now(&one) >= 2064);
    cluster.set(Faults { is_unreachable: true, ..Faults::default() });
    wait_until("it looks for a lease", || cluster.times_without_lease() > 0);
    cluster.set(Faults::default());
    wait_until("it has a lease again", || {
        load(&one, 4000);
        now(&one) > 3500
    });
}

#[test]
fn what_is_reserved_outlives_the_daemon() {
    let cluster = FakeCluster::default();
    let one = node(&cluster, "n1", 2000);
    wait_until("it is kept", || cap(&one).reserved_iops == 2064);
    let (store, _, disks) = one.kill_with_disks();
    let away = cluster.other();
    away.set(Faults { is_unreachable: true, ..Faults::default() });
    let one = Harness::in_cluster(store, disks, away.clone());
    wait_until("it is in force", || now(&one) == 2064);
    wait_until("nobody answers", || was_told(&one, EventKind::ClusterUnreachable));
    away.set(Faults::default());
    wait_until("it leads", || was_told(&one, EventKind::ClusterLeads));
    wait_until("it has the same number", || {
        let members = one.node.cluster().members;
        members.len() == 1 && members[0].id == 1
    });
}

/// Returns the error of a rejected change.
pub(super) fn refusal(of: &Harness, text: &str) -> Option<String> {
    let refused = of.node.submit(Edit::Apply(Box::new(host(text)))).err()?;
    Some(refused[0].to_string())
}

#[test]
fn a_minimum_that_the_cluster_refuses_is_refused_with_the_arithmetic() {
    let cluster = FakeCluster::default();
    let one = node(&cluster, "n1", 6000);
    wait_until("it has it", || cap(&one).reserved_iops == 6064);
    let two = node(&cluster.other(), "n2", 1000);
    wait_until("the other has its", || cap(&two).reserved_iops == 1064);
    let error = refusal(&two, &config("n2", 4000)).unwrap();
    let arithmetic = "all nodes together have 7128 IOPS reserved, and 3000 IOPS more were \
                      requested; the permitted sum is 9000 IOPS, 90 % of the store's capacity of \
                      10000 IOPS (configured): lower minimums by 1128 IOPS";
    assert!(error.contains(arithmetic), "{error}");
    // The leader, whichever node it is, emits the event as soon as the rejection is written.
    wait_until("it is told", || {
        was_told(&one, EventKind::SharedPromiseRefused)
            || was_told(&two, EventKind::SharedPromiseRefused)
    });
    assert_eq!(two.node.config().disks[0].qos.min_iops, Some(1000), "nothing was changed");
    assert_eq!(cap(&two).reserved_iops, 1064);
    // A lower minimum is reserved before the change is made, and nothing remains of the rejected
    // one.
    two.apply_ok(&host(&config("n2", 2000)));
    wait_until("it is reserved", || cap(&two).reserved_iops == 2064);
    wait_until("the disk has it", || two.disks.negotiated_features()[0].minimums_iops == 2000);
    one.apply_ok(&host(&config("n1", 6800)));
}

#[test]
fn a_minimum_that_nobody_answers_is_pending_and_not_in_effect_until_it_is_reserved() {
    let cluster = FakeCluster::default();
    let one = node(&cluster, "n1", 2000);
    let minimum = |of: &Harness| of.disks.negotiated_features()[0].minimums_iops;
    wait_until("it is in effect", || minimum(&one) == 2000);
    cluster.set(Faults { is_unreachable: true, ..Faults::default() });
    wait_until("nobody answers", || was_told(&one, EventKind::ClusterUnreachable));
    let change = Edit::Apply(Box::new(host(&config("n1", 3000))));
    let operation = one.node.submit(change).unwrap();
    let ended = one.node.wait_operation(operation.id, crate::testing::DEADLINE).unwrap();
    assert_eq!(ended.state, OperationState::Succeeded, "{ended:?}");
    assert!(ended.report[0].contains("pending and not guaranteed"), "{ended:?}");
    assert!(ended.report[0].contains("etcd does not respond"), "{ended:?}");
    assert_eq!(one.node.config().disks[0].qos.min_iops, Some(3000));
    // A restart does not put the pending minimum into effect.
    let (store, _, disks) = one.kill_with_disks();
    let one = Harness::in_cluster(store, disks, cluster.clone());
    wait_until("what was in effect is", || minimum(&one) == 2000);
    std::thread::sleep(std::time::Duration::from_millis(600));
    assert_eq!(minimum(&one), 2000);
    cluster.set(Faults::default());
    wait_until("it is reserved and in effect", || {
        minimum(&one) == 3000 && cap(&one).reserved_iops == 3064
    });
}

#[test]
fn what_is_fallen_back_on_is_in_force_where_it_fits_and_shown() {
    let cluster = FakeCluster::default();
    let with_fallback = |iops: u64| {
        config("n1", 1000)
            .replace("shared = true\n", &format!("shared = true\nfallback_iops = {iops}\n"))
    };
    let one = node(&cluster, "n1", 1000);
    wait_until("it has its share", || cap(&one).reserved_iops == 1064);
    let shown = |of: &Harness| of.node.cluster().stores[0].cap;
    assert_eq!(shown(&one).fallback_iops, None);
    one.apply_ok(&host(&with_fallback(4000)));
    wait_until("it is in force", || shown(&one).fallback_iops == Some(4000));
    assert!(shown(&one).fallback_ms.is_some_and(|ms| ms <= 30_000), "{:?}", shown(&one));
    let late = cap(&one).later.unwrap();
    assert_eq!(cap(&one).iops_at(late.1), 4000);
    // A fallback rate that does not fit is not put into effect.
    one.apply_ok(&host(&with_fallback(9500)));
    wait_until("what was is not withdrawn", || shown(&one).fallback_iops == Some(4000));
    let alone = with_fallback(1).replace("shared = true\n", "");
    let refused = suimon_contract::parse_toml(&alone, None).unwrap_err();
    assert_eq!(refused[0].field.as_deref(), Some("fallback_iops"), "{refused:?}");
}

#[test]
fn a_name_is_one_hosts() {
    let cluster = FakeCluster::default();
    let _one = node(&cluster, "n1", 2000);
    wait_until("it lives", || cluster.keys("/suimon/lab/alive/").len() == 1);
    let disks = FakeDisks::with_store(DISK_STORE);
    let impostor = Harness::in_cluster(MemoryStore::default(), disks, cluster.other());
    impostor.apply_ok(&host(&config("n1", 2000)));
    wait_until("it is refused", || was_told(&impostor, EventKind::ClusterRefused));
    assert_eq!(now(&impostor), 0, "it may do nothing");
    let status = impostor.node.cluster();
    assert_eq!(status.condition.health, Health::Failed);
    assert!(status.condition.reason.unwrap().contains("another"));
}

#[test]
fn who_leaves_gives_back_what_is_reserved() {
    let cluster = FakeCluster::default();
    let (one, two) = (node(&cluster, "n1", 6000), node(&cluster.other(), "n2", 2000));
    wait_until("both have theirs", || now(&one) >= 6064 && now(&two) >= 2064);
    let leave = Edit::Cluster(ClusterEdit::Delete);
    let errors = one.node.submit(leave.clone()).unwrap_err();
    assert!(errors[0].message.contains("disk/d-n1"), "{errors:?}");
    let force = ChangeOptions { force: true, ..ChangeOptions::default() };
    let operation = one.node.submit_with(leave, force).unwrap();
    let operation = one.node.wait_operation(operation.id, crate::testing::DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    wait_until("nothing holds it any more", || one.disks.caps().is_empty());
    wait_until("its record is gone", || cluster.keys("/suimon/lab/members/").len() == 1);
    two.apply_ok(&host(&config("n2", 8000)));
    wait_until("the other has it", || cap(&two).reserved_iops == 8064);
}

#[test]
fn a_node_that_is_gone_for_good_is_taken_out() {
    let cluster = FakeCluster::default();
    let there = cluster.other();
    let (one, two) = (node(&cluster, "n1", 2000), node(&there, "n2", 6000));
    wait_until("both have theirs", || now(&one) >= 2064 && now(&two) >= 6064);
    let error = one.node.remove_cluster_node("n2").unwrap_err();
    assert!(error.message.contains("is running"), "{error}");
    assert!(one.node.remove_cluster_node("n3").is_err());
    drop(two);
    wait_until("it is dead", || cluster.keys("/suimon/lab/alive/").len() == 1);
    one.node.remove_cluster_node("n2").unwrap();
    one.apply_ok(&host(&config("n1", 8000)));
    wait_until("the other has it", || cap(&one).reserved_iops == 8064);
    wait_until("its grants are gone", || cluster.keys("/suimon/lab/grants/").len() == 1);
}

#[test]
fn another_cluster_or_name_needs_leaving_first_and_etcd_has_to_answer() {
    let cluster = FakeCluster::default();
    let one = node(&cluster, "n1", 2000);
    let errors = one.node.submit(Edit::Apply(Box::new(host(&config("n9", 2000))))).unwrap_err();
    assert_eq!(errors[0].field.as_deref(), Some("node"));
    let away = cluster.other();
    away.set(Faults { is_unreachable: true, ..Faults::default() });
    let disks = FakeDisks::with_store(DISK_STORE);
    let two = Harness::in_cluster(MemoryStore::default(), disks, away);
    let wanted = Edit::Apply(Box::new(host(&config("n2", 2000))));
    assert!(two.node.submit(wanted).unwrap_err()[0].message.contains("nobody answers"));
    assert!(two.node.config().cluster.is_none());
}

#[test]
fn a_change_of_no_cluster_is_refused_with_what_to_do() {
    let harness = Harness::new();
    let patch = br#"{"endpoints": ["http://192.0.2.1:2379"]}"#.to_vec();
    let errors = harness.node.submit(Edit::Cluster(ClusterEdit::Patch(patch))).unwrap_err();
    assert_eq!((errors.len(), errors[0].code), (1, ErrorCode::NotFound));
    assert!(errors[0].message.contains("suimon cluster join"), "{errors:?}");
    for error in [
        harness.node.cluster_flows().unwrap_err(),
        harness.node.remove_cluster_node("n2").unwrap_err(),
    ] {
        assert_eq!(error, errors[0]);
    }
}

#[test]
fn another_directory_of_the_same_name_is_not_the_clusters() {
    let cluster = FakeCluster::default();
    let one = node(&cluster, "n1", 2000);
    wait_until("it has its share", || now(&one) >= 2064);
    let disks = FakeDisks::with_store(DISK_STORE);
    let two = Harness::in_cluster(MemoryStore::default(), disks, cluster.other());
    two.apply_ok(&host(&config("n2", 2000)));
    wait_until("that is told", || was_told(&two, EventKind::SharedStoreWrong));
    assert_eq!(now(&two), 0, "it may do nothing");
    let wrong = two.node.cluster().stores[0].reason.clone();
    assert!(wrong.unwrap().contains("mounted"));
}

/// Returns the configuration of a node with a shared policy, and a disk that uses it.
pub(super) fn with_policy(node: &str, max: u64) -> String {
    format!(
        "{}qos_policy = \"batch\"\n[[qos_policy]]\nname = \"batch\"\nkind = \"aggregated\"\n\
         shared = true\nmax_iops = {max}\n",
        config(node, 0)
    )
}

pub(super) fn max_of(of: &Harness, policy: &str) -> Option<u64> {
    let config = of.node.config();
    config.qos_policies.iter().find(|of| of.name.as_str() == policy)?.max_iops
}

/// Returns this node's present part of the only policy.
fn part(of: &Harness) -> u64 {
    let parts = of.disks.policy_parts();
    let max = parts.first().and_then(|part| part.max);
    max.map_or(u64::MAX, |cap| cap.iops_at(of.plane_now()))
}

pub(super) fn policy(of: &Harness, edit: ResourceEdit<QosPolicyConfig>) -> Result<(), String> {
    let operation =
        of.node.submit(Edit::QosPolicy(edit)).map_err(|errors| errors[0].to_string())?;
    let ended = of.node.wait_operation(operation.id, crate::testing::DEADLINE).unwrap();
    ended.error.map_or(Ok(()), |error| Err(error.to_string()))
}

pub(super) fn without_disks(of: &str) -> String {
    let of = config(of, 1);
    of[..of.find("[[disk]]").unwrap()].to_owned()
}

#[test]
fn a_policy_of_the_cluster_is_the_same_on_all_nodes_and_holds_for_all_together() {
    let cluster = FakeCluster::default();
    let disks = || {
        let disks = FakeDisks::default();
        disks.put_store(DISK_STORE, cluster.files());
        disks
    };
    let one = Harness::in_cluster(MemoryStore::default(), disks(), cluster.clone());
    let two = Harness::in_cluster(MemoryStore::default(), disks(), cluster.other());
    one.apply_ok(&host(&with_policy("n1", 1000)));
    wait_until("it is the cluster's", || cluster.keys("/suimon/lab/policies/").len() == 1);
    two.apply_ok(&host(&without_disks("n2")));
    wait_until("the other has it", || max_of(&two, "batch") == Some(1000));
    // Applying a host file without the policy does not delete it.
    two.apply_ok(&host(&without_disks("n2")));
    assert_eq!(max_of(&two, "batch"), Some(1000));
    two.apply_ok(&host(&with_policy("n2", 1000)));
    wait_until("both have a part of it", || part(&one) == 250 && part(&two) == 250);
    wait_until("who wants it has the rest", || {
        load(&one, 4000);
        part(&one) > 700
    });
    assert!(part(&one) + part(&two) <= 1000, "{} {}", part(&one), part(&two));
    let shown = one.node.qos_policy("batch").unwrap().parts;
    assert_eq!(shown[0].max.unwrap().reserved_iops, 250, "{shown:?}");
    // A change on one node applies to all nodes.
    let patch = ResourceEdit::Patch(name("batch"), b"{\"max_iops\":400}".to_vec());
    policy(&two, patch).unwrap();
    wait_until("both have the change", || max_of(&one, "batch") == Some(400));
    wait_until("it is in force", || part(&one) + part(&two) <= 400);
    let error = policy(&one, ResourceEdit::Delete(name("batch"))).unwrap_err();
    assert!(error.contains("disk/d-n1"), "{error}");
}

/// A minimum that leaders cannot reserve is rejected by the command, and nothing changes on any
/// node.
#[test]
fn a_policys_minimum_that_has_no_room_is_refused_with_the_arithmetic() {
    let cluster = FakeCluster::default();
    let disks = FakeDisks::default();
    disks.put_store(DISK_STORE, cluster.files());
    let one = Harness::in_cluster(MemoryStore::default(), disks, cluster.clone());
    one.apply_ok(&host(&with_policy("n1", 9000)));
    let two = node(&cluster.other(), "n2", 5000);
    wait_until("the other has its minimum", || cap(&two).reserved_iops == 5064);
    wait_until("both know the policy", || max_of(&two, "batch") == Some(9000));
    wait_until("a leader knows whose disks have it", || part(&one) > 0 && part(&one) < u64::MAX);
    let raise = |min: u64| {
        let body = format!("{{\"min_iops\":{min}}}").into_bytes();
        policy(&two, ResourceEdit::Patch(name("batch"), body))
    };
    let error = raise(4000).unwrap_err();
    assert!(
        error.contains("store san") && error.contains("4000 IOPS more were requested"),
        "{error}"
    );
    assert!(error.contains("90 % of the store's capacity of 10000 IOPS"), "{error}");
    let min_of = |of: &Harness| of.node.config().qos_policies[0].min_iops;
    assert_eq!((min_of(&one), min_of(&two)), (None, None));
    raise(3000).unwrap();
    wait_until("it is reserved where its disk is", || cap(&one).reserved_iops == 3064);
    // Only the difference must fit, not the whole minimum again.
    raise(3500).unwrap();
    wait_until("the rest is, too", || cap(&one).reserved_iops == 3564);
    wait_until("the host has the policy", || min_of(&one) == Some(3500));
}

/// Starts a node with a disk that has a shared policy, and a second one that knows the policy.
pub(super) fn with_batch(cluster: &FakeCluster) -> (Harness, Harness) {
    let start = |cluster: FakeCluster| {
        let disks = FakeDisks::default();
        disks.put_store(DISK_STORE, cluster.files());
        Harness::in_cluster(MemoryStore::default(), disks, cluster)
    };
    let (one, two) = (start(cluster.clone()), start(cluster.other()));
    one.apply_ok(&host(&with_policy("n1", 1000)));
    wait_until("the policy is the cluster's", || cluster.value(BATCH).is_some());
    two.apply_ok(&host(&without_disks("n2")));
    wait_until("the second has the policy", || max_of(&two, "batch") == Some(1000));
    wait_until("it is known who uses it", || {
        cluster.value(REPORT).is_some_and(|text| !text.contains("\"policies\":[]"))
    });
    (one, two)
}

#[test]
fn a_policy_that_another_node_uses_is_not_deleted_and_one_that_is_gone_is_not_without_limit() {
    let cluster = FakeCluster::default();
    let (one, two) = with_batch(&cluster);
    wait_until("the first has its part", || part(&one) == 500);
    let error = policy(&two, ResourceEdit::Delete(name("batch"))).unwrap_err();
    assert!(error.contains("node `n1`"), "{error}");
    // The record is deleted without the check.
    let gone = ClusterChange::Remove("/suimon/lab/policies/batch".to_owned());
    cluster.commit(&[], &[gone]).unwrap();
    wait_until("it is gone where nobody uses it", || max_of(&two, "batch").is_none());
    wait_until("that is told", || was_told(&one, EventKind::SharedPolicyUnknown));
    wait_until("it may do nothing", || part(&one) == 0);
    assert_eq!(max_of(&one, "batch"), Some(1000));
    // When the disk is removed, the policy is removed from this node, too.
    one.apply_ok(&host(&without_disks("n1")));
    wait_until("it is gone", || max_of(&one, "batch").is_none());
}

#[test]
fn a_policy_is_made_on_a_node_of_a_cluster_as_on_any_host() {
    let cluster = FakeCluster::default();
    let one = node(&cluster, "n1", 1000);
    wait_until("it is a node", || was_told(&one, EventKind::ClusterJoined));
    let made = |of: &str| {
        let batch = host(&with_policy("n1", 500)).qos_policies.remove(0);
        ResourceEdit::Add(QosPolicyConfig { name: name(of), ..batch })
    };
    // The watch event may arrive before the change is made on this node.
    for of in 0..20 {
        policy(&one, made(&format!("batch-{of}"))).unwrap();
    }
    assert_eq!(one.node.config().qos_policies.len(), 20);
    assert!(policy(&one, made("batch-0")).unwrap_err().contains("already"));
    policy(&one, ResourceEdit::Delete(name("batch-0"))).unwrap();
    assert_eq!(cluster.keys("/suimon/lab/policies/").len(), 19);
    wait_until("nothing is brought back", || one.node.config().qos_policies.len() == 19);
}

#[test]
fn policies_of_the_cluster_do_not_change_while_nobody_answers_and_outlive_the_daemon() {
    let cluster = FakeCluster::default();
    let disks = FakeDisks::default();
    disks.put_store(DISK_STORE, cluster.files());
    let one = Harness::in_cluster(MemoryStore::default(), disks, cluster.clone());
    one.apply_ok(&host(&with_policy("n1", 1000)));
    wait_until("it has its part", || part(&one) == 500);
    let (store, _, disks) = one.kill_with_disks();
    let away = cluster.other();
    away.set(Faults { is_unreachable: true, ..Faults::default() });
    let one = Harness::in_cluster(store, disks, away.clone());
    wait_until("it has its part without anybody", || part(&one) == 500);
    let patch = || ResourceEdit::Patch(name("batch"), b"{\"max_iops\":2000}".to_vec());
    let error = policy(&one, patch()).unwrap_err();
    assert!(error.contains("not respond"), "{error}");
    assert_eq!(max_of(&one, "batch"), Some(1000));
    away.set(Faults::default());
    wait_until("it can be changed again", || policy(&one, patch()).is_ok());
    wait_until("it is in force", || part(&one) == 1000);
}

#[test]
fn nodes_and_strangers_are_seen_on_the_store_itself() {
    let (cluster, other) = (FakeCluster::default(), FakeCluster::default());
    let one = node(&cluster, "n1", 2000);
    wait_until("it leads", || was_told(&one, EventKind::ClusterLeads));
    let beats = || cluster.files().names(".suimon-beat").unwrap();
    wait_until("it has written", || beats().len() == 1);
    // A node of another cluster does not take part, but writes heartbeats.
    let disks = FakeDisks::default();
    disks.put_store(DISK_STORE, cluster.files());
    let stranger = Harness::in_cluster(MemoryStore::default(), disks, other);
    stranger.apply_ok(&host(&config("x1", 0).replace("\"lab\"", "\"else\"")));
    wait_until("it is found out", || was_told(&stranger, EventKind::SharedStoreWrong));
    wait_until("it has written, too", || beats().len() == 2);
    let seen = || one.node.cluster().stores[0].heartbeats.clone();
    let is_seen = || {
        seen()
            .first()
            .is_some_and(|heartbeat| heartbeat.is_other_cluster && heartbeat.node == name("x1"))
    };
    let timeout = std::time::Duration::from_secs(90);
    let began = std::time::Instant::now();
    while !is_seen() && began.elapsed() < timeout {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert!(is_seen(), "{:?}", seen());
    wait_until("that is told", || {
        let events = one.events(EventKind::SharedForeignLoad.id());
        events.iter().any(|event| event.text.contains("node x1 of cluster else"))
    });
}

#[test]
fn a_cluster_is_made_once() {
    let cluster = FakeCluster::default();
    let made = |of: &Harness, node: &str| {
        let config = host(&config(node, 0)).cluster.unwrap();
        of.node.submit(Edit::Cluster(ClusterEdit::Init(config)))
    };
    let one = Harness::in_cluster(MemoryStore::default(), FakeDisks::default(), cluster.clone());
    let operation = made(&one, "n1").unwrap();
    let ended = one.node.wait_operation(operation.id, crate::testing::DEADLINE).unwrap();
    assert_eq!(ended.state, OperationState::Succeeded, "{ended:?}");
    wait_until("it is there", || was_told(&one, EventKind::ClusterJoined));
    let two = Harness::in_cluster(MemoryStore::default(), FakeDisks::default(), cluster.other());
    let error = made(&two, "n2").unwrap_err();
    assert!(error[0].message.contains("with node n1; join it"), "{error:?}");
    assert!(made(&one, "n1").unwrap_err()[0].message.contains("leave it first"));
}

/// Reports of all nodes are received by the leader only.
#[test]
fn a_node_that_does_not_lead_any_more_ends_its_watch_of_reports() {
    const LEADER: &str = "/suimon/lab/leaders/san";
    let cluster = FakeCluster::default();
    let one = node(&cluster, "n1", 2000);
    let watches = || cluster.watches("/suimon/lab/reports/san/");
    wait_until("it leads", || was_told(&one, EventKind::ClusterLeads) && watches() == 1);
    // Another node was elected, as after a lease that has expired in etcd.
    let other = ClusterChange::Put(LEADER.to_owned(), b"n2 other 1".to_vec(), None);
    cluster.commit(&[], &[ClusterChange::Remove(LEADER.to_owned()), other]).unwrap();
    wait_until("it is told", || was_told(&one, EventKind::ClusterLeadLost));
    wait_until("the watch ends", || watches() == 0);
    assert_eq!(cluster.value(LEADER).as_deref(), Some("n2 other 1"));
    // It is elected again later, and watches again.
    cluster.commit(&[], &[ClusterChange::Remove(LEADER.to_owned())]).unwrap();
    wait_until("it leads again", || {
        one.events(EventKind::ClusterLeads.id()).len() == 2 && watches() == 1
    });
}
