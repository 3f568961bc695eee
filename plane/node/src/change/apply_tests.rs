//! Tests that changes are atomic for failures of any step and crashes at any time.

use std::path::Path;

use suimon_contract::{ErrorCode, EventFilter, HostConfig, OperationState, parse_resource};

use crate::testing::{DEADLINE, FakeDevices, Harness, StoreFailure, host, name, wait_until};
use crate::{ChangeOptions, Edit, ResourceEdit};

/// Configuration with every kind of port.
fn initial_host() -> HostConfig {
    host(
        r#"
        [host]
        processors = [0]
        [[switch]]
        name = "lan"
        kind = "private"
        [[switch]]
        name = "lab"
        kind = "internal"
        host_device = "lab0"
        [[switch]]
        name = "wan"
        kind = "external"
        uplink = "out"
        [[uplink]]
        name = "out"
        device = "eth0"
        [[nic]]
        name = "stays"
        switch = "lan"
        backend = "vhost-user"
        socket = "/run/stays.sock"
        [[nic]]
        name = "changes"
        switch = "lan"
        backend = "tap"
        mac = "52:54:00:00:00:01"
        device = "changes0"
        [[nic]]
        name = "replaced"
        switch = "wan"
        backend = "vhost-user"
        socket = "/run/replaced.sock"
        [[nic]]
        name = "a"
        switch = "lan"
        backend = "tap"
        mac = "52:54:00:00:00:02"
        device = "swap0"
        [[nic]]
        name = "b"
        switch = "lan"
        backend = "tap"
        mac = "52:54:00:00:00:03"
        device = "swap1"
        [[nic]]
        name = "goes"
        switch = "lab"
        backend = "tap"
        mac = "52:54:00:00:00:04"
        device = "goes0"
        [[nic]]
        name = "renamed-from"
        switch = "lan"
        backend = "tap"
        mac = "52:54:00:00:00:05"
        device = "same0"
        [[nic]]
        name = "others"
        switch = "lan"
        backend = "tap"
        mac = "52:54:00:00:00:06"
        device = "others0"
        "#,
    )
}

/// Configuration that differs from [`initial_host`] by every kind of change: two NICs swap devices,
/// a device gets another name, a switch gets another uplink, workers move.
fn changed_host() -> HostConfig {
    host(
        r#"
        [host]
        processors = [1, 2]
        [[switch]]
        name = "lan"
        kind = "private"
        ageing_s = 60
        [[switch]]
        name = "wan"
        kind = "external"
        uplink = "other"
        [[uplink]]
        name = "other"
        device = "eth1"
        [[nic]]
        name = "stays"
        switch = "lan"
        backend = "vhost-user"
        socket = "/run/stays.sock"
        [[nic]]
        name = "changes"
        switch = "wan"
        backend = "tap"
        mac = "52:54:00:00:00:01"
        device = "changes0"
        mtu = 9000
        [[nic]]
        name = "replaced"
        switch = "wan"
        backend = "vhost-user"
        socket = "/run/replaced.sock"
        queues = 4
        [[nic]]
        name = "a"
        switch = "lan"
        backend = "tap"
        mac = "52:54:00:00:00:02"
        device = "swap1"
        [[nic]]
        name = "b"
        switch = "lan"
        backend = "tap"
        mac = "52:54:00:00:00:03"
        device = "swap0"
        [[nic]]
        name = "comes"
        switch = "lan"
        backend = "tap"
        mac = "52:54:00:00:00:07"
        device = "comes0"
        [[nic]]
        name = "renamed-to"
        switch = "lan"
        backend = "tap"
        mac = "52:54:00:00:00:08"
        device = "same0"
        "#,
    )
}

const OTHERS: &[&str] = &["others0"];

/// Starts a node in the state [`initial_host`], on a host with a TAP that the node did not create.
fn started() -> Harness {
    let harness = Harness::new();
    harness.devices.make_tap("others0");
    harness.apply_ok(&initial_host());
    harness.assert_consistent(OTHERS);
    harness
}

#[test]
fn a_change_of_every_resource_kind_succeeds() {
    let harness = started();
    let ports = harness.ports();
    harness.apply_ok(&changed_host());
    harness.assert_consistent(OTHERS);
    assert_eq!(harness.node.config(), changed_host());
    // Unchanged ports keep their identifiers, and no identifier is reused.
    let kept_socket = r#"Socket("/run/stays.sock")"#;
    assert_eq!(harness.ports()[kept_socket], ports[kept_socket]);
    harness.apply_ok(&initial_host());
    harness.assert_consistent(OTHERS);
    let removed_tap = r#"Device(NetworkDeviceId { netns: None, device: "goes0" })"#;
    assert_ne!(harness.ports()[removed_tap], ports[removed_tap]);
    assert_eq!(harness.node.host_status().revision, 3);
    harness.wait_events(1003, 3);
}

/// Injects one failure at each possible position by `arm`, until a position does not exist. Returns
/// the number of positions.
fn fails_everywhere(arm: impl Fn(&Harness, usize)) -> usize {
    for call in 0.. {
        let harness = started();
        let ports = harness.ports();
        arm(&harness, call);
        let operation = harness.apply(&changed_host());
        harness.devices.fail_at(None);
        if operation.state == OperationState::Succeeded {
            assert_eq!(harness.node.config(), changed_host());
            harness.assert_consistent(OTHERS);
            return call;
        }
        assert_eq!(operation.state, OperationState::Failed);
        let error = operation.error.unwrap();
        assert_ne!(error.code, ErrorCode::Cancelled);
        assert_eq!(harness.node.config(), initial_host(), "at place {call}");
        harness.assert_consistent(OTHERS);
        assert_eq!(harness.ports(), ports, "at place {call}");
        harness.wait_events(1004, 1);
        assert_eq!(harness.node.host_status().revision, 1);
        // The same change succeeds afterwards.
        harness.apply_ok(&changed_host());
        harness.assert_consistent(OTHERS);
    }
    unreachable!()
}

#[test]
fn a_failing_device_leaves_everything_as_before() {
    let calls = fails_everywhere(|harness, call| harness.devices.fail_at(Some(call)));
    assert!(calls >= 8, "{calls}");
}

#[test]
fn a_failing_plane_leaves_everything_as_before() {
    assert_eq!(fails_everywhere(|harness, call| harness.plane.fail_publish(call)), 2);
}

#[test]
fn a_failing_state_store_leaves_everything_as_before() {
    let commits = fails_everywhere(|harness, call| harness.store.arm(StoreFailure::Refuse(call)));
    // Commits before the change: the intent, the objects to be created, the socket file of the
    // replaced NIC, and the new state. Later failures do not fail the change.
    assert_eq!(commits, 4);
}

#[test]
fn a_worker_that_does_not_start_leaves_everything_as_before() {
    let harness = started();
    harness.plane.refuse_workers(true);
    let operation = harness.apply(&changed_host());
    let error = operation.error.unwrap();
    assert_eq!(error.field.as_deref(), Some("worker_cpus"));
    harness.plane.refuse_workers(false);
    harness.assert_consistent(OTHERS);
    assert_eq!(harness.node.config(), initial_host());
}

/// Kills the process at the given commit of the change and starts another one. Returns true if the
/// commit was reached.
fn dies_at(failure: StoreFailure) -> bool {
    let harness = started();
    harness.store.arm(failure);
    let operation = harness.apply(&changed_host());
    let was_acknowledged = operation.state == OperationState::Succeeded;
    // The handle of an operation reports the crash of its thread.
    let has_crashed = operation.error.is_some_and(|error| error.code == ErrorCode::Internal);
    assert!(was_acknowledged || has_crashed, "{failure:?}");
    let (store, devices) = harness.kill();
    let harness = Harness::start(store, devices);
    let config = harness.node.config();
    assert!(config == initial_host() || config == changed_host(), "{failure:?}: {config:?}");
    assert!(!was_acknowledged || config == changed_host(), "{failure:?}");
    harness.assert_consistent(OTHERS);
    let sequences: Vec<u64> = harness
        .node
        .events(0, usize::MAX, &EventFilter::default())
        .events
        .iter()
        .map(|event| event.sequence)
        .collect();
    let is_ascending = sequences.windows(2).all(|pair| pair[0] < pair[1]);
    assert!(is_ascending, "no sequence is assigned twice: {sequences:?}");
    // In both cases, the change succeeds afterwards.
    harness.apply_ok(&changed_host());
    harness.assert_consistent(OTHERS);
    has_crashed
}

#[test]
fn after_a_crash_at_any_commit_the_state_is_the_old_or_the_new_one() {
    for commit in 0..6 {
        dies_at(StoreFailure::CrashBefore(commit));
        dies_at(StoreFailure::CrashAfter(commit));
    }
    assert!(dies_at(StoreFailure::CrashBefore(2)));
    assert!(dies_at(StoreFailure::CrashAfter(2)));
}

#[test]
fn a_start_can_be_repeated_after_a_crash_at_any_commit() {
    let mut deaths = 0;
    for commit in 0..6 {
        // After a reboot of the host, no TAP exists, and the node creates all of them.
        let (store, _) = started().kill();
        store.arm(StoreFailure::CrashAfter(commit));
        let devices = FakeDevices::default();
        let dying = std::panic::AssertUnwindSafe((store.clone(), devices.clone()));
        let crash = std::panic::catch_unwind(move || Harness::start(dying.0.0, dying.0.1).kill());
        deaths += usize::from(crash.is_err());
        let devices = FakeDevices::on_host(devices.host_after_kill());
        let harness = Harness::start(store.surviving(), devices);
        assert_eq!(harness.node.config(), initial_host());
        harness.assert_consistent(OTHERS);
        harness.apply_ok(&HostConfig::default());
        harness.assert_consistent(&[]);
    }
    assert_eq!(deaths, 2, "the reservation of sequences and the events");
}

#[test]
fn only_the_created_socket_file_is_removed() {
    let nic = |nic: &str| {
        let text = format!(
            "{{\"name\": \"{nic}\", \"switch\": \"lan\", \"backend\": \"vhost-user\", \
             \"socket\": \"/run/{nic}.sock\"}}"
        );
        Edit::Nic(ResourceEdit::Add(parse_resource(text.as_bytes()).unwrap()))
    };
    // Commits: the intent, the objects to be created, the identity of the socket file; then the
    // process crashes.
    let harness = started();
    harness.store.arm(StoreFailure::CrashBefore(3));
    assert_eq!(harness.change(nic("new")).state, OperationState::Failed);
    let (store, devices) = harness.kill();
    assert!(devices.sockets().contains(Path::new("/run/new.sock")));
    devices.make_socket("/run/new.sock");
    let harness = Harness::start(store, devices);
    assert!(
        harness.devices.sockets().contains(Path::new("/run/new.sock")),
        "a file of another process"
    );
    // A socket file that existed before is neither recorded nor deleted.
    harness.devices.make_socket("/run/old.sock");
    harness.devices.fail_at(Some(0));
    assert_eq!(harness.change(nic("old")).state, OperationState::Failed);
    assert!(harness.devices.sockets().contains(Path::new("/run/old.sock")));
    assert!(!harness.store.keys("sockets").contains(&"/run/old.sock".to_owned()));
}

#[test]
fn the_number_of_workers_without_a_cpu_changes_live() {
    let harness = started();
    for number in [Some(4), Some(2), None] {
        let mut config = initial_host();
        config.host.worker_cpus = None;
        config.host.unpinned_workers = number;
        assert_eq!(harness.apply(&config).state, OperationState::Succeeded);
        harness.assert_consistent(OTHERS);
    }
}

#[test]
fn missing_devices_are_rejected_before_any_change() {
    let harness = started();
    harness.devices.set_missing("comes0", true);
    harness.devices.set_missing("eth1", true);
    let mut config = changed_host();
    config.host.worker_cpus = Some(vec![1, 77]);
    let errors = harness.node.submit(Edit::Apply(Box::new(config))).unwrap_err();
    let resources: Vec<_> = errors
        .iter()
        .map(|e| (e.code, e.resource.as_deref().unwrap(), e.field.as_deref().unwrap()))
        .collect();
    assert_eq!(
        resources,
        [
            (ErrorCode::DeviceMissing, "host", "worker_cpus"),
            (ErrorCode::DeviceMissing, "nic/comes", "device"),
            (ErrorCode::DeviceMissing, "uplink/other", "device"),
        ]
    );
    harness.assert_consistent(OTHERS);
}

#[test]
fn the_same_state_again_changes_nothing() {
    let harness = started();
    let last = harness.node.last_events(1, &EventFilter::default()).last_examined;
    harness.apply_ok(&initial_host());
    assert_eq!(harness.node.last_events(1, &EventFilter::default()).last_examined, last);
    assert_eq!(harness.node.host_status().revision, 1);
}

#[test]
fn a_dry_run_only_plans() {
    let harness = started();
    let plan = harness
        .node
        .preview(&Edit::Apply(Box::new(changed_host())), ChangeOptions::default())
        .unwrap();
    assert!(plan.steps.len() >= 8);
    assert_eq!(harness.node.config(), initial_host());
    harness.assert_consistent(OTHERS);
    let edit = Edit::Nic(ResourceEdit::Delete(name("nobody")));
    assert_eq!(
        harness.node.preview(&edit, ChangeOptions::default()).unwrap_err()[0].code,
        ErrorCode::NotFound
    );
}

/// A NIC or disk would take the connection of a probe for a VM that connects and disconnects.
#[test]
fn no_check_connects_to_a_socket_of_this_daemon() {
    let harness = started();
    harness.node.preview(&Edit::Apply(Box::new(changed_host())), ChangeOptions::default()).unwrap();
    harness.apply_ok(&changed_host());
    let mut swapped = initial_host();
    for nic in &mut swapped.nics {
        nic.socket = nic.socket.as_ref().map(|socket| match socket.ends_with("stays.sock") {
            true => "/run/replaced.sock".into(),
            false => "/run/stays.sock".into(),
        });
    }
    harness.apply_ok(&swapped);
    assert_eq!(harness.devices.sockets_probed_while_open(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_change_is_cancelled_between_its_steps_and_later_changes_are_queued() {
    let harness = started();
    let gate = harness.devices.hold();
    let running = harness.node.submit(Edit::Apply(Box::new(changed_host()))).unwrap();
    wait_until("a device is being opened", || {
        let step = harness.node.operation(running.id).unwrap().current_step;
        step.is_some_and(|step| step == "change nic/replaced")
    });
    // The operation of a queued change reports its validation errors.
    let delete = |nic: &str| Edit::Nic(ResourceEdit::Delete(name(nic)));
    let waiting = harness.node.submit(delete("comes")).unwrap();
    let given_up = harness.node.submit(delete("stays")).unwrap();
    assert!(waiting.current_step.unwrap().contains("waiting"));
    let given_up = harness.node.cancel_operation(given_up.id).unwrap();
    assert_eq!(given_up.state, OperationState::Cancelled);
    harness.node.cancel_operation(running.id);
    assert_eq!(harness.node.operation(running.id).unwrap().state, OperationState::Running);
    drop(gate);
    let running = harness.node.wait_operation(running.id, DEADLINE).unwrap();
    assert_eq!(running.state, OperationState::Cancelled, "{running:?}");
    assert!(running.steps_done < running.steps_total);
    let waiting = harness.node.wait_operation(waiting.id, DEADLINE).unwrap();
    assert_eq!(waiting.error.unwrap().code, ErrorCode::NotFound);
    assert_eq!(harness.node.config(), initial_host());
    harness.assert_consistent(OTHERS);
}
