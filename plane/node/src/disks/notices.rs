//! Notices of disk front-ends and of the storage plane, converted to events and reactions.

use std::time::{Duration, Instant};

use suimon_contract::{DiskOnFull, EventKind};
use suimon_ports::{DeviceNotice, FaultKind, QueueFault};
use suimon_quantity::{CountedNoun, DiskId};
use suimon_storage::{PlaneNotice, QueueKey};
use suimon_storage_engine::SpaceChange;

use super::entry::DiskEntry;
use super::opening::errors::OpenError;
use super::store_threads::STATUS_TIMEOUT;
use crate::control::Controller;
use crate::events::EventDraft;

impl Controller {
    pub(crate) fn handle_disk_notice(
        &mut self,
        disk: DiskId,
        generation: u64,
        notice: DeviceNotice,
    ) {
        let Some(entry) = self.shared.disks.find_id(disk) else { return };
        if entry.lock().generation != generation {
            return;
        }
        let label = entry.label();
        let draft = match notice {
            DeviceNotice::FeaturesCommitted(negotiated) => {
                self.devices.negotiated_features.set_features(&label, negotiated);
                return;
            }
            DeviceNotice::DeviceLost { reason } => {
                self.fail_disk(&entry, reason.clone());
                self.drafts.push(disk_failed_event(&entry, &reason));
                return;
            }
            DeviceNotice::LinkUp => EventDraft::new(
                EventKind::DiskConnected,
                &label,
                "A VM connected to the disk's socket.",
            ),
            DeviceNotice::LinkDown { reason } => {
                let text = format!(
                    "The VM disconnected from the disk's socket: {reason}. If the VM was not \
                     stopped, check the log of its QEMU."
                );
                EventDraft::new(EventKind::DiskDisconnected, &label, text).with("reason", reason)
            }
            DeviceNotice::Negotiated { features, queue_pairs } => {
                let queues = CountedNoun::new(queue_pairs, "queue");
                let text = format!("The guest's driver initialized the disk with {queues}.");
                EventDraft::new(EventKind::DiskDriverReady, &label, text)
                    .with("features", format!("{features:#x}"))
                    .with("queues", queue_pairs)
            }
            DeviceNotice::ProtocolViolation { detail } => violation(&entry, &detail),
            DeviceNotice::LinkChanged(_) => return,
        };
        self.drafts.push(draft.rate_limited());
    }

    fn handle_queue_fault(&mut self, disk: DiskId, queue: QueueKey, fault: &QueueFault) {
        let Some(entry) = self.shared.disks.find_id(disk) else { return };
        let draft = match (queue, fault.kind) {
            (_, FaultKind::Disconnected) => return,
            (queue, FaultKind::SystemCallFailed) => queue_failed(&entry, queue, &fault.detail),
            (QueueKey::Ring(_), _) => violation(&entry, &fault.detail),
            (QueueKey::Mirror, _) => {
                let detail = format!(
                    "the connection that copies the disk to another node: {}",
                    fault.detail
                );
                violation(&entry, &detail)
            }
            (QueueKey::Client(_) | QueueKey::EmulatedDisk(_), _) => {
                violation(&entry, &format!("NBD client: {}", fault.detail))
            }
        };
        self.drafts.push(draft.rate_limited());
    }

    pub(crate) fn handle_storage_notice(&mut self, notice: PlaneNotice) {
        match notice {
            PlaneNotice::QueueFault { disk, queue, fault } => {
                self.handle_queue_fault(disk, queue, &fault);
            }
            PlaneNotice::DiskFault { disk, offset, detail, suppressed } => {
                let Some(entry) = self.shared.disks.find_id(disk) else { return };
                let text = format!(
                    "The store failed requests of the disk: {detail}. They were completed with an \
                     I/O error. Check the device of the store."
                );
                let draft = EventDraft::new(EventKind::DiskIoFailed, entry.label(), text);
                let mut draft = draft.with("detail", detail);
                if let Some(offset) = offset {
                    draft = draft.with("offset", offset);
                }
                if suppressed > 0 {
                    draft = draft.with("failed_before", suppressed);
                }
                self.drafts.push(draft.rate_limited());
            }
            PlaneNotice::DiskStall { disk, is_beginning: stalls, stalled_for } => {
                let Some(entry) = self.shared.disks.find_id(disk) else { return };
                let store = entry.lock().required.config.store.clone();
                let (kind, text) = if stalls {
                    let text = format!(
                        "Store {store} has not completed a request of the disk for {} s; the \
                         requests stay pending. Check the device of the store.",
                        stalled_for.as_secs()
                    );
                    (EventKind::DiskStalled, text)
                } else {
                    (
                        EventKind::DiskAnswered,
                        format!("Store {store} completes requests of the disk again."),
                    )
                };
                let draft = EventDraft::new(kind, entry.label(), text);
                self.drafts
                    .push(draft.with("store", store).with("waited_s", stalled_for.as_secs()));
            }
            PlaneNotice::DiskSpaceChange { disk, change, full_for: duration } => {
                let Some(entry) = self.shared.disks.find_id(disk) else { return };
                self.drafts.push(full_event(&entry, change, duration).rate_limited());
            }
            PlaneNotice::FlushFailed { disk, detail } => {
                let Some(entry) = self.shared.disks.find_id(disk) else { return };
                entry.lock().has_failed_flush = true;
                self.drafts.push(flush_failed(&entry, detail));
            }
            PlaneNotice::DiskLost { disk, reason } => {
                let Some(entry) = self.shared.disks.find_id(disk) else { return };
                // The disk may have been opened again since the notice.
                if !self.shared.disks.dependencies.plane.has_disk(disk) {
                    let reason = format!("the disk could not be moved to another worker: {reason}");
                    self.drafts.push(disk_failed_event(&entry, &reason));
                    self.fail_disk(&entry, reason);
                }
            }
            PlaneNotice::Qos { store, event } => {
                let drafts = self.shared.disks.qos_event(store, &event);
                self.drafts.extend(drafts);
            }
            PlaneNotice::IoFault { worker, detail } => {
                tracing::error!(%worker, detail, "the kernel does not accept the I/O of disks");
            }
        }
    }

    /// Opens failed disks whose retry is due.
    pub(crate) fn retry_disks(&mut self) {
        let now = Instant::now();
        for entry in self.shared.disks.all() {
            if !entry.lock().retry.is_due(now) || !self.close_failed_disk(&entry) {
                continue;
            }
            match self.open_disk_with_timeout(&entry, STATUS_TIMEOUT) {
                Ok(()) => {
                    let text = "The disk is in service again.";
                    self.drafts.push(EventDraft::new(
                        EventKind::DiskRecovered,
                        entry.label(),
                        text,
                    ));
                    // A running VM may lack the disk and attach it now.
                    self.notify_vms();
                }
                Err(OpenError::Pending) => {}
                Err(OpenError::Failed(error)) => {
                    tracing::debug!(disk = %entry.name, %error, "retry failed");
                    self.mark_not_new_if_file_exists(&entry);
                    self.fail_disk(&entry, error.to_string());
                }
            }
        }
    }
}

/// Returns the event that a disk's store is full, or that this is not the case any more.
fn full_event(entry: &DiskEntry, change: SpaceChange, duration: Duration) -> EventDraft {
    let (store, on_full) = {
        let required = &entry.lock().required;
        (required.config.store.clone(), required.config.on_full)
    };
    let (kind, text) = match (change, on_full) {
        (SpaceChange::Full, DiskOnFull::Wait) => {
            let text = format!(
                "Store {store} is full. Requests of the disk that need space are queued until \
                 there is space. Free space on the store, or move disks to another one."
            );
            (EventKind::DiskFull, text)
        }
        (SpaceChange::Full, DiskOnFull::Error) => {
            let text = format!(
                "Store {store} is full. Requests of the disk that need space fail, because \
                 `on_full` is `error`. Free space on the store, or move disks to another one."
            );
            (EventKind::DiskFull, text)
        }
        (SpaceChange::HasSpace, _) => (
            EventKind::DiskHasSpace,
            format!("Store {store} has space for requests of the disk again."),
        ),
        (SpaceChange::NoLongerObserved, _) => {
            let text = format!(
                "For 10 s no request of the disk has found store {store} full, and none is \
                 queued. The store may still be full."
            );
            (EventKind::DiskHasSpace, text)
        }
    };
    EventDraft::new(kind, entry.label(), text)
        .with("store", store)
        .with("lasted_s", duration.as_secs())
}

/// Returns the event that a flush of a disk has failed.
fn flush_failed(entry: &DiskEntry, detail: String) -> EventDraft {
    let (name, store) = (&entry.name, entry.lock().required.config.store.clone());
    let text = format!(
        "A flush failed: {detail}. Writes since the last successful flush may be lost. Writes and \
         flushes of the disk fail until it is reopened; reads continue. Repair store {store}, then run `suimon disk reopen \
         {name}` and check the file systems of the disk's guest."
    );
    EventDraft::new(EventKind::DiskFlushFailed, entry.label(), text)
        .with("store", store)
        .with("detail", detail)
}

/// Returns the event that a disk has failed and is retried.
pub(crate) fn disk_failed_event(entry: &DiskEntry, reason: &str) -> EventDraft {
    let text = format!("The disk failed and the daemon retries: {reason}");
    EventDraft::new(EventKind::DiskFailed, entry.label(), text).with("reason", reason)
}

/// Returns the event that the host cannot serve a queue of a disk.
fn queue_failed(entry: &DiskEntry, queue: QueueKey, detail: &str) -> EventDraft {
    let queue_label = match queue {
        QueueKey::Ring(index) => format!("Queue {index} of the disk's VM"),
        QueueKey::Client(_) | QueueKey::EmulatedDisk(_) => {
            "The connection of an NBD client".to_owned()
        }
        QueueKey::Mirror => "The connection that copies the disk to another node".to_owned(),
    };
    let text = format!(
        "{queue_label} was closed, because the host cannot serve it: {detail}. Raise \
         `LimitNOFILE` of the suimond service, or free memory; then reset the VM, reconnect the \
         client, or repeat the migration."
    );
    EventDraft::new(EventKind::DiskQueueFailed, entry.label(), text).with("detail", detail)
}

/// Returns the event that a disk is not open because its store does not respond.
pub(super) fn opening_stalled_event(entry: &DiskEntry) -> EventDraft {
    let store = entry.lock().required.config.store.clone();
    let text = format!(
        "Store {store} does not respond; the disk opens when it responds. Check the device of the \
         store."
    );
    EventDraft::new(EventKind::DiskOpeningStalled, entry.label(), text).with("store", store)
}

fn violation(entry: &DiskEntry, detail: &str) -> EventDraft {
    let text = format!(
        "Connection or queue closed after a protocol violation by the client: {detail}. Reset the \
         VM or reconnect the client, and update its driver, VMM or client."
    );
    EventDraft::new(EventKind::DiskProtocolViolation, entry.label(), text).with("detail", detail)
}
