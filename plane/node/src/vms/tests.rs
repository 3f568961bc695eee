use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use suimon_contract::{
    ByteSize, ErrorCode, EventKind, HostConfig, Operation, OperationState, StopVmRequest, VmConfig,
    VmState,
};
use suimon_ports::{StateStore, VmDevice, VmErrorKind, VmNotice, VmRunState};

use super::VmAction;
use crate::testing::{DEADLINE, Harness, StoreFailure, host, name, wait_until};
use crate::{Edit, ResourceEdit};

mod finding;
mod freezing;
mod legacy;
mod plugging;
mod releasing;
mod space;
mod starting;
mod stopping;

fn config() -> HostConfig {
    host(
        r#"
[[switch]]
name = "lan"
kind = "private"
[[nic]]
name = "web"
switch = "lan"
backend = "vhost-user"
[[nic]]
name = "more"
switch = "lan"
backend = "vhost-user"
socket = "/run/more"
[[vm]]
name = "web"
memory_bytes = "1 GiB"
nics = ["web"]
cpus_max = 4
"#,
    )
}

fn harness() -> Harness {
    let harness = Harness::new();
    harness.apply_ok(&config());
    harness
}

fn run_action(harness: &Harness, action: VmAction) -> Operation {
    let operation = harness.node.start_vm_action(&name("web"), action).unwrap();
    harness.node.wait_operation(operation.id, DEADLINE).unwrap()
}

fn well(harness: &Harness, action: VmAction) {
    let operation = run_action(harness, action);
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
}

fn state(harness: &Harness) -> VmState {
    harness.node.vm("web").unwrap().state
}

fn refusal(harness: &Harness, action: VmAction) -> String {
    harness.node.start_vm_action(&name("web"), action).unwrap_err().message
}

fn patch(harness: &Harness, patch: &str) {
    let edit = Edit::Vm(ResourceEdit::Patch(name("web"), patch.as_bytes().to_vec()));
    let operation = harness.change(edit);
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
}

#[test]
fn uptimes_do_not_follow_steps_of_the_wall_clock() {
    let clock = Arc::new(AtomicU64::new(1_700_000_000_000));
    let harness = Harness::with_clock(Arc::clone(&clock));
    harness.apply_ok(&config());
    well(&harness, VmAction::Start);
    harness.vms.set_uptime(Duration::from_millis(61_900));
    const DAY_MS: u64 = 86_400_000;
    for now in [1_700_000_000_000 + DAY_MS, 1_700_000_000_000 - DAY_MS] {
        clock.store(now, Ordering::Relaxed);
        assert_eq!(harness.node.vm("web").unwrap().uptime_s, Some(61));
        // The test takes less than an hour.
        assert!(harness.node.host_status().uptime_s < 3600);
    }
}

#[test]
fn a_vm_is_created_started_paused_resumed_reset_and_stopped() {
    let harness = harness();
    assert_eq!(state(&harness), VmState::Stopped);
    let folders: Vec<_> = harness.vms.folders().into_iter().collect();
    assert_eq!(folders, [std::path::Path::new("/run/suimon/vms/web")]);
    well(&harness, VmAction::Start);
    let status = harness.node.vm("web").unwrap();
    assert_eq!((status.state, status.process_id), (VmState::Running, Some(1)));
    assert_eq!((status.nics, status.cpus), (vec![name("web")], Some(1)));
    let spec = harness.vms.spec("web");
    assert_eq!(spec.nics[0].socket.to_str(), Some("/run/suimon/vms/web/n-web"));
    assert!(spec.uid >= 70_000 && spec.uuid[6] >> 4 == 4, "{spec:?}");

    assert_eq!(refusal(&harness, VmAction::Start), "the VM is already running");
    well(&harness, VmAction::Pause);
    wait_until("the VM is shown as paused", || state(&harness) == VmState::Paused);
    assert!(refusal(&harness, VmAction::Stop(StopVmRequest::default())).contains("resume"));
    well(&harness, VmAction::Resume);
    wait_until("the VM is shown as running", || state(&harness) == VmState::Running);
    well(&harness, VmAction::Reset);
    wait_until("VmReset is emitted", || !harness.events(EventKind::VmReset.id()).is_empty());

    let stop =
        VmAction::Stop(StopVmRequest { timeout_s: 60, force: false, ..StopVmRequest::default() });
    let operation = harness.node.start_vm_action(&name("web"), stop).unwrap();
    wait_until("the VM is shown as stopping", || state(&harness) == VmState::Stopping);
    let is_orderly = true;
    harness.vms.guest("web", VmNotice::Ended { is_orderly, reason: "it is off".to_owned() });
    let operation = harness.node.wait_operation(operation.id, DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    assert_eq!(state(&harness), VmState::Stopped);
    for kind in [EventKind::VmCreated, EventKind::VmStarted, EventKind::VmEnded] {
        harness.wait_events(kind.id(), 1);
    }
}

#[test]
fn a_guest_that_does_not_power_off_continues_or_is_killed() {
    let harness = harness();
    well(&harness, VmAction::Start);
    let gently =
        VmAction::Stop(StopVmRequest { timeout_s: 1, force: false, ..StopVmRequest::default() });
    let operation = run_action(&harness, gently);
    assert_eq!(operation.state, OperationState::Failed);
    assert!(operation.error.unwrap().message.contains("suimon vm kill web"));
    assert_eq!(state(&harness), VmState::Running);
    well(
        &harness,
        VmAction::Stop(StopVmRequest { timeout_s: 1, force: true, ..StopVmRequest::default() }),
    );
    assert_eq!(state(&harness), VmState::Stopped);
    assert!(harness.vms.running().is_empty());
    let absurd =
        VmAction::Stop(StopVmRequest { timeout_s: 0, force: false, ..StopVmRequest::default() });
    let error = harness.node.start_vm_action(&name("web"), absurd).unwrap_err();
    assert_eq!((error.code, error.field.as_deref()), (ErrorCode::InvalidValue, Some("seconds")));
}

#[test]
fn a_failed_start_of_a_vm_shows_the_reason_and_can_be_repeated() {
    let harness = harness();
    for call in ["probe", "prepare", "start"] {
        harness.vms.refuse(call, VmErrorKind::Host, "there is no QEMU; install it");
        let operation = run_action(&harness, VmAction::Start);
        assert_eq!(operation.error.unwrap().message, "there is no QEMU; install it", "{call}");
        let status = harness.node.vm("web").unwrap();
        assert_eq!(status.state, VmState::Stopped);
        assert_eq!(status.reason.as_deref(), Some("there is no QEMU; install it"));
    }
    harness.wait_events(EventKind::VmFailed.id(), 3);
    well(&harness, VmAction::Start);
    assert_eq!(harness.node.vm("web").unwrap().reason, None);
}

#[test]
fn a_vm_is_created_while_another_one_runs() {
    let harness = harness();
    well(&harness, VmAction::Start);
    let mut with_another = config();
    with_another.vms.push(VmConfig::new(name("db"), ByteSize::new(1 << 30)));
    harness.apply_ok(&with_another);
    assert_eq!((harness.node.vms().len(), state(&harness)), (2, VmState::Running));
}

#[test]
fn a_vm_whose_folder_cannot_be_created_is_not_created() {
    let harness = Harness::new();
    harness.vms.refuse("prepare", VmErrorKind::Host, "no launcher");
    let operation = harness.apply(&config());
    assert_eq!(operation.state, OperationState::Failed);
    assert_eq!(operation.error.unwrap().resource.as_deref(), Some("vm/web"));
    assert!(harness.node.vms().is_empty() && harness.store.keys("vms").is_empty());
    harness.assert_consistent(&[]);
    harness.apply_ok(&config());
    harness.assert_consistent(&[]);
}

#[test]
fn an_unexpected_end_of_the_process_is_reported() {
    let harness = harness();
    well(&harness, VmAction::Start);
    let reason = "it was killed by signal 11".to_owned();
    harness.vms.guest("web", VmNotice::Ended { is_orderly: false, reason });
    wait_until("the VM is shown as stopped", || state(&harness) == VmState::Stopped);
    let status = harness.node.vm("web").unwrap();
    assert_eq!(status.reason.as_deref(), Some("it was killed by signal 11"));
    wait_until("VmFailed is emitted once", || harness.events(EventKind::VmFailed.id()).len() == 1);
    well(&harness, VmAction::Start);
}

#[test]
fn nics_and_cpus_change_while_it_runs() {
    let harness = harness();
    well(&harness, VmAction::Start);
    patch(&harness, r#"{"nics": ["web", "more"], "cpus": 2, "memory_bytes": "2 GiB"}"#);
    wait_until("the VM has 2 CPUs", || harness.node.vm("web").unwrap().cpus == Some(2));
    let status = harness.node.vm("web").unwrap();
    assert_eq!(status.nics, [name("more"), name("web")]);
    assert_eq!(status.settings_pending_start, ["memory_bytes"]);
    assert_eq!(harness.vms.commands(), ["web plug nic more /run/more", "web SetCpus(2)"]);
    let event = harness.wait_event(EventKind::VmChanged.id());
    assert_eq!(event.text, "vm/web was changed; memory_bytes at the next start of the VM.");

    patch(&harness, r#"{"nics": ["web"]}"#);
    wait_until("the unplug is requested", || harness.vms.commands().len() == 3);
    assert_eq!(harness.node.vm("web").unwrap().nics.len(), 2, "the guest still has it");
    // A disk with the same name is a different device.
    let release = |device| harness.vms.guest("web", VmNotice::Unplugged(device));
    release(VmDevice::Disk("more".to_owned()));
    release(VmDevice::Nic("web".to_owned() + "x"));
    assert_eq!(harness.node.vm("web").unwrap().nics.len(), 2);
    release(VmDevice::Nic("more".to_owned()));
    wait_until("the VM has one NIC", || harness.node.vm("web").unwrap().nics == [name("web")]);
    assert_eq!(harness.vms.commands()[2..], ["web unplug nic/more"]);
    wait_until("VmDeviceUnplugged is emitted once", || {
        harness.events(EventKind::VmDeviceUnplugged.id()).len() == 1
    });

    harness.vms.refuse("tell", VmErrorKind::Refused, "the machine has no slot left");
    patch(&harness, r#"{"nics": ["web", "more"]}"#);
    let events = || harness.events(EventKind::VmDeviceRefused.id());
    wait_until("the number of events is 1", || events().len() == 1);
    assert!(events()[0].text.contains("no slot left"));
    let pending_changes = || harness.node.vm("web").unwrap().settings_pending_start;
    wait_until("the change of nic/more is pending", || {
        pending_changes() == ["memory_bytes", "nic/more"]
    });
    // A device that is not configured is not pending.
    patch(&harness, r#"{"nics": ["web"]}"#);
    wait_until("no change of nic/more is pending", || pending_changes() == ["memory_bytes"]);
    assert_eq!(events().len(), 1, "the failure is reported once");
}

#[test]
fn a_failed_plug_is_retried_at_each_change_and_reported_once() {
    let harness = harness();
    well(&harness, VmAction::Start);
    harness.vms.refuse_all("tell", VmErrorKind::Refused, "the machine has no slot left");
    patch(&harness, r#"{"nics": ["web", "more"]}"#);
    let pending_changes = || harness.node.vm("web").unwrap().settings_pending_start;
    wait_until("the change of nic/more is pending", || pending_changes() == ["nic/more"]);
    patch(&harness, r#"{"cpus": 2}"#);
    wait_until("the changes of cpus and nic/more are pending", || {
        pending_changes() == ["cpus", "nic/more"]
    });
    harness.vms.refuse("none", VmErrorKind::Refused, "");
    patch(&harness, r#"{"autostart": true}"#);
    wait_until("no change is pending", || pending_changes().is_empty());
    assert_eq!(harness.node.vm("web").unwrap().nics.len(), 2);
    harness.wait_events(EventKind::VmDeviceRefused.id(), 2);
}

#[test]
fn a_change_without_effect_on_a_vm_does_not_write_its_record() {
    let harness = harness();
    harness.apply_ok(&config());
    let commits = || {
        harness.store.arm(StoreFailure::Refuse(usize::MAX));
        let edit = Edit::Nic(ResourceEdit::Patch(name("more"), br#"{"mtu": 9000}"#.to_vec()));
        let before = harness.node.vm("web").unwrap();
        assert_eq!(harness.change(edit).state, OperationState::Succeeded);
        let edit = Edit::Nic(ResourceEdit::Patch(name("more"), br#"{"mtu": 1500}"#.to_vec()));
        assert_eq!(harness.change(edit).state, OperationState::Succeeded);
        // The driver handles messages in order: once the reset is done, it has reconciled.
        if before.state == VmState::Running {
            well(&harness, VmAction::Reset);
        }
        harness.store.commits()
    };
    let stopped = commits();
    well(&harness, VmAction::Start);
    wait_until("VmStarted is emitted", || !harness.events(EventKind::VmStarted.id()).is_empty());
    let running = commits();
    // The reset emits an event, which is written.
    assert!(running <= stopped + 1, "{running} beside {stopped}");
}

#[test]
fn a_running_vm_is_not_deleted_and_its_devices_are_in_use() {
    let harness = harness();
    well(&harness, VmAction::Start);
    let delete = || harness.node.submit(Edit::Vm(ResourceEdit::Delete(name("web"))));
    let error = delete().unwrap_err().remove(0);
    assert_eq!(error.code, ErrorCode::InUse);
    assert!(error.message.contains("suimon vm stop web"), "{error}");
    let of_nic = harness.node.submit(Edit::Nic(ResourceEdit::Delete(name("web")))).unwrap_err();
    assert!(of_nic[0].message.starts_with("vm/web refers to this resource"), "{of_nic:?}");
    let mut other_folder = config();
    other_folder.host.vm_folder = Some("/elsewhere".into());
    let error = harness.node.submit(Edit::Apply(Box::new(other_folder.clone()))).unwrap_err();
    assert_eq!((error[0].code, error[0].field.as_deref()), (ErrorCode::InUse, Some("vm_folder")));

    well(&harness, VmAction::Kill);
    harness.apply_ok(&other_folder);
    assert!(harness.vms.folders().contains(std::path::Path::new("/elsewhere/web")));
    well(&harness, VmAction::Start);
    well(&harness, VmAction::Kill);
    let operation = delete().unwrap();
    harness.node.wait_operation(operation.id, DEADLINE).unwrap();
    let nic = harness.node.nic("web").unwrap();
    assert!(nic.condition.reason.unwrap().contains("neither a VM nor a socket"));
    harness.assert_consistent(&[]);
    assert!(harness.node.vms().is_empty() && harness.store.keys("vms").is_empty());
    assert!(!harness.vms.folders().contains(std::path::Path::new("/elsewhere/web")));
}

#[test]
fn the_next_daemon_adopts_vms() {
    let harness = harness();
    well(&harness, VmAction::Start);
    let uuid = harness.vms.spec("web").uuid;
    let vms = harness.vms.clone();
    vms.forget_observers();
    let (store, devices) = harness.kill();
    let harness = Harness::with_vms(store, devices, vms.clone());
    wait_until("the VM is shown as running", || state(&harness) == VmState::Running);
    harness.wait_events(EventKind::VmFound.id(), 1);
    vms.guest("web", VmNotice::StateChanged(VmRunState::Paused));
    wait_until("the VM is shown as paused", || state(&harness) == VmState::Paused);
    assert_eq!(harness.node.vm("web").unwrap().nics, [name("web")]);

    // An orderly stop of the daemon leaves the VMs running as well.
    harness.node.stop();
    assert_eq!(vms.running(), ["web"]);
    let (store, devices) = harness.kill();
    vms.refuse("adopt", VmErrorKind::Timeout, "it has not answered in 10 s");
    let harness = Harness::with_vms(store, devices, vms.clone());
    wait_until("VmLost is emitted once", || harness.events(EventKind::VmLost.id()).len() == 1);
    assert_eq!(state(&harness), VmState::NotResponding);
    assert!(refusal(&harness, VmAction::Pause).contains("suimon vm kill web"));
    well(&harness, VmAction::Kill);
    assert!(vms.running().is_empty());
    well(&harness, VmAction::Start);
    assert_eq!(vms.spec("web").uuid, uuid);
}

/// The host file of a boot decides, even if it was changed while no daemon ran.
#[test]
fn vms_start_with_the_host_as_the_changed_host_file_states() {
    let first = harness();
    patch(&first, r#"{"autostart": true}"#);
    let vms = first.vms.clone();
    vms.reboot("second");
    let (store, devices) = first.kill();
    let harness = Harness::with_vms(store, devices, vms.clone());
    // The daemon applies the changed host file before it finishes its start.
    let changed = r#"
        [[vm]]
        name = "web"
        memory_bytes = "1 GiB"
        [[vm]]
        name = "added"
        memory_bytes = "1 GiB"
        autostart = true
        "#;
    harness.apply_ok(&host(changed));
    harness.node.finish_start();
    wait_until("the added VM runs", || vms.running() == ["added"]);
    assert_eq!(state(&harness), VmState::Stopped);
}

/// The state of a former version has no record of the last autostart.
#[test]
fn vms_start_with_the_host_although_its_first_daemon_ended_before_it_had_started_them() {
    let first = harness();
    patch(&first, r#"{"autostart": true}"#);
    let vms = first.vms.clone();
    let (store, devices) = first.kill();
    store.commit(&[("host", "autostart_boot".to_owned(), None)]).unwrap();
    vms.reboot("second");
    let (store, devices) = Harness::with_vms(store, devices, vms.clone()).kill();
    let harness = Harness::with_vms(store, devices, vms);
    harness.node.finish_start();
    wait_until("the VM runs", || state(&harness) == VmState::Running);
}

#[test]
fn vms_start_with_the_host_and_not_with_each_daemon() {
    let harness = harness();
    patch(&harness, r#"{"autostart": true}"#);
    let vms = harness.vms.clone();
    vms.reboot("second");
    let restarted = |harness: Harness| {
        let (store, devices) = harness.kill();
        Harness::with_vms(store, devices, vms.clone())
    };
    let harness = restarted(harness);
    assert_eq!(state(&harness), VmState::Stopped);
    harness.node.finish_start();
    wait_until("the VM is shown as running", || state(&harness) == VmState::Running);
    well(&harness, VmAction::Kill);
    let harness = restarted(harness);
    harness.node.finish_start();
    harness.apply_ok(&config());
    assert_eq!(state(&harness), VmState::Stopped);

    well(&harness, VmAction::Start);
    vms.reboot("third");
    let harness = restarted(harness);
    harness.node.finish_start();
    wait_until("VmFailed is emitted once", || harness.events(EventKind::VmFailed.id()).len() == 1);
    wait_until("the VM is shown as stopped", || state(&harness) == VmState::Stopped);
}
