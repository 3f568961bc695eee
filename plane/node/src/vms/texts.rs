//! Events of VMs, and progress texts of migrations.

use std::time::Duration;

use suimon_contract::{EventKind, MigrationPhase, Name, VmMigration, VmState};
use suimon_ports::{VmAccelerator, VmFacts, VmIdentity};
use suimon_quantity::Count;

use super::VmEntry;
use crate::events::Draft;

pub(super) fn started(entry: &VmEntry, identity: &VmIdentity, facts: &VmFacts) -> Draft {
    let by = match facts.accelerator {
        VmAccelerator::Kvm => "KVM",
        VmAccelerator::Tcg => "QEMU's own translation (TCG)",
    };
    let text = format!("The VM was started; {by} runs it.");
    Draft::new(EventKind::VmStarted, entry.label(), text)
        .with("process", identity.process)
        .with("user", facts.user.unwrap_or(entry.user))
        .with("cpus", facts.cpus)
        .with("qemu_version", &facts.qemu_version)
}

pub(super) fn not_started(entry: &VmEntry, reason: &str) -> Draft {
    let text = format!("The VM could not be started: {reason}");
    Draft::new(EventKind::VmFailed, entry.label(), text).with("reason", reason)
}

pub(super) fn waits_for_disks(entry: &VmEntry, reason: &str) -> Draft {
    let text = format!("The VM starts with the host as soon as it can: {reason}");
    Draft::new(EventKind::VmWaitsForDisks, entry.label(), text).with("reason", reason)
}

pub(super) fn ended(entry: &VmEntry, is_orderly: bool, reason: &str) -> Draft {
    let kind = if is_orderly { EventKind::VmEnded } else { EventKind::VmFailed };
    let text = format!("The VM does not run any more: {reason}.");
    Draft::new(kind, entry.label(), text).with("reason", reason)
}

/// Returns the event of a state change; `None` if the change is reported elsewhere or not at all.
pub(super) fn state(entry: &VmEntry, before: VmState, now: VmState) -> Option<Draft> {
    let draft = |kind, text: &str| Some(Draft::new(kind, entry.label(), text));
    match (before, now) {
        (_, VmState::Paused) => draft(EventKind::VmPaused, "The VM's CPUs stand still."),
        (VmState::Paused, VmState::Running | VmState::Stopping) => {
            draft(EventKind::VmResumed, "The VM's CPUs run again.")
        }
        (_, VmState::Panicked) => {
            draft(EventKind::VmPanicked, "The guest has told of its panic and stands still.")
        }
        _ => None,
    }
}

pub(super) fn paused_for_space(entry: &VmEntry, stores: &str) -> Draft {
    let text = format!(
        "The VM is paused: there was no space for a write ({stores}). It goes on when there is space; \
         free some, or move its disks to another store."
    );
    // The guest controls the rate.
    Draft::new(EventKind::VmPausedForSpace, entry.label(), text).with("stores", stores).repeated()
}

pub(super) fn continued_with_space(entry: &VmEntry, waited: Duration) -> Draft {
    let text = format!(
        "The VM runs again. It was paused for {} s because there was no space for a write.",
        waited.as_secs()
    );
    Draft::new(EventKind::VmContinuedWithSpace, entry.label(), text)
        .with("paused_s", waited.as_secs())
        .repeated()
}

pub(super) fn reset(entry: &VmEntry) -> Draft {
    Draft::new(EventKind::VmReset, entry.label(), "The VM was started anew.")
}

pub(super) fn found(entry: &VmEntry, identity: &VmIdentity) -> Draft {
    let text = "The VM was found again; it went on meanwhile.";
    Draft::new(EventKind::VmFound, entry.label(), text).with("process", identity.process)
}

pub(super) fn lost(entry: &VmEntry, reason: &str) -> Draft {
    let text = format!("The VM does not answer and is asked again: {reason}");
    Draft::new(EventKind::VmLost, entry.label(), text).with("reason", reason)
}

pub(super) fn plugged(entry: &VmEntry, what: &str) -> Draft {
    let text = format!("{what} was plugged in.");
    Draft::new(EventKind::VmDevicePlugged, entry.label(), text).with("device", what).repeated()
}

pub(super) fn cpus(entry: &VmEntry, cpus: u16) -> Draft {
    let text = format!("The VM has {} now.", Count::new(cpus, "CPU"));
    Draft::new(EventKind::VmDevicePlugged, entry.label(), text).with("cpus", cpus)
}

pub(super) fn unplugged(entry: &VmEntry, what: &str) -> Draft {
    let text = format!("The guest has let go of {what}.");
    Draft::new(EventKind::VmDeviceUnplugged, entry.label(), text).with("device", what).repeated()
}

/// The guest controls the rate.
pub(super) fn released(entry: &VmEntry, what: &str, delay: Duration) -> Draft {
    let text = format!(
        "The guest has released {what} without a request. It is plugged in again in {:.1} s. To \
         remove it, remove it from the VM's configuration.",
        delay.as_secs_f32()
    );
    Draft::new(EventKind::VmDeviceUnplugged, entry.label(), text).with("device", what).repeated()
}

pub(super) fn refused(entry: &VmEntry, what: &str, reason: &str) -> Draft {
    let text = format!("{what} is as desired from the VM's next start on: {reason}");
    Draft::new(EventKind::VmDeviceRefused, entry.label(), text)
        .with("device", what)
        .with("reason", reason)
}

pub(super) fn frozen(entry: &VmEntry, seconds: u64) -> Draft {
    let text = format!("The guest's file systems are frozen, for {seconds} s at most.");
    Draft::new(EventKind::VmFrozen, entry.label(), text).with("seconds", seconds)
}

/// Cause of the end of a freeze.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FreezeEnd {
    /// Thaw on request.
    Request,
    /// Thaw after the duration of the freeze.
    Timeout,
    /// Reset of the VM, after which the guest boots again.
    Reset,
}

pub(super) fn thawed(entry: &VmEntry, end: FreezeEnd) -> Draft {
    let (text, reason) = match end {
        FreezeEnd::Request => ("The guest's file systems are thawed.", "request"),
        FreezeEnd::Timeout => {
            ("The guest's file systems are thawed; nobody had asked for it in time.", "timeout")
        }
        FreezeEnd::Reset => {
            ("The guest's file systems are not frozen any more: the VM was reset.", "reset")
        }
    };
    Draft::new(EventKind::VmThawed, entry.label(), text)
        .with("asked_for", end == FreezeEnd::Request)
        .with("reason", reason)
}

pub(super) fn leaves(entry: &VmEntry, node: &str) -> Draft {
    let text = format!("The VM is being moved to node {node}; it runs here meanwhile.");
    Draft::new(EventKind::VmLeaves, entry.label(), text).with("node", node)
}

pub(super) fn left(entry: &VmEntry, node: &str) -> Draft {
    let text = format!("The VM has moved to node {node}.");
    Draft::new(EventKind::VmLeft, entry.label(), text).with("node", node)
}

pub(super) fn stays(entry: &VmEntry, node: &str, reason: &str) -> Draft {
    let text = format!("The VM did not move to node {node} and goes on here: {reason}");
    Draft::new(EventKind::VmStays, entry.label(), text).with("node", node).with("reason", reason)
}

pub(super) fn handed_over(entry: &VmEntry, node: &Name, reason: &str) -> Draft {
    let text = format!(
        "The VM stands still: node {node} was told to run it, and does not answer. It is asked \
         again; if it is never to run it, delete it (`suimon node delete {node}`), and the VM goes \
         on here. {reason}"
    );
    Draft::new(EventKind::VmHandedOver, entry.label(), text)
        .with("node", node)
        .with("reason", reason)
}

pub(super) fn arrives(entry: &VmEntry, from: &str) -> Draft {
    let text = format!("The VM comes from node {from}; what it needs is there.");
    Draft::new(EventKind::VmArrives, entry.label(), text).with("node", from)
}

pub(super) fn arrived(entry: &VmEntry, from: &str) -> Draft {
    let text = format!("The VM has come from node {from} and is this node's.");
    Draft::new(EventKind::VmArrived, entry.label(), text).with("node", from)
}

pub(super) fn did_not_arrive(entry: &VmEntry, from: &str, reason: &str) -> Draft {
    let text = format!("The VM does not come from node {from} after all: {reason}.");
    Draft::new(EventKind::VmDidNotArrive, entry.label(), text)
        .with("node", from)
        .with("reason", reason)
}

/// Returns the progress text of a migration.
pub(super) fn phase(of: &VmMigration) -> String {
    const MIB: u64 = 1 << 20;
    let left = |bytes: u64| bytes.div_ceil(MIB);
    let disks = left(of.disk_bytes_left);
    match of.phase {
        MigrationPhase::Preparing => format!("node {} prepares", of.node),
        MigrationPhase::CopyingDisks => format!("copy disks, {disks} MiB left"),
        MigrationPhase::CopyingMemory => {
            let memory = left(of.memory_bytes_left);
            format!("copy memory, {memory} MiB left (and {disks} MiB of disks)")
        }
        MigrationPhase::Switching => "switch over".to_owned(),
        MigrationPhase::HandedOver => format!("node {} takes it over", of.node),
    }
}

pub(super) fn not_thawed(entry: &VmEntry, reason: &str) -> Draft {
    let text = format!(
        "The guest's file systems may be frozen, and could not be thawed: {reason}. That is tried \
         again; `suimon vm reset {}` starts the guest anew.",
        entry.name
    );
    Draft::new(EventKind::VmNotThawed, entry.label(), text).with("reason", reason)
}
