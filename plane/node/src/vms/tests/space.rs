//! VMs whose disks are on full stores.

use std::time::{Duration, Instant};

use suimon_contract::{EventKind, HostConfig, StopVmRequest, VmState};
use suimon_ports::{VmErrorKind, VmNotice};
use suimon_storage_engine::FullStorePolicy;

use super::{VmAction, patch, state, well};
use crate::testing::{DISK_STORE, Harness, host, wait_until};

fn config(controller: &str) -> HostConfig {
    host(&format!(
        "[[store]]\nname = \"fast\"\npath = \"/srv/fast\"\n[[disk]]\nname = \"boot\"\n\
         store = \"fast\"\nformat = \"raw\"\nsize_bytes = 1048576\ncontroller = \"{controller}\"\n\
         [[vm]]\nname = \"web\"\nmemory_bytes = \"1 GiB\"\ndisks = [\"boot\"]\n"
    ))
}

fn running(controller: &str) -> Harness {
    let harness = Harness::with_store();
    harness.apply_ok(&config(controller));
    well(&harness, VmAction::Start);
    harness
}

fn fill(harness: &Harness, is_full: bool) {
    harness.disks.store(DISK_STORE).set_change_limit(is_full.then_some(0));
}

fn resumes(harness: &Harness) -> usize {
    harness.vms.commands().iter().filter(|command| *command == "web Resume").count()
}

#[test]
fn a_vm_with_an_emulated_disk_is_paused_and_resumed_when_there_is_space() {
    let harness = running("sata");
    fill(&harness, true);
    harness.vms.find_no_space("web");
    let event = harness.wait_event(EventKind::VmPausedForSpace.id());
    assert!(event.text.contains("store/fast"), "{}", event.text);
    assert_eq!(state(&harness), VmState::Paused);
    let reason = harness.node.vm("web").unwrap().reason.unwrap();
    assert!(reason.contains("resumes when there is"), "{reason}");
    // The pause is reported by the event about space only.
    assert!(harness.events(EventKind::VmPaused.id()).is_empty());
    fill(&harness, false);
    wait_until("the VM is shown as running", || state(&harness) == VmState::Running);
    harness.wait_events(EventKind::VmContinuedWithSpace.id(), 1);
    assert_eq!(harness.node.vm("web").unwrap().reason, None);
    assert_eq!(resumes(&harness), 1);
}

#[test]
fn a_vm_that_was_paused_on_request_stays_paused() {
    // Paused on request before the write finds no space, and while the VM waits for space.
    for is_before in [true, false] {
        let harness = running("ide");
        fill(&harness, true);
        if is_before {
            well(&harness, VmAction::Pause);
            wait_until("the VM is shown as paused", || state(&harness) == VmState::Paused);
        } else {
            harness.vms.find_no_space("web");
            harness.wait_events(EventKind::VmPausedForSpace.id(), 1);
            well(&harness, VmAction::Pause);
        }
        let vms = harness.vms.clone();
        assert_eq!(harness.node.vm("web").unwrap().reason, None);
        fill(&harness, false);
        pass_looks();
        assert_eq!((state(&harness), resumes(&harness)), (VmState::Paused, 0));
        well(&harness, VmAction::Resume);
        wait_until("the VM is shown as running", || state(&harness) == VmState::Running);
        assert_eq!(vms.commands().last().unwrap(), "web Resume");
        // A resume on request makes the VM wait for space again.
        fill(&harness, true);
        harness.vms.find_no_space("web");
        wait_until("the VM waits for space", || harness.node.vm("web").unwrap().reason.is_some());
        fill(&harness, false);
        wait_until("the VM is shown as running", || state(&harness) == VmState::Running);
    }
}

#[test]
fn queued_writes_fail_when_the_guest_is_to_shut_down_or_release_the_disk() {
    let harness = running("virtio");
    let queue_policy =
        FullStorePolicy { ring_wait: None, client_wait: std::time::Duration::from_secs(30) };
    let policies = || harness.disks.full_policies();
    assert_eq!(policies(), [queue_policy]);
    let stop =
        VmAction::Stop(StopVmRequest { timeout_s: 60, force: false, ..StopVmRequest::default() });
    let operation = harness.node.start_vm_action(&crate::testing::name("web"), stop).unwrap();
    wait_until("the VM is shown as stopping", || state(&harness) == VmState::Stopping);
    assert_eq!(policies(), [FullStorePolicy::FAIL_AT_ONCE]);
    let is_orderly = true;
    harness.vms.guest("web", VmNotice::Ended { is_orderly, reason: "it is off".to_owned() });
    harness.node.wait_operation(operation.id, crate::testing::DEADLINE).unwrap();
    wait_until("writes are queued while the store is full", || policies() == [queue_policy]);
    well(&harness, VmAction::Start);
    harness.disks.take_full_changes();
    patch(&harness, r#"{"disks": null}"#);
    assert_eq!(harness.disks.take_full_changes().first(), Some(&FullStorePolicy::FAIL_AT_ONCE));
}

fn reason(harness: &Harness) -> Option<String> {
    harness.node.vm("web").unwrap().reason
}

/// Minimum time between attempts to resume a VM: ten queries of its stores.
const LEFT_ALONE: Duration = Duration::from_millis(200);

/// Waits for longer than the minimum time between attempts.
fn pass_looks() {
    std::thread::sleep(2 * LEFT_ALONE);
}

/// Returns a harness whose VM waits for space and finds none whenever it is resumed, although its
/// store has some.
fn out_of_space() -> Harness {
    let harness = running("sata");
    fill(&harness, true);
    harness.vms.find_no_space("web");
    harness.wait_events(EventKind::VmPausedForSpace.id(), 1);
    harness.vms.keep_out_of_space("web", true);
    harness
}

#[test]
fn a_vm_resumed_by_request_on_a_full_store_continues_when_there_is_space() {
    let harness = out_of_space();
    well(&harness, VmAction::Pause);
    assert_eq!(reason(&harness), None);
    well(&harness, VmAction::Resume);
    wait_until("the VM waits for space", || reason(&harness).is_some());
    harness.vms.keep_out_of_space("web", false);
    fill(&harness, false);
    wait_until("the VM is shown as running", || state(&harness) == VmState::Running);
}

#[test]
fn a_vm_that_is_paused_again_at_once_is_not_resumed_for_an_interval() {
    let harness = out_of_space();
    let started = Instant::now();
    fill(&harness, false);
    wait_until("three attempts to resume the VM were made", || resumes(&harness) >= 3);
    assert!(started.elapsed() >= 2 * LEFT_ALONE, "{:?}", started.elapsed());
    wait_until("the VM waits for space", || reason(&harness).is_some());
    // Failed attempts emit no events.
    let event_counts = || {
        [EventKind::VmPausedForSpace, EventKind::VmContinuedWithSpace, EventKind::VmResumed]
            .map(|kind| harness.events(kind.id()).len())
    };
    assert_eq!(event_counts(), [1, 0, 0]);
    harness.vms.keep_out_of_space("web", false);
    harness.wait_event(EventKind::VmContinuedWithSpace.id());
    assert_eq!((state(&harness), reason(&harness)), (VmState::Running, None));
    assert_eq!(event_counts(), [1, 1, 0]);
}

#[test]
fn a_guest_that_finds_stores_full_again_and_again_does_not_fill_the_event_log() {
    let harness = running("sata");
    fill(&harness, true);
    let began = Instant::now();
    for _ in 0..15 {
        harness.vms.find_no_space("web");
        wait_until("the VM waits for space", || reason(&harness).is_some());
        well(&harness, VmAction::Resume);
        wait_until("the VM is shown as running", || state(&harness) == VmState::Running);
    }
    let event_count = harness.events(EventKind::VmPausedForSpace.id()).len();
    // At most 12 in 10 s, however long the test takes.
    let maximum = 12 * (1 + began.elapsed().as_secs() as usize / 10);
    assert!((10..=maximum).contains(&event_count), "{event_count} events, at maximum {maximum}");
}

#[test]
fn a_request_to_pause_a_vm_that_was_just_paused_for_space_is_not_lost() {
    let harness = running("sata");
    harness.vms.find_no_space_at_pause("web");
    well(&harness, VmAction::Pause);
    wait_until("the VM is shown as paused", || state(&harness) == VmState::Paused);
    pass_looks();
    assert_eq!((state(&harness), resumes(&harness)), (VmState::Paused, 0));
    assert_eq!(reason(&harness), None);
    assert!(harness.events(EventKind::VmPausedForSpace.id()).is_empty());
}

fn queues(seconds: u64) -> FullStorePolicy {
    FullStorePolicy { ring_wait: None, client_wait: Duration::from_secs(seconds) }
}

fn begin_stop(harness: &Harness) {
    let stop =
        VmAction::Stop(StopVmRequest { timeout_s: 60, force: false, ..StopVmRequest::default() });
    harness.node.start_vm_action(&crate::testing::name("web"), stop).unwrap();
    wait_until("the VM is shown as stopping", || state(harness) == VmState::Stopping);
}

#[test]
fn a_change_of_a_disk_does_not_queue_writes_that_a_guest_waits_for() {
    let harness = running("virtio");
    begin_stop(&harness);
    wait_until("writes fail while the store is full", || {
        harness.disks.full_policies() == [FullStorePolicy::FAIL_AT_ONCE]
    });
    let mut changed = config("virtio");
    changed.disks[0].full_wait_s = 7;
    harness.apply_ok(&changed);
    assert_eq!(harness.disks.full_policies(), [FullStorePolicy::FAIL_AT_ONCE]);
    let is_orderly = true;
    harness.vms.guest("web", VmNotice::Ended { is_orderly, reason: "it is off".to_owned() });
    wait_until("writes are queued while the store is full", || {
        harness.disks.full_policies() == [queues(7)]
    });
}

#[test]
fn writes_are_queued_again_if_a_disk_cannot_be_unplugged() {
    let harness = running("virtio");
    harness.vms.refuse_all("tell", VmErrorKind::Refused, "no");
    patch(&harness, r#"{"disks": null}"#);
    harness.wait_events(EventKind::VmDeviceRefused.id(), 1);
    wait_until("writes are queued while the store is full", || {
        harness.disks.full_policies() == [queues(30)]
    });
}

#[test]
fn writes_of_a_disk_moved_to_another_vm_are_queued_regardless_of_the_former_vm() {
    let harness = running("virtio");
    let mut moved = config("virtio");
    let mut other = moved.vms[0].clone();
    other.name = crate::testing::name("db");
    moved.vms[0].disks.clear();
    moved.vms.push(other);
    // The first VM's guest does not release the disk.
    harness.apply_ok(&moved);
    assert_eq!(harness.node.vm("web").unwrap().disks.len(), 1);
    wait_until("writes are queued while the store is full", || {
        harness.disks.full_policies() == [queues(30)]
    });
    harness.disks.take_full_changes();
    begin_stop(&harness);
    assert_eq!(harness.disks.full_policies(), [queues(30)]);
    let is_orderly = true;
    harness.vms.guest("web", VmNotice::Ended { is_orderly, reason: "it is off".to_owned() });
    wait_until("the VM is shown as stopped", || state(&harness) == VmState::Stopped);
    let failed = harness.disks.take_full_changes();
    assert!(!failed.contains(&FullStorePolicy::FAIL_AT_ONCE), "{failed:?}");
}
