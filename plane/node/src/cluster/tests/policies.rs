//! Shared QoS policies.

use std::sync::Arc;

use super::*;

/// Returns the IOPS that the only policy permits this node now; `u64::MAX` without a share.
fn part(node: &Harness) -> u64 {
    let parts = node.disks.policy_parts();
    let max = parts.first().and_then(|part| part.max);
    max.map_or(u64::MAX, |cap| cap.iops_at(node.plane_now()))
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
    let parts = first.node.qos_policy("batch").unwrap().shares;
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
    let second = node_with_reservation(&cluster.new_client(), "n2", 5000);
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

/// The watch does not report the policy again.
#[test]
fn a_policy_that_is_created_while_a_leader_is_elected_is_not_deleted() {
    const POLICIES: &str = "/suimon/lab/policies/";
    let cluster = FakeCluster::default();
    let disks = FakeDisks::default();
    disks.put_store(DISK_STORE, cluster.files());
    let first = Harness::in_cluster(MemoryStore::default(), disks, cluster.clone());
    let text = config("n1", 0);
    first.apply_ok(&host(&text[..text.find("[[store]]").unwrap()]));
    wait_until("the first node emits ClusterJoined", || {
        has_event(&first, EventKind::ClusterJoined)
    });
    let (shared, other) = (Arc::clone(first.node.shared()), cluster.new_client());
    // The elected node has read the policies.
    cluster.after_read(POLICIES, move || {
        let policy = serde_json::json!({ "name": "batch", "shared": true, "max_iops": 100 });
        let record = serde_json::json!({ "key": 1, "config": policy }).to_string().into_bytes();
        let put = ClusterChange::Put(format!("{POLICIES}batch"), record, None);
        other.commit(&[], &[put]).unwrap();
        wait_until("the first node knows the policy", || {
            shared.cluster.view().policies.contains_key(&name("batch"))
        });
    });
    first.apply_ok(&host(&text));
    wait_until("the first node emits ClusterLeads", || has_event(&first, EventKind::ClusterLeads));
    assert!(first.node.shared().cluster.view().policies.contains_key(&name("batch")));
    wait_until("the first node has the policy", || max_of(&first, "batch") == Some(100));
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
