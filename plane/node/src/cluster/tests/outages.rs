//! Outages of etcd, leaders and daemons.

use super::*;

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
    let first = node_with_reservation(&cluster, "n1", 2000);
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
