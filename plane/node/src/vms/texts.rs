//! Events of VMs, and progress texts of migrations.

use std::time::Duration;

use suimon_contract::{EventKind, MigrationPhase, Name, VmMigration, VmState};
use suimon_ports::{RunningVmStatus, StateStoreError, VmAccelerator, VmIdentity};
use suimon_quantity::CountedNoun;

use super::VmEntry;
use crate::events::EventDraft;
use crate::virtual_functions::VfAddress;

/// Reason for the end of a VM that was killed.
pub(super) const KILLED_ON_REQUEST: &str = "it was killed on request";

pub(super) fn started_event(
    entry: &VmEntry,
    identity: &VmIdentity,
    properties: &RunningVmStatus,
) -> EventDraft {
    let accelerator = match properties.accelerator {
        VmAccelerator::Kvm => "KVM",
        VmAccelerator::Tcg => "software emulation (TCG)",
    };
    let text = format!("The VM was started with {accelerator}.");
    EventDraft::new(EventKind::VmStarted, entry.label(), text)
        .with("process", identity.pid)
        .with("user", properties.uid.unwrap_or(entry.user_id))
        .with("cpus", properties.cpus)
        .with("qemu_version", &properties.qemu_version)
}

pub(super) fn not_started_event(entry: &VmEntry, reason: &str) -> EventDraft {
    let text = format!(
        "The VM could not be started: {reason}. Check `qemu.log` in the folder of the VM, and start \
         it again."
    );
    EventDraft::new(EventKind::VmFailed, entry.label(), text).with("reason", reason)
}

pub(super) fn waits_for_disks_event(entry: &VmEntry, reason: &str) -> EventDraft {
    let text = format!(
        "The VM starts automatically as soon as its disks are in service: {reason}. Check the \
         disk and its store."
    );
    EventDraft::new(EventKind::VmWaitsForDisks, entry.label(), text).with("reason", reason)
}

/// Returns the event of an autostart that has ended and whose record cannot be deleted.
pub(super) fn autostart_not_recorded_event(entry: &VmEntry, error: &StateStoreError) -> EventDraft {
    let text = format!(
        "The end of the VM's autostart cannot be recorded. If the daemon is restarted before the \
         state directory can be written, it starts the VM again; the daemon retries. {error}"
    );
    EventDraft::new(EventKind::RecordNotSaved, entry.label(), text)
        .with("record", "autostart")
        .with("reason", error)
        .rate_limited()
}

pub(super) fn ended_event(entry: &VmEntry, is_orderly: bool, reason: &str) -> EventDraft {
    let kind = if is_orderly { EventKind::VmEnded } else { EventKind::VmFailed };
    let text = format!("The VM has ended: {reason}.");
    EventDraft::new(kind, entry.label(), text).with("reason", reason)
}

/// Returns the event of a state change; `None` if another event reports the change, or none is
/// needed.
pub(super) fn state_event(entry: &VmEntry, before: VmState, now: VmState) -> Option<EventDraft> {
    let draft = |kind, text: &str| Some(EventDraft::new(kind, entry.label(), text));
    match (before, now) {
        (_, VmState::Paused) => draft(EventKind::VmPaused, "The VM's CPUs were paused."),
        (VmState::Paused, VmState::Running | VmState::Stopping) => {
            draft(EventKind::VmResumed, "The VM's CPUs were resumed.")
        }
        (_, VmState::Panicked) => draft(
            EventKind::VmPanicked,
            "The guest reported a kernel panic; its CPUs are stopped. Reset or kill the VM.",
        ),
        _ => None,
    }
}

pub(super) fn paused_for_space_event(entry: &VmEntry, stores: &str) -> EventDraft {
    let text = format!(
        "The VM is paused because the store of a disk is full ({stores}). It resumes when there \
         is space; free space, or move its disks to another store."
    );
    // The guest controls the rate.
    EventDraft::new(EventKind::VmPausedForSpace, entry.label(), text)
        .with("stores", stores)
        .rate_limited()
}

pub(super) fn resumed_with_space_event(entry: &VmEntry, paused_for: Duration) -> EventDraft {
    let text = format!(
        "The VM resumed; it was paused for {} s because the store of a disk was full.",
        paused_for.as_secs()
    );
    EventDraft::new(EventKind::VmContinuedWithSpace, entry.label(), text)
        .with("paused_s", paused_for.as_secs())
        .rate_limited()
}

pub(super) fn reset_event(entry: &VmEntry) -> EventDraft {
    EventDraft::new(EventKind::VmReset, entry.label(), "The VM was reset.")
}

pub(super) fn adopted_event(entry: &VmEntry, identity: &VmIdentity) -> EventDraft {
    let text = "The daemon adopted the VM, which continued to run while the daemon was restarted.";
    EventDraft::new(EventKind::VmFound, entry.label(), text).with("process", identity.pid)
}

pub(super) fn unresponsive_event(entry: &VmEntry, reason: &str) -> EventDraft {
    let text = format!(
        "QEMU of the VM does not respond and the daemon retries. Check the process and its log; \
         `suimon vm kill {}` ends it. {reason}",
        entry.name
    );
    EventDraft::new(EventKind::VmLost, entry.label(), text).with("reason", reason)
}

pub(super) fn device_plugged_event(entry: &VmEntry, device_label: &str) -> EventDraft {
    let text = format!("{device_label} was hot-plugged.");
    EventDraft::new(EventKind::VmDevicePlugged, entry.label(), text)
        .with("device", device_label)
        .rate_limited()
}

pub(super) fn cpus_plugged_event(entry: &VmEntry, cpus: u16) -> EventDraft {
    let text = format!("CPUs were hot-plugged: the VM has {} now.", CountedNoun::new(cpus, "CPU"));
    EventDraft::new(EventKind::VmDevicePlugged, entry.label(), text).with("cpus", cpus)
}

pub(super) fn device_unplugged_event(entry: &VmEntry, device_label: &str) -> EventDraft {
    let text = format!("{device_label} was hot-unplugged: the guest released it.");
    EventDraft::new(EventKind::VmDeviceUnplugged, entry.label(), text)
        .with("device", device_label)
        .rate_limited()
}

/// Returns the event of a device that the guest has released without a request. Its rate is
/// limited, because the guest determines how often it occurs.
pub(super) fn device_self_released_event(
    entry: &VmEntry,
    device_label: &str,
    delay: Duration,
) -> EventDraft {
    let text = format!(
        "The guest has released {device_label} without a request. It is plugged in again in {:.1} \
         s. To remove it, remove it from the VM's configuration.",
        delay.as_secs_f32()
    );
    EventDraft::new(EventKind::VmDeviceUnplugged, entry.label(), text)
        .with("device", device_label)
        .rate_limited()
}

pub(super) fn plug_failed_event(entry: &VmEntry, device_label: &str, reason: &str) -> EventDraft {
    let text = format!(
        "Hot-plug or hot-unplug of {device_label} failed, the change takes effect at the VM's next \
         start. Stop and start the VM. {reason}"
    );
    EventDraft::new(EventKind::VmDeviceRefused, entry.label(), text)
        .with("device", device_label)
        .with("reason", reason)
}

pub(super) fn frozen_event(entry: &VmEntry, seconds: u64) -> EventDraft {
    let text = format!("The guest's file systems were frozen, for at most {seconds} s.");
    EventDraft::new(EventKind::VmFrozen, entry.label(), text).with("seconds", seconds)
}

/// Reason why a freeze has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FreezeEnd {
    /// The guest's file systems are thawed by request.
    Request,
    /// Thaw after the duration of the freeze.
    Timeout,
    /// Reset of the VM, after which the guest boots again.
    Reset,
}

pub(super) fn thawed_event(entry: &VmEntry, end: FreezeEnd) -> EventDraft {
    let (text, reason) = match end {
        FreezeEnd::Request => ("The guest's file systems were thawed.", "request"),
        FreezeEnd::Timeout => (
            "The guest's file systems were thawed, because the time limit of the freeze expired.",
            "timeout",
        ),
        FreezeEnd::Reset => {
            ("The guest's file systems are no longer frozen, because the VM was reset.", "reset")
        }
    };
    EventDraft::new(EventKind::VmThawed, entry.label(), text)
        .with("asked_for", end == FreezeEnd::Request)
        .with("reason", reason)
}

pub(super) fn migration_started_event(entry: &VmEntry, node: &str) -> EventDraft {
    let text = format!("Migration of the VM to node {node} began; it runs here meanwhile.");
    EventDraft::new(EventKind::VmLeaves, entry.label(), text).with("node", node)
}

pub(super) fn migrated_event(entry: &VmEntry, node: &str) -> EventDraft {
    let text = format!("The VM migrated to node {node}.");
    EventDraft::new(EventKind::VmLeft, entry.label(), text).with("node", node)
}

pub(super) fn migration_failed_event(entry: &VmEntry, node: &str, reason: &str) -> EventDraft {
    let text = format!(
        "Migration of the VM to node {node} failed, it continues to run here: {reason}. Remove \
         the cause, and migrate the VM again."
    );
    EventDraft::new(EventKind::VmStays, entry.label(), text)
        .with("node", node)
        .with("reason", reason)
}

pub(super) fn handed_over_event(entry: &VmEntry, node: &Name, reason: &str) -> EventDraft {
    let text = format!(
        "The VM was handed over to node {node}, which does not respond: the VM runs nowhere until \
         it does. The daemon retries. Check node {node}. If it will not return, make sure that it \
         is switched off, otherwise the VM runs twice; then run `suimon node delete {node}`, which \
         resumes the VM here. {reason}"
    );
    EventDraft::new(EventKind::VmHandedOver, entry.label(), text)
        .with("node", node)
        .with("reason", reason)
}

pub(super) fn incoming_started_event(entry: &VmEntry, source: &str) -> EventDraft {
    let text = format!(
        "Migration of the VM from node {source} began; its NICs and disks were created here."
    );
    EventDraft::new(EventKind::VmArrives, entry.label(), text).with("node", source)
}

pub(super) fn incoming_activated_event(entry: &VmEntry, source: &str) -> EventDraft {
    let text = format!("The VM migrated from node {source} and runs here.");
    EventDraft::new(EventKind::VmArrived, entry.label(), text).with("node", source)
}

pub(super) fn incoming_failed_event(entry: &VmEntry, source: &str, reason: &str) -> EventDraft {
    let text = format!(
        "Migration of the VM from node {source} failed: {reason}. The NICs and disks created for \
         it were removed. Remove the cause, and migrate the VM again."
    );
    EventDraft::new(EventKind::VmDidNotArrive, entry.label(), text)
        .with("node", source)
        .with("reason", reason)
}

/// Returns the progress text of a migration.
pub(super) fn phase_text(migration: &VmMigration) -> String {
    const MIB: u64 = 1 << 20;
    let mib = |bytes: u64| bytes.div_ceil(MIB);
    let disks = mib(migration.disk_bytes_remaining);
    match migration.phase {
        MigrationPhase::Preparing => format!("node {} prepares the migration", migration.peer_node),
        MigrationPhase::CopyingDisks => format!("copy disks, {disks} MiB left"),
        MigrationPhase::CopyingMemory => {
            let memory = mib(migration.memory_bytes_remaining);
            format!("copy memory, {memory} MiB left (and {disks} MiB of disks)")
        }
        MigrationPhase::StopAndCopy => "switch over to the other node".to_owned(),
        MigrationPhase::HandedOver => format!("node {} takes over the VM", migration.peer_node),
    }
}

pub(super) fn thaw_failed_event(entry: &VmEntry, reason: &str) -> EventDraft {
    let text = format!(
        "The guest's file systems may be frozen and could not be thawed: {reason}. The daemon \
         retries; `suimon vm reset {}` restarts the guest.",
        entry.name
    );
    EventDraft::new(EventKind::VmNotThawed, entry.label(), text).with("reason", reason)
}

pub(super) fn vf_unreturned_event(
    entry: &VmEntry,
    nic: &Name,
    vf: &VfAddress,
    reason: &str,
) -> EventDraft {
    let text = format!(
        "{vf} was unplugged from nic/{nic} and is not back at the host; no NIC gets it meanwhile, \
         and the daemon retries: {reason}."
    );
    let draft = EventDraft::new(EventKind::VfHeld, entry.label(), text).with("reason", reason);
    with_vf(draft, nic, vf)
}

pub(super) fn vf_returned_event(entry: &VmEntry, nic: &Name, vf: &VfAddress) -> EventDraft {
    let text = format!("{vf}, unplugged from nic/{nic}, is back at the host and can be assigned.");
    with_vf(EventDraft::new(EventKind::VfReturned, entry.label(), text), nic, vf)
}

fn with_vf(draft: EventDraft, nic: &Name, vf: &VfAddress) -> EventDraft {
    let draft = draft.with("nic", nic).with("adapter", vf.adapter);
    draft.with("vf", vf.index).with("address", vf.pci_address)
}
