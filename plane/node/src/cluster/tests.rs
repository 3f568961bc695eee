//! Tests of several nodes with a cluster store in memory, and of failures between them.

use suimon_contract::{ErrorCode, EventKind, Health, OperationState, QosPolicyConfig};
use suimon_ports::{ClusterChange, ClusterKvStore, StoreFiles};
use suimon_quantity::{DiskId, StoreId, Time, TimedRateLimit, WorkerId};
use suimon_storage::StoreView;
use suimon_storage_engine::{StoreRole, WorkerStoreStatus};
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

/// Returns the limit of the disks on the only store.
pub(super) fn cap(node: &Harness) -> TimedRateLimit {
    node.disks.caps().first().copied().unwrap_or_default()
}

pub(super) fn cap_now(node: &Harness) -> u64 {
    cap(node).iops_at(node.plane_now())
}

/// Simulates a disk that has demanded and received this rate since the start.
pub(super) fn load(node: &Harness, iops: u64) {
    let seconds = node.plane_now().as_ns() / 1_000_000;
    let done_count = iops * seconds / 1000;
    let flow = DiskFlow {
        disk: DiskId(0),
        holder: LimitsOwner::Disk(DiskId(0)),
        limits: Limits::default(),
        waiting: 32,
        in_flight: 1,
        done: DiskQosCounters {
            demanded: done_count,
            delivered: done_count,
            ..DiskQosCounters::default()
        },
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
    node.disks.set_views(vec![view]);
}

pub(super) fn has_event(node: &Harness, kind: EventKind) -> bool {
    !node.events(kind.id()).is_empty()
}

#[test]
fn two_nodes_share_a_store_within_its_capacity() {
    let cluster = FakeCluster::default();
    let first = node(&cluster, "n1", 2000);
    // Numbers are assigned in the order of joining.
    wait_until("the first node emits ClusterJoined", || {
        has_event(&first, EventKind::ClusterJoined)
    });
    let second = node(&cluster.new_client(), "n2", 3000);
    wait_until("both nodes have their reservations", || {
        cap(&first).reserved_iops == 2064 && cap(&second).reserved_iops == 3064
    });
    assert!(
        has_event(&first, EventKind::ClusterJoined) && has_event(&second, EventKind::ClusterJoined)
    );
    let leads = |node: &Harness| has_event(node, EventKind::ClusterLeads);
    // A leader writes grants before its event is published.
    wait_until("exactly one node leads", || leads(&first) != leads(&second));
    // Only one node has demand beyond its reservation.
    wait_until("unused IOPS are granted to the first node", || {
        load(&first, 4000);
        cap_now(&first) > 4500
    });
    assert!(cap_now(&first) + cap_now(&second) <= 10_000);
    wait_until("the second node lists both nodes and their shares", || {
        let status = second.node.cluster();
        let has_shares = status.stores.first().is_some_and(|store| store.shares.len() == 2);
        has_shares && status.members.iter().filter(|member| member.is_alive).count() == 2
    });
    let status = second.node.cluster();
    assert_eq!(status.condition.health, Health::Up, "{status:?}");
    let members: Vec<_> = status
        .members
        .iter()
        .map(|member| (member.name.as_str(), member.id, member.is_alive))
        .collect();
    assert_eq!(members, [("n1", 1, true), ("n2", 2, true)]);
    let store = &status.stores[0];
    assert_eq!(store.shares.len(), 2, "{store:?}");
    assert!(store.leader.is_some() && store.limit_iops == Some(10_000), "{store:?}");
    wait_until("the second node shows the disk of the first", || {
        load(&first, 4000);
        let flows = second.node.cluster_flows().unwrap();
        let mut first_flows = flows.iter().filter(|flow| flow.node == "n1");
        first_flows.any(|flow| flow.disk == "d-n1" && flow.delivered_iops > 3000)
    });
}

#[test]
fn during_an_outage_of_etcd_leases_expire_and_reservations_remain() {
    let cluster = FakeCluster::default();
    let (first, second_view) = (node(&cluster, "n1", 2000), cluster.new_client());
    let second = node(&second_view, "n2", 1000);
    wait_until("the second node may use more than 3500 IOPS", || {
        load(&second, 4000);
        cap_now(&second) > 3500
    });
    second_view.set(Faults { is_unreachable: true, ..Faults::default() });
    wait_until("the second node may use 1064 IOPS", || {
        load(&second, 4000);
        cap_now(&second) == 1064
    });
    wait_until("the second node emits SharedLeaseLapsed", || {
        has_event(&second, EventKind::SharedLeaseLapsed)
    });
    wait_until("the second node emits ClusterUnreachable", || {
        has_event(&second, EventKind::ClusterUnreachable)
    });
    assert_eq!(second.node.cluster().condition.health, Health::Down);
    assert!(cap_now(&first) + cap_now(&second) <= 10_000);
    // Changes on this node are not delayed by the outage.
    second.apply_ok(&host(&config("n2", 900)));
    second_view.set(Faults::default());
    wait_until("the second node may use more than 3500 IOPS", || {
        load(&second, 4000);
        cap_now(&second) > 3500
    });
    wait_until("the second node emits ClusterReachable", || {
        has_event(&second, EventKind::ClusterReachable)
    });
}

#[test]
fn a_leader_with_an_unknown_write_result_resigns_and_another_one_is_elected() {
    let cluster = FakeCluster::default();
    let second_view = cluster.new_client();
    let first = node(&cluster, "n1", 2000);
    wait_until("the first node emits ClusterLeads", || has_event(&first, EventKind::ClusterLeads));
    let second = node(&second_view, "n2", 1000);
    wait_until("both nodes may use their reservations", || {
        cap_now(&first) >= 2064 && cap_now(&second) >= 1064
    });
    cluster.set(Faults { loses_answers: true, ..Faults::default() });
    wait_until("the second node emits ClusterLeads", || {
        has_event(&second, EventKind::ClusterLeads)
    });
    wait_until("the first node emits ClusterLeadLost", || {
        has_event(&first, EventKind::ClusterLeadLost)
    });
    cluster.set(Faults::default());
    wait_until("the first node may use more than 5500 IOPS", || {
        load(&first, 5000);
        cap_now(&first) > 5500
    });
    assert!(cap_now(&first) + cap_now(&second) <= 10_000);
}

#[test]
fn expired_etcd_leases_are_replaced() {
    let cluster = FakeCluster::default();
    let first = node(&cluster, "n1", 2000);
    wait_until("the first node emits ClusterLeads", || has_event(&first, EventKind::ClusterLeads));
    cluster.end_leases();
    wait_until("the first node has emitted ClusterLeads 2 times", || {
        first.events(EventKind::ClusterLeads.id()).len() == 2
    });
    wait_until("one node is alive according to etcd", || {
        cluster.keys("/suimon/lab/alive/").len() == 1
    });
    wait_until("the first node may use at least 2064 IOPS", || cap_now(&first) >= 2064);
}

/// The leader writes nothing during the outage, so that no failed write makes it resign.
#[test]
fn a_leader_that_wrote_nothing_during_an_outage_stays_the_leader() {
    let cluster = FakeCluster::default();
    let first = node(&cluster, "n1", 2000);
    wait_until("the first node emits ClusterLeads", || has_event(&first, EventKind::ClusterLeads));
    wait_until("the first node may use at least 2064 IOPS", || cap_now(&first) >= 2064);
    cluster.set(Faults { is_unreachable: true, ..Faults::default() });
    wait_until("a lease request has failed", || cluster.times_without_lease() > 0);
    cluster.set(Faults::default());
    wait_until("the first node may use more than 3500 IOPS", || {
        load(&first, 4000);
        cap_now(&first) > 3500
    });
}

#[test]
fn reservations_survive_the_daemon() {
    let cluster = FakeCluster::default();
    let first = node(&cluster, "n1", 2000);
    wait_until("the first node has a reservation of 2064 IOPS", || {
        cap(&first).reserved_iops == 2064
    });
    let (store, _, disks) = first.kill_with_disks();
    let isolated = cluster.new_client();
    isolated.set(Faults { is_unreachable: true, ..Faults::default() });
    let first = Harness::in_cluster(store, disks, isolated.clone());
    wait_until("the first node may use 2064 IOPS", || cap_now(&first) == 2064);
    wait_until("nobody answers", || has_event(&first, EventKind::ClusterUnreachable));
    isolated.set(Faults::default());
    wait_until("the first node emits ClusterLeads", || has_event(&first, EventKind::ClusterLeads));
    wait_until("the node has number 1", || {
        let members = first.node.cluster().members;
        members.len() == 1 && members[0].id == 1
    });
}

/// Returns the error of a rejected change.
pub(super) fn refusal(node: &Harness, text: &str) -> Option<String> {
    let errors = node.node.submit(Edit::Apply(Box::new(host(text)))).err()?;
    Some(errors[0].to_string())
}

#[test]
fn a_minimum_that_the_cluster_rejects_is_rejected_with_the_calculation() {
    let cluster = FakeCluster::default();
    let first = node(&cluster, "n1", 6000);
    wait_until("the first node has a reservation of 6064 IOPS", || {
        cap(&first).reserved_iops == 6064
    });
    let second = node(&cluster.new_client(), "n2", 1000);
    wait_until("the second node has a reservation of 1064 IOPS", || {
        cap(&second).reserved_iops == 1064
    });
    let error = refusal(&second, &config("n2", 4000)).unwrap();
    let arithmetic = "all nodes together have 7128 IOPS reserved, and 3000 IOPS more were \
                      requested; the permitted sum is 9000 IOPS, 90 % of the store's capacity of \
                      10000 IOPS (configured): lower minimums by 1128 IOPS";
    assert!(error.contains(arithmetic), "{error}");
    // The leader, whichever node it is, emits the event as soon as the rejection is written.
    wait_until("a node emits SharedPromiseRefused", || {
        has_event(&first, EventKind::SharedPromiseRefused)
            || has_event(&second, EventKind::SharedPromiseRefused)
    });
    assert_eq!(
        second.node.config().disks[0].qos.min_iops,
        Some(1000),
        "the minimum in effect is unchanged"
    );
    assert_eq!(cap(&second).reserved_iops, 1064);
    // A lower minimum is reserved before the change is made, and nothing remains of the rejected
    // one.
    second.apply_ok(&host(&config("n2", 2000)));
    wait_until("the second node has a reservation of 2064 IOPS", || {
        cap(&second).reserved_iops == 2064
    });
    wait_until("the disk has a minimum of 2000 IOPS", || {
        second.disks.admitted_minimums()[0].minimums_iops == 2000
    });
    first.apply_ok(&host(&config("n1", 6800)));
}

#[test]
fn a_minimum_without_a_response_is_pending_until_it_is_reserved() {
    let cluster = FakeCluster::default();
    let first = node(&cluster, "n1", 2000);
    let minimum = |node: &Harness| node.disks.admitted_minimums()[0].minimums_iops;
    wait_until("the minimum in effect is 2000 IOPS", || minimum(&first) == 2000);
    cluster.set(Faults { is_unreachable: true, ..Faults::default() });
    wait_until("nobody answers", || has_event(&first, EventKind::ClusterUnreachable));
    let change = Edit::Apply(Box::new(host(&config("n1", 3000))));
    let operation = first.node.submit(change).unwrap();
    let operation = first.node.wait_operation(operation.id, crate::testing::DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    assert!(operation.report[0].contains("pending and not guaranteed"), "{operation:?}");
    assert!(operation.report[0].contains("etcd does not respond"), "{operation:?}");
    assert_eq!(first.node.config().disks[0].qos.min_iops, Some(3000));
    // A restart does not put the pending minimum into effect.
    let (store, _, disks) = first.kill_with_disks();
    let first = Harness::in_cluster(store, disks, cluster.clone());
    wait_until("the minimum in effect is 2000 IOPS", || minimum(&first) == 2000);
    std::thread::sleep(std::time::Duration::from_millis(600));
    assert_eq!(minimum(&first), 2000);
    cluster.set(Faults::default());
    wait_until("the minimum in effect is 3000 IOPS", || {
        minimum(&first) == 3000 && cap(&first).reserved_iops == 3064
    });
}

#[test]
fn a_fallback_rate_is_in_effect_if_it_fits_and_is_shown() {
    let cluster = FakeCluster::default();
    let with_fallback = |iops: u64| {
        config("n1", 1000)
            .replace("shared = true\n", &format!("shared = true\nfallback_iops = {iops}\n"))
    };
    let first = node(&cluster, "n1", 1000);
    wait_until("the first node has a reservation of 1064 IOPS", || {
        cap(&first).reserved_iops == 1064
    });
    let cap_of = |node: &Harness| node.node.cluster().stores[0].cap;
    assert_eq!(cap_of(&first).fallback_iops, None);
    first.apply_ok(&host(&with_fallback(4000)));
    wait_until("the fallback rate is 4000 IOPS", || cap_of(&first).fallback_iops == Some(4000));
    assert!(cap_of(&first).fallback_ms.is_some_and(|ms| ms <= 30_000), "{:?}", cap_of(&first));
    let later_cap = cap(&first).later.unwrap();
    assert_eq!(cap(&first).iops_at(later_cap.1), 4000);
    // A fallback rate that does not fit is not put into effect.
    first.apply_ok(&host(&with_fallback(9500)));
    wait_until("the fallback rate is 4000 IOPS", || cap_of(&first).fallback_iops == Some(4000));
    let config_text = with_fallback(1).replace("shared = true\n", "");
    let parse_errors = suimon_contract::parse_toml(&config_text, None).unwrap_err();
    assert_eq!(parse_errors[0].field.as_deref(), Some("fallback_iops"), "{parse_errors:?}");
}

#[test]
fn a_node_name_belongs_to_one_host() {
    let cluster = FakeCluster::default();
    let _one = node(&cluster, "n1", 2000);
    wait_until("one node is alive according to etcd", || {
        cluster.keys("/suimon/lab/alive/").len() == 1
    });
    let disks = FakeDisks::with_store(DISK_STORE);
    let impostor = Harness::in_cluster(MemoryStore::default(), disks, cluster.new_client());
    impostor.apply_ok(&host(&config("n1", 2000)));
    wait_until("the impostor emits ClusterRefused", || {
        has_event(&impostor, EventKind::ClusterRefused)
    });
    assert_eq!(cap_now(&impostor), 0, "a rejected node may use no IOPS");
    let status = impostor.node.cluster();
    assert_eq!(status.condition.health, Health::Failed);
    assert!(status.condition.reason.unwrap().contains("another"));
}

#[test]
fn a_node_that_leaves_gives_back_its_reservations() {
    let cluster = FakeCluster::default();
    let (first, second) = (node(&cluster, "n1", 6000), node(&cluster.new_client(), "n2", 2000));
    wait_until("both nodes may use their reservations", || {
        cap_now(&first) >= 6064 && cap_now(&second) >= 2064
    });
    let leave_cluster = Edit::Cluster(ClusterEdit::Delete);
    let errors = first.node.submit(leave_cluster.clone()).unwrap_err();
    assert!(errors[0].message.contains("disk/d-n1"), "{errors:?}");
    let force = ChangeOptions { force: true, ..ChangeOptions::default() };
    let operation = first.node.submit_with(leave_cluster, force).unwrap();
    let operation = first.node.wait_operation(operation.id, crate::testing::DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    wait_until("the store has no limit on the first node", || first.disks.caps().is_empty());
    wait_until("one member record remains", || cluster.keys("/suimon/lab/members/").len() == 1);
    second.apply_ok(&host(&config("n2", 8000)));
    wait_until("the second node has a reservation of 8064 IOPS", || {
        cap(&second).reserved_iops == 8064
    });
}

#[test]
fn a_permanently_failed_node_can_be_removed() {
    let cluster = FakeCluster::default();
    let second_view = cluster.new_client();
    let (first, second) = (node(&cluster, "n1", 2000), node(&second_view, "n2", 6000));
    wait_until("both nodes may use their reservations", || {
        cap_now(&first) >= 2064 && cap_now(&second) >= 6064
    });
    let error = first.node.remove_cluster_node("n2").unwrap_err();
    assert!(error.message.contains("is running"), "{error}");
    assert!(first.node.remove_cluster_node("n3").is_err());
    drop(second);
    wait_until("one node is alive according to etcd", || {
        cluster.keys("/suimon/lab/alive/").len() == 1
    });
    first.node.remove_cluster_node("n2").unwrap();
    first.apply_ok(&host(&config("n1", 8000)));
    wait_until("the first node has a reservation of 8064 IOPS", || {
        cap(&first).reserved_iops == 8064
    });
    wait_until("one grant remains", || cluster.keys("/suimon/lab/grants/").len() == 1);
}

#[test]
fn another_cluster_or_name_requires_leaving_first_and_a_response_of_etcd() {
    let cluster = FakeCluster::default();
    let first = node(&cluster, "n1", 2000);
    let errors = first.node.submit(Edit::Apply(Box::new(host(&config("n9", 2000))))).unwrap_err();
    assert_eq!(errors[0].field.as_deref(), Some("node"));
    let isolated = cluster.new_client();
    isolated.set(Faults { is_unreachable: true, ..Faults::default() });
    let disks = FakeDisks::with_store(DISK_STORE);
    let second = Harness::in_cluster(MemoryStore::default(), disks, isolated);
    let edit = Edit::Apply(Box::new(host(&config("n2", 2000))));
    assert!(second.node.submit(edit).unwrap_err()[0].message.contains("nobody answers"));
    assert!(second.node.config().cluster.is_none());
}

#[test]
fn a_cluster_change_without_a_cluster_is_rejected_with_the_action() {
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
fn a_store_of_the_same_name_in_another_directory_is_detected() {
    let cluster = FakeCluster::default();
    let first = node(&cluster, "n1", 2000);
    wait_until("the first node may use at least 2064 IOPS", || cap_now(&first) >= 2064);
    let disks = FakeDisks::with_store(DISK_STORE);
    let second = Harness::in_cluster(MemoryStore::default(), disks, cluster.new_client());
    second.apply_ok(&host(&config("n2", 2000)));
    wait_until("the second node emits SharedStoreWrong", || {
        has_event(&second, EventKind::SharedStoreWrong)
    });
    assert_eq!(cap_now(&second), 0, "a node with another directory may use no IOPS");
    let reason = second.node.cluster().stores[0].reason.clone();
    assert!(reason.unwrap().contains("mounted"));
}

/// Returns the configuration of a node with a shared policy, and a disk that uses it.
pub(super) fn with_policy(node: &str, max: u64) -> String {
    format!(
        "{}qos_policy = \"batch\"\n[[qos_policy]]\nname = \"batch\"\nkind = \"aggregated\"\n\
         shared = true\nmax_iops = {max}\n",
        config(node, 0)
    )
}

pub(super) fn max_of(node: &Harness, policy: &str) -> Option<u64> {
    let config = node.node.config();
    config.qos_policies.iter().find(|policy_config| policy_config.name.as_str() == policy)?.max_iops
}

/// Returns the IOPS that the only policy permits this node now; `u64::MAX` without a share.
fn part(node: &Harness) -> u64 {
    let parts = node.disks.policy_parts();
    let max = parts.first().and_then(|part| part.max);
    max.map_or(u64::MAX, |cap| cap.iops_at(node.plane_now()))
}

pub(super) fn policy(node: &Harness, edit: ResourceEdit<QosPolicyConfig>) -> Result<(), String> {
    let operation =
        node.node.submit(Edit::QosPolicy(edit)).map_err(|errors| errors[0].to_string())?;
    let operation = node.node.wait_operation(operation.id, crate::testing::DEADLINE).unwrap();
    operation.error.map_or(Ok(()), |error| Err(error.to_string()))
}

pub(super) fn without_disks(node_name: &str) -> String {
    let text = config(node_name, 1);
    text[..text.find("[[disk]]").unwrap()].to_owned()
}

#[test]
fn a_cluster_policy_is_equal_on_all_nodes_and_limits_their_sum() {
    let cluster = FakeCluster::default();
    let disks = || {
        let disks = FakeDisks::default();
        disks.put_store(DISK_STORE, cluster.files());
        disks
    };
    let first = Harness::in_cluster(MemoryStore::default(), disks(), cluster.clone());
    let second = Harness::in_cluster(MemoryStore::default(), disks(), cluster.new_client());
    first.apply_ok(&host(&with_policy("n1", 1000)));
    wait_until("etcd contains the policy", || cluster.keys("/suimon/lab/policies/").len() == 1);
    second.apply_ok(&host(&without_disks("n2")));
    wait_until("the second node has the policy with max_iops 1000", || {
        max_of(&second, "batch") == Some(1000)
    });
    // Applying a host file without the policy does not delete it.
    second.apply_ok(&host(&without_disks("n2")));
    assert_eq!(max_of(&second, "batch"), Some(1000));
    second.apply_ok(&host(&with_policy("n2", 1000)));
    wait_until("both nodes have a share of 250 IOPS", || {
        part(&first) == 250 && part(&second) == 250
    });
    wait_until("the first node's share is more than 700 IOPS", || {
        load(&first, 4000);
        part(&first) > 700
    });
    assert!(part(&first) + part(&second) <= 1000, "{} {}", part(&first), part(&second));
    let parts = first.node.qos_policy("batch").unwrap().parts;
    assert_eq!(parts[0].max.unwrap().reserved_iops, 250, "{parts:?}");
    // A change on one node applies to all nodes.
    let patch = ResourceEdit::Patch(name("batch"), b"{\"max_iops\":400}".to_vec());
    policy(&second, patch).unwrap();
    wait_until("the first node has the policy with max_iops 400", || {
        max_of(&first, "batch") == Some(400)
    });
    wait_until("the shares are at most 400 IOPS together", || part(&first) + part(&second) <= 400);
    let error = policy(&first, ResourceEdit::Delete(name("batch"))).unwrap_err();
    assert!(error.contains("disk/d-n1"), "{error}");
}

/// A minimum that leaders cannot reserve is rejected by the command, and nothing changes on any
/// node.
#[test]
fn a_policy_minimum_that_does_not_fit_is_rejected_with_the_calculation() {
    let cluster = FakeCluster::default();
    let disks = FakeDisks::default();
    disks.put_store(DISK_STORE, cluster.files());
    let first = Harness::in_cluster(MemoryStore::default(), disks, cluster.clone());
    first.apply_ok(&host(&with_policy("n1", 9000)));
    let second = node(&cluster.new_client(), "n2", 5000);
    wait_until("the second node has a reservation of 5064 IOPS", || {
        cap(&second).reserved_iops == 5064
    });
    wait_until("the second node has the policy with max_iops 9000", || {
        max_of(&second, "batch") == Some(9000)
    });
    wait_until("the first node has a share of the policy", || {
        part(&first) > 0 && part(&first) < u64::MAX
    });
    let raise = |min: u64| {
        let body = format!("{{\"min_iops\":{min}}}").into_bytes();
        policy(&second, ResourceEdit::Patch(name("batch"), body))
    };
    let error = raise(4000).unwrap_err();
    assert!(
        error.contains("store san") && error.contains("4000 IOPS more were requested"),
        "{error}"
    );
    assert!(error.contains("90 % of the store's capacity of 10000 IOPS"), "{error}");
    let min_of = |node: &Harness| node.node.config().qos_policies[0].min_iops;
    assert_eq!((min_of(&first), min_of(&second)), (None, None));
    raise(3000).unwrap();
    wait_until("the first node has a reservation of 3064 IOPS", || {
        cap(&first).reserved_iops == 3064
    });
    // Only the difference must fit, not the whole minimum again.
    raise(3500).unwrap();
    wait_until("the first node has a reservation of 3564 IOPS", || {
        cap(&first).reserved_iops == 3564
    });
    wait_until("the first node has the policy with min_iops 3500", || min_of(&first) == Some(3500));
}

/// Starts a node with a disk that has a shared policy, and a second one that knows the policy.
pub(super) fn with_batch(cluster: &FakeCluster) -> (Harness, Harness) {
    let start = |cluster: FakeCluster| {
        let disks = FakeDisks::default();
        disks.put_store(DISK_STORE, cluster.files());
        Harness::in_cluster(MemoryStore::default(), disks, cluster)
    };
    let (first, second) = (start(cluster.clone()), start(cluster.new_client()));
    first.apply_ok(&host(&with_policy("n1", 1000)));
    wait_until("the policy is the cluster's", || cluster.value(BATCH).is_some());
    second.apply_ok(&host(&without_disks("n2")));
    wait_until("the second node has the policy with max_iops 1000", || {
        max_of(&second, "batch") == Some(1000)
    });
    wait_until("the report contains the policy", || {
        cluster.value(REPORT).is_some_and(|text| !text.contains("\"policies\":[]"))
    });
    (first, second)
}

#[test]
fn a_policy_in_use_is_not_deleted_and_disks_of_a_deleted_policy_are_blocked() {
    let cluster = FakeCluster::default();
    let (first, second) = with_batch(&cluster);
    wait_until("the first node's share of the policy is 500 IOPS", || part(&first) == 500);
    let error = policy(&second, ResourceEdit::Delete(name("batch"))).unwrap_err();
    assert!(error.contains("node `n1`"), "{error}");
    // The record is deleted without the check.
    let removal = ClusterChange::Remove("/suimon/lab/policies/batch".to_owned());
    cluster.commit(&[], &[removal]).unwrap();
    wait_until("the second node has removed the policy", || max_of(&second, "batch").is_none());
    wait_until("the first node emits SharedPolicyUnknown", || {
        has_event(&first, EventKind::SharedPolicyUnknown)
    });
    wait_until("the first node's share of the policy is 0 IOPS", || part(&first) == 0);
    assert_eq!(max_of(&first, "batch"), Some(1000));
    // When the disk is removed, the policy is removed from this node, too.
    first.apply_ok(&host(&without_disks("n1")));
    wait_until("the first node has removed the policy", || max_of(&first, "batch").is_none());
}

#[test]
fn a_policy_is_created_on_a_cluster_node_as_on_any_host() {
    let cluster = FakeCluster::default();
    let first = node(&cluster, "n1", 1000);
    wait_until("the first node emits ClusterJoined", || {
        has_event(&first, EventKind::ClusterJoined)
    });
    let add_policy = |policy_name: &str| {
        let batch = host(&with_policy("n1", 500)).qos_policies.remove(0);
        ResourceEdit::Add(QosPolicyConfig { name: name(policy_name), ..batch })
    };
    // The watch event may arrive before the change is made on this node.
    for number in 0..20 {
        policy(&first, add_policy(&format!("batch-{number}"))).unwrap();
    }
    assert_eq!(first.node.config().qos_policies.len(), 20);
    assert!(policy(&first, add_policy("batch-0")).unwrap_err().contains("already"));
    policy(&first, ResourceEdit::Delete(name("batch-0"))).unwrap();
    assert_eq!(cluster.keys("/suimon/lab/policies/").len(), 19);
    wait_until("the first node has 19 policies", || first.node.config().qos_policies.len() == 19);
}

#[test]
fn cluster_policies_do_not_change_during_an_outage_and_survive_the_daemon() {
    let cluster = FakeCluster::default();
    let disks = FakeDisks::default();
    disks.put_store(DISK_STORE, cluster.files());
    let first = Harness::in_cluster(MemoryStore::default(), disks, cluster.clone());
    first.apply_ok(&host(&with_policy("n1", 1000)));
    wait_until("the first node's share of the policy is 500 IOPS", || part(&first) == 500);
    let (store, _, disks) = first.kill_with_disks();
    let isolated = cluster.new_client();
    isolated.set(Faults { is_unreachable: true, ..Faults::default() });
    let first = Harness::in_cluster(store, disks, isolated.clone());
    wait_until("the first node's share of the policy is 500 IOPS", || part(&first) == 500);
    let patch = || ResourceEdit::Patch(name("batch"), b"{\"max_iops\":2000}".to_vec());
    let error = policy(&first, patch()).unwrap_err();
    assert!(error.contains("not respond"), "{error}");
    assert_eq!(max_of(&first, "batch"), Some(1000));
    isolated.set(Faults::default());
    wait_until("the policy can be changed", || policy(&first, patch()).is_ok());
    wait_until("the first node's share of the policy is 1000 IOPS", || part(&first) == 1000);
}

#[test]
fn heartbeats_on_the_store_show_nodes_of_this_and_of_another_cluster() {
    let (cluster, other) = (FakeCluster::default(), FakeCluster::default());
    let first = node(&cluster, "n1", 2000);
    wait_until("the first node emits ClusterLeads", || has_event(&first, EventKind::ClusterLeads));
    let beats = || cluster.files().names(".suimon-beat").unwrap();
    wait_until("the number of heartbeat files is 1", || beats().len() == 1);
    // A node of another cluster does not take part, but writes heartbeats.
    let disks = FakeDisks::default();
    disks.put_store(DISK_STORE, cluster.files());
    let other_cluster = Harness::in_cluster(MemoryStore::default(), disks, other);
    other_cluster.apply_ok(&host(&config("x1", 0).replace("\"lab\"", "\"else\"")));
    wait_until("the other cluster's node emits SharedStoreWrong", || {
        has_event(&other_cluster, EventKind::SharedStoreWrong)
    });
    wait_until("the number of heartbeat files is 2", || beats().len() == 2);
    let heartbeats = || first.node.cluster().stores[0].heartbeats.clone();
    let is_shown = || {
        heartbeats()
            .first()
            .is_some_and(|heartbeat| heartbeat.is_other_cluster && heartbeat.node == name("x1"))
    };
    let timeout = std::time::Duration::from_secs(90);
    let start = std::time::Instant::now();
    while !is_shown() && start.elapsed() < timeout {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert!(is_shown(), "{:?}", heartbeats());
    wait_until("SharedForeignLoad names the node", || {
        let events = first.events(EventKind::SharedForeignLoad.id());
        events.iter().any(|event| event.text.contains("node x1 of cluster else"))
    });
}

#[test]
fn a_cluster_is_created_once() {
    let cluster = FakeCluster::default();
    let init_cluster = |harness: &Harness, node: &str| {
        let config = host(&config(node, 0)).cluster.unwrap();
        harness.node.submit(Edit::Cluster(ClusterEdit::Init(config)))
    };
    let first = Harness::in_cluster(MemoryStore::default(), FakeDisks::default(), cluster.clone());
    let operation = init_cluster(&first, "n1").unwrap();
    let operation = first.node.wait_operation(operation.id, crate::testing::DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    wait_until("the first node emits ClusterJoined", || {
        has_event(&first, EventKind::ClusterJoined)
    });
    let second =
        Harness::in_cluster(MemoryStore::default(), FakeDisks::default(), cluster.new_client());
    let error = init_cluster(&second, "n2").unwrap_err();
    assert!(error[0].message.contains("with node n1; join it"), "{error:?}");
    assert!(init_cluster(&first, "n1").unwrap_err()[0].message.contains("leave it first"));
}

/// Reports of all nodes are received by the leader only.
#[test]
fn a_former_leader_ends_its_watch_of_reports() {
    const LEADER: &str = "/suimon/lab/leaders/san";
    let cluster = FakeCluster::default();
    let first = node(&cluster, "n1", 2000);
    let watches = || cluster.watches("/suimon/lab/reports/san/");
    wait_until("the first node leads and watches the reports", || {
        has_event(&first, EventKind::ClusterLeads) && watches() == 1
    });
    // Another node was elected, as after a lease that has expired in etcd.
    let other = ClusterChange::Put(LEADER.to_owned(), b"n2 other 1".to_vec(), None);
    cluster.commit(&[], &[ClusterChange::Remove(LEADER.to_owned()), other]).unwrap();
    wait_until("the first node emits ClusterLeadLost", || {
        has_event(&first, EventKind::ClusterLeadLost)
    });
    wait_until("the watch ends", || watches() == 0);
    assert_eq!(cluster.value(LEADER).as_deref(), Some("n2 other 1"));
    // It is elected again later, and watches again.
    cluster.commit(&[], &[ClusterChange::Remove(LEADER.to_owned())]).unwrap();
    wait_until("the first node leads again and watches the reports", || {
        first.events(EventKind::ClusterLeads.id()).len() == 2 && watches() == 1
    });
}
