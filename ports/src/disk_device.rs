//! What a disk is offered by: to a VM, and to clients of other protocols.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use suimon_quantity::DiskId;

use crate::{
    DeviceError, DeviceNotice, DiskClient, DiskQueue, DiskQueueHost, NbdClient, NbdNotice,
    NbdServerSpec, VhostUserMode, VhostUserPromise,
};

/// A disk of a VM over vhost-user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VhostUserDiskSpec {
    /// The Unix socket.
    pub socket: PathBuf,
    /// Who listens on it.
    pub mode: VhostUserMode,
    /// Queues offered, 1 to 64.
    pub queues: u16,
    /// Length of the disk in bytes, a multiple of 512.
    pub bytes: u64,
    /// Bytes of its sectors: offsets and lengths of requests are multiples of this. A
    /// power of two, 512 to 4096.
    pub sector_bytes: u32,
    /// What it is best written in: a power of two times `sector_bytes`, at most 32 768
    /// times.
    pub physical_sector_bytes: u32,
    /// Its serial number, at most 20 bytes of ASCII.
    pub serial: String,
    /// Whether the VM may only read it.
    pub is_read_only: bool,
    /// What a VM that may come back relies on. Not part of what is desired: it is what
    /// [`DeviceNotice::Promised`] said last.
    pub promise: VhostUserPromise,
}

/// What a disk's front-end looks like now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VhostUserDiskStatus {
    /// Queues in use.
    pub queues: u16,
    /// Negotiated virtio features; `None` while there is no front-end.
    pub features: Option<u64>,
}

/// Hears of notices of disks. Must not block.
pub trait DiskObserver: Send + Sync {
    /// A notice of a disk's front-end. What is said of queue pairs is of queues.
    fn handle_notice(&self, disk: DiskId, notice: DeviceNotice);
}

/// What a VM has a disk by. Dropping it takes its queues back and removes the socket.
pub trait DiskDevice: Send {
    /// How it looks now.
    fn status(&self) -> VhostUserDiskStatus;

    /// Changes the disk's length; a guest that runs is told.
    ///
    /// # Errors
    /// It cannot be that long; it stays as it was.
    fn resize(&self, bytes: u64) -> Result<(), DeviceError>;
}

/// A disk as other clients than VMs find it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedDisk {
    /// What they ask for.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Bytes of its sectors: offsets and lengths of requests are multiples of this.
    pub sector_bytes: u32,
    /// Whether it may only be read.
    pub is_read_only: bool,
}

/// What a listener offers to clients. Asked whenever one comes.
pub trait DiskExports: Send + Sync {
    /// What there is now.
    fn exports(&self) -> Vec<ExportedDisk>;

    /// Takes a client's connection to the disk of this name.
    ///
    /// # Errors
    /// Why not; the client finds its connection closed.
    fn attach(&self, name: &str, queue: Box<dyn DiskQueue>) -> Result<(), String>;

    /// Hears what else there is to tell. Must not block.
    fn handle_notice(&self, notice: NbdNotice);
}

/// Listens for clients. Dropping it closes and removes its socket; connections go on until
/// their disk is taken out of service.
pub trait DiskListener: Send {
    /// Lets in whom this says from now on, at the same place, and reads the files anew that
    /// it names. Who is there stays.
    ///
    /// # Errors
    /// A file, user or group cannot be used; everything is as it was.
    fn change(&self, spec: &NbdServerSpec) -> Result<(), DeviceError>;
}

/// Opens what disks are offered by.
pub trait DiskDevices: Send + Sync {
    /// Looks whether [`DiskDevices::open`] could succeed, without changing anything.
    ///
    /// # Errors
    /// What `open` would say.
    fn probe(&self, spec: &VhostUserDiskSpec) -> Result<(), DeviceError>;

    /// Opens a VM's disk. Its rings go to `queues` as its VM brings them.
    ///
    /// # Errors
    /// The socket cannot be bound, the disk cannot be as it is described, or cannot keep
    /// what its VM was promised.
    fn open(
        &self,
        disk: DiskId,
        spec: &VhostUserDiskSpec,
        queues: Arc<dyn DiskQueueHost>,
        observer: Arc<dyn DiskObserver>,
    ) -> Result<Box<dyn DiskDevice>, DeviceError>;

    /// Looks whether what a server lets clients in by can be used: files, users, groups.
    ///
    /// # Errors
    /// What [`DiskDevices::listen_nbd`] would say of it; the place is not looked at.
    fn probe_nbd(&self, spec: &NbdServerSpec) -> Result<(), DeviceError>;

    /// Listens for NBD clients.
    ///
    /// # Errors
    /// The place cannot be had, or a file, user or group cannot be used.
    fn listen_nbd(
        &self,
        spec: &NbdServerSpec,
        exports: Arc<dyn DiskExports>,
    ) -> Result<Box<dyn DiskListener>, DeviceError>;

    /// Serves one NBD client that somebody else has let in, on a connected stream socket. It
    /// returns at once; the client is not among [`DiskDevices::nbd_clients`].
    ///
    /// # Errors
    /// Threads or descriptors are short.
    fn serve_nbd(
        &self,
        stream: OwnedFd,
        peer: &str,
        exports: Arc<dyn DiskExports>,
    ) -> Result<(), DeviceError>;

    /// Uses a disk that somebody serves over NBD, on a connected stream socket. `writes`: not
    /// for reading only. Waits for the server some seconds.
    ///
    /// # Errors
    /// The server cannot be used, has no such disk, or does not answer.
    fn connect_nbd(
        &self,
        stream: OwnedFd,
        name: &str,
        writes: bool,
    ) -> Result<Box<dyn DiskClient>, DeviceError>;

    /// NBD clients that use exports now, in the order in which they came.
    fn nbd_clients(&self) -> Vec<NbdClient>;
}
