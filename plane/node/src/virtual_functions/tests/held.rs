//! VFs after a reset of the guest, and VFs that QEMU keeps open.

use suimon_contract::{IovPath, OperationState, VmState};
use suimon_ports::{StateStore, VmDevice, VmErrorKind, VmNotice};

use super::{Bench, HOST, config};
use crate::testing::{DEADLINE, name, wait_until};
use crate::vms::VmAction;

/// The next guest after a reset may have another driver, which does not support failover.
#[test]
fn a_guest_whose_driver_does_not_support_failover_after_a_reset_loses_its_vf() {
    let bench = Bench::new(HOST);
    bench.start("web");
    bench.wait_path("web", IovPath::Vf);
    let is_requested =
        || bench.vms.commands().iter().any(|command| command == "web unplug VF of nic/web");
    // While the guest boots, nothing is known about its driver.
    bench.vms.boot(true);
    bench.vms.guest("web", VmNotice::Reset);
    let queries = bench.vms.standby_queries();
    wait_until("the NIC was queried twice", || bench.vms.standby_queries() > queries + 1);
    assert!(!is_requested() && bench.path("web") == IovPath::Vf);
    bench.vms.boot(false);
    bench.vms.take_vfs(false);
    bench.vms.guest("web", VmNotice::Reset);
    wait_until("the unplug of the VF is requested", is_requested);
    bench.vms.release_vf("web", "web");
    bench.wait_reason("web", "does not negotiate VIRTIO_NET_F_STANDBY");
    bench.wait_path("web", IovPath::Paravirtual);
    bench.vms.take_vfs(true);
    bench.wait_path("web", IovPath::Vf);
}

#[test]
fn a_vf_that_qemu_keeps_open_is_assigned_to_no_other_vm() {
    let bench = Bench::new(HOST);
    bench.start("web");
    bench.wait_path("web", IovPath::Vf);
    bench.vms.hold_vfs(true);
    bench.harness.apply_ok(&config(&HOST.replace("iov_weight = 50", "iov_weight = 0")));
    wait_until("the unplug of the VF is requested", || {
        bench.vms.commands().iter().any(|command| command == "web unplug VF of nic/web")
    });
    bench.vms.release_vf("web", "web");
    bench.harness.wait_events(9012, 1);
    let event = bench.harness.events(9012).remove(0);
    assert_eq!(event.subject, "vm/web");
    // The launcher states the reason: QEMU, or the driver of the host.
    for part in ["VF 0 of 0000:01:00.0", "nic/web", "it is open"] {
        assert!(event.text.contains(part), "{}", event.text);
    }
    // The guest is reached through the switch.
    wait_until("the switch reaches the NIC by its own port", || bench.reached_by("web").is_none());
    bench.start("db");
    bench.wait_reason("db", "no VF for this NIC is free");
    assert!(bench.vms.held_vfs() > 1);
    bench.vms.hold_vfs(false);
    bench.wait_path("db", IovPath::Vf);
    bench.harness.wait_events(9013, 1);
}

/// A hostile QEMU reports again and again that the guest has released its VF.
#[test]
fn repeated_releases_of_a_vf_are_not_queued_for_the_control_thread() {
    let bench = Bench::new(HOST);
    bench.start("web");
    bench.wait_path("web", IovPath::Vf);
    bench.vms.hold_vfs(true);
    let mut most = 0;
    for _ in 0..1000 {
        bench.vms.guest("web", VmNotice::Unplugged(VmDevice::Vf("web".to_owned())));
        let queued = bench.harness.node.shared().vf_assignments.reports.lock().unwrap().len();
        most = most.max(queued);
    }
    assert!(most <= 4, "{most} reports were queued at a time");
    bench.vms.hold_vfs(false);
}

#[test]
fn the_next_daemon_assigns_no_vf_that_qemu_keeps_open() {
    let bench = Bench::new(HOST);
    bench.start("web");
    bench.wait_path("web", IovPath::Vf);
    bench.vms.hold_vfs(true);
    bench.vms.release_vf("web", "web");
    wait_until("two attempts to return the VF were made", || bench.vms.held_vfs() > 1);
    let bench = bench.die(|_| {});
    let before = bench.vms.held_vfs();
    wait_until("two more attempts to return the VF were made", || {
        bench.vms.held_vfs() > before + 1
    });
    bench.start("db");
    bench.wait_reason("db", "no VF for this NIC is free");
    bench.wait_path("web", IovPath::Paravirtual);
    bench.vms.hold_vfs(false);
    wait_until("no VF is bound to vfio-pci", || bench.vms.vfs().is_empty());
    bench.sriov.change(0, |pf| {
        pf.vfs.iter_mut().for_each(|vf| vf.driver = Some("igbvf".to_owned()));
    });
    wait_until("a NIC has it", || [bench.path("web"), bench.path("db")].contains(&IovPath::Vf));
}

/// A launcher of an earlier version does not respond while QEMU has the VF open.
#[test]
fn a_vf_is_not_free_until_the_launcher_confirms_its_return() {
    let bench = Bench::new(HOST);
    bench.start("web");
    bench.wait_path("web", IovPath::Vf);
    bench.vms.ignore_returns(true);
    bench.vms.release_vf("web", "web");
    wait_until("the launcher is asked", || bench.vms.held_vfs() > 0);
    // The VF is still recorded as the VM's, so that the next daemon tries to return it, too.
    let bench = bench.die(|_| {});
    wait_until("the launcher is asked again", || bench.vms.held_vfs() > 1);
}

/// Another process, such as a VM of libvirt, has the first of two VFs open.
#[test]
fn a_vf_that_another_process_has_open_is_not_held_by_the_vm_that_should_get_it() {
    let bench = Bench::new(&HOST.replace("vfs = 1", "vfs = 2"));
    bench.vms.open_elsewhere(&bench.sriov.properties(0).vfs[0].address.to_string());
    bench.start("web");
    // The NIC gets the other one.
    bench.wait_path("web", IovPath::Vf);
    assert_eq!(bench.nic("web").iov.unwrap().to_string(), "VF 1 of 0000:01:00.0");
    assert!(bench.harness.events(9012).is_empty());
    assert_eq!(bench.vms.held_vfs(), 0);
}

#[test]
fn a_vm_that_keeps_a_vf_open_is_killed() {
    let bench = Bench::new(HOST);
    bench.start("web");
    bench.wait_path("web", IovPath::Vf);
    bench.vms.hold_vfs(true);
    bench.vms.release_vf("web", "web");
    bench.harness.wait_events(9012, 1);
    bench.run_action("web", VmAction::Kill);
    assert_eq!(bench.vm("web").state, VmState::Stopped);
    // A process to which QEMU has passed it keeps it open.
    bench.start("db");
    bench.wait_reason("db", "no VF for this NIC is free");
    let before = bench.vms.held_vfs();
    wait_until("two more attempts to return the VF were made", || {
        bench.vms.held_vfs() > before + 1
    });
    assert_eq!(bench.path("db"), IovPath::Paravirtual);
    bench.vms.hold_vfs(false);
    bench.wait_path("db", IovPath::Vf);
}

#[test]
fn a_vf_of_an_ended_vm_that_is_not_back_is_recorded_for_the_next_daemon() {
    let bench = Bench::new(HOST);
    bench.start("web");
    bench.wait_path("web", IovPath::Vf);
    bench.vms.hold_vfs(true);
    bench.run_action("web", VmAction::Kill);
    bench.harness.wait_events(9012, 1);
    let bench = bench.die(|_| {});
    let before = bench.vms.held_vfs();
    wait_until("the next daemon continues", || bench.vms.held_vfs() > before + 1);
    bench.harness.wait_events(9012, 2);
    // No NIC gets it, also not that of the VM, which runs again.
    bench.start("web");
    bench.wait_reason("web", "no VF for this NIC is free");
    bench.start("db");
    bench.wait_reason("db", "no VF for this NIC is free");
    // The record does not depend on the run of the VM.
    let bench = bench.die(|_| {});
    wait_until("both VMs are shown as running", || {
        ["web", "db"].iter().all(|vm| bench.vm(vm).state == VmState::Running)
    });
    bench.wait_reason("db", "no VF for this NIC is free");
    assert_eq!([bench.path("web"), bench.path("db")], [IovPath::Paravirtual; 2]);
    bench.vms.hold_vfs(false);
    bench.wait_path("web", IovPath::Vf);
    // The record is deleted: the next daemon does not try again.
    let before = bench.vms.held_vfs();
    let bench = bench.die(|vms| vms.hold_vfs(true));
    wait_until("the VM is shown as running", || bench.vm("web").state == VmState::Running);
    bench.wait_path("web", IovPath::Vf);
    assert_eq!(bench.vms.held_vfs(), before);
}

/// The launcher does not run, or could not change the driver of the VF.
#[test]
fn a_vf_whose_return_fails_is_not_free() {
    let bench = Bench::new(HOST);
    bench.start("web");
    bench.wait_path("web", IovPath::Vf);
    bench.vms.refuse_all("take_vf", VmErrorKind::Host, "the launcher does not respond");
    bench.run_action("web", VmAction::Kill);
    let event = bench.harness.wait_events(9012, 1).remove(0);
    assert!(event.text.contains("the launcher does not respond"), "{}", event.text);
    bench.start("db");
    bench.wait_reason("db", "no VF for this NIC is free");
    bench.vms.refuse("none", VmErrorKind::Host, "");
    bench.wait_path("db", IovPath::Vf);
    bench.harness.wait_events(9013, 1);
}

/// The record of a held VF could not be deleted when the VF was returned.
#[test]
fn a_stale_record_of_a_held_vf_takes_the_vf_from_no_vm() {
    let bench = Bench::new(HOST);
    bench.start("web");
    bench.wait_path("web", IovPath::Vf);
    bench.vms.hold_vfs(true);
    bench.run_action("web", VmAction::Kill);
    bench.harness.wait_events(9012, 1);
    let stale = bench.harness.store.read("vms", "web").unwrap();
    assert!(stale.is_some());
    bench.vms.hold_vfs(false);
    bench.start("db");
    bench.wait_path("db", IovPath::Vf);
    bench.harness.wait_events(9013, 1);
    let bench = bench.die_with_store(|_, store| {
        store.commit(&[("vms", "web".to_owned(), stale)]).unwrap();
    });
    wait_until("VM `db` is shown as running", || bench.vm("db").state == VmState::Running);
    bench.wait_path("db", IovPath::Vf);
    // The simulated launcher rejects the return of a VF that a guest has.
    bench.start("web");
    bench.wait_reason("web", "no VF for this NIC is free");
    assert_eq!([bench.path("web"), bench.path("db")], [IovPath::Paravirtual, IovPath::Vf]);
    assert_eq!(bench.harness.events(9013).len(), 1, "of the first daemon");
    bench.run_action("db", VmAction::Kill);
    wait_until("no VF is bound to vfio-pci", || bench.vms.vfs().is_empty());
    bench.sriov.change(0, |pf| {
        pf.vfs.iter_mut().for_each(|vf| vf.driver = Some("igbvf".to_owned()));
    });
    bench.wait_path("web", IovPath::Vf);
}

/// Kills a VM after `stall` has blocked its driver.
fn assert_killed_at_once(bench: Bench, stall: impl Fn(Bench) -> Bench) {
    bench.start("web");
    bench.wait_path("web", IovPath::Vf);
    let bench = stall(bench);
    wait_until("the driver is blocked", || bench.vms.is_stalled());
    bench.run_action("web", VmAction::Kill);
    assert_eq!(bench.vms.kills_while_stalled(), 1, "the kill waited for the driver");
    assert_eq!(bench.vm("web").state, VmState::Stopped);
    assert!(bench.vms.running().is_empty());
    let event = bench.harness.events(7011).pop().unwrap();
    assert!(event.text.contains("killed on request"), "{}", event.text);
    wait_until("no VF is bound to vfio-pci", || bench.vms.vfs().is_empty());
}

/// The query of the failover state blocks the driver of the VM.
#[test]
fn a_vm_whose_qemu_stalls_is_killed_at_once() {
    assert_killed_at_once(Bench::new(HOST), |bench| {
        bench.vms.stall_queries(true);
        bench.vms.guest("web", VmNotice::Reset);
        bench
    });
}

/// QEMU stalls while a new daemon tries to adopt the VM.
#[test]
fn a_vm_that_cannot_be_adopted_is_killed_at_once() {
    assert_killed_at_once(Bench::new(HOST), |bench| bench.die(|vms| vms.stall_queries(true)));
}

/// The process is in an uninterruptible system call.
#[test]
fn a_kill_that_fails_is_reported_while_the_driver_is_blocked() {
    let bench = Bench::new(HOST);
    bench.start("web");
    bench.wait_path("web", IovPath::Vf);
    bench.vms.stall_queries(true);
    bench.vms.guest("web", VmNotice::Reset);
    wait_until("the driver is blocked", || bench.vms.is_stalled());
    let refused_count = bench.vms.refused_count();
    bench.vms.refuse_all("kill", VmErrorKind::Timeout, "it does not end");
    let kill = bench.harness.node.start_vm_action(&name("web"), VmAction::Kill).unwrap();
    let kill = bench.harness.node.wait_operation(kill.id, DEADLINE).unwrap();
    assert_eq!(kill.state, OperationState::Failed);
    assert!(kill.error.unwrap().message.contains("it does not end"));
    // One attempt: a second one by the driver would last as long again.
    assert!(bench.vms.is_stalled());
    assert_eq!(bench.vms.refused_count(), refused_count + 1);
    bench.vms.refuse("none", VmErrorKind::Host, "");
    bench.run_action("web", VmAction::Kill);
    assert_eq!(bench.vm("web").state, VmState::Stopped);
}
