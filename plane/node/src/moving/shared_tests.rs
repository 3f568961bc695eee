//! Two nodes that see one store: a VM's disk goes with its VM, and whatever fails when, one node
//! has its file open at most.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use suimon_contract::{
    ApiError, EventKind, HostConfig, MigrateVmRequest, Operation, OperationState,
    SnapshotDiskRequest, StorageState, VmState,
};
use suimon_ports::testing::MemoryStore as MemoryFiles;
use suimon_ports::{DiskFile, FileName, FileUse, StoreFiles, VmNotice, VmRunState};

use crate::testing::{
    FakeDevices, FakeDisks, FakeFarNodes, FakeVms, Harness, MemoryStore, PATIENCE, StoreFailure,
    host, name, wait_until,
};
use crate::{DiskWork, Edit, FarError, ResourceEdit, VmWork};

const VM: &str = r#"
[[disk]]
name = "web"
store = "all"
format = "vhdx"
size_bytes = 8388608
qos_policy = "silver"
[[vm]]
name = "web"
memory_bytes = "1 GiB"
disks = ["web"]
"#;
const FILE: &str = "web.vhdx";
/// Where each has the store.
const PATHS: [&str; 2] = ["/srv/here", "/srv/there"];

fn nodes(path: &str, is_shared: bool) -> HostConfig {
    host(&format!(
        r#"
[[node]]
name = "there"
address = "192.0.2.2:8443"
authority = "/etc/suimon/there.pem"
token_file = "/etc/suimon/there.token"
[[node]]
name = "here"
address = "192.0.2.1:8443"
authority = "/etc/suimon/here.pem"
token_file = "/etc/suimon/here.token"
[[qos_policy]]
name = "silver"
max_iops = 500
[[store]]
name = "all"
path = "{path}"
shared = {is_shared}
"#
    ))
}

fn with_vm(vm: &str) -> HostConfig {
    let (mut config, vm) = (nodes(PATHS[0], true), host(&format!("{}{vm}", STORE)));
    (config.disks, config.vms) = (vm.disks, vm.vms);
    config
}

/// So that what is in it can be read by itself.
const STORE: &str = "[[store]]\nname = \"all\"\npath = \"/srv/here\"\nshared = true\n\
                     [[qos_policy]]\nname = \"silver\"\n";

struct Pair {
    here: Harness,
    there: Harness,
    /// What both see.
    files: MemoryFiles,
    /// What the VM and its disks are here.
    config: HostConfig,
}

fn disks(at: usize, files: &MemoryFiles) -> FakeDisks {
    let disks = FakeDisks::default();
    disks.put_store(PATHS[at], files.clone());
    disks
}

fn harness(at: usize, files: &MemoryFiles, far_nodes: &FakeFarNodes) -> Harness {
    let left = (MemoryStore::default(), FakeDevices::default());
    let (disks, vms) = (disks(at, files), FakeVms::default());
    Harness::among_nodes_with_disks(left, disks, vms, far_nodes.clone())
}

impl Pair {
    /// The VM runs here.
    fn new() -> Self {
        Self::with(&with_vm(VM))
    }

    fn with(config: &HostConfig) -> Self {
        let (files, far_nodes) = (MemoryFiles::default(), FakeFarNodes::default());
        let [here, there] = [0, 1].map(|at| harness(at, &files, &far_nodes));
        let pair = Self { here, there, files, config: config.clone() };
        pair.connect();
        pair.here.apply_well(config);
        pair.there.apply_well(&nodes(PATHS[1], true));
        let started = pair.here.node.work_on_vm(&name("web"), VmWork::Start).unwrap();
        let started = pair.here.node.wait_operation(started.id, PATIENCE).unwrap();
        assert_eq!(started.state, OperationState::Succeeded, "{started:?}");
        pair.watch(|_| None);
        pair
    }

    fn connect(&self) {
        self.here.far_nodes.connect("192.0.2.1:8443", &self.here.node);
        self.here.far_nodes.connect("192.0.2.2:8443", &self.there.node);
    }

    /// Before the other node is told to run the VM nobody has the disk open; then this may be in
    /// the way.
    fn watch(&self, in_the_way: impl Fn(&str) -> Option<FarError> + Send + Sync + 'static) {
        let files = self.files.clone();
        let is_first = AtomicU32::new(0);
        self.here.far_nodes.obstruct(move |_, asked| {
            if asked == "activate_arrival" && is_first.fetch_add(1, Ordering::Relaxed) == 0 {
                drop(take(&files).expect("it is closed before another node may open it"));
            }
            in_the_way(asked)
        });
    }

    fn begin(&self) -> Operation {
        self.here.node.migrate_vm(&name("web"), request("there")).unwrap()
    }

    fn end(&self, operation: &Operation) -> Operation {
        self.here.node.wait_operation(operation.id, PATIENCE).unwrap()
    }

    fn migrate(&self) -> Operation {
        self.end(&self.begin())
    }

    /// The VM waits there, with the disk.
    fn wait_for_waiting(&self) {
        wait_until("it waits there", || self.there.vms.state("web").is_some());
    }

    fn wait_for_handed_over(&self) {
        let is_handed_over =
            || self.here.node.vm("web").is_ok_and(|vm| vm.state == VmState::HandedOver);
        wait_until("it is handed over", is_handed_over);
    }

    /// The VM is here and runs, its disk is open here, and there is nothing of either there.
    fn assert_here(&self) {
        wait_until("it runs here", || self.here.vms.state("web") == Some(VmRunState::Running));
        wait_until("that is shown", || self.here.node.vm("web").unwrap().state == VmState::Running);
        assert_open(&self.here);
        wait_until("nothing is there", || self.there.node.config() == nodes(PATHS[1], true));
        wait_until("its folder is gone", || self.there.vms.folders().is_empty());
        assert_eq!(self.there.vms.state("web"), None);
        assert_eq!(self.there.disks.served().0, 0);
        assert_eq!(self.here.node.config(), self.config);
        self.assert_held();
    }

    /// The VM is there and runs, its disk is open there, and there is nothing of either here.
    fn assert_there(&self) {
        wait_until("it runs there", || self.there.vms.state("web") == Some(VmRunState::Running));
        wait_until("nothing is here", || self.here.node.config() == nodes(PATHS[0], true));
        wait_until("its folder is gone", || self.here.vms.folders().is_empty());
        assert_eq!(self.here.vms.state("web"), None);
        assert_eq!(self.here.disks.served().0, 0);
        assert_open(&self.there);
        self.assert_held();
    }

    /// One has the file, and nothing is left of how the store was known.
    fn assert_held(&self) {
        assert!(take(&self.files).is_none(), "somebody has it open");
        wait_until("nothing else is in the store", || {
            self.files.files().keys().all(|file| !file.as_str().starts_with('.'))
        });
    }

    fn restart_here(self) -> Self {
        let Self { here, there, files, config } = self;
        let here = restarted(here, disks(0, &files));
        let pair = Self { here, there, files, config };
        pair.connect();
        pair
    }

    fn restart_there(self) -> Self {
        let Self { here, there, files, config } = self;
        let there = restarted(there, disks(1, &files));
        let pair = Self { here, there, files, config };
        pair.connect();
        pair
    }
}

fn restarted(harness: Harness, disks: FakeDisks) -> Harness {
    let (vms, far_nodes) = (harness.vms.clone(), harness.far_nodes.clone());
    vms.forget_observers();
    let left = harness.kill();
    vms.cut_lines();
    Harness::among_nodes_with_disks(left, disks, vms, far_nodes)
}

/// Opens the file for writing, unless somebody has it.
fn take(files: &MemoryFiles) -> Option<Arc<dyn DiskFile>> {
    files.open(&FileName::new(FILE).unwrap(), FileUse::Write, 1).ok()
}

fn assert_open(harness: &Harness) {
    let disk = || harness.node.disk("web").unwrap();
    wait_until("its disk works", || disk().state == StorageState::Ready);
    assert_eq!(disk().size_bytes, Some(8 << 20));
}

fn request(to: &str) -> MigrateVmRequest {
    // Files that are handed over stay, also if those of others are to go.
    MigrateVmRequest { to: name(to), downtime_ms: 300, bandwidth: None, with_files: true }
}

fn failure(is_refused: bool) -> FarError {
    if is_refused {
        FarError::Refused(vec![ApiError::new(suimon_contract::ErrorCode::HostError, "no")])
    } else {
        FarError::Unreachable("no route".to_owned())
    }
}

fn state_of_disk(harness: &Harness) -> (StorageState, String) {
    let disk = harness.node.disk("web").unwrap();
    (disk.state, disk.reason.unwrap_or_default())
}

#[test]
fn a_disk_goes_there_and_back_with_its_vm() {
    let pair = Pair::new();
    let plan = pair.here.node.check_migration(&name("web"), &request("there")).unwrap();
    let step = plan.steps.iter().find(|step| step.resource == "disk/web").unwrap();
    assert_eq!(step.note.as_deref(), Some("handed over: store all is the same on both nodes"));
    assert_eq!(pair.there.node.config(), nodes(PATHS[1], true), "a look changes nothing");
    pair.assert_held();

    pair.here.vms.hold_memory(true);
    let operation = pair.begin();
    pair.wait_for_waiting();
    // It is used here, and offered there to the QEMU that waits.
    assert_eq!(state_of_disk(&pair.here).0, StorageState::Ready);
    let (state, reason) = state_of_disk(&pair.there);
    assert_eq!(state, StorageState::Away);
    assert!(reason.contains("comes from another node"), "{reason}");
    assert_eq!(pair.there.disks.sockets().0.len(), 1);
    let moving = pair.here.node.vm("web").unwrap().migration.unwrap();
    assert_eq!((moving.disks_handed_over, moving.disks_copied), (vec![name("web")], vec![]));
    let moving = pair.there.node.vm("web").unwrap().migration.unwrap();
    assert_eq!(moving.disks_handed_over, [name("web")]);
    // Meanwhile nothing else is done to it, here or there.
    for harness in [&pair.here, &pair.there] {
        let work = DiskWork::Snapshot(SnapshotDiskRequest { file: "n.vhdx".parse().unwrap() });
        let error = harness.node.work_on_disk(&name("web"), work).unwrap_err();
        assert!(error.message.contains("cancel it"), "{error}");
        let delete = Edit::Disk(ResourceEdit::Delete(name("web")));
        assert!(harness.node.submit(delete).is_err());
        // The other node would hold it to what it was.
        let faster = br#"{"max_iops": 900}"#.to_vec();
        let faster = Edit::QosPolicy(ResourceEdit::Patch(name("silver"), faster));
        let errors = harness.node.submit(faster).unwrap_err();
        assert!(errors[0].message.contains("QoS policies"), "{errors:?}");
    }
    pair.here.vms.hold_memory(false);
    let operation = pair.end(&operation);
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    pair.assert_there();

    let back = pair.there.node.migrate_vm(&name("web"), request("here")).unwrap();
    let back = pair.there.node.wait_operation(back.id, PATIENCE).unwrap();
    assert_eq!(back.state, OperationState::Succeeded, "{back:?}");
    pair.assert_here();
}

fn refusal(pair: &Pair) -> String {
    let error = pair.here.node.check_migration(&name("web"), &request("there")).unwrap_err();
    let operation = pair.migrate();
    assert_eq!(operation.state, OperationState::Failed);
    let said = operation.error.unwrap().message;
    assert_eq!(said, error[0].message, "a look says the same");
    assert_eq!(pair.here.node.vm("web").unwrap().state, VmState::Running);
    assert_eq!(state_of_disk(&pair.here).0, StorageState::Ready);
    assert!(pair.there.vms.folders().is_empty());
    pair.assert_held();
    said
}

#[test]
fn a_store_that_is_not_known_to_be_the_same_is_refused() {
    let pair = Pair::new();
    pair.there.apply_well(&nodes(PATHS[1], false));
    let said = refusal(&pair);
    assert!(said.contains("suimon store set all --shared=true"), "{said}");

    // It is shared, as both say, but not with each other.
    pair.there.disks.put_store("/srv/elsewhere", MemoryFiles::default());
    pair.there.apply_well(&nodes("/srv/elsewhere", true));
    let said = refusal(&pair);
    assert!(said.contains("/srv/elsewhere is not the same directory"), "{said}");

    // Only the other says so: what is copied would be written over.
    pair.there.apply_well(&nodes(PATHS[1], true));
    let set = br#"{"shared": false}"#.to_vec();
    let operation = pair.here.change(Edit::Store(ResourceEdit::Patch(name("all"), set)));
    assert_eq!(operation.state, OperationState::Succeeded, "it changes while disks are used");
    let said = refusal(&pair);
    assert!(said.contains("set shared = true of the store on both"), "{said}");
}

#[test]
fn a_disk_that_qemu_emulates_is_not_handed_over() {
    let vm = VM.replace("size_bytes", "controller = \"ide\"\nsize_bytes");
    let pair = Pair::with(&with_vm(&vm));
    let said = pair.here.node.check_migration(&name("web"), &request("there")).unwrap_err();
    assert!(said[0].message.contains("controller virtio"), "{said:?}");
    assert_eq!(pair.migrate().state, OperationState::Failed);
    assert_eq!(state_of_disk(&pair.here).0, StorageState::Ready);
}

#[test]
fn a_disk_with_a_parent_and_one_that_is_only_read_go_too() {
    let pair = Pair::new();
    let work = DiskWork::Snapshot(SnapshotDiskRequest { file: "next.vhdx".parse().unwrap() });
    let operation = pair.here.node.work_on_disk(&name("web"), work).unwrap();
    let operation = pair.here.node.wait_operation(operation.id, PATIENCE).unwrap();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    let config = pair.here.node.config().disks;
    let before = pair.files.files().len();
    let operation = pair.migrate();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    assert_open(&pair.there);
    assert_eq!(pair.there.node.config().disks, config, "as it is, with its parent");
    wait_until("all files stay, and no others", || pair.files.files().len() == before);

    let vm = VM.replace("size_bytes = 8388608", "read_only = true");
    let pair = Pair::new();
    let operation = pair.here.change(Edit::Apply(Box::new(pair.config.clone())));
    assert_eq!(operation.state, OperationState::Succeeded);
    let stop = pair.here.node.work_on_vm(&name("web"), VmWork::Kill).unwrap();
    pair.here.node.wait_operation(stop.id, PATIENCE).unwrap();
    pair.here.apply_well(&with_vm(&vm));
    let start = pair.here.node.work_on_vm(&name("web"), VmWork::Start).unwrap();
    pair.here.node.wait_operation(start.id, PATIENCE).unwrap();
    pair.here.far_nodes.obstruct(|_, _| None);
    let operation = pair.migrate();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    assert_open(&pair.there);
}

#[test]
fn whatever_call_fails_one_node_has_it() {
    for call in ["prepare_arrival", "operation", "line", "arrival", "abandon_arrival"] {
        for is_refused in [false, true] {
            let pair = Pair::new();
            pair.watch(move |asked| (asked == call).then(|| failure(is_refused)));
            let operation = pair.migrate();
            if matches!(call, "arrival" | "abandon_arrival") {
                assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
                pair.assert_there();
            } else {
                assert_eq!(operation.state, OperationState::Failed, "{call} {is_refused}");
                pair.assert_here();
            }
        }
    }
}

#[test]
fn a_vm_that_is_cancelled_or_fails_keeps_its_disk() {
    let pair = Pair::new();
    pair.here.vms.hold_memory(true);
    let operation = pair.begin();
    pair.wait_for_waiting();
    pair.here.node.cancel_operation(operation.id).unwrap();
    assert_eq!(pair.end(&operation).state, OperationState::Cancelled);
    pair.assert_here();

    let operation = pair.begin();
    pair.wait_for_waiting();
    let reason = "it was killed".to_owned();
    pair.there.vms.guest("web", VmNotice::Ended { is_orderly: false, reason });
    pair.here.vms.hold_memory(false);
    assert_eq!(pair.end(&operation).state, OperationState::Failed);
    pair.assert_here();

    let operation = pair.migrate();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    pair.assert_there();
}

/// It was closed here and opened there, and goes back.
#[test]
fn a_vm_that_cannot_be_recorded_there_stays() {
    let pair = Pair::new();
    let there = pair.there.store.clone();
    let has_told = AtomicU32::new(0);
    pair.watch(move |asked| {
        if asked == "activate_arrival" && has_told.fetch_add(1, Ordering::Relaxed) == 0 {
            there.arm(StoreFailure::Refuse(0));
        }
        None
    });
    let operation = pair.migrate();
    assert_eq!(operation.state, OperationState::Failed, "{operation:?}");
    pair.assert_here();
}

#[test]
fn a_disk_that_cannot_be_opened_there_goes_on_here() {
    let pair = Pair::new();
    // Somebody else is quicker.
    let held: Arc<Mutex<Option<Arc<dyn DiskFile>>>> = Arc::default();
    let (files, holder) = (pair.files.clone(), held.clone());
    pair.watch(move |asked| {
        if asked == "activate_arrival" {
            *holder.lock().unwrap() = take(&files);
        }
        None
    });
    let operation = pair.migrate();
    assert_eq!(operation.state, OperationState::Failed, "{operation:?}");
    let said = operation.error.unwrap().message;
    assert!(said.contains("had given the VM up"), "{said}");
    // It is told, and tried again until he has gone.
    wait_until("the disk's failure is told", || {
        !pair.here.events(EventKind::DiskFailed.id()).is_empty()
    });
    held.lock().unwrap().take().expect("it was closed here");
    pair.assert_here();
    assert!(!pair.here.events(EventKind::DiskRecovered.id()).is_empty());
}

/// As if the file system there had been unmounted meanwhile.
#[test]
fn a_store_that_is_another_one_by_then_is_refused() {
    let pair = Pair::new();
    let files = pair.files.clone();
    pair.watch(move |asked| {
        if asked == "activate_arrival" {
            let marks = files.names(".suimon-new").unwrap();
            marks.iter().for_each(|mark| files.remove(mark).unwrap());
        }
        None
    });
    let operation = pair.migrate();
    assert_eq!(operation.state, OperationState::Failed, "{operation:?}");
    pair.assert_here();
}

#[test]
fn the_daemon_here_dies_while_memory_is_copied() {
    let pair = Pair::new();
    pair.here.vms.hold_memory(true);
    pair.begin();
    pair.wait_for_waiting();
    let pair = pair.restart_here();
    pair.assert_here();
}

#[test]
fn the_daemon_here_dies_when_the_vm_was_handed_over() {
    for reaches in ["activate_arrival", "activate_arrival answer"] {
        let pair = Pair::new();
        pair.watch(move |asked| (asked == reaches).then(|| failure(false)));
        pair.begin();
        pair.wait_for_handed_over();
        let pair = pair.restart_here();
        pair.wait_for_handed_over();
        assert_eq!(state_of_disk(&pair.here).0, StorageState::Away);
        assert_eq!(pair.here.disks.served(), (0, 0), "it was not opened");
        pair.here.far_nodes.obstruct(|_, _| None);
        pair.assert_there();
    }
}

/// The other node has given it up meanwhile.
#[test]
fn a_disk_that_was_handed_over_by_a_daemon_that_died_is_opened_again() {
    let pair = Pair::new();
    pair.watch(|asked| (asked == "activate_arrival").then(|| failure(false)));
    pair.begin();
    pair.wait_for_handed_over();
    let pair = pair.restart_here().restart_there();
    pair.wait_for_handed_over();
    pair.here.far_nodes.obstruct(|_, _| None);
    pair.assert_here();
}

#[test]
fn the_daemon_there_dies_while_it_waits() {
    let pair = Pair::new();
    pair.here.vms.hold_memory(true);
    let operation = pair.begin();
    pair.wait_for_waiting();
    let pair = pair.restart_there();
    pair.here.vms.hold_memory(false);
    assert_eq!(pair.end(&operation).state, OperationState::Failed);
    pair.assert_here();
}

#[test]
fn the_daemon_there_dies_before_and_after_it_was_told() {
    for reaches in ["activate_arrival", "activate_arrival answer"] {
        let pair = Pair::new();
        pair.watch(move |asked| (asked == reaches).then(|| failure(false)));
        let operation = pair.begin();
        pair.wait_for_handed_over();
        let pair = pair.restart_there();
        pair.here.far_nodes.obstruct(|_, _| None);
        let operation = pair.end(&operation);
        if reaches == "activate_arrival" {
            assert_eq!(operation.state, OperationState::Failed, "{operation:?}");
            pair.assert_here();
        } else {
            assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
            pair.assert_there();
        }
    }
}

#[test]
fn a_disk_comes_back_when_the_node_that_has_it_is_deleted() {
    let pair = Pair::new();
    pair.watch(|asked| asked.starts_with("activate_arrival").then(|| failure(false)));
    let operation = pair.begin();
    pair.wait_for_handed_over();
    let (state, reason) = state_of_disk(&pair.here);
    assert_eq!(state, StorageState::Away);
    assert!(reason.contains("handed over"), "{reason}");
    let delete = Edit::Node(ResourceEdit::Delete(name("there")));
    assert_eq!(pair.here.change(delete).state, OperationState::Succeeded);
    assert_eq!(pair.end(&operation).state, OperationState::Failed);
    wait_until("it runs here", || pair.here.vms.state("web") == Some(VmRunState::Running));
    assert_open(&pair.here);
}

/// The state store refuses one thing, whichever, once the VM is the other node's: its disk is
/// neither opened nor is its file deleted.
#[test]
fn what_is_left_here_of_a_disk_that_has_moved_does_it_no_harm() {
    for refused in 0..8 {
        let pair = Pair::new();
        pair.watch(|asked| (asked == "activate_arrival").then(|| failure(false)));
        let operation = pair.begin();
        pair.wait_for_handed_over();
        pair.here.store.arm(StoreFailure::Refuse(refused));
        pair.here.far_nodes.obstruct(|_, _| None);
        assert_eq!(pair.end(&operation).state, OperationState::Succeeded, "{refused}");
        pair.assert_there();
    }
}
