//! Workers that cannot be started.

use super::*;

const ON_TWO_CPUS: &str = "[host]\nprocessors = [0, 1]\n";

/// Host with workers on CPUs 0 and 1, after a restart with CPU 1 offline.
fn without_a_cpu(retries_rarely: bool) -> Harness {
    let harness = Harness::new();
    harness.apply_ok(&host(&format!("{ON_TWO_CPUS}{TWO}")));
    let plane = FakePlane::default();
    plane.set_workers(&[CpuAffinity::Floating]).unwrap();
    plane.refuse_workers(true);
    let harness = Harness::with_plane(harness.kill(), plane, retries_rarely);
    assert_eq!(harness.plane.placements(), [CpuAffinity::Floating]);
    assert_eq!(health(&harness, "web"), Health::Up);
    harness
}

fn is_on_two_cpus(harness: &Harness) -> bool {
    harness.plane.placements() == [CpuAffinity::Pinned(0), CpuAffinity::Pinned(1)]
}

#[test]
fn workers_that_do_not_start_are_retried() {
    let harness = without_a_cpu(false);
    let event = harness.wait_event(EventKind::ChangeRolledBack.id());
    assert!(event.text.contains("no such CPU"), "{event:?}");
    let started = EventKind::ProcessorStarted.id();
    let before = harness.events(started).len();
    harness.plane.refuse_workers(false);
    wait_until("the workers run on two CPUs", || is_on_two_cpus(&harness));
    harness.wait_events(started, before + 2);
    harness.assert_consistent(&[]);
}

/// The set of workers is retried by the next change, which succeeds although the set fails.
#[test]
fn a_change_retries_workers_and_does_not_depend_on_them() {
    let harness = without_a_cpu(true);
    let delete = harness.change(Edit::Nic(ResourceEdit::Delete(name("vm"))));
    assert_eq!(delete.state, OperationState::Succeeded, "{delete:?}");
    assert!(!is_on_two_cpus(&harness));
    harness.plane.refuse_workers(false);
    harness.change(Edit::Nic(ResourceEdit::Delete(name("web"))));
    assert!(is_on_two_cpus(&harness));
    harness.assert_consistent(&[]);
}
