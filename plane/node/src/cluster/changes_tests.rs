//! Tests of changes with a part in etcd: leaving, stores that are not shared any more, shared
//! policies.

use std::collections::BTreeSet;
use std::time::Duration;

use suimon_contract::{ApiError, ErrorCode, EventKind, HostConfig, OperationState};
use suimon_ports::testing::MemoryStore as MemoryFiles;
use suimon_ports::{ClusterChange, ClusterKvStore, StateStore};

use super::tests::{
    BATCH, REPORT, cap, cap_now, config, has_event, load, max_of, node, policy, refusal,
    with_batch, with_policy, without_disks,
};
use crate::operations::RUNNING_MAX;
use crate::testing::{
    DEADLINE, DISK_STORE, FakeCluster, FakeDisks, Faults, Harness, MemoryStore, host, name,
    wait_until,
};
use crate::{ChangeOptions, ClusterEdit, Edit, ResourceEdit};

const GRANT: &str = "/suimon/lab/grants/0000000001/san";
const POLICIES: &str = "/suimon/lab/policies/";

/// Starts a node with number 1 and a reservation, and a second one.
fn pair(cluster: &FakeCluster) -> (Harness, Harness) {
    let first = node(cluster, "n1", 2000);
    wait_until("the first node emits ClusterJoined", || {
        has_event(&first, EventKind::ClusterJoined)
    });
    let second = node(&cluster.new_client(), "n2", 1000);
    wait_until("both nodes have their reservations", || {
        cap(&first).reserved_iops == 2064 && cap(&second).reserved_iops == 1064
    });
    (first, second)
}

fn force() -> ChangeOptions {
    ChangeOptions { forces_minimums: true, ..ChangeOptions::default() }
}

fn apply_forced(node: &Harness, text: &str) {
    let operation = node.node.submit_with(Edit::Apply(Box::new(host(text))), force()).unwrap();
    let operation = node.node.wait_operation(operation.id, DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
}

/// Returns the configuration of a node that shares nothing.
fn config_without_stores(node_name: &str) -> String {
    let text = config(node_name, 1);
    text[..text.find("[[store]]").unwrap()].to_owned()
}

fn unshared(node_name: &str) -> String {
    config(node_name, 2000).replace("shared = true\n", "")
}

fn wait_withdrawn(cluster: &FakeCluster) {
    wait_until("the node's report and grant are removed", || {
        cluster.value(REPORT).is_none() && cluster.value(GRANT).is_none()
    });
}

/// Waits until the node has the reservation that another node has given back.
fn assert_free(harness: &Harness) {
    harness.apply_ok(&host(&config("n2", 8000)));
    wait_until("the node has a reservation of 8064 IOPS", || cap(harness).reserved_iops == 8064);
}

#[test]
fn a_node_that_does_not_know_the_capacity_of_a_store_does_not_reduce_it() {
    let cluster = FakeCluster::default();
    let (first, second) = pair(&cluster);
    second.apply_ok(&host(&config("n2", 0).replace("10000", "\"measure\"")));
    let report = "/suimon/lab/reports/san/0000000002";
    wait_until("the report contains no capacity", || {
        cluster.value(report).is_some_and(|text| !text.contains("\"capability_iops\""))
    });
    for _ in 0..20 {
        assert_eq!(first.node.cluster().stores[0].limit_iops, Some(10_000));
        std::thread::sleep(Duration::from_millis(50));
    }
    wait_until("the first node may use more than 3500 IOPS", || {
        load(&first, 4000);
        cap_now(&first) > 3500
    });
}

/// No node knows the capacity of the store, so that it has no leader.
#[test]
fn disks_of_a_store_without_a_measurement_are_served_until_a_node_knows_the_capacity() {
    let cluster = FakeCluster::default();
    let disks = FakeDisks::default();
    disks.put_store(DISK_STORE, cluster.files());
    let first = Harness::in_cluster(MemoryStore::default(), disks, cluster.clone());
    first.apply_ok(&host(&config("n1", 0).replace("10000", "\"measure\"")));
    wait_until("the first node emits SharedStoreUnmeasured", || {
        has_event(&first, EventKind::SharedStoreUnmeasured)
    });
    wait_until("the disks get the floor", || cap(&first).reserved_iops == 64);
    let remark = first.node.cluster().stores[0].clone();
    assert!(format!("{remark:?}").contains("suimon store measure san"), "{remark:?}");
    // Another node knows the capacity, leads the store, and grants leases to the first one.
    let second = node(&cluster.new_client(), "n2", 2000);
    wait_until("the second node emits ClusterLeads", || {
        has_event(&second, EventKind::ClusterLeads)
    });
    assert!(!has_event(&first, EventKind::ClusterLeads));
    wait_until("the first node may use more than 3500 IOPS", || {
        load(&first, 4000);
        cap_now(&first) > 3500
    });
    first.apply_ok(&host(&config("n1", 0)));
    wait_until("the first node emits SharedStoreMeasured", || {
        has_event(&first, EventKind::SharedStoreMeasured)
    });
}

#[test]
fn a_node_that_has_left_joins_again_if_the_change_is_not_made() {
    let cluster = FakeCluster::default();
    let first = node(&cluster, "n1", 2000);
    let members = || cluster.keys("/suimon/lab/members/").len();
    let joined = || first.events(EventKind::ClusterJoined.id()).len();
    wait_until("the first node has a reservation of 2064 IOPS", || {
        cap(&first).reserved_iops == 2064
    });
    let shared = first.node.shared();
    let changing = shared.cluster.begin_change(DEADLINE).unwrap();
    shared.return_reservations().unwrap();
    // The change may still be made.
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!((members(), joined()), (0, 1));
    drop(changing);
    wait_until("the first node has joined twice and has a reservation of 2064 IOPS", || {
        joined() == 2 && cap(&first).reserved_iops == 2064
    });
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!((members(), joined(), cap(&first).reserved_iops), (1, 2, 2064));
}

#[test]
fn a_store_with_disks_stays_shared_unless_forced_and_its_records_go_with_it() {
    let cluster = FakeCluster::default();
    let (first, second) = pair(&cluster);
    let error = refusal(&first, &unshared("n1")).unwrap();
    assert!(error.contains("disk/d-n1") && error.contains("--force"), "{error}");
    assert_eq!(cap(&first).reserved_iops, 2064);
    apply_forced(&first, &unshared("n1"));
    wait_withdrawn(&cluster);
    assert_free(&second);
    second.apply_ok(&host(&config("n2", 1000)));
    wait_until("the second node has a reservation of 1064 IOPS", || {
        cap(&second).reserved_iops == 1064
    });
    first.apply_ok(&host(&config("n1", 500)));
    wait_until("the first node has a reservation of 564 IOPS", || cap(&first).reserved_iops == 564);
}

#[test]
fn a_store_that_is_deleted_with_its_disks_leaves_no_records() {
    let cluster = FakeCluster::default();
    let (first, second) = pair(&cluster);
    first.apply_ok(&host(&config_without_stores("n1")));
    wait_withdrawn(&cluster);
    assert_free(&second);
}

/// The leader has given its own reservation back while a write of its grants was queued.
#[test]
fn a_leader_that_stops_sharing_a_store_leaves_no_grant_to_the_next_one() {
    let cluster = FakeCluster::default();
    let (first, second) = pair(&cluster);
    let leader = "/suimon/lab/leaders/san";
    assert!(cluster.value(leader).unwrap().starts_with("n1"), "{:?}", cluster.value(leader));
    cluster.write_after_removal(REPORT.to_owned(), GRANT.to_owned());
    first.apply_ok(&host(&config_without_stores("n1")));
    wait_until("the second node leads the store", || {
        cluster.value(leader).is_some_and(|leader| leader.starts_with("n2"))
    });
    wait_withdrawn(&cluster);
    assert_free(&second);
}

#[test]
fn a_reservation_given_back_for_a_failed_change_is_requested_again() {
    let cluster = FakeCluster::default();
    let (first, _two) = pair(&cluster);
    let shared = first.node.shared();
    let changing = shared.cluster.begin_change(DEADLINE).unwrap();
    shared.release_stores(BTreeSet::from([name("san")])).unwrap();
    assert_eq!((cap(&first).reserved_iops, cluster.value(REPORT)), (0, None));
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!((cap(&first).reserved_iops, cluster.value(REPORT)), (0, None));
    drop(changing);
    wait_until("the first node has a reservation of 2064 IOPS", || {
        cap(&first).reserved_iops == 2064
    });
    assert!(cluster.value(REPORT).is_some());
}

#[test]
fn records_that_could_not_be_removed_are_removed_when_etcd_responds() {
    let cluster = FakeCluster::default();
    let (first, second) = pair(&cluster);
    cluster.set(Faults { is_unreachable: true, ..Faults::default() });
    let error = refusal(&first, &config_without_stores("n1")).unwrap();
    assert!(error.contains("san could not be returned"), "{error}");
    apply_forced(&first, &config_without_stores("n1"));
    assert!(cluster.value(REPORT).is_some());
    cluster.set(Faults::default());
    wait_withdrawn(&cluster);
    assert_free(&second);
}

/// Returns stores that all nodes share besides the one of [`config`]. An etcd transaction of the
/// tests has 4 changes at most.
fn more_stores(disks: &FakeDisks, files: &[MemoryFiles]) -> String {
    let store = |(number, files): (usize, &MemoryFiles)| {
        disks.put_store(&format!("/srv/{number}"), files.clone());
        format!(
            "[[store]]\nname = \"s{number}\"\npath = \"/srv/{number}\"\nshared = true\n\
             capability_iops = 1000\n"
        )
    };
    files.iter().enumerate().map(store).collect()
}

#[test]
fn a_node_with_more_stores_than_a_transaction_has_changes_leaves_and_is_removed() {
    let cluster = FakeCluster::default();
    let files: Vec<MemoryFiles> = (0..6).map(|_| MemoryFiles::default()).collect();
    let start = |node_name: &str, cluster: &FakeCluster| {
        let disks = FakeDisks::default();
        disks.put_store(DISK_STORE, cluster.files());
        let extra_stores = more_stores(&disks, &files);
        let harness = Harness::in_cluster(MemoryStore::default(), disks, cluster.clone());
        harness.apply_ok(&host(&format!("{}{extra_stores}", without_disks(node_name))));
        harness
    };
    let reports_of = |number: u32| {
        let ending = format!("/{number:010}");
        let keys = cluster.keys("/suimon/lab/reports/").into_iter();
        keys.filter(|key| key.ends_with(&ending)).count()
    };
    let first = start("n1", &cluster);
    wait_until("node 1 has written its reports", || reports_of(1) == 7);
    let second = start("n2", &cluster.new_client());
    wait_until("node 2 has written its reports", || reports_of(2) == 7);
    drop(second);
    wait_until("one node is alive according to etcd", || {
        cluster.keys("/suimon/lab/alive/").len() == 1
    });
    first.node.remove_cluster_node("n2").unwrap();
    assert_eq!(reports_of(2), 0);
    let operation = first.change(Edit::Cluster(ClusterEdit::Delete));
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    assert_eq!((reports_of(1), cluster.keys("/suimon/lab/members/").len()), (0, 0));
}

/// Makes a change in the cluster's etcd that is not made on this host.
fn query(node: &Harness, from: &HostConfig, to: &HostConfig) -> Result<(), ApiError> {
    let shared = node.node.shared();
    let operation = shared.operations.add("apply", "host", true).unwrap();
    let edit = Edit::Apply(Box::new(to.clone()));
    let result = shared.prepare_cluster_change(&edit, (from, to), false, &operation);
    operation.withdraw();
    result.map(drop)
}

/// Returns a configuration with this many shared policies more.
fn with_more(config: &HostConfig, count: usize) -> HostConfig {
    let mut config = config.clone();
    let batch = host(&with_policy("n1", 100)).qos_policies.remove(0);
    for number in 0..count {
        let mut policy = batch.clone();
        policy.name = name(&format!("more-{number}"));
        config.qos_policies.push(policy);
    }
    config
}

#[test]
fn a_policy_that_another_node_has_changed_meanwhile_is_not_overwritten() {
    let cluster = FakeCluster::default();
    let (first, second) = with_batch(&cluster);
    let patch = |max: u64| {
        let body = format!("{{\"max_iops\":{max}}}").into_bytes();
        ResourceEdit::Patch(name("batch"), body)
    };
    // This node does not adopt the other's change while it makes one of its own.
    let changing = first.node.shared().cluster.begin_change(DEADLINE).unwrap();
    policy(&second, patch(400)).unwrap();
    let from = first.node.config();
    assert_eq!(from.qos_policies[0].max_iops, Some(1000));
    let mut to = from.clone();
    to.qos_policies[0].max_iops = Some(700);
    let error = query(&first, &from, &to).unwrap_err();
    let resource = error.resource.as_deref();
    assert_eq!((error.code, resource), (ErrorCode::Conflict, Some("qos_policy/batch")), "{error}");
    assert!(error.message.contains("another node has changed the policy"), "{error}");
    assert!(cluster.value(BATCH).unwrap().contains("400"));
    drop(changing);
    wait_until("the first node has the policy with max_iops 400", || {
        max_of(&first, "batch") == Some(400)
    });
    policy(&first, patch(700)).unwrap();
    assert!(cluster.value(BATCH).unwrap().contains("700"));
}

#[test]
fn policies_are_changed_together_or_not_at_all() {
    let cluster = FakeCluster::default();
    let (_one, second) = with_batch(&cluster);
    let from = second.node.config();
    let keys = || cluster.keys(POLICIES).len();
    // Disks of the other node have the policy that is deleted.
    let mut to = with_more(&from, 1);
    to.qos_policies.retain(|policy| policy.name != name("batch"));
    assert_eq!(query(&second, &from, &to).unwrap_err().code, ErrorCode::InUse);
    assert_eq!(keys(), 1);
    let error = query(&second, &from, &with_more(&from, 5)).unwrap_err();
    assert!(error.message.contains("change fewer at a time"), "{error}");
    assert_eq!(keys(), 1);
    query(&second, &from, &with_more(&from, 3)).unwrap();
    let number = |key: &String| {
        let record: serde_json::Value = serde_json::from_str(&cluster.value(key)?).ok()?;
        record["key"].as_u64()
    };
    let numbers: Vec<u64> = cluster.keys(POLICIES).iter().filter_map(number).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
}

#[test]
fn a_change_that_is_refused_has_not_changed_policies_of_the_cluster() {
    let cluster = FakeCluster::default();
    let (first, second) = pair(&cluster);
    let policy = "[[qos_policy]]\nname = \"batch\"\nkind = \"aggregated\"\nshared = true\n\
                  max_iops = 10\n";
    let error = refusal(&second, &format!("{}{policy}", config("n2", 8000))).unwrap();
    assert!(error.contains("all nodes together have"), "{error}");
    assert!(cluster.keys(POLICIES).is_empty());
    let operations = &first.node.shared().operations;
    let operations: Vec<_> =
        (0..RUNNING_MAX).map_while(|_| operations.add("vm start", "vm/web", false).ok()).collect();
    let with_policy = format!("{}{policy}", config("n1", 2000));
    let error = refusal(&first, &with_policy).unwrap();
    assert!(error.contains("operations are in progress"), "{error}");
    assert!(cluster.keys(POLICIES).is_empty());
    drop(operations);
    first.apply_ok(&host(&with_policy));
    assert_eq!(cluster.keys(POLICIES).len(), 1);
}

#[test]
fn one_change_of_endpoints_and_a_policy_makes_both() {
    let cluster = FakeCluster::default();
    let (first, second) = with_batch(&cluster);
    first.apply_ok(&host(&with_policy("n1", 600).replace("etcd:2379", "other:2379")));
    assert!(cluster.value(BATCH).unwrap().contains("600"));
    wait_until("the second node has the policy with max_iops 600", || {
        max_of(&second, "batch") == Some(600)
    });
    wait_until("the first node has emitted ClusterJoined 2 times", || {
        first.events(EventKind::ClusterJoined.id()).len() == 2
    });
    assert_eq!(max_of(&first, "batch"), Some(600));
}

#[test]
fn changes_of_a_node_are_made_one_after_another() {
    let cluster = FakeCluster::default();
    let first = node(&cluster, "n1", 1000);
    wait_until("the first node emits ClusterJoined", || {
        has_event(&first, EventKind::ClusterJoined)
    });
    let changing = first.node.shared().cluster.begin_change(DEADLINE).unwrap();
    let with_policy = host(&format!(
        "{}[[qos_policy]]\nname = \"batch\"\nkind = \"aggregated\"\nshared = true\nmax_iops = 9\n",
        config("n1", 1000)
    ));
    std::thread::scope(|scope| {
        let second = scope.spawn(|| first.apply(&with_policy));
        std::thread::sleep(Duration::from_millis(500));
        assert!(!second.is_finished() && cluster.keys(POLICIES).is_empty());
        drop(changing);
        assert_eq!(second.join().unwrap().state, OperationState::Succeeded);
    });
    assert_eq!(cluster.keys(POLICIES).len(), 1);
}

/// Returns the keys of the cluster's table in the state store.
fn state_keys(node: &Harness) -> Vec<String> {
    let store = &node.node.shared().store;
    let entries = store.scan("cluster", "", 100).unwrap();
    entries.into_iter().map(|(key, _)| key).collect()
}

/// Otherwise each name of a store or cluster would leave a record for ever.
#[test]
fn records_of_removed_stores_and_clusters_are_deleted() {
    let cluster = FakeCluster::default();
    let (first, _two) = pair(&cluster);
    let has_key = |key: &str| state_keys(&first).iter().any(|key_name| key_name == key);
    wait_until("the records of the store exist", || {
        has_key("kept/lab/san") && has_key("covered/lab/san")
    });
    // The store is deleted, with its reservation given back.
    first.apply_ok(&host(&config_without_stores("n1")));
    wait_until("the records of the store are removed", || {
        !has_key("kept/lab/san") && !has_key("covered/lab/san")
    });
    // The same without giving back.
    first.apply_ok(&host(&config("n1", 500)));
    wait_until("the first node has a reservation of 564 IOPS", || cap(&first).reserved_iops == 564);
    cluster.set(Faults { is_unreachable: true, ..Faults::default() });
    apply_forced(&first, &config_without_stores("n1"));
    wait_until("the record of the minimums in effect is removed", || !has_key("covered/lab/san"));
    cluster.set(Faults::default());
    wait_until("the record of the reservation is removed", || !has_key("kept/lab/san"));
    // The host leaves the cluster.
    first.apply_ok(&host(&config("n1", 500)));
    wait_until("the first node has a reservation of 564 IOPS", || cap(&first).reserved_iops == 564);
    apply_forced(&first, "");
    wait_until("only the host's identity is recorded", || state_keys(&first) == ["self"]);
}

#[test]
fn a_node_that_leaves_while_etcd_does_not_respond_reports_what_remains_in_the_cluster() {
    let cluster = FakeCluster::default();
    let first = node(&cluster, "n1", 500);
    wait_until("the first node has a reservation of 564 IOPS", || cap(&first).reserved_iops == 564);
    cluster.set(Faults { is_unreachable: true, ..Faults::default() });
    apply_forced(&first, "");
    let event = first.wait_event(EventKind::ClusterLeft.id());
    assert_eq!(event.fields["released"], "false");
    assert!(event.text.contains("suimon cluster remove n1"), "{}", event.text);
}

/// Any holder of etcd's credentials can write keys.
#[test]
fn invalid_names_of_members_are_ignored_and_damaged_records_remove_no_member() {
    const MEMBERS: &str = "/suimon/lab/members/";
    let cluster = FakeCluster::default();
    let first = node(&cluster, "n1", 1000);
    wait_until("n1 is a member", || first.node.cluster().members.len() == 1);
    let record = cluster.value(&format!("{MEMBERS}n1")).unwrap();
    let put = |name: &str, id: u32| {
        let record = record.replacen("\"id\":1", &format!("\"id\":{id}"), 1).into_bytes();
        ClusterChange::Put(format!("{MEMBERS}{name}"), record, None)
    };
    cluster.commit(&[], &[put(&"\u{1}".repeat(4000), 2), put("n3", 3)]).unwrap();
    wait_until("n3 is a member", || first.node.cluster().members.len() > 1);
    let names_of = |node: &Harness| -> Vec<String> {
        node.node.cluster().members.iter().map(|member| member.name.clone()).collect()
    };
    assert_eq!(names_of(&first), ["n1", "n3"]);
    // A record that cannot be read does not remove the member, whose reservation others would get.
    let damaged = ClusterChange::Put(format!("{MEMBERS}n3"), b"{".to_vec(), None);
    cluster.commit(&[], &[damaged, put("n4", 4)]).unwrap();
    wait_until("n4 is a member", || names_of(&first).contains(&"n4".to_owned()));
    assert_eq!(names_of(&first), ["n1", "n3", "n4"]);
}
