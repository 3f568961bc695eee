//! Brings what disks are offered by to the node.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use suimon_confine::{Confinement, Role};
use suimon_nbd_client::NbdConnection;
use suimon_nbd_server::{NbdHost, serve_stream};
use suimon_node::DiskParts;
use suimon_ports::{
    DeviceError, DeviceErrorKind, DiskClient, DiskDevice, DiskDevices, DiskExports, DiskListener,
    DiskObserver, DiskQueueHost, NbdClient, NbdServerSpec, ThreadStart, VhostUserDiskSpec,
    VhostUserDiskStatus,
};
use suimon_quantity::DiskId;
use suimon_redo::FileRecords;
use suimon_storage::StoragePlane;
use suimon_uring::{HostStores, UringSource};
use suimon_vhost_user::{VhostUserDisk, VhostUserThreads};

use crate::nbd_listener::{self, Exports, Listener};
use crate::socket_threads::SocketThreads;

/// What follows the name of the API's socket in that of the folder beside it where changes of images'
/// metadata outlive the daemon.
const REDO_ENDING: &str = ".redo";

/// Folder of the records of acknowledged writes, beside the API's socket.
pub(crate) fn redo_folder(socket: &Path) -> PathBuf {
    let mut folder = socket.as_os_str().to_owned();
    folder.push(REDO_ENDING);
    folder.into()
}

/// What disks of this host need: `plane` serves them, `threads` serve their sockets, files and random
/// numbers are the system's, and changes of images' metadata are kept beside the API's socket, which no other daemon
/// has.
///
/// # Errors
/// The folder of those changes cannot be made, or is somebody else's.
pub fn host_disks(
    plane: StoragePlane,
    confinement: &Confinement,
    threads: SocketThreads,
    socket: &Path,
) -> io::Result<DiskParts> {
    let folder = redo_folder(socket);
    let records = FileRecords::open(&folder)?;
    if let Err(error) = records.sweep() {
        tracing::warn!(folder = %folder.display(), %error, "records of images stay behind");
    }
    Ok(DiskParts {
        plane: Arc::new(plane),
        devices: Arc::new(HostDisks::new(confinement, threads)),
        stores: Arc::new(HostStores),
        io: Arc::new(UringSource),
        random: Arc::new(random),
        records: Some(Arc::new(records)),
    })
}

/// Sockets of VMs' disks and of NBD clients.
pub(crate) struct HostDisks {
    /// Serve disks over vhost-user.
    threads: VhostUserThreads,
    /// What NBD servers share, without what they offer.
    nbd: NbdHost,
    /// Confines threads that read what NBD servers of other nodes send.
    on_client_start: ThreadStart,
}

impl HostDisks {
    /// Nothing is open yet.
    pub(crate) fn new(confinement: &Confinement, threads: SocketThreads) -> Self {
        let confinement = confinement.clone();
        let on_client_start: ThreadStart =
            Arc::new(move || confinement.confine_thread(Role::NbdServer).map_err(Into::into));
        let nbd = NbdHost::new(Arc::new(Exports::nothing()), threads.nbd);
        Self { threads: threads.vhost_user, nbd, on_client_start }
    }
}

impl DiskDevices for HostDisks {
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
    ) -> Result<Box<dyn DiskListener>, DeviceError> {
        let host = NbdHost { exports: Arc::new(Exports::new(exports)), ..self.nbd.clone() };
        Ok(Box::new(Listener::open(spec, host)?))
    }

    fn serve_nbd(
        &self,
        stream: OwnedFd,
        peer: &str,
        exports: Arc<dyn DiskExports>,
    ) -> Result<(), DeviceError> {
        let host = NbdHost { exports: Arc::new(Exports::new(exports)), ..self.nbd.clone() };
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
}

/// What is wrong with a connection that somebody else has made.
fn of_connection(error: &std::io::Error) -> DeviceError {
    let detail = format!("the connection by which the disk is copied: {error}");
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

/// From the kernel's generator, which every kernel that is new enough for io_uring has.
pub(crate) fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        // Interrupted at most: nothing else can be wrong with memory of one's own.
        filled += rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty()).unwrap_or(0);
    }
    bytes
}
