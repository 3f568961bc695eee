//! Copies a disk to another one while it is in use, as nodes do for migration, but without nodes.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use suimon_nbd::Export;
use suimon_nbd_client::NbdConnection;
use suimon_nbd_server::{NbdExports, NbdQueue, NbdServerContext, serve_stream};
use suimon_ports::ThreadInit;
use suimon_storage::StoragePlane;
use suimon_storage::mirror::{Mirror, MirrorError, MirrorProgress};
use suimon_storage_engine::DirtyMap;

use crate::exports::DiskExports;
use crate::worker::OpenedDisk;

/// Exports of the NBD connection for the copy: the destination disk only.
struct Offer {
    plane: StoragePlane,
    disk: OpenedDisk,
    export: Export,
}

impl NbdExports for Offer {
    fn exports(&self) -> Vec<Export> {
        vec![self.export.clone()]
    }

    fn attach(&self, _name: &str, queue: NbdQueue) -> Result<(), String> {
        let attached = self.plane.attach_mirror(self.disk.id(), Box::new(queue));
        attached.map_err(|error| error.to_string())
    }
}

fn serve(exports: &DiskExports, disk: OpenedDisk, stream: UnixStream) -> Result<String> {
    let export = exports.export_of(disk).context("there is no such disk")?;
    let name = export.name().to_owned();
    let plane = exports.worker().storage().clone();
    let host = NbdServerContext::new(Arc::new(Offer { plane, disk, export }), exports.runtime());
    serve_stream(stream.into(), "a test", &host);
    Ok(name)
}

/// Connects an ordinary NBD client to a disk.
///
/// # Errors
/// The disk does not exist, or the process has no descriptor left.
pub fn used(exports: &Arc<DiskExports>, disk: OpenedDisk) -> Result<NbdConnection> {
    let export = exports.export_of(disk).context("there is no such disk")?;
    let (server_end, client_end) = UnixStream::pair()?;
    serve_stream(server_end.into(), "a test", &exports.nbd());
    Ok(NbdConnection::connect(client_end.into(), export.name(), true, &start())?)
}

fn start() -> ThreadInit {
    Arc::new(|| Ok(()))
}

/// Destination disk of a copy. Dropping it ends the copy.
pub struct ServedCopy {
    exports: Arc<DiskExports>,
    disk: OpenedDisk,
    name: String,
}

impl ServedCopy {
    /// Serves the destination disk on a connection.
    ///
    /// # Errors
    /// The disk is already used by a copy.
    pub fn start(exports: &Arc<DiskExports>, disk: OpenedDisk, stream: UnixStream) -> Result<Self> {
        exports.worker().storage().begin_mirror(disk.id(), None)?;
        let name = serve(exports, disk, stream)?;
        Ok(Self { exports: Arc::clone(exports), disk, name })
    }

    /// Returns the export name of the disk on the connection.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for ServedCopy {
    fn drop(&mut self) {
        let _ = self.exports.worker().storage().end_mirror(self.disk.id());
    }
}

/// Source disk of a copy. Dropping it ends the copy.
pub struct CopiedDisk {
    mirror: Option<Mirror>,
    exports: Arc<DiskExports>,
    disk: OpenedDisk,
}

impl CopiedDisk {
    /// Starts to copy a disk to the export `name` at the other end of the connection.
    ///
    /// # Errors
    /// The disk is already being copied, or the other end does not serve such an export.
    pub fn start(
        exports: &Arc<DiskExports>,
        disk: OpenedDisk,
        name: &str,
        stream: UnixStream,
    ) -> Result<Self> {
        let size = exports.export_of(disk).context("there is no such disk")?.size();
        let dirty = Arc::new(DirtyMap::new(size));
        exports.worker().storage().begin_mirror(disk.id(), Some(Arc::clone(&dirty)))?;
        let mut copied = Self { mirror: None, exports: Arc::clone(exports), disk };
        let (server_end, client_end) = UnixStream::pair()?;
        let disk_name = serve(exports, disk, server_end)?;
        let connection = NbdConnection::connect(client_end.into(), &disk_name, false, &start())?;
        let copy = NbdConnection::connect(stream.into(), name, true, &start())?;
        copied.mirror = Some(Mirror::start(Box::new(connection), Box::new(copy), dirty)?);
        Ok(copied)
    }

    /// Returns the progress of the copy.
    #[must_use]
    pub fn progress(&self) -> MirrorProgress {
        self.mirror.as_ref().map(Mirror::progress).unwrap_or_default()
    }

    /// Copies the remaining data. The clients of the disk must not issue requests meanwhile.
    ///
    /// # Errors
    /// The copy is not complete in time, or it has failed.
    pub fn finish(&self, until: Instant) -> Result<(), MirrorError> {
        let storage = self.exports.worker().storage();
        let under_way = || {
            let requests = storage.requests_in_flight(self.disk.id());
            requests.map_err(|error| MirrorError::ConnectionClosed(error.to_string()))
        };
        self.mirror.as_ref().map_or(Ok(()), |mirror| mirror.finish(until, under_way))
    }
}

impl Drop for CopiedDisk {
    fn drop(&mut self) {
        drop(self.mirror.take());
        let _ = self.exports.worker().storage().end_mirror(self.disk.id());
    }
}
