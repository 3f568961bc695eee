//! NBD exports: sockets, and which disks are offered on each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use suimon_ports::{DeviceError, DiskDevices, DiskExports, DiskListener, DiskQueue, ExportedDisk};
use suimon_quantity::DiskId;

use super::plane::DiskPlane;

/// All sockets.
pub(crate) struct Exports {
    plane: Arc<dyn DiskPlane>,
    devices: Arc<dyn DiskDevices>,
    sockets: Mutex<BTreeMap<PathBuf, Socket>>,
}

struct Socket {
    offered: Arc<Offered>,
    /// Held for as long as clients may come.
    _listener: Box<dyn DiskListener>,
}

/// What one socket offers.
struct Offered {
    plane: Arc<dyn DiskPlane>,
    disks: Mutex<BTreeMap<String, (DiskId, ExportedDisk)>>,
}

impl Exports {
    pub(crate) fn new(plane: Arc<dyn DiskPlane>, devices: Arc<dyn DiskDevices>) -> Self {
        Self { plane, devices, sockets: Mutex::default() }
    }

    /// Offers a disk on a socket, or offers it there as it is now.
    pub(crate) fn offer(
        &self,
        socket: &Path,
        disk: DiskId,
        exported: ExportedDisk,
    ) -> Result<(), DeviceError> {
        let mut sockets = self.lock();
        if let Some(open) = sockets.get(socket) {
            open.offered.lock().insert(exported.name.clone(), (disk, exported));
            return Ok(());
        }
        let disks = BTreeMap::from([(exported.name.clone(), (disk, exported))]);
        let offered = Arc::new(Offered { plane: self.plane.clone(), disks: Mutex::new(disks) });
        let listener = self.devices.listen_nbd(socket, offered.clone())?;
        sockets.insert(socket.to_owned(), Socket { offered, _listener: listener });
        Ok(())
    }

    /// Offers a disk on a socket no more. Its clients go on until the disk is closed, or
    /// they are ended.
    pub(crate) fn withdraw(&self, socket: &Path, name: &str) {
        let mut sockets = self.lock();
        let Some(open) = sockets.get(socket) else { return };
        open.offered.lock().remove(name);
        let is_empty = open.offered.lock().is_empty();
        if is_empty {
            sockets.remove(socket);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Socket>> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Offered {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, (DiskId, ExportedDisk)>> {
        self.disks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DiskExports for Offered {
    fn exports(&self) -> Vec<ExportedDisk> {
        self.lock().values().map(|(_, exported)| exported.clone()).collect()
    }

    fn attach(&self, name: &str, queue: Box<dyn DiskQueue>) -> Result<(), String> {
        let disk = self.lock().get(name).map(|(disk, _)| *disk);
        let disk = disk.ok_or_else(|| "the disk is not offered any more".to_owned())?;
        self.plane.attach_client(disk, queue).map(|_| ()).map_err(|error| error.to_string())
    }
}
