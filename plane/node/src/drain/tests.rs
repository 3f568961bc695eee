//! Three nodes in one process, the first of which is drained.

use std::sync::Mutex;

use suimon_contract::{
    DrainRequest, ErrorCode, EventKind, HostConfig, MigrateVmRequest, Operation, OperationState,
    VmState,
};
use suimon_ports::{VmErrorKind, VmRunState};

use crate::operations::RUNNING_MAX;
use crate::testing::{
    DEADLINE, FakeDevices, FakePeerNodes, FakeVms, Harness, MemoryStore, host, name, wait_until,
};
use crate::{PeerError, VmAction};

/// Returns a node's configuration with the two other nodes.
fn config_with_nodes(own_name: &str, extra: &str) -> HostConfig {
    let node = |(index, name): (usize, &str)| {
        format!(
            "[[node]]\nname = \"{name}\"\naddress = \"192.0.2.{index}:8443\"\n\
             authority = \"/etc/suimon/{name}.pem\"\ntoken_file = \"/etc/suimon/{name}.token\"\n"
        )
    };
    let others = NAMES.iter().enumerate().filter(|(_, other_name)| **other_name != own_name);
    let nodes: String = others.map(|(index, other_name)| node((index, other_name))).collect();
    host(&format!("[host]\nname = \"{own_name}\"\n{nodes}{extra}"))
}

const NAMES: [&str; 3] = ["one", "two", "three"];
const VMS: &str = r#"
[[vm]]
name = "a"
memory_bytes = "1 GiB"
[[vm]]
name = "b"
memory_bytes = "1 GiB"
[[vm]]
name = "idle"
memory_bytes = "1 GiB"
"#;

struct Site {
    nodes: Vec<Harness>,
}

impl Site {
    /// Returns three nodes; the VMs `a` and `b` run on the first.
    fn new() -> Self {
        let far_nodes = FakePeerNodes::default();
        let new = |_| {
            let state = (MemoryStore::default(), FakeDevices::default());
            Harness::among_nodes(state, FakeVms::default(), far_nodes.clone())
        };
        let site = Self { nodes: NAMES.iter().map(new).collect() };
        for (index, own_name) in NAMES.iter().enumerate() {
            site.nodes[index]
                .apply_ok(&config_with_nodes(own_name, if index == 0 { VMS } else { "" }));
        }
        site.connect();
        for vm in ["a", "b"] {
            site.do_with(0, vm, VmAction::Start);
        }
        site
    }

    fn connect(&self) {
        for (index, node) in self.nodes.iter().enumerate() {
            self.nodes[0].far_nodes.connect(&format!("192.0.2.{index}:8443"), &node.node);
        }
    }

    fn do_with(&self, index: usize, vm: &str, work: VmAction) {
        let started = self.nodes[index].node.start_vm_action(&name(vm), work).unwrap();
        self.nodes[index].node.wait_operation(started.id, DEADLINE).unwrap();
    }

    /// Drains a node by a request to the node number `asker`.
    fn drain(&self, asker: usize, node: &str, request: DrainRequest) -> Operation {
        let started = self.nodes[asker].node.drain(node, request).unwrap();
        self.nodes[asker].node.wait_operation(started.id, DEADLINE).unwrap()
    }

    /// Returns the names of the running VMs, by node.
    fn running(&self) -> Vec<Vec<String>> {
        self.nodes.iter().map(|node| node.vms.running()).collect()
    }

    /// Waits until the first node has exactly one event of a kind.
    fn wait_event(&self, kind: EventKind) {
        self.nodes[0].wait_events(kind.id(), 1);
    }
}

#[test]
fn a_drained_node_migrates_its_vms_and_accepts_none_until_it_is_undrained() {
    let site = Site::new();
    let first = &site.nodes[0].node;
    let plan = first.check_drain("one", &DrainRequest::default()).unwrap();
    let lines: Vec<String> = plan.vms.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        ["a migrates to two", "b migrates to three", "idle stays: it is not running"]
    );
    assert_eq!((site.running()[0].len(), first.host_status().drain), (2, None), "only a look");

    let operation = site.drain(0, "one", DrainRequest::default());
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    assert_eq!(operation.report, lines);
    assert_eq!(site.running(), [vec![], vec!["a".to_owned()], vec!["b".to_owned()]]);
    assert!(first.host_status().drain.unwrap().is_drained);
    site.wait_event(EventKind::NodeDrained);
    site.wait_event(EventKind::NodeEmptied);

    // Other nodes report the drain, and migrations to the node are rejected.
    let second = &site.nodes[1].node;
    let nodes_shown = second.nodes();
    assert!(nodes_shown[0].drain.is_some() && nodes_shown[1].drain.is_none(), "{nodes_shown:?}");
    let request_back = MigrateVmRequest {
        destination: name("one"),
        downtime_ms: 300,
        bandwidth_max_bytes_per_s: None,
        deletes_source_files: false,
    };
    let errors = second.check_migration(&name("a"), &request_back).unwrap_err();
    assert!(errors[0].message.contains("suimon node undrain one"), "{errors:?}");
    second.undrain("one").unwrap();
    second.check_migration(&name("a"), &request_back).unwrap();
    site.wait_event(EventKind::NodeUndrained);
    assert_eq!(first.host_status().drain, None);
}

#[test]
fn a_vm_that_cannot_migrate_is_reported_and_migrates_later() {
    let site = Site::new();
    // Both other nodes reject the VMs.
    for node_index in [1, 2] {
        site.nodes[node_index].vms.refuse_all(
            "probe",
            VmErrorKind::Host,
            "there is not enough memory",
        );
    }
    site.nodes[0].vms.hold_memory(false);
    let operation = site.drain(1, "one", DrainRequest::default());
    assert_eq!(operation.state, OperationState::Failed);
    let reason = operation.error.unwrap().message;
    for part in ["a stays: ", "b stays: ", "node two rejected", "node three rejected", "memory"] {
        assert!(reason.contains(part), "{part}: {reason}");
    }
    assert_eq!(site.running()[0], ["a", "b"]);
    site.wait_event(EventKind::NodeNotEmptied);
    assert!(site.nodes[0].events(EventKind::NodeEmptied.id()).is_empty());
    assert!(!site.nodes[0].node.host_status().drain.unwrap().is_drained);
    assert_eq!(site.nodes[0].node.vm("a").unwrap().state, VmState::Running);
}

/// A node on which a migration failed is not tried again.
#[test]
fn a_vm_whose_migration_fails_migrates_to_another_node() {
    let site = Site::new();
    site.nodes[0].far_nodes.intercept(|address, call| {
        let fails = address == "192.0.2.1:8443" && call == "prepare_arrival";
        fails.then(|| PeerError::Unreachable("the line is cut".to_owned()))
    });
    let operation = site.drain(0, "one", DrainRequest::default());
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    assert_eq!(site.running(), [vec![], vec![], vec!["a".to_owned(), "b".to_owned()]]);
}

#[test]
fn invalid_drain_requests_are_rejected() {
    let site = Site::new();
    let first = &site.nodes[0].node;
    let unknown_node = first.drain("four", DrainRequest::default()).unwrap_err();
    assert_eq!(unknown_node.code, ErrorCode::NotFound);
    let request = DrainRequest { destinations: vec![name("four")], ..DrainRequest::default() };
    assert_eq!(first.drain("one", request).unwrap_err().code, ErrorCode::NotFound);
    let zero = DrainRequest { downtime_ms: 0, ..DrainRequest::default() };
    assert_eq!(first.drain("one", zero).unwrap_err().field.as_deref(), Some("downtime_ms"));
    assert_eq!(first.host_status().drain, None);
    first.undrain("one").unwrap();
}

/// After an undrain during a migration, the VM stays.
#[test]
fn an_undrain_during_a_migration_keeps_the_vm() {
    let site = Site::new();
    site.nodes[0].vms.hold_memory(true);
    let first = &site.nodes[0].node;
    let started = first.drain("one", DrainRequest::default()).unwrap();
    wait_until("VM `a` has a QEMU process on node 1", || site.nodes[1].vms.state("a").is_some());
    let conflict = first.drain("one", DrainRequest::default()).unwrap_err();
    assert_eq!(conflict.code, ErrorCode::Conflict);
    first.undrain("one").unwrap();
    let operation = first.wait_operation(started.id, DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Cancelled, "{operation:?}");
    let text = operation.error.unwrap().message;
    assert!(text.contains("stay on the other nodes") && !text.contains("undrain"), "{text}");
    wait_until("VM `a` is running on node 0", || {
        site.nodes[0].vms.state("a") == Some(VmRunState::Running)
    });
    wait_until("VM `a` has no QEMU process on node 1", || site.nodes[1].vms.state("a").is_none());
}

/// A drain of another node is cancelled there, and the operation ends with it. VMs that have left
/// are not said to be back.
#[test]
fn cancelling_the_drain_of_another_node_ends_it_there() {
    let site = Site::new();
    let (asking_node, drained) = (&site.nodes[1].node, &site.nodes[0].node);
    site.nodes[0].vms.hold_memory(true);
    let started = asking_node.drain("one", DrainRequest::default()).unwrap();
    wait_until("VM `a` has a QEMU process on node 1", || site.nodes[1].vms.state("a").is_some());
    let remote_operation = drained.host_status().drain.unwrap().operation.unwrap();
    asking_node.cancel_operation(started.id).unwrap();
    let operation = asking_node.wait_operation(started.id, DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Cancelled, "{operation:?}");
    let text = operation.error.unwrap().message;
    assert!(text.contains("stay on the other nodes") && text.contains("undrain one"), "{text}");
    assert_eq!(drained.operation(remote_operation).unwrap().state, OperationState::Cancelled);
    wait_until("VM `a` is running on node 0", || {
        site.nodes[0].vms.state("a") == Some(VmRunState::Running)
    });
    assert!(drained.host_status().drain.is_some(), "the node stays drained");
}

/// A node that does not answer for some time carries its drain out nevertheless.
#[test]
fn requests_without_an_answer_do_not_end_the_drain_of_another_node() {
    let site = Site::new();
    let remaining_failures = Mutex::new(3);
    site.nodes[0].far_nodes.intercept(move |address, call| {
        let mut remaining = remaining_failures.lock().unwrap();
        let fails = address == "192.0.2.0:8443" && call == "operation" && *remaining > 0;
        *remaining -= i32::from(fails);
        fails.then(|| PeerError::Unreachable("the line is cut".to_owned()))
    });
    let operation = site.drain(1, "one", DrainRequest::default());
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    assert!(site.running()[0].is_empty());
    assert_eq!(operation.report.len(), 3, "{operation:?}");
}

/// After a kill of the daemon during a migration, the next daemon resumes the drain.
#[test]
fn a_drain_continues_after_a_restart() {
    let mut site = Site::new();
    site.nodes[0].vms.hold_memory(true);
    site.nodes[0].node.drain("one", DrainRequest::default()).unwrap();
    wait_until("VM `a` has a QEMU process on node 1", || site.nodes[1].vms.state("a").is_some());
    let first = site.nodes.remove(0);
    let (vms, far_nodes) = (first.vms.clone(), first.far_nodes.clone());
    vms.forget_observers();
    let stopped = first.kill();
    vms.cut_lines();
    vms.hold_memory(false);
    // The other nodes are connected after the daemon has started.
    site.nodes.insert(0, Harness::among_nodes(stopped, vms, far_nodes));
    site.connect();
    let has_gone = || site.running()[0].is_empty();
    wait_until("both VMs have left", has_gone);
    wait_until("the drain is shown as empty", || {
        site.nodes[0].node.host_status().drain.is_some_and(|drain| drain.is_drained)
    });
    let result = site.nodes[0].node.shared().check_not_drained();
    assert!(result.is_err(), "the node is still drained");
}

#[test]
fn a_drained_host_is_empty_only_while_no_vm_runs() {
    let site = Site::new();
    let operation = site.drain(0, "one", DrainRequest::default());
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    let is_empty = || site.nodes[0].node.host_status().drain.unwrap().is_drained;
    assert!(is_empty());
    site.do_with(0, "idle", VmAction::Start);
    assert!(!is_empty(), "a VM was started");
    site.do_with(0, "idle", VmAction::Kill);
    assert!(is_empty());
}

/// The daemon ends after a destination was chosen.
#[test]
fn no_migration_begins_when_the_daemon_ends() {
    let site = Site::new();
    let first = std::sync::Arc::clone(&site.nodes[0].node);
    site.nodes[0].far_nodes.intercept(move |_, call| {
        if call == "check_arrival" && !first.shared().drain.stops() {
            let node = std::sync::Arc::clone(&first);
            std::thread::spawn(move || node.shared().stop_draining());
            wait_until("the drain is to stop", || first.shared().drain.stops());
        }
        None
    });
    let operation = site.drain(0, "one", DrainRequest::default());
    assert_eq!(operation.state, OperationState::Failed, "{operation:?}");
    assert!(operation.error.unwrap().message.contains("the next one continues"));
    assert!(site.nodes[0].events(EventKind::VmLeaves.id()).is_empty());
    assert_eq!(site.running()[0], ["a", "b"]);
    // Releases the node.
    site.nodes[0].far_nodes.intercept(|_, _| None);
}

/// Both may come before either has started its thread.
#[test]
fn only_one_of_concurrent_requests_drains_the_host() {
    let site = Site::new();
    site.nodes[0].vms.hold_memory(true);
    let first = &site.nodes[0].node;
    let start = std::sync::Barrier::new(8);
    let results: Vec<_> = std::thread::scope(|scope| {
        let drain = || {
            start.wait();
            first.drain("one", DrainRequest::default())
        };
        let drains: Vec<_> = (0..8).map(|_| scope.spawn(drain)).collect();
        drains.into_iter().map(|drain| drain.join().unwrap()).collect()
    });
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
    let codes = results.iter().filter_map(|result| result.as_ref().err());
    assert!(codes.into_iter().all(|error| error.code == ErrorCode::Conflict), "{results:?}");
    site.wait_event(EventKind::NodeDrained);
    first.undrain("one").unwrap();
}

#[test]
fn a_host_whose_drain_cannot_begin_is_not_drained() {
    let site = Site::new();
    let first = &site.nodes[0].node;
    let operations = &first.shared().operations;
    let operations_held: Vec<_> =
        (0..RUNNING_MAX).map_while(|_| operations.add("vm start", "vm/a", false).ok()).collect();
    let error = first.drain("one", DrainRequest::default()).unwrap_err();
    assert!(error.message.contains("operations are in progress"), "{error}");
    assert_eq!(first.host_status().drain, None);
    first.shared().check_not_drained().unwrap();
    assert!(site.nodes[0].events(EventKind::NodeDrained.id()).is_empty());
    drop(operations_held);
    let operation = site.drain(0, "one", DrainRequest::default());
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
}
