//! Disks that go to another node with their VM while it runs, and disks that come.
//!
//! Where the VM runs a [`DiskMirror`] copies; where it goes to a [`ServedDisk`] takes what is
//! copied, over NBD on a connection that both nodes have made. As long as either is there
//! nothing else is done to the disk.

use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use suimon_contract::{ApiError, ErrorCode, Kind, Name, StorageState};
use suimon_image::Shape;
use suimon_ports::{DeviceError, DiskClient, DiskExports, DiskQueue, ExportedDisk, NbdNotice};
use suimon_quantity::DiskId;
use suimon_storage::mirror::{Mirror, MirrorError, MirrorProgress};
use suimon_storage::{DirtyMap, Freeing};

use super::entry::{DiskEntry, Moving};
use super::pausing::plane_error;
use super::plane::DiskPlane;
use super::work::check_idle;
use crate::checks::error_code;
use crate::edit::not_found;
use crate::shared::Shared;

/// As long as it lives, a disk is noted as one that is copied, and the plane knows.
struct Marked {
    shared: Arc<Shared>,
    entry: Arc<DiskEntry>,
    /// The plane was told.
    is_begun: bool,
}

impl Marked {
    /// Marks a disk that works, and to which nothing else is done.
    fn new(shared: &Arc<Shared>, disk: &Name, way: Moving) -> Result<(Self, Shape), ApiError> {
        let entry = shared.disks.find(disk).ok_or_else(|| not_found(Kind::Disk, disk))?;
        check_idle(&entry)?;
        let shape = {
            let mut state = entry.lock();
            let shape = match (state.condition(), &state.open) {
                ((StorageState::Ready, _), Some(open)) => open.shape,
                ((_, reason), _) => {
                    let text = format!("the disk does not work: {}", reason.unwrap_or_default());
                    return Err(ApiError::new(ErrorCode::Conflict, text).about(entry.label()));
                }
            };
            if way == Moving::CopiedFrom && state.wanted.config.read_only {
                let text = "the disk is read-only, and nothing can be copied to it";
                return Err(ApiError::new(ErrorCode::Conflict, text).about(entry.label()));
            }
            // Somebody may have been quicker.
            if state.work.is_some() || state.moving.is_some() {
                let text = "something else is being done to the disk; try again when it is over";
                return Err(ApiError::new(ErrorCode::Conflict, text).about(entry.label()));
            }
            state.moving = Some(way);
            shape
        };
        Ok((Self { shared: Arc::clone(shared), entry, is_begun: false }, shape))
    }

    fn begin(&mut self, dirty: Option<Arc<DirtyMap>>) -> Result<(), ApiError> {
        let begun = self.plane().begin_mirror(self.entry.id, dirty);
        begun.map_err(|error| plane_error(&self.entry, &error))?;
        self.is_begun = true;
        Ok(())
    }

    fn plane(&self) -> &Arc<dyn DiskPlane> {
        &self.shared.disks.parts.plane
    }

    /// The plane has nothing under way of it any more, unless the store does not answer.
    fn end(&self) -> Result<(), ApiError> {
        if !self.is_begun {
            return Ok(());
        }
        self.plane().end_mirror(self.entry.id).map_err(|error| plane_error(&self.entry, &error))
    }

    fn device_error(&self, error: DeviceError) -> ApiError {
        ApiError::new(error_code(error.kind), error.detail).about(self.entry.label())
    }
}

impl Drop for Marked {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            tracing::warn!(%error, "a disk's being copied ends later");
        }
        self.entry.lock().moving = None;
    }
}

/// The one disk that is offered on a connection.
struct Offer {
    plane: Arc<dyn DiskPlane>,
    disk: DiskId,
    exported: ExportedDisk,
    /// Whether nobody comes in any more.
    is_over: Mutex<bool>,
}

impl Offer {
    fn new(marked: &Marked, shape: Shape, is_read_only: bool) -> Arc<Self> {
        let Freeing { can_discard, can_zero_fast } = marked.entry.lock().freeing;
        let exported = ExportedDisk {
            name: marked.entry.name.to_string(),
            bytes: shape.size,
            sector_bytes: shape.logical_sector,
            is_read_only,
            can_discard,
            can_zero_fast,
        };
        let plane = Arc::clone(marked.plane());
        Arc::new(Self { plane, disk: marked.entry.id, exported, is_over: Mutex::new(false) })
    }

    /// Lets nobody in from now on.
    fn end(&self) {
        *self.is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }
}

impl DiskExports for Offer {
    fn exports(&self) -> Vec<ExportedDisk> {
        vec![self.exported.clone()]
    }

    fn attach(&self, _name: &str, queue: Box<dyn DiskQueue>) -> Result<(), String> {
        let is_over = self.is_over.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_over {
            return Err("the disk is copied no more".to_owned());
        }
        self.plane.attach_mirror(self.disk, queue).map_err(|error| error.to_string())
    }

    fn handle_notice(&self, notice: NbdNotice) {
        // Whoever copies hears of it by the connection.
        tracing::info!(?notice, "of a connection by which a disk is copied");
    }
}

/// A disk to which another node copies. Dropping it ends the connection.
pub struct ServedDisk {
    marked: Marked,
    offer: Arc<Offer>,
    stream: UnixStream,
}

impl ServedDisk {
    /// Serves a disk, for reading and writing, over NBD on this connection, under its name.
    /// It returns at once. What is written is held to none of the disk's limits.
    ///
    /// # Errors
    /// There is no such disk, it does not work, something else is being done to it, or
    /// descriptors are short.
    pub(crate) fn start(
        shared: &Arc<Shared>,
        disk: &Name,
        stream: OwnedFd,
    ) -> Result<Self, ApiError> {
        let (mut marked, shape) = Marked::new(shared, disk, Moving::CopiedFrom)?;
        let stream = UnixStream::from(stream);
        let own = stream.try_clone().map_err(|error| host_error(&marked.entry, &error))?;
        marked.begin(None)?;
        let offer = Offer::new(&marked, shape, false);
        let devices = &marked.shared.disks.parts.devices;
        let served = devices.serve_nbd(stream.into(), "another node", offer.clone());
        served.map_err(|error| marked.device_error(error))?;
        Ok(Self { marked, offer, stream: own })
    }

    /// Ends the connection, and waits until nothing that came by it is under way: nobody
    /// writes to the disk any more.
    ///
    /// # Errors
    /// The disk's store does not answer, so that something may still be written. It may be
    /// tried again.
    pub fn end(&self) -> Result<(), ApiError> {
        self.offer.end();
        // One that has ended is gone.
        let _ = self.stream.shutdown(Shutdown::Both);
        self.marked.end()
    }
}

impl Drop for ServedDisk {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            tracing::warn!(%error, "what another node has copied may still be written");
        }
    }
}

/// A disk in use that is copied to another node. Dropping it ends that, in whatever state it
/// is; the disk's clients notice nothing.
pub struct DiskMirror {
    /// Dropped first: it uses the others.
    mirror: Option<Mirror>,
    offer: Arc<Offer>,
    marked: Marked,
}

impl DiskMirror {
    /// Begins to copy a disk, with what is written to it from now on, to the one of the same
    /// name that the other node serves over NBD on this connection; that one is as long, and
    /// reads as zeros. Waits some seconds for the other node.
    ///
    /// # Errors
    /// There is no such disk, it does not work, something else is being done to it, or the
    /// other node does not serve such a disk.
    pub(crate) fn start(
        shared: &Arc<Shared>,
        disk: &Name,
        stream: OwnedFd,
    ) -> Result<Self, ApiError> {
        let (mut marked, shape) = Marked::new(shared, disk, Moving::CopiedTo)?;
        let dirty = Arc::new(DirtyMap::new(shape.size));
        // From now on nothing that changes is missed.
        marked.begin(Some(Arc::clone(&dirty)))?;
        let offer = Offer::new(&marked, shape, true);
        match Self::connect(&marked, &offer, stream, dirty) {
            Ok(mirror) => Ok(Self { mirror: Some(mirror), offer, marked }),
            Err(error) => {
                offer.end();
                Err(error)
            }
        }
    }

    /// Both ends of the copying are NBD: what is copied is read as one of the disk's clients
    /// would read it.
    fn connect(
        marked: &Marked,
        offer: &Arc<Offer>,
        stream: OwnedFd,
        dirty: Arc<DirtyMap>,
    ) -> Result<Mirror, ApiError> {
        let (inside, ours) =
            UnixStream::pair().map_err(|error| host_error(&marked.entry, &error))?;
        let devices = &marked.shared.disks.parts.devices;
        let connect = |stream: OwnedFd, writes: bool| {
            let connected = devices.connect_nbd(stream, marked.entry.name.as_str(), writes);
            connected.map_err(|error| marked.device_error(error))
        };
        let served = devices.serve_nbd(inside.into(), "the node's own copying", offer.clone());
        served.map_err(|error| marked.device_error(error))?;
        let own: Box<dyn DiskClient> = connect(ours.into(), false)?;
        let copy = connect(stream, true)?;
        let mirror = Mirror::start(own, copy, dirty);
        mirror.map_err(|error| mirror_error(&marked.entry, &error))
    }

    /// How far it is.
    #[must_use]
    pub fn progress(&self) -> MirrorProgress {
        self.mirror.as_ref().map(Mirror::progress).unwrap_or_default()
    }

    /// The disk's VM stands still: waits until the disk has no request under way, copies all
    /// that is left, and has the other node make it durable. Afterwards both disks are the
    /// same, until something is written; the mirror goes on, so that it may be finished again.
    ///
    /// # Errors
    /// It did not get there by `until`, or copying has failed.
    pub fn finish(&self, until: Instant) -> Result<(), ApiError> {
        let Some(mirror) = &self.mirror else { return Ok(()) };
        let under_way = || {
            let requests = self.marked.plane().under_way(self.marked.entry.id);
            requests.map_err(|error| MirrorError::Ended(error.to_string()))
        };
        let finished = mirror.finish(until, under_way);
        finished.map_err(|error| mirror_error(&self.marked.entry, &error))
    }
}

impl Drop for DiskMirror {
    fn drop(&mut self) {
        self.offer.end();
        drop(self.mirror.take());
    }
}

fn mirror_error(entry: &DiskEntry, error: &MirrorError) -> ApiError {
    let text = format!("it could not be copied to the other node: {error}");
    ApiError::new(ErrorCode::HostError, text).about(entry.label())
}

fn host_error(entry: &DiskEntry, error: &std::io::Error) -> ApiError {
    ApiError::new(ErrorCode::HostError, error.to_string()).about(entry.label())
}
