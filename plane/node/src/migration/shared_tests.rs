//! Migrations between two nodes with a shared store: the VM's disk is handed over.

use suimon_contract::{OperationState, SnapshotDiskRequest, StorageState, VmState};
use suimon_ports::testing::MemoryStore as MemoryFiles;

use self::pair::{PATHS, Pair, VM, assert_open, nodes, request, state_of_disk, with_vm};
use crate::testing::{DEADLINE, name, wait_until};
use crate::{DiskFileJob, Edit, ResourceEdit, VmAction};

mod failing;
mod missing;
mod pair;

#[test]
fn a_disk_is_handed_over_with_its_vm_and_returned() {
    let pair = Pair::new();
    let plan = pair.here.node.check_migration(&name("web"), &request("there")).unwrap();
    let step = plan.steps.iter().find(|step| step.resource == "disk/web").unwrap();
    assert_eq!(step.note.as_deref(), Some("handed over: store all is shared by both nodes"));
    assert_eq!(pair.there.node.config(), nodes(PATHS[1], true), "a look changes nothing");
    pair.assert_held();

    pair.here.vms.hold_memory(true);
    let operation = pair.begin();
    pair.wait_for_waiting();
    // The disk is in service on the source. The destination offers it to the waiting QEMU process.
    assert_eq!(state_of_disk(&pair.here).0, StorageState::Ready);
    let (state, reason) = state_of_disk(&pair.there);
    assert_eq!(state, StorageState::OpenOnOtherNode);
    assert!(reason.contains("is migrating from another node"), "{reason}");
    assert_eq!(pair.there.disks.sockets().0.len(), 1);
    let migration = pair.here.node.vm("web").unwrap().migration.unwrap();
    assert_eq!((migration.disks_handed_over, migration.disks_copied), (vec![name("web")], vec![]));
    let migration = pair.there.node.vm("web").unwrap().migration.unwrap();
    assert_eq!(migration.disks_handed_over, [name("web")]);
    // Other operations on the disk are rejected on both nodes meanwhile.
    for harness in [&pair.here, &pair.there] {
        let work = DiskFileJob::Snapshot(SnapshotDiskRequest { file: "n.vhdx".parse().unwrap() });
        let error = harness.node.start_disk_job(&name("web"), work).unwrap_err();
        assert!(error.message.contains("cancel it"), "{error}");
        let delete = Edit::Disk(ResourceEdit::Delete(name("web")));
        assert!(harness.node.submit(delete).is_err());
        // The destination applies the policies that it received.
        let faster = br#"{"max_iops": 900}"#.to_vec();
        let faster = Edit::QosPolicy(ResourceEdit::Patch(name("silver"), faster));
        let errors = harness.node.submit(faster).unwrap_err();
        assert!(errors[0].message.contains("QoS policies"), "{errors:?}");
    }
    pair.here.vms.hold_memory(false);
    let operation = pair.end(&operation);
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    pair.assert_there();

    let returned = pair.there.node.migrate_vm(&name("web"), request("here")).unwrap();
    let returned = pair.there.node.wait_operation(returned.id, DEADLINE).unwrap();
    assert_eq!(returned.state, OperationState::Succeeded, "{returned:?}");
    pair.assert_here();
}

fn refusal(pair: &Pair) -> String {
    let error = pair.here.node.check_migration(&name("web"), &request("there")).unwrap_err();
    let operation = pair.migrate();
    assert_eq!(operation.state, OperationState::Failed);
    let message = operation.error.unwrap().message;
    assert_eq!(message, error[0].message, "a look says the same");
    assert_eq!(pair.here.node.vm("web").unwrap().state, VmState::Running);
    assert_eq!(state_of_disk(&pair.here).0, StorageState::Ready);
    assert!(pair.there.vms.folders().is_empty());
    pair.assert_held();
    message
}

#[test]
fn a_store_that_is_not_known_to_be_the_same_is_refused() {
    let pair = Pair::new();
    pair.there.apply_ok(&nodes(PATHS[1], false));
    let message = refusal(&pair);
    assert!(message.contains("suimon store set all --shared=true"), "{message}");

    // Both nodes configure the store as shared, but the directories differ.
    pair.there.disks.put_store("/srv/elsewhere", MemoryFiles::default());
    pair.there.apply_ok(&nodes("/srv/elsewhere", true));
    let message = refusal(&pair);
    assert!(message.contains("/srv/elsewhere is not the same directory"), "{message}");

    // Only the destination configures the store as shared: a copy would overwrite the disk's file.
    pair.there.apply_ok(&nodes(PATHS[1], true));
    let set = br#"{"shared": false}"#.to_vec();
    let operation = pair.here.change(Edit::Store(ResourceEdit::Patch(name("all"), set)));
    assert_eq!(
        operation.state,
        OperationState::Succeeded,
        "the key changes while disks are in use"
    );
    let message = refusal(&pair);
    assert!(message.contains("set shared = true of the store on both"), "{message}");
}

#[test]
fn a_disk_that_qemu_emulates_is_not_handed_over() {
    let vm = VM.replace("size_bytes", "controller = \"ide\"\nsize_bytes");
    let pair = Pair::with(&with_vm(&vm));
    let errors = pair.here.node.check_migration(&name("web"), &request("there")).unwrap_err();
    assert!(errors[0].message.contains("controller = \"virtio\""), "{errors:?}");
    assert_eq!(pair.migrate().state, OperationState::Failed);
    assert_eq!(state_of_disk(&pair.here).0, StorageState::Ready);
}

#[test]
fn a_disk_with_a_parent_and_a_read_only_disk_are_handed_over() {
    let pair = Pair::new();
    let work = DiskFileJob::Snapshot(SnapshotDiskRequest { file: "next.vhdx".parse().unwrap() });
    let operation = pair.here.node.start_disk_job(&name("web"), work).unwrap();
    let operation = pair.here.node.wait_operation(operation.id, DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    let config = pair.here.node.config().disks;
    let before = pair.files.files().len();
    let operation = pair.migrate();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    assert_open(&pair.there);
    assert_eq!(pair.there.node.config().disks, config, "as it is, with its parent");
    wait_until("the number of files is as before", || pair.files.files().len() == before);

    let vm = VM.replace("size_bytes = 8388608", "read_only = true");
    let pair = Pair::new();
    let operation = pair.here.change(Edit::Apply(Box::new(pair.config.clone())));
    assert_eq!(operation.state, OperationState::Succeeded);
    let stop = pair.here.node.start_vm_action(&name("web"), VmAction::Kill).unwrap();
    pair.here.node.wait_operation(stop.id, DEADLINE).unwrap();
    pair.here.apply_ok(&with_vm(&vm));
    let start = pair.here.node.start_vm_action(&name("web"), VmAction::Start).unwrap();
    pair.here.node.wait_operation(start.id, DEADLINE).unwrap();
    pair.here.far_nodes.intercept(|_, _| None);
    let operation = pair.migrate();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    assert_open(&pair.there);
}
