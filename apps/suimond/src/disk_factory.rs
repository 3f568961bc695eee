//! Storage, vhost-user disks and NBD servers of the `sys` layer, as the node uses them.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use suimon_confine::{Confinement, ThreadRole};
use suimon_nbd_client::NbdConnection;
use suimon_nbd_server::{NbdServerContext, serve_stream};
use suimon_node::DiskDependencies;
use suimon_ports::{
    DeviceError, DeviceErrorKind, DiskClient, DiskDevice, DiskDeviceFactory, DiskExports,
    DiskObserver, DiskQueueHost, NbdClient, NbdLimits, NbdListener, NbdServerSpec, NbdUsage,
    ThreadInit, VhostUserDiskSpec, VhostUserDiskStatus,
};
use suimon_quantity::DiskId;
use suimon_redo::FileRecords;
use suimon_storage::StoragePlane;
use suimon_uring::{HostStores, UringSource};
use suimon_vhost_user::{VhostUserDisk, VhostUserThreads};

use crate::nbd_listener::{self, Exports, Listener};
use crate::socket_threads::SocketThreads;

/// Suffix appended to the API socket's path for the folder of records that outlive the daemon:
/// acknowledged changes of images' metadata.
const REDO_ENDING: &str = ".redo";

/// Returns the folder of the records of acknowledged writes, beside the API's socket.
pub(crate) fn redo_folder(socket: &Path) -> PathBuf {
    let mut folder = socket.as_os_str().to_owned();
    folder.push(REDO_ENDING);
    folder.into()
}

/// Returns the storage components of this host: `plane` performs I/O, `threads` serve sockets.
/// Files and random numbers are the system's. Records of changes to images' metadata are stored
/// beside the API's socket, which one daemon at a time uses.
///
/// # Errors
/// The folder of the records cannot be created, or belongs to another user.
pub fn host_disks(
    plane: StoragePlane,
    confinement: &Confinement,
    threads: SocketThreads,
    socket: &Path,
) -> io::Result<DiskDependencies> {
    let folder = redo_folder(socket);
    let records = FileRecords::open(&folder)?;
    if let Err(error) = records.remove_stale_records() {
        tracing::warn!(folder = %folder.display(), %error, "cannot remove redo records of images");
    }
    Ok(DiskDependencies {
        plane: Arc::new(plane),
        devices: Arc::new(HostDisks::new(confinement, threads)),
        stores: Arc::new(HostStores),
        file_io: Arc::new(UringSource),
        random: Arc::new(random_bytes),
        redo_records: Some(Arc::new(records)),
    })
}

/// Sockets over which the VMs and NBD clients of the host access disks.
pub(crate) struct HostDisks {
    /// Threads that serve disks over vhost-user.
    threads: VhostUserThreads,
    /// Resources shared by NBD servers.
    nbd: NbdServerContext,
    /// Hook that confines each thread that reads replies of other nodes' NBD servers when the
    /// thread starts.
    on_client_start: ThreadInit,
}

impl HostDisks {
    /// Returns an instance without open sockets.
    pub(crate) fn new(confinement: &Confinement, threads: SocketThreads) -> Self {
        let confinement = confinement.clone();
        let on_client_start: ThreadInit =
            Arc::new(move || confinement.confine_thread(ThreadRole::NbdServer).map_err(Into::into));
        let nbd = NbdServerContext::new(Arc::new(Exports::empty()), threads.nbd);
        Self { threads: threads.vhost_user, nbd, on_client_start }
    }
}

impl DiskDeviceFactory for HostDisks {
    fn probe(&self, spec: &VhostUserDiskSpec) -> Result<(), DeviceError> {
        VhostUserDisk::probe(spec)
    }

    fn open(
        &self,
        disk: DiskId,
        spec: &VhostUserDiskSpec,
        queues: Arc<dyn DiskQueueHost>,
        observer: Arc<dyn DiskObserver>,
    ) -> Result<Box<dyn DiskDevice>, DeviceError> {
        let device = VhostUserDisk::open(disk, spec, queues, observer, &self.threads)?;
        Ok(Box::new(Device(device)))
    }

    fn probe_nbd(&self, spec: &NbdServerSpec) -> Result<(), DeviceError> {
        nbd_listener::probe(spec)
    }

    fn listen_nbd(
        &self,
        spec: &NbdServerSpec,
        exports: Arc<dyn DiskExports>,
    ) -> Result<Box<dyn NbdListener>, DeviceError> {
        let host = self.nbd.with_exports(Arc::new(Exports::new(exports)));
        Ok(Box::new(Listener::open(spec, host)?))
    }

    fn serve_nbd(
        &self,
        stream: OwnedFd,
        peer: &str,
        exports: Arc<dyn DiskExports>,
    ) -> Result<(), DeviceError> {
        let host = self.nbd.with_exports(Arc::new(Exports::new(exports)));
        serve_stream(stream, peer, &host);
        Ok(())
    }

    fn connect_nbd(
        &self,
        stream: OwnedFd,
        name: &str,
        writes: bool,
    ) -> Result<Box<dyn DiskClient>, DeviceError> {
        let connected = NbdConnection::connect(stream, name, writes, &self.on_client_start);
        Ok(Box::new(connected.map_err(|error| of_connection(&error))?))
    }

    fn nbd_clients(&self) -> Vec<NbdClient> {
        self.nbd.clients.list()
    }

    fn set_nbd_limits(&self, host: NbdLimits, peer: NbdLimits) {
        self.nbd.accounting.set_limits(host, peer);
    }

    fn set_nbd_export_limits(&self, export: &str, limits: NbdLimits) {
        self.nbd.accounting.set_export_limits(export, limits);
    }

    fn nbd_usage(&self) -> NbdUsage {
        self.nbd.accounting.usage()
    }
}

/// Returns the error for a connection that was made to copy a disk to another node.
fn of_connection(error: &std::io::Error) -> DeviceError {
    let detail = format!("the connection that copies the disk to another node: {error}");
    DeviceError { kind: DeviceErrorKind::Host, field: "connection", detail }
}

struct Device(VhostUserDisk);

impl DiskDevice for Device {
    fn status(&self) -> VhostUserDiskStatus {
        self.0.status()
    }

    fn resize(&self, bytes: u64) -> Result<(), DeviceError> {
        self.0.resize(bytes)
    }
}

/// Returns random bytes from the kernel's generator, available in every kernel with io_uring.
pub(crate) fn random_bytes() -> [u8; 16] {
    let mut bytes = [0; 16];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        // Retries after an error. An interruption is the only possible one: the buffer is valid.
        filled += rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty()).unwrap_or(0);
    }
    bytes
}
