//! Keys in etcd that go with nodes.

use suimon_ports::testing::MemoryStore as MemoryFiles;

use super::*;

const GRANTS: &str = "/suimon/lab/grants/";
const IDENTITIES: &str = "/suimon/lab/stores/";

fn leave(node: &Harness) {
    let force = ChangeOptions { forces_minimums: true, ..ChangeOptions::default() };
    let edit = Edit::Cluster(ClusterEdit::Delete);
    let operation = node.node.submit_with(edit, force).unwrap();
    let operation = node.node.wait_operation(operation.id, crate::testing::DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
}

/// The identity of a store is needed while a node may share the store.
#[test]
fn grants_go_with_their_node_and_identities_with_the_last_one() {
    let cluster = FakeCluster::default();
    let first = node_with_reservation(&cluster, "n1", 2000);
    let second = node_with_reservation(&cluster.new_client(), "n2", 1000);
    leave(&first);
    // The next leader removes a grant that the former one has written last.
    wait_until("only the grant to the second node remains", || {
        cluster.keys(GRANTS) == [format!("{GRANTS}0000000002/san")]
    });
    assert_eq!(cluster.keys(IDENTITIES), [format!("{IDENTITIES}san")]);
    leave(&second);
    assert_eq!(cluster.keys(GRANTS), [""; 0]);
    assert_eq!(cluster.keys(IDENTITIES), [""; 0]);
    assert_eq!(cluster.keys("/suimon/lab/members/"), [""; 0]);
    // A node that joins again finds its directory by the mark there.
    first.apply_ok(&host(&config("n1", 500)));
    wait_until("the first node has a reservation of 564 IOPS", || cap(&first).reserved_iops == 564);
    assert_eq!(cluster.keys(IDENTITIES), [format!("{IDENTITIES}san")]);
}

/// A member without identities would accept an empty mount point as the directory of a store.
#[test]
fn a_node_has_left_when_identities_cannot_be_removed() {
    let cluster = FakeCluster::default();
    let first = node_with_reservation(&cluster, "n1", 2000);
    let identity = format!("{IDENTITIES}san");
    wait_until("the identity is recorded", || cluster.value(&identity).is_some());
    cluster.refuse_removal(Some(&identity));
    leave(&first);
    assert_eq!(cluster.keys("/suimon/lab/members/"), [""; 0]);
    assert_eq!(cluster.keys(IDENTITIES), [identity]);
}

/// No leader removes these grants, because no other node shares the store.
#[test]
fn a_removed_node_leaves_no_grants_of_a_store_that_it_alone_has_shared() {
    const GRANT: &str = "/suimon/lab/grants/0000000002/own";
    let cluster = FakeCluster::default();
    let first = node(&cluster, "n1", 2000);
    wait_until("the first node emits ClusterJoined", || {
        has_event(&first, EventKind::ClusterJoined)
    });
    let disks = FakeDisks::default();
    disks.put_store("/srv/own", MemoryFiles::default());
    let second = Harness::in_cluster(MemoryStore::default(), disks, cluster.new_client());
    let text = config("n2", 0);
    let membership = &text[..text.find("[[store]]").unwrap()];
    second.apply_ok(&host(&format!(
        "{membership}[[store]]\nname = \"own\"\npath = \"/srv/own\"\nshared = true\n\
         capability_iops = 1000\n"
    )));
    wait_until("the second node has a grant on its store", || cluster.value(GRANT).is_some());
    drop(second);
    wait_until("one node is alive according to etcd", || {
        cluster.keys("/suimon/lab/alive/").len() == 1
    });
    // The removal fails after the removal of the member, and is repeated.
    cluster.refuse_removal(Some(GRANT));
    let error = first.node.remove_cluster_node("n2").unwrap_err();
    assert!(error.message.contains("repeat `suimon cluster remove n2`"), "{error}");
    assert!(cluster.value(GRANT).is_some());
    cluster.refuse_removal(None);
    first.node.remove_cluster_node("n2").unwrap();
    assert_eq!(cluster.value(GRANT), None);
    let error = first.node.remove_cluster_node("n2").unwrap_err();
    assert_eq!(error.code, ErrorCode::NotFound);
    assert!(cluster.value("/suimon/lab/reports/own/0000000002").is_none());
}

/// The member may still use its reservation, which others would get.
#[test]
fn a_new_leader_keeps_the_grant_to_a_member_whose_record_is_damaged() {
    let cluster = FakeCluster::default();
    let first = node_with_reservation(&cluster, "n1", 2000);
    let second = node_with_reservation(&cluster.new_client(), "n2", 1000);
    let damaged = ClusterChange::Put("/suimon/lab/members/n2".to_owned(), b"{".to_vec(), None);
    cluster.commit(&[], &[damaged]).unwrap();
    drop(first);
    let third = node(&cluster.new_client(), "n3", 0);
    wait_until("the third node leads the store", || has_event(&third, EventKind::ClusterLeads));
    wait_until("the third node has a grant", || {
        cluster.value(&format!("{GRANTS}0000000003/san")).is_some()
    });
    assert!(cluster.value(&format!("{GRANTS}0000000002/san")).is_some());
    assert_eq!(cap(&second).reserved_iops, 1064);
}
