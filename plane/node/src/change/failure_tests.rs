//! Tests of device failures at run time and of the bounds on actions of guests and clients.

use proptest::prelude::*;
use suimon_contract::{ErrorCode, EventFilter, EventKind, Health, HostConfig, OperationState};
use suimon_ports::{
    CpuAffinity, DeviceNotice, FaultKind, NegotiatedFeatures, PortDeviceSpec, QueueFault,
    StateStore,
};
use suimon_quantity::{Direction, QueueId};
use suimon_switch::SwitchNotice;

use crate::testing::{
    FakeDevices, FakePlane, Harness, MemoryStore, StoreFailure, host, name, wait_until,
};
use crate::{CAPTURES_MAX, ChangeOptions, Edit, PortKey, ResourceEdit, SwitchPlane};

mod captures;
mod workers;

const TWO: &str = r#"
    [[switch]]
    name = "lan"
    kind = "private"
    [[nic]]
    name = "web"
    switch = "lan"
    backend = "tap"
    mac = "52:54:00:00:00:01"
    device = "web0"
    [[nic]]
    name = "vm"
    switch = "lan"
    backend = "vhost-user"
    socket = "/run/vm.sock"
"#;

fn harness_with_two() -> Harness {
    let harness = Harness::new();
    harness.apply_ok(&host(TWO));
    harness
}

fn health(harness: &Harness, nic: &str) -> Health {
    harness.node.nic(nic).unwrap().condition.health
}

#[test]
fn a_device_that_is_missing_at_the_start_is_retried() {
    let (store, devices) = harness_with_two().kill();
    devices.set_missing("web0", true);
    let harness = Harness::start(store, devices);
    assert_eq!(health(&harness, "vm"), Health::Up);
    let status = harness.node.nic("web").unwrap();
    assert_eq!(status.condition.health, Health::Failed);
    assert!(status.condition.reason.unwrap().contains("Missing"));
    harness.devices.set_missing("web0", false);
    wait_until("the device is in service", || health(&harness, "web") == Health::Up);
    wait_until("NicRecovered is emitted once", || harness.events(3009).len() == 1);
    harness.wait_events(3008, 1);
    harness.assert_consistent(&[]);
}

/// A start that fails after devices were opened and threads were started leaves none of them.
#[test]
fn a_start_that_fails_stops_what_it_has_started() {
    let drain = |store: &MemoryStore, value: &[u8]| {
        store.commit(&[("host", "drain".to_owned(), Some(value.to_vec()))]).unwrap();
    };
    let (store, devices) = harness_with_two().kill();
    drain(&store, b"damaged");
    let running = devices.clone();
    let error = Harness::try_start(store.clone(), devices).map(drop).unwrap_err();
    assert!(error.to_string().contains("drain"), "{error}");
    assert!(running.open_devices().is_empty());
    assert!(running.taps().contains("web0"));
    // The store refuses the last commit of the start.
    let devices = FakeDevices::on_host(running.host_after_kill());
    let running = devices.clone();
    store.commit(&[("host", "drain".to_owned(), None)]).unwrap();
    store.arm(StoreFailure::RefuseFrom(2));
    Harness::try_start(store.clone(), devices).map(drop).unwrap_err();
    assert!(running.open_devices().is_empty());
    let devices = FakeDevices::on_host(running.host_after_kill());
    let harness = Harness::start(store.surviving(), devices);
    assert_eq!(health(&harness, "web"), Health::Up);
    harness.assert_consistent(&[]);
}

/// The operator creates the TAP while its NIC waits for a retry: the NIC uses the device, and the
/// device outlives the NIC.
#[test]
fn a_tap_that_was_created_by_others_after_a_failure_is_kept() {
    let (store, devices) = harness_with_two().kill();
    devices.reboot();
    devices.set_missing("web0", true);
    let harness = Harness::start(store, devices);
    assert_eq!(health(&harness, "web"), Health::Failed);
    harness.devices.make_tap("web0");
    harness.devices.set_missing("web0", false);
    wait_until("the device is in service", || health(&harness, "web") == Health::Up);
    let operation = harness.change(Edit::Nic(ResourceEdit::Delete(name("web"))));
    assert_eq!(operation.state, OperationState::Succeeded);
    assert!(harness.devices.taps().contains("web0"));
    assert!(harness.store.keys("owned").is_empty(), "the record is gone");
    harness.assert_consistent(&["web0"]);
}

/// After a restart of the host, another program creates the TAP before the daemon starts.
#[test]
fn a_tap_that_others_created_after_a_restart_of_the_host_is_kept() {
    let (store, devices) = harness_with_two().kill();
    devices.reboot();
    devices.make_tap("web0");
    let harness = Harness::start(store, devices);
    assert_eq!(health(&harness, "web"), Health::Up);
    harness.change(Edit::Nic(ResourceEdit::Delete(name("web"))));
    assert!(harness.devices.taps().contains("web0"));
    // A device that the daemon created is deleted, whichever it used before.
    harness.devices.reboot();
    harness.apply_ok(&host(TWO));
    harness.change(Edit::Nic(ResourceEdit::Delete(name("web"))));
    assert!(harness.devices.taps().is_empty());
}

#[test]
fn a_queue_fault_affects_only_its_port() {
    let harness = harness_with_two();
    let ports = harness.ports();
    let vm = ports[r#"Socket("/run/vm.sock")"#];
    let web = *ports.values().find(|id| **id != vm).unwrap();
    let other: Vec<_> = ports.values().filter(|id| **id != web).copied().collect();
    let queue = |index| QueueId { port: web, direction: Direction::Ingress, index };
    // vhost-user NICs report ring faults as device notices and stay open: the fault has no effect.
    let fault =
        QueueFault { kind: FaultKind::ProtocolViolation, detail: "descriptor 9".to_owned() };
    let of_vm = QueueId { port: vm, direction: Direction::Ingress, index: 0 };
    harness.plane.notify(SwitchNotice::QueueFault { queue: of_vm, fault });
    // Faults of both queues of a device are one failure.
    for index in 0..2 {
        let fault =
            QueueFault { kind: FaultKind::ProtocolViolation, detail: "descriptor 7".to_owned() };
        harness.plane.notify(SwitchNotice::QueueFault { queue: queue(index), fault });
    }
    wait_until("NicRecovered is emitted", || !harness.events(3009).is_empty());
    harness.wait_events(3007, 1);
    harness.wait_events(3008, 1);
    assert!(harness.wait_event(3007).text.contains("descriptor 7"));
    assert_eq!(harness.ports(), ports, "the same port, and {other:?} was not touched");
    harness.assert_consistent(&[]);
}

#[test]
fn notices_become_events_and_a_flood_of_them_is_merged() {
    let harness = harness_with_two();
    let vm = harness.ports()[r#"Socket("/run/vm.sock")"#];
    harness.devices.notify(vm, DeviceNotice::Negotiated { features: 0x10, queue_pairs: 2 });
    wait_until("NicDriverReady is emitted once", || harness.events(3006).len() == 1);
    assert_eq!(harness.wait_event(3006).fields["features"], "0x10");
    for _ in 0..500 {
        harness.devices.notify(vm, DeviceNotice::LinkUp);
        harness.devices.notify(vm, DeviceNotice::LinkDown { reason: "gone".to_owned() });
    }
    // Events of another NIC are still logged.
    let web = *harness.ports().values().find(|id| **id != vm).unwrap();
    harness.devices.notify(web, DeviceNotice::LinkUp);
    wait_until("NicConnected is emitted for nic/web", || {
        harness.events(3004).iter().any(|event| event.subject == "nic/web")
    });
    assert!(harness.node.events(0, usize::MAX, &EventFilter::default()).events.len() < 100);
}

#[test]
fn a_lost_device_is_reopened_and_the_reason_is_reported() {
    let harness = harness_with_two();
    let ports = harness.ports();
    let vm = ports[r#"Socket("/run/vm.sock")"#];
    let web = *ports.values().find(|id| **id != vm).unwrap();
    let reason = "network namespace blue was deleted".to_owned();
    harness.devices.notify(web, DeviceNotice::DeviceLost { reason });
    wait_until("NicRecovered is emitted", || !harness.events(3009).is_empty());
    let failed = harness.wait_events(3008, 1);
    assert_eq!(failed[0].subject, "nic/web");
    assert!(failed[0].text.contains("namespace blue was deleted"), "{}", failed[0].text);
    assert_eq!(harness.ports(), ports);
    harness.assert_consistent(&[]);
}

/// An uplink without a device opens a new device of the configured name at once. A failure for
/// another reason waits for the retry.
#[test]
fn an_uplink_takes_the_next_device_of_its_name_without_waiting_for_a_retry() {
    let harness = Harness::with_rare_retries();
    harness.apply_ok(&host(
        r#"
        [[switch]]
        name = "wan"
        kind = "external"
        uplink = "up"
        [[uplink]]
        name = "up"
        device = "eth0"
        "#,
    ));
    let uplink = *harness.ports().values().next().unwrap();
    let health = || harness.node.uplink("up").unwrap().condition.health;
    // A new device has the name before the loss of the former device is handled.
    harness.devices.set_index("eth0", 7);
    let reason = "device eth0 was renamed to old".to_owned();
    harness.devices.notify(uplink, DeviceNotice::DeviceLost { reason });
    harness.wait_events(4007, 1);
    wait_until("the device is in service", || health() == Health::Up);
    // The device is deleted; a new device appears later.
    harness.devices.set_missing("eth0", true);
    let reason = "device eth0 was deleted".to_owned();
    harness.devices.notify(uplink, DeviceNotice::DeviceLost { reason });
    wait_until("the device has failed", || health() == Health::Failed);
    harness.devices.set_index("eth0", 8);
    harness.devices.set_missing("eth0", false);
    wait_until("the device is in service", || health() == Health::Up);
    // The same device fails: the retry happens later.
    let reason = "device eth0 refuses the socket".to_owned();
    harness.devices.notify(uplink, DeviceNotice::DeviceLost { reason });
    wait_until("the device has failed", || health() == Health::Failed);
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(health(), Health::Failed);
}

/// The next process offers the features that a VM has negotiated, until the NIC is deleted or the
/// VM resets them. They are not part of the desired state.
#[test]
fn negotiated_features_survive_the_process() {
    let negotiated = NegotiatedFeatures { features: 0x1_3000_0000, queue_pairs: 2 };
    let of_vm = |harness: &Harness| {
        let open = harness.devices.open_devices();
        let vms = open.iter().find_map(|(_, spec)| match spec {
            PortDeviceSpec::VhostUser(spec) => Some(spec.negotiated),
            _ => None,
        });
        vms.unwrap()
    };
    let harness = harness_with_two();
    let vm = harness.ports()[r#"Socket("/run/vm.sock")"#];
    assert_eq!(of_vm(&harness), NegotiatedFeatures::default());
    harness.devices.notify(vm, DeviceNotice::FeaturesCommitted(negotiated));
    // Notices are handled in their order.
    harness.devices.notify(vm, DeviceNotice::LinkUp);
    wait_until("NicConnected is emitted", || !harness.events(3004).is_empty());
    let (store, devices) = harness.kill();
    let harness = Harness::start(store, devices);
    assert_eq!(of_vm(&harness), negotiated);
    // The features are not part of the desired state: applying the same configuration changes
    // nothing.
    harness.apply_ok(&host(TWO));
    assert_eq!(of_vm(&harness), negotiated);

    harness.devices.notify(vm, DeviceNotice::FeaturesCommitted(NegotiatedFeatures::default()));
    harness.devices.notify(vm, DeviceNotice::LinkUp);
    wait_until("NicConnected is emitted 2 times", || harness.events(3004).len() == 2);
    let (store, devices) = harness.kill();
    let harness = Harness::start(store, devices);
    assert_eq!(of_vm(&harness), NegotiatedFeatures::default());

    harness.devices.notify(vm, DeviceNotice::FeaturesCommitted(negotiated));
    harness.change(Edit::Nic(ResourceEdit::Delete(name("vm"))));
    harness.apply_ok(&host(TWO));
    assert_eq!(of_vm(&harness), NegotiatedFeatures::default(), "another NIC of that name");
}

#[test]
fn the_host_file_is_applied_when_its_text_is_new() {
    let harness = Harness::new();
    let wait = |harness: &Harness, text: &str| {
        let operation =
            harness.node.submit_file(text, "host.toml", ChangeOptions::default()).unwrap()?;
        let operation =
            harness.node.wait_operation(operation.id, crate::testing::DEADLINE).unwrap();
        assert_eq!(operation.state, OperationState::Succeeded);
        Some(operation)
    };
    assert!(wait(&harness, TWO).is_some());
    assert!(wait(&harness, TWO).is_none());
    harness.change(Edit::Nic(ResourceEdit::Delete(name("web"))));
    let (store, devices) = harness.kill();
    let harness = Harness::start(store, devices);
    // The same file does not revert later changes.
    assert!(wait(&harness, TWO).is_none());
    assert_eq!(harness.node.config().nics.len(), 1);
    let newer = format!("{TWO}\n# again\n");
    assert!(wait(&harness, &newer).is_some());
    assert_eq!(harness.node.config().nics.len(), 2);
    let error = harness
        .node
        .submit_file("[[nic]]\nname = 3\n", "host.toml", ChangeOptions::default())
        .unwrap_err();
    assert_eq!(error[0].file.as_deref(), Some("host.toml"));
}

#[test]
fn a_stopped_node_refuses_changes_and_keeps_the_taps() {
    let harness = harness_with_two();
    harness.node.stop();
    assert!(harness.node.submit(Edit::Apply(Box::default())).is_err());
    assert!(harness.devices.open_devices().is_empty());
    assert!(harness.devices.taps().contains("web0"));
    harness.wait_events(1002, 1);
}

/// Generates configurations in which NICs are added, removed and changed, and swap devices.
fn any_config() -> impl Strategy<Value = HostConfig> {
    let nic = (0..4_u8, 0..4_u8, any::<bool>(), 1..3_u16, any::<bool>());
    (proptest::collection::vec(nic, 0..5), any::<bool>(), 0..3_u8).prop_map(
        |(nics, internal, cpus)| {
            let mut text = String::from("[host]\n");
            if cpus > 0 {
                text += &format!("processors = [{}]\n", (0..cpus).map(|c| c.to_string()).collect::<Vec<_>>().join(","));
            }
            text += "[[switch]]\nname = \"s\"\n";
            text += if internal { "kind = \"internal\"\n" } else { "kind = \"private\"\n" };
            let mut names = Vec::new();
            let mut devices = Vec::new();
            for (name, device, vhost, queues, isolated) in nics {
                if names.contains(&name) || devices.contains(&device) {
                    continue;
                }
                names.push(name);
                devices.push(device);
                text += &format!(
                    "[[nic]]\nname = \"n{name}\"\nswitch = \"s\"\nqueues = {queues}\nisolated = {isolated}\n"
                );
                text += &if vhost {
                    format!("backend = \"vhost-user\"\nsocket = \"/run/{device}\"\n")
                } else {
                    format!("backend = \"tap\"\ndevice = \"d{device}\"\nmac = \"02:00:00:00:00:0{name}\"\n")
                };
            }
            host(&text)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// After any sequence of changes, some of which fail, the desired state is that of the last
    /// successful change and the host matches it, also after the process was killed.
    #[test]
    fn the_host_matches_the_last_change_that_succeeded(
        changes in proptest::collection::vec((any_config(), proptest::option::of(0..6_usize)), 1..6),
        killed in any::<bool>(),
    ) {
        let mut harness = Harness::start(MemoryStore::default(), FakeDevices::default());
        let mut expected = HostConfig::default();
        for (config, fail_at) in changes {
            harness.devices.fail_at(fail_at);
            let operation = harness.apply(&config);
            harness.devices.fail_at(None);
            if operation.state == OperationState::Succeeded {
                expected = config;
            }
            prop_assert_eq!(harness.node.config(), expected.clone());
            harness.assert_consistent(&[]);
            if killed {
                let (store, devices) = harness.kill();
                harness = Harness::start(store, devices);
                prop_assert_eq!(harness.node.config(), expected.clone());
                harness.assert_consistent(&[]);
            }
        }
    }
}
