//! Joining, leaving and removal of nodes.

use super::*;

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
    let force = ChangeOptions { forces_minimums: true, ..ChangeOptions::default() };
    let operation = first.node.submit_with(leave_cluster, force).unwrap();
    let operation = first.node.wait_operation(operation.id, crate::testing::DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    wait_until("the store has no limit on the first node", || first.disks.caps().is_empty());
    let event = first.wait_event(EventKind::ClusterLeft.id());
    assert_eq!((event.subject.as_str(), event.fields["released"].as_str()), ("cluster", "true"));
    assert_eq!((event.fields["cluster"].as_str(), event.fields["node"].as_str()), ("lab", "n1"));
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
        harness.node.cluster_disks().unwrap_err(),
        harness.node.remove_cluster_node("n2").unwrap_err(),
    ] {
        assert_eq!(error, errors[0]);
    }
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

/// The number of another node or policy would be assigned again.
#[test]
fn a_damaged_counter_prevents_new_nodes_and_policies_only() {
    let cluster = FakeCluster::default();
    let first = node_with_reservation(&cluster, "n1", 2000);
    for value in ["{", "4294967295"] {
        let damaged = ["next-node", "next-policy"].map(|key| {
            ClusterChange::Put(format!("/suimon/lab/{key}"), value.as_bytes().to_vec(), None)
        });
        cluster.commit(&[], &damaged).unwrap();
        let second = node(&cluster.new_client(), "n2", 1000);
        let event = second.wait_event(EventKind::ClusterRefused.id());
        assert!(event.text.contains("/suimon/lab/next-node"), "{}", event.text);
        assert_eq!(cluster.keys("/suimon/lab/members/").len(), 1);
        let batch = host(&with_policy("n1", 500)).qos_policies.remove(0);
        let error = policy(&first, ResourceEdit::Add(batch)).unwrap_err();
        assert!(error.contains("/suimon/lab/next-policy"), "{error}");
    }
    assert_eq!(cap(&first).reserved_iops, 2064);
}
