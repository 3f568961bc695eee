//! Devices that QEMU emulates for guests without virtio drivers.

use suimon_contract::{ApiError, ErrorCode, EventKind, HostConfig, OperationState, VmState};
use suimon_frame::MacAddr;
use suimon_ports::{StateStore, VmDevice, VmDiskKind, VmErrorKind, VmNicKind, VmNotice};

use super::super::VmAction;
use super::super::records::{StoredRun, load_vms, save_vm};
use crate::testing::{DEADLINE, Harness, host, name, wait_until};
use crate::{Edit, ResourceEdit};

const SOCKET: &str = "/run/suimon/vms/web/d-boot";

fn config(disks: &str) -> HostConfig {
    host(&format!(
        r#"
[[switch]]
name = "lan"
kind = "private"
[[nic]]
name = "old"
switch = "lan"
backend = "legacy"
[[nic]]
name = "new"
switch = "lan"
backend = "vhost-user"
{disks}
memory_bytes = "1 GiB"
nics = ["old", "new"]
"#
    ))
}

fn with_disk() -> HostConfig {
    let disk = "[[store]]\nname = \"fast\"\npath = \"/srv/fast\"\n[[disk]]\nname = \"boot\"\n\
                store = \"fast\"\nformat = \"raw\"\nsize_bytes = 1048576\ncontroller = \"ide\"\n\
                [disk.nbd]\nsocket = \"/run/nbd.sock\"\n[[vm]]\nname = \"web\"\ndisks = [\"boot\"]";
    config(disk)
}

fn start(harness: &Harness) {
    let operation = harness.node.start_vm_action(&name("web"), VmAction::Start).unwrap();
    let operation = harness.node.wait_operation(operation.id, DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
}

fn offered(harness: &Harness) -> Vec<String> {
    harness.disks.sockets().1.keys().map(|path| path.display().to_string()).collect()
}

#[test]
fn a_vm_has_emulated_devices_by_sockets_in_its_folder() {
    let harness = Harness::with_store();
    harness.apply_ok(&with_disk());
    assert_eq!(offered(&harness), ["/run/nbd.sock", SOCKET]);
    start(&harness);
    let spec = harness.vms.spec("web");
    assert_eq!(spec.disks[0].kind, VmDiskKind::Ide { socket: SOCKET.into() });
    let kinds: Vec<_> = spec.nics.iter().map(|nic| (nic.name.as_str(), nic.kind)).collect();
    assert_eq!(kinds, [("old", VmNicKind::Legacy), ("new", VmNicKind::Virtio)]);

    // The NBD socket for other clients is closed, and the VM's own socket stays.
    let mut after = with_disk();
    after.disks[0].nbd = None;
    harness.apply_ok(&after);
    assert_eq!(offered(&harness), [SOCKET]);
    harness.assert_consistent(&[]);
}

#[test]
fn plugged_devices_are_not_replaced_nor_unplugged_from_emulated_controllers() {
    let harness = Harness::with_store();
    harness.apply_ok(&with_disk());
    start(&harness);
    let refuse = |change: &dyn Fn(&mut HostConfig)| {
        let mut after = with_disk();
        change(&mut after);
        let error = harness.node.submit(Edit::Apply(Box::new(after))).unwrap_err().remove(0);
        assert!(error.message.contains("suimon vm stop web"), "{error}");
        assert_eq!(error.code, ErrorCode::InUse);
        error.field.unwrap()
    };
    assert_eq!(refuse(&|config| config.vms[0].disks.clear()), "disks");
    assert_eq!(refuse(&|config| config.disks[0].controller = Default::default()), "controller");
    assert_eq!(refuse(&|config| config.nics[0].backend = config.nics[1].backend), "backend");
    assert_eq!(refuse(&|config| config.nics[1].backend = config.nics[0].backend), "backend");
    let mut after = with_disk();
    after.vms[0].nics.remove(0);
    harness.apply_ok(&after);
    let kill = harness.node.start_vm_action(&name("web"), VmAction::Kill).unwrap();
    harness.node.wait_operation(kill.id, DEADLINE).unwrap();
    after.vms[0].disks.clear();
    harness.apply_ok(&after);
    assert_eq!(offered(&harness), ["/run/nbd.sock"]);
}

#[test]
fn the_address_of_a_plugged_nic_changes_only_while_its_vm_is_stopped() {
    let harness = Harness::new();
    let before = config("[[vm]]\nname = \"web\"");
    harness.apply_ok(&before);
    start(&harness);
    let macs = || -> Vec<_> { harness.vms.spec("web").nics.iter().map(|nic| nic.mac).collect() };
    let assigned = macs();
    // The guest would send from its former address, which port security would reject.
    for index in [0, 1] {
        let mut after = before.clone();
        after.nics[index].mac = Some(MacAddr::new([2, 0, 0, 0, 0, 9]));
        let error = harness.node.submit(Edit::Apply(Box::new(after))).unwrap_err().remove(0);
        assert_eq!((error.code, error.field.as_deref()), (ErrorCode::InUse, Some("mac")));
        let nic = format!("nic/{}", before.nics[index].name);
        assert_eq!(error.resource.as_deref(), Some(nic.as_str()));
        assert!(error.message.contains("suimon vm stop web"), "{error}");
    }
    // An unchanged address, and other keys, are accepted.
    let mut after = before.clone();
    after.nics[0].mac = assigned[0];
    after.nics[0].mtu = 1400;
    harness.apply_ok(&after);

    let kill = harness.node.start_vm_action(&name("web"), VmAction::Kill).unwrap();
    harness.node.wait_operation(kill.id, DEADLINE).unwrap();
    after.nics[0].mac = Some(MacAddr::new([2, 0, 0, 0, 0, 9]));
    harness.apply_ok(&after);
    start(&harness);
    assert_eq!(macs(), [after.nics[0].mac, assigned[1]]);
}

fn address(last: u8) -> Option<MacAddr> {
    Some(MacAddr::new([2, 0, 0, 0, 0, last]))
}

/// Returns the error of a change of this NIC.
fn refused(harness: &Harness, nic: usize, change: &HostConfig) -> ApiError {
    let errors = harness.node.submit(Edit::Apply(Box::new(change.clone()))).unwrap_err();
    let error = errors.into_iter().next().unwrap();
    let nic = format!("nic/{}", change.nics[nic].name);
    assert_eq!((error.code, error.resource.as_deref()), (ErrorCode::InUse, Some(nic.as_str())));
    error
}

#[test]
fn plugged_nics_of_a_vm_that_is_not_adopted_yet_are_not_replaced() {
    let harness = Harness::new();
    let before = config("[[vm]]\nname = \"web\"");
    harness.apply_ok(&before);
    start(&harness);
    let vms = harness.vms.clone();
    vms.forget_observers();
    let (store, devices) = harness.kill();
    vms.refuse_all("adopt", VmErrorKind::Timeout, "it has not answered in 10 s");
    let harness = Harness::with_vms(store, devices, vms);
    assert_eq!(harness.node.vm("web").unwrap().state, VmState::NotResponding);
    let mut after = before.clone();
    after.nics[1].mac = address(9);
    assert_eq!(refused(&harness, 1, &after).field.as_deref(), Some("mac"));
    let mut after = before.clone();
    after.nics[1].backend = before.nics[0].backend;
    assert_eq!(refused(&harness, 1, &after).field.as_deref(), Some("backend"));
}

/// Starts the next daemon with a changed record of the VM's run. The VM continues to run.
fn restart_with(harness: Harness, change: impl FnOnce(&mut StoredRun)) -> Harness {
    let vms = harness.vms.clone();
    vms.forget_observers();
    let (store, devices) = harness.kill();
    let (vm_name, mut vm) = load_vms(&store).unwrap().remove(0);
    change(vm.run.as_mut().unwrap());
    store.commit(&[save_vm(&vm_name, &vm).unwrap()]).unwrap();
    let harness = Harness::with_vms(store, devices, vms);
    let state = || harness.node.vm("web").unwrap().state;
    wait_until("the VM is shown as running", || state() == VmState::Running);
    harness
}

/// A version without the refusal applied a change of the address to the switch only.
#[test]
fn the_address_of_a_plugged_nic_is_reverted_to_that_of_the_guest() {
    let harness = Harness::new();
    let mut before = config("[[vm]]\nname = \"web\"");
    before.nics[1].mac = address(8);
    harness.apply_ok(&before);
    start(&harness);
    let harness = restart_with(harness, |run| {
        assert_eq!(run.macs.get(&name("new")).copied(), address(8));
        run.macs.extend(address(7).map(|mac| (name("new"), mac)));
    });
    let mut after = before.clone();
    after.nics[1].mac = address(9);
    let error = refused(&harness, 1, &after);
    assert!(error.message.contains("keeps the address 02:00:00:00:00:07"), "{error}");
    after.nics[1].mac = address(7);
    harness.apply_ok(&after);

    // The record of a version that does not contain addresses.
    let harness = restart_with(harness, |run| run.macs.clear());
    let error = refused(&harness, 1, &before);
    assert!(error.message.contains("the address with which it was plugged"), "{error}");
    assert!(error.message.contains("take the NIC out of `nics` of vm/web"), "{error}");
}

#[test]
fn a_nic_that_does_not_reconnect_is_unplugged_and_plugged_again() {
    let harness = Harness::new();
    harness.apply_ok(&config("[[vm]]\nname = \"web\""));
    start(&harness);
    let vms = harness.vms.clone();
    vms.forget_observers();
    let (store, devices) = harness.kill();
    let harness = Harness::with_vms(store, devices, vms.clone());
    let events = || harness.events(EventKind::VmDeviceRefused.id());
    wait_until("the number of events is 1", || events().len() == 1);
    assert!(
        events()[0].text.contains("nic/old") && events()[0].text.contains("7.2"),
        "{:?}",
        events()
    );
    assert_eq!(vms.commands(), ["web unplug nic/old"]);
    let status = || harness.node.vm("web").unwrap();
    wait_until("the NIC is shown as pending", || status().settings_pending_start == ["nic/old"]);
    // A change of another key does not plug the NIC while the guest still has it.
    let patch = Edit::Vm(ResourceEdit::Patch(name("web"), br#"{"autostart": true}"#.to_vec()));
    assert_eq!(harness.change(patch).state, OperationState::Succeeded);
    assert_eq!(vms.commands().len(), 1);

    vms.guest("web", VmNotice::Unplugged(VmDevice::Nic("old".to_owned())));
    wait_until("the NIC is not pending", || status().settings_pending_start.is_empty());
    assert_eq!(vms.commands()[1..], ["web plug nic old /run/suimon/vms/web/n-old"]);
    assert_eq!((status().state, status().nics.len()), (VmState::Running, 2));
}
