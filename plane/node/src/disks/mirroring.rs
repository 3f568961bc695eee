//! Copying of disks during a migration of their running VM.
//!
//! On the source a [`DiskMirror`] copies the disk. On the destination a [`ServedDisk`] accepts the
//! data over NBD, on a connection that the nodes have established. Other operations on the disk are
//! rejected meanwhile.

use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use suimon_contract::{ApiError, ErrorCode, Name, ResourceKind, StorageState};
use suimon_image::DiskGeometry;
use suimon_image_files::DiscardSupport;
use suimon_ports::{
    DeviceError, DiskClient, DiskExports, DiskQueue, ExportedDisk, NbdLimits, NbdNotice,
};
use suimon_quantity::DiskId;
use suimon_storage::mirror::{Mirror, MirrorError, MirrorProgress};
use suimon_storage_engine::DirtyMap;

use super::entry::{DiskEntry, DiskMigrationState};
use super::plane::DiskPlane;
use super::work::check_idle;
use crate::disks::entry::plane_error;
use crate::errors::{error_code, not_found};
use crate::shared::Shared;

/// Mark of a disk that is being copied, in the node and in the storage plane. Dropping it removes
/// the mark.
struct MirrorMark {
    shared: Arc<Shared>,
    entry: Arc<DiskEntry>,
    /// True if the storage plane was notified.
    is_begun: bool,
}

impl MirrorMark {
    /// Marks a disk that is ready and not used by another operation. Returns the mark and the
    /// disk's guest-visible properties.
    ///
    /// # Errors
    /// Fails if there is no such disk, it is not ready, another operation uses it, or it is
    /// read-only and the destination.
    fn new(
        shared: &Arc<Shared>,
        disk: &Name,
        mode: DiskMigrationState,
    ) -> Result<(Self, DiskGeometry), ApiError> {
        let entry = shared.disks.find(disk).ok_or_else(|| not_found(ResourceKind::Disk, disk))?;
        check_idle(&entry)?;
        let shape = {
            let mut state = entry.lock();
            let shape = match (state.condition(), &state.open) {
                ((StorageState::Ready, _), Some(open)) => open.geometry,
                ((_, reason), _) => {
                    let text =
                        format!("the disk is not in service: {}", reason.unwrap_or_default());
                    return Err(
                        ApiError::new(ErrorCode::Conflict, text).with_resource(entry.label())
                    );
                }
            };
            if mode == DiskMigrationState::CopyIn && state.required.config.read_only {
                let text = "the disk is read-only and cannot be the destination of a copy";
                return Err(ApiError::new(ErrorCode::Conflict, text).with_resource(entry.label()));
            }
            // Another thread may have marked the disk since `check_idle`.
            if state.job.is_some() || state.migration.is_some() {
                let text = "another job on the disk is in progress (`suimon operation list`); \
                            retry when it has ended";
                return Err(ApiError::new(ErrorCode::Conflict, text).with_resource(entry.label()));
            }
            state.migration = Some(mode);
            shape
        };
        Ok((Self { shared: Arc::clone(shared), entry, is_begun: false }, shape))
    }

    fn begin(&mut self, dirty: Option<Arc<DirtyMap>>) -> Result<(), ApiError> {
        let result = self.plane().begin_mirror(self.entry.id, dirty);
        result.map_err(|error| plane_error(&self.entry, &error))?;
        self.is_begun = true;
        Ok(())
    }

    fn plane(&self) -> &Arc<dyn DiskPlane> {
        &self.shared.disks.dependencies.plane
    }

    /// Ends the copying in the storage plane. When this function returns, none of its requests is
    /// in flight.
    ///
    /// # Errors
    /// Fails if the store does not respond.
    fn end(&self) -> Result<(), ApiError> {
        if !self.is_begun {
            return Ok(());
        }
        self.plane().end_mirror(self.entry.id).map_err(|error| plane_error(&self.entry, &error))
    }

    fn device_error(&self, error: DeviceError) -> ApiError {
        ApiError::new(error_code(error.kind), error.detail).with_resource(self.entry.label())
    }
}

impl Drop for MirrorMark {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            tracing::warn!(%error, "the mirror of a disk ends later");
        }
        self.entry.lock().migration = None;
    }
}

/// NBD export of the disk on one connection.
struct MirrorExport {
    plane: Arc<dyn DiskPlane>,
    disk: DiskId,
    exported: ExportedDisk,
    /// True if new connections are rejected.
    is_over: Mutex<bool>,
}

impl MirrorExport {
    fn new(marked: &MirrorMark, shape: DiskGeometry, is_read_only: bool) -> Arc<Self> {
        let DiscardSupport { can_discard, can_zero_fast } = marked.entry.lock().discard_support;
        let exported = ExportedDisk {
            name: marked.entry.name.to_string(),
            size_bytes: shape.size_bytes,
            sector_bytes: shape.logical_sector_bytes,
            is_read_only,
            limits: NbdLimits::EXPORT_DEFAULT,
            can_discard,
            can_zero_fast,
        };
        let plane = Arc::clone(marked.plane());
        Arc::new(Self { plane, disk: marked.entry.id, exported, is_over: Mutex::new(false) })
    }

    /// Rejects new connections from now on.
    fn end(&self) {
        *self.is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }
}

impl DiskExports for MirrorExport {
    fn exports(&self) -> Vec<ExportedDisk> {
        vec![self.exported.clone()]
    }

    fn attach(&self, _name: &str, queue: Box<dyn DiskQueue>) -> Result<(), String> {
        let is_ended = self.is_over.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_ended {
            return Err("mirror of a disk ended".to_owned());
        }
        self.plane.attach_mirror(self.disk, queue).map_err(|error| error.to_string())
    }

    fn handle_notice(&self, notice: NbdNotice) {
        // The copying end detects errors by the connection itself.
        tracing::info!(?notice, "cannot serve a connection that copies a disk");
    }
}

/// Disk to which another node copies its disk of the same name. Dropping it closes the connection.
pub struct ServedDisk {
    marked: MirrorMark,
    offer: Arc<MirrorExport>,
    stream: UnixStream,
}

impl ServedDisk {
    /// Exports a disk for reading and writing over NBD on this connection, under its own name.
    /// Returns at once. Requests of the connection are not subject to the disk's limits.
    ///
    /// # Errors
    /// Fails if there is no such disk, the disk is not ready or is read-only, another operation
    /// uses it, or file descriptors are exhausted.
    pub(crate) fn start(
        shared: &Arc<Shared>,
        disk: &Name,
        stream: OwnedFd,
    ) -> Result<Self, ApiError> {
        let (mut marked, shape) = MirrorMark::new(shared, disk, DiskMigrationState::CopyIn)?;
        let stream = UnixStream::from(stream);
        let stream_copy = stream.try_clone().map_err(|error| host_error(&marked.entry, &error))?;
        marked.begin(None)?;
        let offer = MirrorExport::new(&marked, shape, false);
        let devices = &marked.shared.disks.dependencies.devices;
        let result = devices.serve_nbd(stream.into(), "another node", offer.clone());
        result.map_err(|error| marked.device_error(error))?;
        Ok(Self { marked, offer, stream: stream_copy })
    }

    /// Closes the connection and blocks until none of its requests is in flight. Nothing writes to
    /// the disk afterwards.
    ///
    /// # Errors
    /// Fails if the disk's store does not respond; writes may still be in flight. The call may be
    /// repeated.
    pub fn end(&self) -> Result<(), ApiError> {
        self.offer.end();
        // Fails only if the connection has ended.
        let _ = self.stream.shutdown(Shutdown::Both);
        self.marked.end()
    }
}

impl Drop for ServedDisk {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            tracing::warn!(%error, "writes of the other node's copy may still be in flight");
        }
    }
}

/// Disk in service that is copied to another node. Dropping it ends the copying in any state;
/// clients of the disk are not affected.
pub struct DiskMirror {
    /// Dropped first, because it uses the other fields.
    mirror: Option<Mirror>,
    offer: Arc<MirrorExport>,
    marked: MirrorMark,
}

impl DiskMirror {
    /// Starts to copy a disk, including later writes, to the disk of the same name that the other
    /// node exports over NBD on this connection. That disk must have the same size and read as
    /// zeros. Blocks a few seconds for the NBD negotiation.
    ///
    /// # Errors
    /// Fails if there is no such disk, the disk is not ready, another operation uses it, or the
    /// other node does not export such a disk.
    pub(crate) fn start(
        shared: &Arc<Shared>,
        disk: &Name,
        stream: OwnedFd,
    ) -> Result<Self, ApiError> {
        let (mut marked, shape) = MirrorMark::new(shared, disk, DiskMigrationState::CopyOut)?;
        let dirty = Arc::new(DirtyMap::new(shape.size_bytes));
        // From here on, all writes are marked in the dirty map.
        marked.begin(Some(Arc::clone(&dirty)))?;
        let offer = MirrorExport::new(&marked, shape, true);
        match Self::connect(&marked, &offer, stream, dirty) {
            Ok(mirror) => Ok(Self { mirror: Some(mirror), offer, marked }),
            Err(error) => {
                offer.end();
                Err(error)
            }
        }
    }

    /// Connects both ends of the copying by NBD. The source is read over an internal connection,
    /// like by any client of the disk.
    fn connect(
        marked: &MirrorMark,
        offer: &Arc<MirrorExport>,
        stream: OwnedFd,
        dirty: Arc<DirtyMap>,
    ) -> Result<Mirror, ApiError> {
        let (served_stream, client_stream) =
            UnixStream::pair().map_err(|error| host_error(&marked.entry, &error))?;
        let devices = &marked.shared.disks.dependencies.devices;
        let connect = |stream: OwnedFd, writes: bool| {
            let connected = devices.connect_nbd(stream, marked.entry.name.as_str(), writes);
            connected.map_err(|error| marked.device_error(error))
        };
        let result =
            devices.serve_nbd(served_stream.into(), "the copy of the other node", offer.clone());
        result.map_err(|error| marked.device_error(error))?;
        let local_client: Box<dyn DiskClient> = connect(client_stream.into(), false)?;
        let copy = connect(stream, true)?;
        let mirror = Mirror::start(local_client, copy, dirty);
        mirror.map_err(|error| mirror_error(&marked.entry, &error))
    }

    /// Returns the name of the disk with its kind, for messages.
    pub(crate) fn label(&self) -> String {
        self.marked.entry.label()
    }

    /// Returns the progress of the copying.
    #[must_use]
    pub fn progress(&self) -> MirrorProgress {
        self.mirror.as_ref().map(Mirror::progress).unwrap_or_default()
    }

    /// Completes the copy while the VM is paused: waits until the disk has no request in flight,
    /// copies the remaining changes, and has the other node make them durable. Afterwards both
    /// disks are identical until the next write. The mirror continues, so that the call may be
    /// repeated.
    ///
    /// # Errors
    /// Fails if the copy is not complete at `until`, or copying has failed.
    pub fn finish(&self, until: Instant) -> Result<(), ApiError> {
        let Some(mirror) = &self.mirror else { return Ok(()) };
        let under_way = || {
            let requests = self.marked.plane().in_flight(self.marked.entry.id);
            requests.map_err(|error| MirrorError::ConnectionClosed(error.to_string()))
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
    let text = format!("the disk could not be copied to the other node: {error}");
    ApiError::new(ErrorCode::HostError, text).with_resource(entry.label())
}

fn host_error(entry: &DiskEntry, error: &std::io::Error) -> ApiError {
    ApiError::new(ErrorCode::HostError, error.to_string()).with_resource(entry.label())
}
