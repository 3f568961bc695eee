//! Bounds of policies that other nodes and programs write to etcd.

use std::time::{Duration, Instant};

use suimon_cluster_qos::{
    AdmissionCheck, DiskKey, NodeId, Notice, POLICIES_MAX, PolicyKey, SharedStoreCapacity,
};
use suimon_contract::Operation;

use super::*;
use crate::cluster::events::{ClusterNames, leader_event};
use crate::cluster::records::load_policies;

/// Interval after which the first failed adoption is repeated.
const ADOPTION_RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// Returns the write of a shared policy as another node makes it.
fn put(policy: &str, number: usize, max_iops: u64) -> ClusterChange {
    let config = serde_json::json!({ "name": policy, "shared": true, "max_iops": max_iops });
    let record = serde_json::json!({ "key": number, "config": config }).to_string();
    ClusterChange::Put(format!("/suimon/lab/policies/{policy}"), record.into_bytes(), None)
}

/// Starts a node without stores. `tables`: further tables of its host file.
fn member(cluster: &FakeCluster, tables: &str) -> Harness {
    let first = Harness::in_cluster(MemoryStore::default(), FakeDisks::default(), cluster.clone());
    let text = config("n1", 0);
    let membership = &text[..text.find("[[store]]").unwrap()];
    first.apply_ok(&host(&format!("{membership}{tables}")));
    wait_until("the first node emits ClusterJoined", || {
        has_event(&first, EventKind::ClusterJoined)
    });
    first
}

#[test]
fn policies_beyond_the_maximum_are_ignored_with_one_event_and_further_ones_are_refused() {
    let cluster = FakeCluster::default();
    let numbers = 1..=POLICIES_MAX + 4;
    let changes: Vec<ClusterChange> =
        numbers.map(|number| put(&format!("p-{number}"), number, 100)).collect();
    for chunk in changes.chunks(cluster.changes_max()) {
        cluster.commit(&[], chunk).unwrap();
    }
    let own = "[[qos_policy]]\nname = \"own\"\nshared = true\nmax_iops = 100\n";
    let first = member(&cluster, own);
    wait_until("the first node has its policy and has adopted the oldest ones", || {
        first.node.config().qos_policies.len() == POLICIES_MAX + 1
    });
    let is_adopted = |number: usize| max_of(&first, &format!("p-{number}")).is_some();
    assert!(is_adopted(POLICIES_MAX) && !is_adopted(POLICIES_MAX + 1));
    let events = first.wait_events(EventKind::SharedPoliciesIgnored.id(), 1);
    assert!(events[0].text.contains("suimon qos policy delete NAME"), "{events:?}");
    let refusals = first.wait_events(EventKind::SharedPolicyRefused.id(), 1);
    assert_eq!(refusals[0].subject, "qos_policy/own");
    let batch = host(&with_policy("n1", 500)).qos_policies.remove(0);
    let error = policy(&first, ResourceEdit::Add(batch)).unwrap_err();
    assert!(error.contains("can have 4096"), "{error}");
}

/// A host adds few policies at a time, so that its reports and its lease are not delayed.
#[test]
fn all_policies_of_a_host_that_joins_are_added() {
    let cluster = FakeCluster::default();
    let tables: String = (0..50)
        .map(|number| {
            format!("[[qos_policy]]\nname = \"p-{number}\"\nshared = true\nmax_iops = 100\n")
        })
        .collect();
    let _first = member(&cluster, &tables);
    wait_until("the cluster has all policies", || {
        cluster.keys("/suimon/lab/policies/").len() == 50
    });
}

/// After a restart, a policy that was adopted, not saved, and deleted in the cluster meanwhile
/// would be added to the cluster again.
#[test]
fn policies_are_adopted_once_they_are_saved() {
    let cluster = FakeCluster::default();
    let first = member(&cluster, "");
    first.store.refuse_table(Some("cluster"));
    cluster.commit(&[], &[put("batch", 1, 100)]).unwrap();
    wait_until("the first node knows the policy", || {
        first.node.shared().cluster.view().policies.contains_key(&name("batch"))
    });
    let event = first.wait_event(EventKind::RecordNotSaved.id());
    assert_eq!((event.subject.as_str(), event.fields["record"].as_str()), ("cluster", "policies"));
    let operations = first.node.operations();
    assert!(operations.iter().all(|operation| operation.kind != "qos policy adopt"));
    assert_eq!(max_of(&first, "batch"), None);
    first.store.refuse_table(None);
    wait_until("the first node has adopted the policy", || max_of(&first, "batch") == Some(100));
    let saved = load_policies(&*first.store, &name("lab")).unwrap();
    assert_eq!(saved.policies.len(), 1);
}

/// The desired state may have no room for the policies.
#[test]
fn a_failed_adoption_of_policies_is_not_repeated_with_each_change_and_leaves_one_operation() {
    let cluster = FakeCluster::default();
    let first = member(&cluster, "");
    let adoptions = || -> Vec<Operation> {
        let operations = first.node.operations().into_iter();
        operations.filter(|operation| operation.kind == "qos policy adopt").collect()
    };
    let failed_after = |id: u64| {
        let mut last = 0;
        wait_until("only one adoption remains, and has failed", || {
            let adoptions = adoptions();
            let [adoption] = adoptions.as_slice() else { return false };
            last = adoption.id;
            adoption.id > id && adoption.state == OperationState::Failed
        });
        last
    };
    first.store.refuse_table(Some("desired"));
    let started = Instant::now();
    cluster.commit(&[], &[put("batch", 1, 100)]).unwrap();
    let id = failed_after(0);
    for max_iops in 101..=110 {
        cluster.commit(&[], &[put("batch", 1, max_iops)]).unwrap();
        let other = format!("other-{max_iops}");
        cluster.commit(&[], &[put(&other, 2, 100)]).unwrap();
        wait_until("the first node knows the other policy", || {
            first.node.shared().cluster.view().policies.contains_key(&name(&other))
        });
    }
    let last = failed_after(0);
    if started.elapsed() < ADOPTION_RETRY_INTERVAL {
        assert_eq!(last, id, "there was no attempt since");
    }
    // A change of the desired state may have removed the cause.
    first.node.shared().notify_cluster_driver();
    failed_after(id);
    first.store.refuse_table(None);
    wait_until("the first node has adopted the policies", || {
        first.node.shared().notify_cluster_driver();
        max_of(&first, "batch") == Some(110) && first.node.config().qos_policies.len() == 11
    });
}

/// Names of a cluster, by number.
struct Numbers;

impl ClusterNames for Numbers {
    fn node_name(&self, node: NodeId) -> String {
        node.0.to_string()
    }

    fn disk_name(&self, _node: NodeId, disk: DiskKey) -> String {
        disk.0.to_string()
    }

    fn policy_name(&self, policy: PolicyKey) -> String {
        policy.0.to_string()
    }
}

/// Another node determines the rate and the contents of its reports.
#[test]
fn events_about_reports_of_other_nodes_do_not_fill_the_log() {
    let harness = Harness::new();
    let node = NodeId(2);
    let notices = |number: u32| {
        let admission = AdmissionCheck {
            guaranteed_iops: 9000,
            requested_iops: number.into(),
            capacity: SharedStoreCapacity::Declared(10_000),
        };
        let (policy, reserved_iops) = (PolicyKey(number), number.into());
        [
            Notice::Unaccounted { node, reserved_iops, known_iops: 0 },
            Notice::ReservationRefused { node, admission },
            Notice::PolicyInUse { policy, node },
            Notice::PolicyUnknown { policy, node },
        ]
    };
    for number in 0..100 {
        let notices = notices(number);
        let drafts = notices.iter().map(|notice| leader_event(&name("san"), notice, &Numbers));
        harness.node.shared().events.append(drafts.collect());
    }
    for kind in [
        EventKind::NodeUnaccounted,
        EventKind::SharedPromiseRefused,
        EventKind::SharedPolicyInUse,
        EventKind::SharedPolicyUnknown,
    ] {
        assert!((10..20).contains(&harness.events(kind.id()).len()), "{kind:?}");
    }
}
