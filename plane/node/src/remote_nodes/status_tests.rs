use std::sync::atomic::{AtomicUsize, Ordering};

use suimon_contract::{ApiError, ErrorCode, OperationState, PlanAction};

use super::*;
use crate::testing::{Harness, MemoryStore, host, name};
use crate::{ChangeOptions, Edit, ResourceEdit};

const TWO: &str = r#"
    [[node]]
    name = "left"
    address = "192.0.2.2:8443"
    authority = "/etc/suimon/left.pem"
    token_file = "/etc/suimon/left.token"
    [[node]]
    name = "right"
    address = "192.0.2.3:8443"
    authority = "/etc/suimon/right.pem"
    token_file = "/etc/suimon/right.token"
"#;

#[test]
fn nodes_are_desired_state_and_change_no_device() {
    let harness = Harness::new();
    harness.apply_ok(&host(TWO));
    assert_eq!(harness.node.host_status().nodes, 2);
    let patch = br#"{"address": "192.0.2.4:8443"}"#.to_vec();
    let edit = Edit::Node(ResourceEdit::<NodeConfig>::Patch(name("left"), patch));
    let plan = harness.node.preview(&edit, ChangeOptions::default()).unwrap();
    assert_eq!(plan.steps[0].action, PlanAction::ChangeLive);
    let changed = harness.change(edit);
    assert_eq!(changed.state, OperationState::Succeeded, "{changed:?}");
    assert_eq!(changed.kind, "node set");
    let deleted = harness.change(Edit::Node(ResourceEdit::<NodeConfig>::Delete(name("right"))));
    assert_eq!(deleted.state, OperationState::Succeeded, "{deleted:?}");
    assert_eq!(harness.devices.open_devices(), []);
    for (id, count) in [(1101, 2), (1102, 1), (1103, 1)] {
        harness.wait_events(id, count);
    }
    // The node is still configured after a restart.
    let (store, devices) = harness.kill();
    let harness = Harness::start(store, devices);
    let nodes = harness.node.config().nodes;
    assert_eq!(nodes.len(), 1);
    assert_eq!(nodes[0].address, "192.0.2.4:8443");
}

#[test]
fn a_node_is_queried_when_its_status_is_requested() {
    let (source, target) = (Harness::new(), Harness::new());
    source.apply_ok(&host(&TWO.replace("right.pem", "missing")));
    let left_node = source.node.peer_node("left").unwrap();
    assert_eq!(left_node.condition.health, Health::Down);
    assert_eq!(left_node.condition.reason.unwrap(), "nobody listens at 192.0.2.2:8443");
    assert_eq!((left_node.host_name, left_node.version), (None, None));
    source.far_nodes.connect("192.0.2.2:8443", &target.node);
    let [left_status, right] = source.node.nodes().try_into().unwrap();
    assert_eq!(left_status.condition.health, Health::Up, "{left_status:?}");
    assert_eq!(left_status.host_name.as_deref(), Some("test"));
    assert_eq!(left_status.version.as_deref(), Some("0"));
    // The reason names a file that cannot be used.
    assert_eq!(right.condition.health, Health::Failed, "{right:?}");
    assert!(right.condition.reason.unwrap().contains("node/right"));
    source.far_nodes.intercept(|_, call| {
        assert_eq!(call, "host");
        Some(PeerError::Rejected(vec![ApiError::new(ErrorCode::Unauthorized, "who are you?")]))
    });
    let left_node = source.node.peer_node("left").unwrap();
    assert_eq!(left_node.condition.health, Health::Failed);
    assert!(left_node.condition.reason.unwrap().contains("who are you?"));
    assert_eq!(source.node.peer_node("up").unwrap_err().code, ErrorCode::NotFound);
}

/// True once the gate is open.
type Gate = (Mutex<bool>, Condvar);

/// Starts a host with the given number of nodes, none of which answers before the gate opens. The
/// counter contains the number of queries.
fn silent(nodes: usize) -> (Harness, Arc<Gate>, Arc<AtomicUsize>) {
    let harness = Harness::start(MemoryStore::default(), crate::testing::FakeDevices::default());
    let text: String = (0..nodes)
        .map(|n| {
            format!(
                "[[node]]\nname = \"n{n}\"\naddress = \"n{n}:8443\"\nauthority = \"/a\"\n\
                 token_file = \"/t\"\n"
            )
        })
        .collect();
    harness.apply_ok(&host(&text));
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let queries = Arc::new(AtomicUsize::new(0));
    let (closed, counted) = (gate.clone(), queries.clone());
    harness.far_nodes.intercept(move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        let open = closed.0.lock().unwrap();
        let _open = closed.1.wait_while(open, |open| !*open).unwrap();
        None
    });
    (harness, gate, queries)
}

fn open(gate: &Gate) {
    *gate.0.lock().unwrap() = true;
    gate.1.notify_all();
}

#[test]
fn unresponsive_nodes_delay_a_request_no_longer_than_one_does() {
    let (harness, gate, queries) = silent(QUERIES_MAX + 3);
    let started = Instant::now();
    let nodes = harness.node.nodes();
    let elapsed = started.elapsed();
    // Sequential queries would take `QUERIES_MAX` times as long. The bound leaves a margin for a
    // loaded machine.
    assert!(
        elapsed >= QUERY_TIMEOUT && elapsed < QUERY_TIMEOUT * QUERIES_MAX as u32 / 4,
        "{elapsed:?}"
    );
    assert!(nodes.iter().all(|node| node.condition.health == Health::Down), "{nodes:?}");
    assert!(nodes[0].condition.reason.as_ref().unwrap().contains("within 5 s"), "{nodes:?}");
    // Each node was queried once, and the number of threads was bounded.
    assert_eq!(queries.load(Ordering::SeqCst), QUERIES_MAX);
    // Changes succeed while queries are in progress.
    let name = name("n0");
    let deleted = harness.change(Edit::Node(ResourceEdit::<NodeConfig>::Delete(name)));
    assert_eq!(deleted.state, OperationState::Succeeded);
    open(&gate);
    let first_node = harness.node.peer_node("n1").unwrap();
    assert_eq!(first_node.condition.reason.unwrap(), "nobody listens at n1:8443");
}

#[test]
fn requests_for_the_status_of_one_node_share_one_query() {
    let (harness, gate, queries) = silent(1);
    std::thread::scope(|scope| {
        let requests = [(); 2].map(|()| scope.spawn(|| harness.node.peer_node("n0").unwrap()));
        crate::testing::wait_until("both requests wait for one query", || {
            let questions = harness.node.shared().node_queries.0.in_progress();
            // The map, the query's thread and both waiting requests hold references.
            questions.get(&name("n0")).is_some_and(|question| Arc::strong_count(question) == 2 + 2)
        });
        open(&gate);
        for request in requests {
            let reason = request.join().unwrap().condition.reason.unwrap();
            assert_eq!(reason, "nobody listens at n0:8443");
        }
    });
    assert_eq!(queries.load(Ordering::SeqCst), 1);
}
