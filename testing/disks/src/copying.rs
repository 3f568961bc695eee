//! A disk that is copied to another one while it is used, as nodes do it, without nodes.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use suimon_nbd::Export;
use suimon_nbd_client::NbdConnection;
use suimon_nbd_server::{NbdExports, NbdHost, NbdQueue, serve_stream};
use suimon_ports::ThreadStart;
use suimon_storage::mirror::{Mirror, MirrorError, MirrorProgress};
use suimon_storage::{DirtyMap, StoragePlane};

use crate::exports::DiskExports;
use crate::processor::OpenedDisk;

/// The one disk of a connection by which it is copied.
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
    let plane = exports.processor().storage().clone();
    let host = NbdHost::new(Arc::new(Offer { plane, disk, export }), exports.runtime());
    serve_stream(stream.into(), "a test", &host);
    Ok(name)
}

/// A connection of an ordinary client to a disk.
///
/// # Errors
/// There is no such disk, or descriptors are short.
pub fn used(exports: &Arc<DiskExports>, disk: OpenedDisk) -> Result<NbdConnection> {
    let export = exports.export_of(disk).context("there is no such disk")?;
    let (inside, ours) = UnixStream::pair()?;
    serve_stream(inside.into(), "a test", &exports.nbd());
    Ok(NbdConnection::connect(ours.into(), export.name(), true, &start())?)
}

fn start() -> ThreadStart {
    Arc::new(|| Ok(()))
}

/// A disk to which another is copied. Dropping it ends that.
pub struct ServedCopy {
    exports: Arc<DiskExports>,
    disk: OpenedDisk,
    name: String,
}

impl ServedCopy {
    /// Serves a disk on this connection.
    ///
    /// # Errors
    /// It is copied already.
    pub fn start(exports: &Arc<DiskExports>, disk: OpenedDisk, stream: UnixStream) -> Result<Self> {
        exports.processor().storage().begin_mirror(disk.id(), None)?;
        let name = serve(exports, disk, stream)?;
        Ok(Self { exports: Arc::clone(exports), disk, name })
    }

    /// What the disk is called on the connection.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for ServedCopy {
    fn drop(&mut self) {
        let _ = self.exports.processor().storage().end_mirror(self.disk.id());
    }
}

/// A disk that is copied. Dropping it ends that.
pub struct CopiedDisk {
    mirror: Option<Mirror>,
    exports: Arc<DiskExports>,
    disk: OpenedDisk,
}

impl CopiedDisk {
    /// Copies a disk to the one of this name at the other end of the connection.
    ///
    /// # Errors
    /// It is copied already, or the other end does not serve such a disk.
    pub fn start(
        exports: &Arc<DiskExports>,
        disk: OpenedDisk,
        name: &str,
        stream: UnixStream,
    ) -> Result<Self> {
        let size = exports.export_of(disk).context("there is no such disk")?.size();
        let dirty = Arc::new(DirtyMap::new(size));
        exports.processor().storage().begin_mirror(disk.id(), Some(Arc::clone(&dirty)))?;
        let mut copied = Self { mirror: None, exports: Arc::clone(exports), disk };
        let (inside, ours) = UnixStream::pair()?;
        let own = serve(exports, disk, inside)?;
        let own = NbdConnection::connect(ours.into(), &own, false, &start())?;
        let copy = NbdConnection::connect(stream.into(), name, true, &start())?;
        copied.mirror = Some(Mirror::start(Box::new(own), Box::new(copy), dirty)?);
        Ok(copied)
    }

    /// How far it is.
    #[must_use]
    pub fn progress(&self) -> MirrorProgress {
        self.mirror.as_ref().map(Mirror::progress).unwrap_or_default()
    }

    /// Copies what is left; the disk's clients stand still.
    ///
    /// # Errors
    /// It is not there in time, or copying has failed.
    pub fn finish(&self, until: Instant) -> Result<(), MirrorError> {
        let storage = self.exports.processor().storage();
        let under_way = || {
            let requests = storage.under_way(self.disk.id());
            requests.map_err(|error| MirrorError::Ended(error.to_string()))
        };
        self.mirror.as_ref().map_or(Ok(()), |mirror| mirror.finish(until, under_way))
    }
}

impl Drop for CopiedDisk {
    fn drop(&mut self) {
        drop(self.mirror.take());
        let _ = self.exports.processor().storage().end_mirror(self.disk.id());
    }
}
