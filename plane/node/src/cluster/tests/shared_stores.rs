//! Division of a shared store, its minimums and its identity.

use super::*;

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
        let flows = second.node.cluster_disks().unwrap();
        let mut first_flows = flows.iter().filter(|flow| flow.node == "n1");
        first_flows.any(|flow| flow.disk == "d-n1" && flow.delivered_iops > 3000)
    });
}

#[test]
fn a_minimum_that_the_cluster_rejects_is_rejected_with_the_calculation() {
    let cluster = FakeCluster::default();
    let first = node_with_reservation(&cluster, "n1", 6000);
    let second = node_with_reservation(&cluster.new_client(), "n2", 1000);
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
    let first = node_with_reservation(&cluster, "n1", 1000);
    let cap_of = |node: &Harness| node.node.cluster().stores[0].cap;
    assert_eq!(cap_of(&first).fallback_iops, None);
    first.apply_ok(&host(&with_fallback(4000)));
    wait_until("the fallback rate is 4000 IOPS", || cap_of(&first).fallback_iops == Some(4000));
    assert!(
        cap_of(&first).time_to_fallback_ms.is_some_and(|ms| ms <= 30_000),
        "{:?}",
        cap_of(&first)
    );
    let later_cap = cap(&first).next_iops_from.unwrap();
    assert_eq!(cap(&first).iops_at(later_cap.1), 4000);
    // A fallback rate that does not fit is not put into effect.
    first.apply_ok(&host(&with_fallback(9500)));
    wait_until("the fallback rate is 4000 IOPS", || cap_of(&first).fallback_iops == Some(4000));
    let config_text = with_fallback(1).replace("shared = true\n", "");
    let parse_errors = suimon_contract::parse_toml(&config_text, None).unwrap_err();
    assert_eq!(parse_errors[0].field.as_deref(), Some("fallback_iops"), "{parse_errors:?}");
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
        heartbeats().first().is_some_and(|heartbeat| {
            heartbeat.is_from_other_cluster && heartbeat.node == name("x1")
        })
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
