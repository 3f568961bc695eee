use suimon_contract::{EventKind, HostConfig, OperationState, StorageState, VmState};

use super::{VmAction, patch, run_action, state, well};
use crate::testing::{
    FakeDevices, FakeDisks, FakePeerNodes, FakeVms, Harness, MemoryStore, host, wait_until,
};

const STORE: &str = "/srv/fast";

fn config() -> HostConfig {
    host(
        r#"
        [[store]]
        name = "fast"
        path = "/srv/fast"
        [[disk]]
        name = "data"
        store = "fast"
        format = "vhdx"
        size_bytes = "1 GiB"
        [[vm]]
        name = "web"
        memory_bytes = "1 GiB"
        disks = ["data"]
        autostart = true
        "#,
    )
}

fn with(of_host: (MemoryStore, FakeDevices), disks: FakeDisks, vms: FakeVms) -> Harness {
    Harness::among_nodes_with_disks(of_host, disks, vms, FakePeerNodes::default())
}

/// Restarts the host with the VM's store missing. Returns a function that makes the store
/// available.
fn started_anew() -> (Harness, impl FnOnce(&Harness)) {
    let of_host = (MemoryStore::default(), FakeDevices::default());
    let harness = with(of_host, FakeDisks::with_store(STORE), FakeVms::default());
    harness.apply_ok(&config());
    harness.node.stop();
    let vms = harness.vms.clone();
    let (store, devices, disks) = harness.kill_with_disks();
    vms.reboot("second");
    let files = disks.take_store(STORE);
    let harness = with((store, devices), disks, vms);
    harness.node.finish_start();
    wait_until("VmWaitsForDisks is emitted once", || {
        harness.events(EventKind::VmWaitsForDisks.id()).len() == 1
    });
    let received = move |harness: &Harness| {
        harness.disks.put_store(STORE, files);
        wait_until("the disk is in service", || {
            harness.node.disk("data").unwrap().state == StorageState::Ready
        });
    };
    (harness, received)
}

#[test]
fn a_vm_whose_disk_is_out_of_service_is_not_started() {
    let (harness, received) = started_anew();
    patch(&harness, r#"{"autostart": false}"#);
    let operation = run_action(&harness, VmAction::Start);
    assert_eq!(operation.state, OperationState::Failed);
    let reason = operation.error.unwrap().message;
    let disk = harness.node.disk("data").unwrap();
    let expected = format!("disk/data is not in service: {}", disk.reason.unwrap());
    assert_eq!((reason, disk.state), (expected, StorageState::Failed));
    assert_eq!(harness.vms.running(), [""; 0]);
    received(&harness);
    well(&harness, VmAction::Start);
    assert_eq!(harness.vms.running(), ["web"]);
}

#[test]
fn a_vm_with_autostart_waits_for_its_disk() {
    let (harness, received) = started_anew();
    let status = harness.node.vm("web").unwrap();
    assert_eq!(status.state, VmState::Stopped);
    let reason = status.reason.unwrap();
    assert!(
        reason.starts_with("the VM is started as soon as that is possible: disk/data is not"),
        "{reason}"
    );
    received(&harness);
    wait_until("the VM is shown as running", || state(&harness) == VmState::Running);
    assert_eq!(harness.node.vm("web").unwrap().reason, None);
    assert!(harness.events(EventKind::VmFailed.id()).is_empty());
    // The wait is reported once.
    harness.wait_events(EventKind::VmWaitsForDisks.id(), 1);
}

#[test]
fn a_vm_whose_autostart_is_unset_does_not_wait() {
    let (harness, received) = started_anew();
    patch(&harness, r#"{"autostart": false}"#);
    wait_until("the VM does not wait for its disks", || {
        harness.node.vm("web").unwrap().reason.is_none()
    });
    received(&harness);
    assert_eq!(state(&harness), VmState::Stopped);
    well(&harness, VmAction::Start);
}

/// The daemon is restarted or killed while the VM waits.
#[test]
fn an_autostart_that_waits_for_disks_survives_the_daemon_and_is_not_repeated() {
    for is_killed in [true, false] {
        let (harness, received) = started_anew();
        if !is_killed {
            harness.node.stop();
        }
        let restarted = |harness: Harness| {
            let vms = harness.vms.clone();
            let (store, devices, disks) = harness.kill_with_disks();
            let harness = with((store, devices), disks, vms);
            harness.node.finish_start();
            harness
        };
        let harness = restarted(harness);
        assert_eq!(state(&harness), VmState::Stopped);
        received(&harness);
        wait_until("the VM is shown as running", || state(&harness) == VmState::Running);
        well(&harness, VmAction::Kill);
        assert!(harness.store.keys("autostarts").is_empty());
        // The autostart has ended.
        let harness = restarted(harness);
        harness.apply_ok(&config());
        wait_until("the disk is in service", || {
            harness.node.disk("data").unwrap().state == StorageState::Ready
        });
        // The VM's driver handles this request after a start by an autostart, and refuses it if
        // the VM runs.
        well(&harness, VmAction::Start);
    }
}

#[test]
fn vms_with_autostart_start_when_that_can_be_recorded() {
    let first = super::harness();
    patch(&first, r#"{"autostart": true}"#);
    let vms = first.vms.clone();
    vms.reboot("second");
    let restarted = |harness: Harness| {
        let (store, devices) = harness.kill();
        Harness::with_vms(store, devices, vms.clone())
    };
    let harness = restarted(first);
    harness.store.set_full(true);
    harness.node.finish_start();
    let text = harness.wait_event(EventKind::RecordNotSaved.id()).text;
    assert!(text.contains("autostart") && text.contains("the disk is full"), "{text}");
    let commits = harness.store.commits();
    wait_until("further attempts have failed", || harness.store.commits() > commits + 5);
    assert_eq!(state(&harness), VmState::Stopped);
    assert_eq!(harness.events(EventKind::RecordNotSaved.id()).len(), 1);
    harness.store.set_full(false);
    wait_until("the VM is shown as running", || state(&harness) == VmState::Running);
    assert!(harness.events(EventKind::VmFailed.id()).is_empty());
    // It is recorded: the next daemon does not start the VM again.
    well(&harness, VmAction::Kill);
    let harness = restarted(harness);
    harness.node.finish_start();
    harness.apply_ok(&super::config());
    // The VM's driver handles this request after a start by an autostart, and refuses it if the VM
    // runs.
    well(&harness, VmAction::Start);
}

#[test]
fn the_record_of_an_autostart_that_has_ended_is_deleted_when_that_is_possible() {
    let (harness, received) = started_anew();
    wait_until("the autostart is recorded", || harness.store.keys("autostarts") == ["web"]);
    harness.store.set_full(true);
    received(&harness);
    // The VM is not started, because its run cannot be recorded.
    harness.wait_event(EventKind::VmFailed.id());
    let event = harness.wait_event(EventKind::RecordNotSaved.id());
    assert_eq!(event.subject, "vm/web");
    assert_eq!(harness.store.keys("autostarts"), ["web"]);
    harness.store.set_full(false);
    wait_until("the record is deleted", || harness.store.keys("autostarts").is_empty());
}
