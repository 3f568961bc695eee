//! Disks whose files both nodes see: they are handed over with their VM and not copied.
//!
//! ```text
//! leaves:  in service ── let go: suspended, closed ──► away ── the VM is the other's ──► deleted
//!              ▲                                        │      (its file stays)
//!              └────────── taken back: opened ──────────┘
//! comes:   away, without images ── opened ──► in service ── recorded ──► this node's
//!              ▲                                 │
//!              └─────────── closed again ────────┘
//! ```
//!
//! The node that a VM leaves has closed a file before it tells the other to run the VM, and opens
//! it again only when that has said that it never will. So one of both has it open at most. As
//! long as a disk is away, nothing in this process opens or removes its file, whoever asks.

use std::sync::Arc;
use std::time::Instant;

use suimon_contract::{ApiError, DiskHandedOver, ErrorCode, Kind, Name, StorageState};
use suimon_image::Shape;
use suimon_storage::images::{self, LeftRecords};
use suimon_storage::{DiskSpec, NotResumed, PlaneError};

use super::entry::{DiskEntry, Moving, OpenDisk};
use super::file_work::Opened;
use super::left_locks::{LEFT_LOCKS_MAX, until_unlocked};
use super::notices::disk_failed;
use super::opening::{NotOpened, disk_error};
use super::pausing::plane_error;
use super::store_threads::STORE_PATIENCE;
use super::work::check_idle;
use crate::control::Controller;
use crate::edit::not_found;
use crate::shared::Shared;

/// A disk of a VM that leaves. Dropped before it was let go of, it is a disk as any other again;
/// afterwards it stays away, until it was taken back.
pub(crate) struct DiskToHandOver {
    shared: Arc<Shared>,
    entry: Arc<DiskEntry>,
}

impl DiskToHandOver {
    /// From now on nothing else is done to the disk.
    ///
    /// # Errors
    /// There is no such disk, it does not work, or something else is being done to it.
    pub(crate) fn begin(shared: &Arc<Shared>, disk: &Name) -> Result<Self, ApiError> {
        let entry = shared.disks.find(disk).ok_or_else(|| not_found(Kind::Disk, disk))?;
        check_idle(&entry)?;
        {
            let mut state = entry.lock();
            let text = match state.condition() {
                (StorageState::Ready, _) if state.work.is_some() || state.moving.is_some() => {
                    Some("something else is being done to it; try again when it is over".to_owned())
                }
                (StorageState::Ready, _) => None,
                (_, reason) => {
                    Some(format!("the disk does not work: {}", reason.unwrap_or_default()))
                }
            };
            if let Some(text) = text {
                return Err(ApiError::new(ErrorCode::Conflict, text).about(entry.label()));
            }
            state.moving = Some(Moving::HandedTo);
        }
        Ok(Self { shared: Arc::clone(shared), entry })
    }

    /// The disk's VM stands still: what was asked of it has ended and is durable when this
    /// returns, and the file is closed. Other clients find a pause.
    ///
    /// # Errors
    /// It is not, or its store does not answer. The disk may be away all the same.
    pub(crate) fn let_go(&self) -> Result<(), ApiError> {
        let plane = &self.shared.disks.parts.plane;
        let spec = plane.suspend_disk(self.entry.id);
        let spec = spec.map_err(|error| plane_error(&self.entry, &error))?;
        self.entry.lock().moving = Some(Moving::GoneTo);
        self.shared.close_now(&self.entry, spec)
    }

    /// It never becomes the other node's: it is opened again and goes on, if it was let go of.
    ///
    /// # Errors
    /// It cannot be opened; whoever tries that again is to be told.
    pub(crate) fn take_back(&self) -> Result<(), ApiError> {
        if !self.entry.is_away() {
            return Ok(());
        }
        let opened = self.shared.open_suspended(&self.entry, None);
        self.entry.lock().moving = Some(Moving::HandedTo);
        opened
    }

    pub(crate) fn name(&self) -> &Name {
        &self.entry.name
    }
}

impl Drop for DiskToHandOver {
    fn drop(&mut self) {
        let mut state = self.entry.lock();
        if state.moving == Some(Moving::HandedTo) {
            state.moving = None;
        }
    }
}

impl Shared {
    /// What a guest sees of a disk in service, for the node that takes it over.
    pub(crate) fn handed_over(&self, disk: &Name) -> Option<DiskHandedOver> {
        let shape = self.disks.find(disk)?.lock().open.as_ref().map(|open| open.shape)?;
        Some(DiskHandedOver {
            name: disk.clone(),
            size_bytes: shape.size,
            logical_sector: shape.logical_sector,
            physical_sector: shape.physical_sector,
        })
    }

    /// Opens a disk whose VM has come, which the other node has closed. It stays marked as that
    /// node's until [`Self::keep_awaited`].
    ///
    /// # Errors
    /// It cannot be opened, or is not the disk that the guest knows; it is closed.
    pub(crate) fn open_awaited(&self, disk: &Name) -> Result<(), ApiError> {
        let entry = self.disks.find(disk).ok_or_else(|| not_found(Kind::Disk, disk))?;
        let known = {
            let state = entry.lock();
            let is_awaited = state.moving == Some(Moving::ComesFrom);
            state.open.as_ref().filter(|_| is_awaited).map(|open| open.shape)
        };
        let Some(known) = known else {
            let text = "the disk is not waited for any more";
            return Err(ApiError::new(ErrorCode::Conflict, text).about(entry.label()));
        };
        self.open_suspended(&entry, Some(known))
    }

    /// Closes a disk again that was opened for a VM which does not come after all.
    ///
    /// # Errors
    /// Its store does not answer; it is closed when that does.
    pub(crate) fn close_awaited(&self, disk: &Name) -> Result<(), ApiError> {
        let Some(entry) = self.disks.find(disk) else { return Ok(()) };
        match self.disks.parts.plane.suspend_disk(entry.id) {
            Ok(spec) => self.close_now(&entry, spec),
            Err(PlaneError::Suspended | PlaneError::NoSuchDisk) => Ok(()),
            Err(error) => Err(plane_error(&entry, &error)),
        }
    }

    /// The VM is this node's, and the disk with it.
    pub(crate) fn keep_awaited(&self, disk: &Name) {
        if let Some(entry) = self.disks.find(disk) {
            entry.lock().moving = None;
        }
    }

    /// A daemon before this one may have handed it over, and it stays here after all. Returns
    /// whether it is to be opened.
    pub(crate) fn end_being_away(&self, disk: &Name) -> bool {
        let Some(entry) = self.disks.find(disk) else { return false };
        let mut state = entry.lock();
        let was_away = state.moving.is_some_and(Moving::is_away);
        state.moving = None;
        was_away
    }

    /// Closes images, and is told whether they were.
    fn close_now(&self, entry: &DiskEntry, spec: DiskSpec) -> Result<(), ApiError> {
        let label = entry.label();
        let close = move || images::close(spec, &label).map_err(|error| disk_error(&label, &error));
        self.with_store(entry, close, drop)?
    }

    /// Gives a suspended disk its images, as those of a guest that knows this shape.
    fn open_suspended(&self, entry: &DiskEntry, known: Option<Shape>) -> Result<(), ApiError> {
        let is_busy = |error: &ApiError| error.code == ErrorCode::DeviceBusy;
        let open = || self.try_to_open_suspended(entry, known);
        until_unlocked(Instant::now() + LEFT_LOCKS_MAX, is_busy, open)
    }

    fn try_to_open_suspended(
        &self,
        entry: &DiskEntry,
        known: Option<Shape>,
    ) -> Result<(), ApiError> {
        let mut work = self.file_work(entry);
        let wanted = work.wanted.clone();
        if known.is_some() {
            // What a daemon before this one had answered, the other node may have overwritten.
            work.left = LeftRecords::Discard;
        }
        let open = move || {
            let files = work.files()?;
            let images = work.open_images(&files)?;
            Ok(Opened { work, files, images, is_made: false })
        };
        let Opened { files, images, .. } =
            self.with_store(entry, open, Opened::take_back_result)??;
        let images::OpenedDisk { spec, kind, shape, layers, .. } = images;
        let sees = |shape: &Shape| (shape.size, shape.logical_sector, shape.physical_sector);
        if known.is_some_and(|known| sees(&known) != sees(&shape)) {
            self.close_images(entry, &wanted, spec);
            let text = format!(
                "the file is a disk of {} bytes with sectors of {} and {} bytes, and not what the \
                 VM's guest knows",
                shape.size, shape.logical_sector, shape.physical_sector
            );
            return Err(ApiError::new(ErrorCode::HostError, text).about(entry.label()));
        }
        entry.lock().freeing = spec.freeing();
        let resumed = self.disks.parts.plane.resume_disk(entry.id, spec);
        if let Err(NotResumed { error, spec }) = resumed {
            if let Some(spec) = spec {
                self.close_images(entry, &wanted, spec);
            }
            return Err(plane_error(entry, &error));
        }
        if let Some(open) = &mut entry.lock().open {
            (open.kind, open.shape) = (Some(kind), shape);
            (open.files, open.layers) = (files, layers);
        }
        Ok(())
    }
}

impl Controller {
    /// Offers a disk of a VM that comes, whose file another node still has: its VM can connect,
    /// and its requests wait.
    pub(super) fn await_disk(&mut self, entry: &DiskEntry, shape: Shape) -> Result<(), ApiError> {
        let (wanted, generation) = {
            let mut state = entry.lock();
            state.generation += 1;
            (state.wanted.clone(), state.generation)
        };
        let work = self.shared.file_work(entry);
        let files = self.shared.with_store(entry, move || work.files(), drop)??;
        let disks = &self.shared.disks;
        let store = disks.store_id(&wanted.config.store);
        let added = disks.parts.plane.add_disk(entry.id, DiskSpec { layers: Vec::new() }, store);
        disks.apply_full_policy(entry);
        added.map_err(|error| plane_error(entry, &error))?;
        let device = self
            .offer(entry, &wanted, shape, generation)
            .inspect_err(|_| self.take_out(entry, &wanted))?;
        entry.lock().open = Some(OpenDisk { kind: None, shape, files, layers: Vec::new(), device });
        Ok(())
    }

    /// Goes on with a disk that stays here after all: opens it, or has it tried again if `failure`
    /// says why it could not be opened.
    pub(crate) fn bring_back(&mut self, disk: &Name, failure: Option<String>) {
        let Some(entry) = self.shared.disks.find(disk) else { return };
        let reason = match failure {
            Some(reason) => {
                // Not closed before it is tried again: its VM has just gone on, and may be starting
                // the device (see `fail_disk`).
                self.drafts.push(disk_failed(&entry, &reason));
                entry.lock().failing.fail(Instant::now(), self.devices.retry_first, reason);
                return;
            }
            None if entry.lock().open.is_some() => return,
            None => match self.open_disk_in_the_end(&entry, STORE_PATIENCE) {
                Err(NotOpened::Failed(error)) => error.to_string(),
                Ok(()) | Err(NotOpened::Waits) => return,
            },
        };
        self.drafts.push(disk_failed(&entry, &reason));
        self.fail_disk(&entry, reason);
    }
}
