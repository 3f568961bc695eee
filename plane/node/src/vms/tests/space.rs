//! VMs whose disks find their stores full.

use suimon_contract::{EventKind, HostConfig, StopVmRequest, VmState};
use suimon_ports::VmNotice;
use suimon_storage::FullPolicy;

use super::{VmWork, patch, state, well};
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
    harness.apply_well(&config(controller));
    well(&harness, VmWork::Start);
    harness
}

fn fill(harness: &Harness, is_full: bool) {
    harness.disks.store(DISK_STORE).set_room(is_full.then_some(0));
}

fn resumes(harness: &Harness) -> usize {
    harness.vms.told().iter().filter(|told| *told == "web Resume").count()
}

#[test]
fn a_vm_with_an_emulated_disk_is_paused_and_goes_on_when_there_is_space() {
    let harness = running("sata");
    fill(&harness, true);
    harness.vms.find_no_space("web");
    let event = harness.wait_event(EventKind::VmPausedForSpace.id());
    assert!(event.text.contains("store/fast"), "{}", event.text);
    assert_eq!(state(&harness), VmState::Paused);
    let reason = harness.node.vm("web").unwrap().reason.unwrap();
    assert!(reason.contains("goes on when there is"), "{reason}");
    // What is paused for that is no news besides.
    assert!(harness.events(EventKind::VmPaused.id()).is_empty());
    fill(&harness, false);
    wait_until("it runs", || state(&harness) == VmState::Running);
    harness.wait_events(EventKind::VmContinuedWithSpace.id(), 1);
    assert_eq!(harness.node.vm("web").unwrap().reason, None);
    assert_eq!(resumes(&harness), 1);
}

#[test]
fn a_vm_that_was_paused_on_request_stays_paused() {
    // Before a write found no space, and while the VM waited for space.
    for is_before in [true, false] {
        let harness = running("ide");
        fill(&harness, true);
        if is_before {
            well(&harness, VmWork::Pause);
            wait_until("it is paused", || state(&harness) == VmState::Paused);
        } else {
            harness.vms.find_no_space("web");
            harness.wait_events(EventKind::VmPausedForSpace.id(), 1);
            well(&harness, VmWork::Pause);
        }
        let vms = harness.vms.clone();
        assert_eq!(harness.node.vm("web").unwrap().reason, None);
        fill(&harness, false);
        // Longer than a VM that waits for space is left alone.
        std::thread::sleep(std::time::Duration::from_secs(3));
        assert_eq!((state(&harness), resumes(&harness)), (VmState::Paused, 0));
        well(&harness, VmWork::Resume);
        wait_until("it runs", || state(&harness) == VmState::Running);
        assert_eq!(vms.told().last().unwrap(), "web Resume");
        // From then on it goes on by itself again.
        fill(&harness, true);
        harness.vms.find_no_space("web");
        wait_until("it waits", || harness.node.vm("web").unwrap().reason.is_some());
        fill(&harness, false);
        wait_until("it runs", || state(&harness) == VmState::Running);
    }
}

#[test]
fn queued_writes_fail_when_the_guest_is_to_end_or_to_let_go_of_the_disk() {
    let harness = running("virtio");
    let waits = FullPolicy { ring_wait: None, client_wait: std::time::Duration::from_secs(30) };
    let policies = || harness.disks.full_policies();
    assert_eq!(policies(), [waits]);
    let stop =
        VmWork::Stop(StopVmRequest { seconds: 60, force: false, ..StopVmRequest::default() });
    let operation = harness.node.work_on_vm(&crate::testing::name("web"), stop).unwrap();
    wait_until("the guest was asked", || state(&harness) == VmState::Stopping);
    assert_eq!(policies(), [FullPolicy::ERROR]);
    let is_orderly = true;
    harness.vms.guest("web", VmNotice::Ended { is_orderly, reason: "it is off".to_owned() });
    harness.node.wait_operation(operation.id, crate::testing::PATIENCE).unwrap();
    wait_until("they are queued again", || policies() == [waits]);
    well(&harness, VmWork::Start);
    harness.disks.take_full_changes();
    patch(&harness, r#"{"disks": null}"#);
    assert_eq!(harness.disks.take_full_changes().first(), Some(&FullPolicy::ERROR));
}
