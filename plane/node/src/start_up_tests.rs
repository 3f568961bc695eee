//! Starts on a host whose state directory cannot be written.

use std::sync::atomic::Ordering;

use suimon_contract::{Health, OperationState};

use crate::testing::{FakeDevices, Harness, host, wait_until};

const CONFIG: &str = r#"
    [[switch]]
    name = "lan"
    kind = "private"
    [[nic]]
    name = "web"
    switch = "lan"
    backend = "tap"
    mac = "52:54:00:00:00:01"
    device = "web0"
    [[nic]]
    name = "vm"
    switch = "lan"
    backend = "vhost-user"
    socket = "/run/vm.sock"
"#;

#[test]
fn a_start_reports_progress_with_each_object() {
    let former = Harness::with_store();
    let others = r#"
    [[store]]
    name = "fast"
    path = "/srv/fast"
    [[disk]]
    name = "data"
    store = "fast"
    format = "raw"
    size_bytes = 1048576
    nbd = { socket = "/run/nbd.sock" }
    [[vm]]
    name = "web"
    memory_bytes = "1 GiB"
    "#;
    former.apply_ok(&host(&format!("{CONFIG}{others}")));
    let (store, devices, disks) = former.kill_with_disks();
    let harness = Harness::with_disks(store, devices, disks);
    // Two NICs, a disk, and the folder of a VM.
    assert!(harness.progress.load(Ordering::Relaxed) >= 4);
}

#[test]
fn a_node_starts_with_its_stored_state_although_it_cannot_be_written() {
    let former = Harness::new();
    former.apply_ok(&host(CONFIG));
    let (store, _) = former.kill();
    store.set_full(true);
    // A host that was restarted: its devices are made again, which has to be recorded.
    let harness = Harness::start(store.surviving(), FakeDevices::default());
    for nic in ["web", "vm"] {
        assert_eq!(harness.node.nic(nic).unwrap().condition.health, Health::Up, "{nic}");
    }
    let status = harness.node.host_status().state_store;
    assert!(!status.writable && status.reason.unwrap().contains("the disk is full"));
    assert!(harness.wait_event(1006).text.contains("the disk is full"));
    let operation = harness.apply(&host(""));
    assert_eq!(operation.state, OperationState::Failed);
    assert_eq!(harness.node.nic("web").unwrap().condition.health, Health::Up);
    harness.store.set_full(false);
    harness.wait_event(1007);
    assert!(harness.node.host_status().state_store.writable);
    wait_until("the events are written to the state store", || {
        harness.store.keys("events").len()
            >= harness.events(1006).len() + harness.events(1007).len()
    });
    harness.assert_consistent(&[]);
    harness.apply_ok(&host(""));
    harness.assert_consistent(&[]);
}

#[test]
fn a_state_store_that_becomes_full_is_reported_once() {
    let harness = Harness::new();
    harness.apply_ok(&host(CONFIG));
    harness.store.set_full(true);
    for _ in 0..3 {
        assert_eq!(harness.apply(&host("")).state, OperationState::Failed);
    }
    harness.wait_events(1006, 1);
    harness.store.set_full(false);
    harness.wait_events(1007, 1);
    assert_eq!(harness.events(1006).len(), 1);
    harness.apply_ok(&host(""));
}
