//! Two nodes in one process with a shared store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use suimon_contract::{
    ApiError, HostConfig, MigrateVmRequest, Operation, OperationState, StorageState, VmState,
};
use suimon_ports::testing::MemoryStore as MemoryFiles;
use suimon_ports::{DiskFile, FileLockMode, FileName, StoreFiles, VmRunState};

use crate::testing::{
    DEADLINE, FakeDevices, FakeDisks, FakePeerNodes, FakeVms, Harness, MemoryStore, host, name,
    wait_until,
};
use crate::{PeerError, VmAction};

pub(super) const VM: &str = r#"
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
pub(super) const FILE: &str = "web.vhdx";
/// Path of the store on each node.
pub(super) const PATHS: [&str; 2] = ["/srv/here", "/srv/there"];

pub(super) fn nodes(path: &str, is_shared: bool) -> HostConfig {
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

pub(super) fn with_vm(vm: &str) -> HostConfig {
    let (mut config, vm) = (nodes(PATHS[0], true), host(&format!("{}{vm}", STORE)));
    (config.disks, config.vms) = (vm.disks, vm.vms);
    config
}

/// Makes the VM's configuration valid on its own, so that it can be parsed separately.
pub(super) const STORE: &str = "[[store]]\nname = \"all\"\npath = \"/srv/here\"\nshared = true\n\
                     [[qos_policy]]\nname = \"silver\"\n";

pub(super) struct Pair {
    pub(super) here: Harness,
    pub(super) there: Harness,
    /// Files of the shared store.
    pub(super) files: MemoryFiles,
    /// Configuration of the source.
    pub(super) config: HostConfig,
}

pub(super) fn disks(index: usize, files: &MemoryFiles) -> FakeDisks {
    let disks = FakeDisks::default();
    disks.put_store(PATHS[index], files.clone());
    disks
}

pub(super) fn harness(index: usize, files: &MemoryFiles, far_nodes: &FakePeerNodes) -> Harness {
    let stopped_node = (MemoryStore::default(), FakeDevices::default());
    let (disks, vms) = (disks(index, files), FakeVms::default());
    Harness::among_nodes_with_disks(stopped_node, disks, vms, far_nodes.clone())
}

impl Pair {
    /// Returns two nodes; the VM runs on the first.
    pub(super) fn new() -> Self {
        Self::with(&with_vm(VM))
    }

    pub(super) fn with(config: &HostConfig) -> Self {
        let (files, far_nodes) = (MemoryFiles::default(), FakePeerNodes::default());
        let [source, target] = [0, 1].map(|index| harness(index, &files, &far_nodes));
        let pair = Self { here: source, there: target, files, config: config.clone() };
        pair.connect();
        pair.here.apply_ok(config);
        pair.there.apply_ok(&nodes(PATHS[1], true));
        let started = pair.here.node.start_vm_action(&name("web"), VmAction::Start).unwrap();
        let started = pair.here.node.wait_operation(started.id, DEADLINE).unwrap();
        assert_eq!(started.state, OperationState::Succeeded, "{started:?}");
        pair.watch(|_| None);
        pair
    }

    pub(super) fn connect(&self) {
        self.here.far_nodes.connect("192.0.2.1:8443", &self.here.node);
        self.here.far_nodes.connect("192.0.2.2:8443", &self.there.node);
    }

    /// Calls `intercept` for each request to the destination. Asserts before the first activation
    /// that no node has the disk's file open.
    pub(super) fn watch(
        &self,
        intercept: impl Fn(&str) -> Option<PeerError> + Send + Sync + 'static,
    ) {
        let files = self.files.clone();
        let is_first = AtomicU32::new(0);
        self.here.far_nodes.intercept(move |_, call_name| {
            if call_name == "activate_arrival" && is_first.fetch_add(1, Ordering::Relaxed) == 0 {
                drop(take(&files).expect("it is closed before another node may open it"));
            }
            intercept(call_name)
        });
    }

    pub(super) fn begin(&self) -> Operation {
        self.here.node.migrate_vm(&name("web"), request("there")).unwrap()
    }

    pub(super) fn end(&self, operation: &Operation) -> Operation {
        self.here.node.wait_operation(operation.id, DEADLINE).unwrap()
    }

    pub(super) fn migrate(&self) -> Operation {
        self.end(&self.begin())
    }

    /// Waits until the VM waits on the destination.
    pub(super) fn wait_for_waiting(&self) {
        wait_until("the VM has a QEMU process on the destination", || {
            self.there.vms.state("web").is_some()
        });
    }

    pub(super) fn wait_for_handed_over(&self) {
        let is_handed_over =
            || self.here.node.vm("web").is_ok_and(|vm| vm.state == VmState::HandedOver);
        wait_until("the VM is handed over", is_handed_over);
    }

    /// Asserts that the VM runs on the source with its disk open, and that nothing remains on the
    /// destination.
    pub(super) fn assert_here(&self) {
        wait_until("the VM is running on the source", || {
            self.here.vms.state("web") == Some(VmRunState::Running)
        });
        wait_until("the VM is shown as running on the source", || {
            self.here.node.vm("web").unwrap().state == VmState::Running
        });
        assert_open(&self.here);
        wait_until("the destination's configuration does not contain the VM", || {
            self.there.node.config() == nodes(PATHS[1], true)
        });
        wait_until("the destination has removed the VM's folder", || {
            self.there.vms.folders().is_empty()
        });
        assert_eq!(self.there.vms.state("web"), None);
        assert_eq!(self.there.disks.served_counts().0, 0);
        assert_eq!(self.here.node.config(), self.config);
        self.assert_held();
    }

    /// Asserts that the VM runs on the destination with its disk open, and that nothing remains on
    /// the source.
    pub(super) fn assert_there(&self) {
        wait_until("the VM is running on the destination", || {
            self.there.vms.state("web") == Some(VmRunState::Running)
        });
        wait_until("the source's configuration does not contain the VM", || {
            self.here.node.config() == nodes(PATHS[0], true)
        });
        wait_until("the source has removed the VM's folder", || self.here.vms.folders().is_empty());
        assert_eq!(self.here.vms.state("web"), None);
        assert_eq!(self.here.disks.served_counts().0, 0);
        assert_open(&self.there);
        self.assert_held();
    }

    /// Asserts that one node has the file open, and that the marks of the store are deleted.
    pub(super) fn assert_held(&self) {
        assert!(take(&self.files).is_none(), "a node has the file open");
        wait_until("no mark file is in the store", || {
            self.files.files().keys().all(|file| !file.as_str().starts_with('.'))
        });
    }

    pub(super) fn restart_here(self) -> Self {
        let Self { here: source, there: target, files, config } = self;
        let source = restarted(source, disks(0, &files));
        let pair = Self { here: source, there: target, files, config };
        pair.connect();
        pair
    }

    pub(super) fn restart_there(self) -> Self {
        let Self { here: source, there: target, files, config } = self;
        let target = restarted(target, disks(1, &files));
        let pair = Self { here: source, there: target, files, config };
        pair.connect();
        pair
    }
}

/// Host of a killed process.
pub(super) type Stopped = ((MemoryStore, FakeDevices), FakeVms, FakePeerNodes);

pub(super) fn restarted(harness: Harness, disks: FakeDisks) -> Harness {
    started(stopped(harness), disks)
}

pub(super) fn stopped(harness: Harness) -> Stopped {
    let (vms, far_nodes) = (harness.vms.clone(), harness.far_nodes.clone());
    vms.forget_observers();
    let stopped_node = harness.kill();
    vms.cut_lines();
    (stopped_node, vms, far_nodes)
}

pub(super) fn started((stopped_node, vms, far_nodes): Stopped, disks: FakeDisks) -> Harness {
    Harness::among_nodes_with_disks(stopped_node, disks, vms, far_nodes)
}

/// Opens the file for writing; `None` if it is open elsewhere.
pub(super) fn take(files: &MemoryFiles) -> Option<Arc<dyn DiskFile>> {
    files.open(&FileName::new(FILE).unwrap(), FileLockMode::Write, 1).ok()
}

pub(super) fn assert_open(harness: &Harness) {
    let disk = || harness.node.disk("web").unwrap();
    wait_until("the disk is ready", || disk().state == StorageState::Ready);
    assert_eq!(disk().size_bytes, Some(8 << 20));
}

pub(super) fn request(to: &str) -> MigrateVmRequest {
    // Files of handed-over disks are kept despite `deletes_source_files`.
    MigrateVmRequest {
        destination: name(to),
        downtime_ms: 300,
        bandwidth_max_bytes_per_s: None,
        deletes_source_files: true,
    }
}

pub(super) fn failure(is_refused: bool) -> PeerError {
    if is_refused {
        PeerError::Rejected(vec![ApiError::new(suimon_contract::ErrorCode::HostError, "no")])
    } else {
        PeerError::Unreachable("no route".to_owned())
    }
}

pub(super) fn state_of_disk(harness: &Harness) -> (StorageState, String) {
    let disk = harness.node.disk("web").unwrap();
    (disk.state, disk.reason.unwrap_or_default())
}
