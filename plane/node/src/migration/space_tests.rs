//! Migrations of VMs whose disks are copied: VMs that wait for space, and images of the
//! destination.

use std::time::Duration;

use suimon_contract::{
    EventKind, HostConfig, MigrateVmRequest, Operation, OperationState, StorageState, VmState,
};
use suimon_ports::VmRunState;
use suimon_ports::testing::MemoryStore as MemoryFiles;

use crate::testing::{
    DEADLINE, FakeDevices, FakeDisks, FakePeerNodes, FakeVms, Harness, MemoryStore, host, name,
    wait_until,
};
use crate::{PeerError, VmAction};

const SIZE: u64 = 8 << 20;
const PATHS: [&str; 2] = ["/srv/here", "/srv/there"];

fn nodes(path: &str, extra: &str) -> HostConfig {
    host(&format!(
        r#"
[[node]]
name = "there"
address = "192.0.2.2:8443"
authority = "/etc/suimon/there.pem"
token_file = "/etc/suimon/there.token"
[[store]]
name = "all"
path = "{path}"
{extra}
"#
    ))
}

const VM: &str = r#"
[[disk]]
name = "web"
store = "all"
format = "vhdx"
size_bytes = 8388608
controller = "sata"
[[vm]]
name = "web"
memory_bytes = "1 GiB"
disks = ["web"]
"#;

/// Two nodes with one store each. The VM runs on the first, and its disk is copied.
struct Pair {
    here: Harness,
    there: Harness,
}

impl Pair {
    fn new() -> Self {
        let far_nodes = FakePeerNodes::default();
        let [source, target] = PATHS.map(|path| {
            let disks = FakeDisks::default();
            disks.put_store(path, MemoryFiles::default());
            disks.set_far_bytes(Some(SIZE));
            let state = (MemoryStore::default(), FakeDevices::default());
            Harness::among_nodes_with_disks(state, disks, FakeVms::default(), far_nodes.clone())
        });
        source.far_nodes.connect("192.0.2.2:8443", &target.node);
        source.apply_ok(&nodes(PATHS[0], VM));
        target.apply_ok(&nodes(PATHS[1], ""));
        let pair = Self { here: source, there: target };
        pair.run_action(VmAction::Start);
        pair
    }

    fn run_action(&self, action: VmAction) {
        let operation = self.here.node.start_vm_action(&name("web"), action).unwrap();
        let operation = self.end(&operation);
        assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    }

    fn begin(&self) -> Operation {
        let request = MigrateVmRequest {
            destination: name("there"),
            downtime_ms: 300,
            bandwidth_max_bytes_per_s: None,
            deletes_source_files: false,
        };
        self.here.node.migrate_vm(&name("web"), request).unwrap()
    }

    fn end(&self, operation: &Operation) -> Operation {
        self.here.node.wait_operation(operation.id, DEADLINE).unwrap()
    }

    /// Makes the source's store full, or gives it space again.
    fn fill(&self, is_full: bool) {
        self.here.disks.store(PATHS[0]).set_change_limit(is_full.then_some(0));
    }

    /// Simulates a write of the VM that finds its store full.
    fn find_no_space(&self) {
        self.fill(true);
        self.here.vms.find_no_space("web");
        wait_until("the VM waits for space", || self.here.node.vm("web").unwrap().reason.is_some());
    }

    fn state(&self) -> VmState {
        self.here.node.vm("web").unwrap().state
    }

    fn resumes(&self) -> usize {
        self.here.vms.commands().iter().filter(|command| *command == "web Resume").count()
    }
}

/// Waits for 400 ms, twice the minimum time between attempts to resume a VM.
fn pass_looks() {
    std::thread::sleep(Duration::from_millis(400));
}

#[test]
fn a_handed_over_vm_that_waits_for_space_is_never_resumed_on_the_source() {
    let pair = Pair::new();
    pair.find_no_space();
    pair.here.far_nodes.intercept(|_, call_name| {
        let fails = call_name == "activate_arrival answer";
        fails.then(|| PeerError::Unreachable("no route".to_owned()))
    });
    let operation = pair.begin();
    wait_until("the VM is shown as handed over", || pair.state() == VmState::HandedOver);
    assert_eq!(pair.there.vms.state("web"), Some(VmRunState::Running));
    pair.fill(false);
    pass_looks();
    assert_eq!(
        pair.here.vms.state("web"),
        Some(VmRunState::Paused),
        "the VM runs on the destination"
    );
    assert_eq!(pair.resumes(), 0);
    pair.here.far_nodes.intercept(|_, _| None);
    let moved = pair.end(&operation);
    assert_eq!(moved.state, OperationState::Succeeded, "{moved:?}");
    assert_eq!(pair.there.vms.state("web"), Some(VmRunState::Running));
}

#[test]
fn a_vm_without_space_whose_migration_fails_is_resumed_when_there_is_space() {
    for is_again in [false, true] {
        let pair = Pair::new();
        pair.here.vms.hold_memory(true);
        let operation = pair.begin();
        wait_until("memory is sent", || pair.here.vms.sends() == 1);
        pair.fill(true);
        pair.here.vms.find_no_space("web");
        wait_until("the VM is shown as paused", || pair.state() == VmState::Paused);
        // The VM is resumed after the cancellation and, if `is_again`, paused for space
        // immediately.
        pair.here.vms.keep_out_of_space("web", is_again);
        pair.here.node.cancel_operation(operation.id).unwrap();
        assert_eq!(pair.end(&operation).state, OperationState::Cancelled);
        if is_again {
            pair.here.wait_events(EventKind::VmPausedForSpace.id(), 1);
            assert_eq!(pair.state(), VmState::Paused);
        }
        pair.here.vms.keep_out_of_space("web", false);
        pair.fill(false);
        wait_until("the VM is shown as running", || pair.state() == VmState::Running);
    }
}

#[test]
fn a_vm_paused_while_waiting_for_space_stays_paused_if_its_migration_fails() {
    let pair = Pair::new();
    pair.find_no_space();
    pair.run_action(VmAction::Pause);
    pair.here.far_nodes.intercept(|_, call_name| {
        (call_name == "activate_arrival").then(|| PeerError::Rejected(Vec::new()))
    });
    let failed = pair.end(&pair.begin());
    assert_eq!(failed.state, OperationState::Failed, "{failed:?}");
    pair.fill(false);
    pass_looks();
    assert_eq!((pair.state(), pair.resumes()), (VmState::Paused, 0));
}

#[test]
fn a_vm_paused_while_waiting_for_space_stays_paused_on_the_destination() {
    let pair = Pair::new();
    pair.find_no_space();
    pair.run_action(VmAction::Pause);
    let moved = pair.end(&pair.begin());
    assert_eq!(moved.state, OperationState::Succeeded, "{moved:?}");
    let state = || pair.there.node.vm("web").unwrap().state;
    assert_eq!((pair.there.vms.state("web"), state()), (Some(VmRunState::Paused), VmState::Paused));
    // QEMU on the destination also reports that the VM was paused for space.
    pair.there.vms.find_no_space("web");
    pass_looks();
    assert_eq!((pair.there.vms.state("web"), state()), (Some(VmRunState::Paused), VmState::Paused));
    assert_eq!(pair.there.node.vm("web").unwrap().reason, None);
}

/// Covers the pause state in the request to prepare the migration.
#[test]
fn only_a_vm_that_was_not_paused_on_request_is_resumed_on_the_destination() {
    let pair = Pair::new();
    let is_paused = || pair.here.node.shared().outgoing_request(&name("web")).unwrap().is_paused;
    assert!(!is_paused());
    pair.find_no_space();
    assert!(!is_paused());
    pair.run_action(VmAction::Pause);
    assert!(is_paused());
}

/// The store of the destination is not mounted at the next start of its daemon.
#[test]
fn a_disk_that_was_copied_is_not_new_at_its_destination() {
    let pair = Pair::new();
    let operation = pair.begin();
    let operation = pair.end(&operation);
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    let (store, devices, disks) = pair.there.kill_with_disks();
    assert!(store.keys("new_disks").is_empty());
    drop(disks.take_store(PATHS[1]));
    disks.put_store(PATHS[1], MemoryFiles::default());
    let target = Harness::with_disks(store, devices, disks);
    wait_until("the file is missing", || {
        let disk = target.node.disk("web").unwrap();
        let is_missing = disk.reason.is_some_and(|reason| reason.contains("is missing"));
        disk.state == StorageState::Failed && is_missing
    });
    assert!(target.disks.files(PATHS[1]).is_empty());
}

fn migrated(pair: &Pair) -> Operation {
    pair.end(&pair.begin())
}

#[test]
fn a_vm_whose_disks_do_not_fit_is_refused_before_anything_is_copied() {
    let pair = Pair::new();
    pair.there.disks.store(PATHS[1]).set_change_limit(Some(0));
    let operation = migrated(&pair);
    assert_eq!(operation.state, OperationState::Failed, "{operation:?}");
    let error = operation.error.unwrap();
    for part in ["node there rejected", "store/all", "0 bytes are free", "free space"] {
        assert!(error.message.contains(part), "{part}: {error}");
    }
    assert!(pair.there.disks.files(PATHS[1]).is_empty());
    assert_eq!((pair.state(), pair.there.node.config().vms.len()), (VmState::Running, 0));
    pair.there.disks.store(PATHS[1]).set_change_limit(None);
    let operation = migrated(&pair);
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
}
