//! Devices whose connection a change closes: the guest releases them first.

use std::path::Path;
use std::sync::{Arc, Mutex};

use suimon_contract::{EventKind, OperationState, VmState};
use suimon_ports::{DeviceNotice, PortDeviceSpec, VmDevice, VmErrorKind, VmNotice};

use super::{harness, patch, state, well};
use crate::testing::{Harness, StoreFailure, host, name, wait_until};
use crate::{Edit, ResourceEdit, VmAction};

const SOCKET: &str = "/run/suimon/vms/web/n-own";

/// Returns a harness whose VM runs with a second NIC, with its socket in the VM's folder.
fn with_two_nics() -> Harness {
    let harness = harness();
    let text = "[[nic]]\nname = \"own\"\nswitch = \"lan\"\nbackend = \"vhost-user\"\n\
                [[switch]]\nname = \"lan\"\nkind = \"private\"";
    let nic = host(text).nics.remove(0);
    let added = harness.change(Edit::Nic(ResourceEdit::Add(nic)));
    assert_eq!(added.state, OperationState::Succeeded, "{added:?}");
    well(&harness, VmAction::Start);
    patch(&harness, r#"{"nics": ["web", "own"]}"#);
    wait_until("the VM has 2 NICs", || harness.node.vm("web").unwrap().nics.len() == 2);
    assert!(is_open(&harness));
    harness
}

fn is_open(harness: &Harness) -> bool {
    harness.devices.sockets().contains(Path::new(SOCKET))
}

#[test]
fn a_connection_is_closed_after_the_guest_has_released_the_device() {
    let harness = with_two_nics();
    let queries = Arc::new(Mutex::new(Vec::new()));
    let (devices, noted) = (harness.devices.clone(), queries.clone());
    harness.vms.release_vfs(move || {
        noted.lock().unwrap().push(devices.sockets().contains(Path::new(SOCKET)));
    });
    patch(&harness, r#"{"nics": ["web"]}"#);
    // The unplug has completed when the change has.
    assert_eq!(
        *queries.lock().unwrap(),
        [true],
        "the unplug is requested once, while the device is connected"
    );
    assert!(!is_open(&harness));
    assert_eq!(harness.node.vm("web").unwrap().nics, [name("web")]);
    harness.wait_events(EventKind::VmDeviceUnplugged.id(), 1);
}

#[test]
fn a_guest_that_does_not_release_a_device_delays_a_change_for_a_limited_time() {
    let harness = with_two_nics();
    patch(&harness, r#"{"nics": ["web"]}"#);
    assert!(!is_open(&harness));
    assert_eq!(harness.node.vm("web").unwrap().nics.len(), 2, "the guest still has it");
    harness.vms.guest("web", VmNotice::Unplugged(VmDevice::Nic("own".to_owned())));
    wait_until("the VM has one NIC", || harness.node.vm("web").unwrap().nics == [name("web")]);
    let unplugs = harness.vms.commands().into_iter().filter(|command| command.contains("unplug"));
    assert_eq!(unplugs.count(), 1, "the unplug is requested once");
}

#[test]
fn a_guest_with_stopped_cpus_does_not_delay_a_change() {
    let harness = with_two_nics();
    well(&harness, VmAction::Pause);
    wait_until("the VM is shown as paused", || state(&harness) == VmState::Paused);
    patch(&harness, r#"{"nics": ["web"]}"#);
    assert!(!is_open(&harness));
    wait_until("the unplug is requested", || {
        harness.vms.commands().last().unwrap() == "web unplug nic/own"
    });
}

#[test]
fn a_change_that_fails_early_requests_no_unplug() {
    let harness = with_two_nics();
    harness.vms.release_vfs(|| {});
    harness.plane.fail_publish(0);
    let failed = harness.change(without_own());
    assert_eq!(failed.state, OperationState::Failed, "{failed:?}");
    assert!(!harness.vms.commands().iter().any(|command| command.contains("unplug")));
    assert!(is_open(&harness));
}

#[test]
fn released_devices_are_plugged_again_when_the_change_fails() {
    let mut failures = 0;
    for failing_commit in 0..8 {
        let harness = with_two_nics();
        harness.vms.release_vfs(|| {});
        // Some of these writes are by the VM's driver or for events, which tolerate failures.
        harness.store.arm(StoreFailure::Refuse(failing_commit));
        let operation = harness.change(without_own());
        if operation.state == OperationState::Failed {
            let unplugs =
                harness.vms.commands().iter().filter(|command| command.contains("unplug")).count();
            wait_until("the VM has 2 NICs", || harness.node.vm("web").unwrap().nics.len() == 2);
            assert!(is_open(&harness));
            let plugs = || {
                harness.vms.commands().iter().filter(|command| command.contains(" plug ")).count()
            };
            wait_until("the device is plugged again", || plugs() == 1 + unplugs);
            failures += unplugs;
        }
    }
    assert!(failures > 0, "a change fails after the unplug was requested");
}

#[test]
fn an_unplug_without_effect_is_requested_again() {
    let harness = with_two_nics();
    // The guest does not release the NIC, and the last write fails.
    harness.store.arm(StoreFailure::Refuse(1));
    let failed = harness.change(without_own());
    assert_eq!(failed.state, OperationState::Failed, "{failed:?}");
    patch(&harness, r#"{"nics": ["web"]}"#);
    let unplugs =
        || harness.vms.commands().iter().filter(|command| command.contains("unplug")).count();
    wait_until("the unplug is requested twice", || unplugs() == 2);
}

#[test]
fn a_missing_device_is_plugged_when_it_recovers() {
    let harness = harness();
    let is_own = |(_, spec): &(_, PortDeviceSpec)| {
        matches!(
            spec,
            PortDeviceSpec::VhostUser(spec) if spec.socket == Path::new("/run/more")
        )
    };
    let port = harness.devices.open_devices().into_iter().find(is_own).unwrap().0;
    well(&harness, VmAction::Start);
    harness.vms.refuse("tell", VmErrorKind::Host, "nobody listens there yet");
    patch(&harness, r#"{"nics": ["web", "more"]}"#);
    harness.wait_events(EventKind::VmDeviceRefused.id(), 1);
    let reason = "it broke".to_owned();
    harness.devices.notify(port, DeviceNotice::DeviceLost { reason });
    harness.wait_events(EventKind::NicRecovered.id(), 1);
    wait_until("the VM has 2 NICs", || harness.node.vm("web").unwrap().nics.len() == 2);
}

fn without_own() -> Edit {
    Edit::Vm(ResourceEdit::Patch(name("web"), br#"{"nics": ["web"]}"#.to_vec()))
}
