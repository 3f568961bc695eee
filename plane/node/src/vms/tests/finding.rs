use suimon_contract::{EventKind, VmState};
use suimon_ports::{StateStore, VmErrorKind};

use super::super::records::{VMS, load_vms, save_vm};
use super::{VmAction, harness, patch, refusal, state, well};
use crate::testing::{FakeVms, Harness, MemoryStore, wait_until};
use std::path::Path;

/// Deletes the recorded process id, as if the daemon was killed after its start request to the
/// launcher.
fn forget_process(store: &MemoryStore) {
    let (name, mut vm) = load_vms(store).unwrap().remove(0);
    vm.run.as_mut().unwrap().process_id_and_start = None;
    let change = save_vm(&name, &vm).unwrap();
    store.commit(&[change]).unwrap();
}

fn killed_while_starting() -> (Harness, FakeVms, MemoryStore) {
    let harness = harness();
    well(&harness, VmAction::Start);
    let (vms, store) = (harness.vms.clone(), harness.store.surviving());
    forget_process(&store);
    vms.forget_observers();
    (harness, vms, store)
}

#[test]
fn a_vm_whose_process_id_is_not_recorded_is_found_by_its_name() {
    let (before, vms, store) = killed_while_starting();
    let (_, devices) = before.kill();
    let harness = Harness::with_vms(store, devices, vms);
    wait_until("the VM is shown as running", || state(&harness) == VmState::Running);
    wait_until("the process id is recorded", || {
        let stored = String::from_utf8(harness.store.read(VMS, "web").unwrap().unwrap()).unwrap();
        stored.contains("process")
    });
}

#[test]
fn a_vm_is_not_abandoned_while_the_running_vms_cannot_be_listed() {
    let (before, vms, store) = killed_while_starting();
    let (_, devices) = before.kill();
    vms.refuse_all("running", VmErrorKind::Host, "the launcher of VMs is not there");
    let harness = Harness::with_vms(store, devices, vms.clone());
    wait_until("VmLost is emitted once", || harness.events(EventKind::VmLost.id()).len() == 1);
    assert_eq!(state(&harness), VmState::NotResponding);
    assert!(refusal(&harness, VmAction::Start).contains("does not respond"));
    vms.refuse("none", VmErrorKind::Host, "");
    wait_until("the VM is shown as running", || state(&harness) == VmState::Running);
    harness.wait_events(EventKind::VmFound.id(), 1);
    assert!(harness.events(EventKind::VmFailed.id()).is_empty());
}

#[test]
fn a_recorded_vm_that_was_never_started_is_reported() {
    let (before, vms, store) = killed_while_starting();
    let (_, devices) = before.kill();
    vms.reboot("");
    let harness = Harness::with_vms(store, devices, vms);
    wait_until("VmFailed is emitted once", || harness.events(EventKind::VmFailed.id()).len() == 1);
    let reason = harness.node.vm("web").unwrap().reason.unwrap();
    assert_eq!(reason, "the daemon was killed while it started the VM");
}

#[test]
fn a_vm_with_autostart_that_does_not_respond_is_reported() {
    let first = harness();
    patch(&first, r#"{"autostart": true}"#);
    well(&first, VmAction::Start);
    let vms = first.vms.clone();
    vms.forget_observers();
    let (store, devices) = first.kill();
    store.commit(&[("host", "autostart_boot".to_owned(), Some(b"earlier".to_vec()))]).unwrap();
    vms.refuse_all("adopt", VmErrorKind::Timeout, "it has not answered in 10 s");
    let harness = Harness::with_vms(store, devices, vms);
    harness.node.finish_start();
    let failed = || harness.events(EventKind::VmFailed.id());
    wait_until("the number of events is 1", || failed().len() == 1);
    assert!(failed()[0].text.contains("suimon vm kill web"), "{:?}", failed());
    assert_eq!(harness.node.vm("web").unwrap().state, VmState::NotResponding);
}

/// The daemon was killed during the change that added the VM.
#[test]
fn the_folder_of_a_vm_that_was_not_committed_is_removed() {
    let harness = harness();
    let vms = harness.vms.clone();
    let folder = Path::new("/run/suimon/vms/ghost");
    vms.parts().host.create_folder(folder, 70_500).unwrap();
    let (_, vm) = load_vms(&*harness.store).unwrap().remove(0);
    let change = save_vm(&"ghost".parse().unwrap(), &vm).unwrap();
    harness.store.commit(&[change]).unwrap();
    let (store, devices) = harness.kill();
    let harness = Harness::with_vms(store, devices, vms.clone());
    assert_eq!(harness.store.keys(VMS), ["web"]);
    assert!(!vms.folders().contains(folder), "{:?}", vms.folders());
    assert_eq!(vms.folders().len(), 1);
}
