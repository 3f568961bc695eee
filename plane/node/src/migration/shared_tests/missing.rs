//! Image files that are missing when a node opens a disk of a migrated VM: none is created.

use suimon_contract::{OperationState, StorageState};
use suimon_ports::testing::MemoryStore as MemoryFiles;
use suimon_ports::{FileName, StoreFiles};

use super::pair::{FILE, Pair, assert_open, disks, failure, started, state_of_disk, stopped};
use crate::testing::{Harness, wait_until};

fn rename(files: &MemoryFiles, from: &str, to: &str) {
    let name = |name: &str| FileName::new(name).unwrap();
    StoreFiles::rename(files, &name(from), &name(to)).unwrap();
}

fn wait_for_missing(pair: &Pair, harness: &Harness) {
    wait_until("the file is missing", || {
        let (state, reason) = state_of_disk(harness);
        state == StorageState::Failed && reason.contains("is missing")
    });
    // Nodes that open the store may leave or be writing a mark.
    let files = pair.files.files();
    let images = files.keys().map(FileName::as_str).filter(|name| !name.starts_with(".mark-"));
    assert_eq!(images.collect::<Vec<_>>(), ["hidden"]);
}

#[test]
fn a_returned_disk_requires_its_file() {
    let pair = Pair::new();
    pair.watch(|call_name| (call_name == "activate_arrival").then(|| failure(false)));
    pair.begin();
    pair.wait_for_handed_over();
    let pair = pair.restart_here().restart_there();
    pair.wait_for_handed_over();
    rename(&pair.files, FILE, "hidden");
    pair.here.far_nodes.intercept(|_, _| None);
    wait_for_missing(&pair, &pair.here);
    rename(&pair.files, "hidden", FILE);
    pair.assert_here();
}

#[test]
fn a_disk_of_a_migrated_vm_requires_its_file() {
    let pair = Pair::new();
    let operation = pair.migrate();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    pair.assert_there();
    // The process that has the file open ends first.
    let Pair { here: source, there: target, files, config } = pair;
    let stopped_node = stopped(target);
    rename(&files, FILE, "hidden");
    let target = started(stopped_node, disks(1, &files));
    let pair = Pair { here: source, there: target, files, config };
    pair.connect();
    wait_for_missing(&pair, &pair.there);
    rename(&pair.files, "hidden", FILE);
    assert_open(&pair.there);
}
