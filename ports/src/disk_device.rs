//! Front-ends of disks: vhost-user devices for VMs and listeners for NBD clients.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use suimon_quantity::DiskId;

use crate::{
    DeviceError, DeviceNotice, DiskClient, DiskQueue, DiskQueueHost, NbdClient, NbdLimits,
    NbdNotice, NbdServerSpec, NbdUsage, NegotiatedFeatures, VhostUserMode,
};

/// Specification of a VM's vhost-user disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VhostUserDiskSpec {
    /// Path of the Unix socket.
    pub socket: PathBuf,
    /// Side that listens on the socket.
    pub mode: VhostUserMode,
    /// Queues offered, 1 to 64.
    pub queues: u16,
    /// Length of the disk in bytes, a multiple of 512.
    pub size_bytes: u64,
    /// Logical sector size in bytes: a power of two, 512 to 4096. Offsets and lengths of requests
    /// are multiples of it.
    pub sector_bytes: u32,
    /// Physical sector size in bytes, the preferred granularity of writes: a power of two times
    /// `sector_bytes`, at most 32 768 times.
    pub physical_sector_bytes: u32,
    /// Serial number, at most 20 bytes of ASCII.
    pub serial: String,
    /// True if the disk is read-only for the VM.
    pub is_read_only: bool,
    /// Features that a reconnecting VM depends on. Observed state: the value of the last
    /// [`DeviceNotice::FeaturesCommitted`], not part of the configuration.
    pub negotiated: NegotiatedFeatures,
}

/// Current state of a disk's front-end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VhostUserDiskStatus {
    /// Queues currently in use by the driver.
    pub queues: u16,
    /// Negotiated virtio features; `None` without a front-end.
    pub features: Option<u64>,
}

/// Receiver of disk notices. Called on device threads; must not block.
pub trait DiskObserver: Send + Sync {
    /// Handles a notice of a disk's front-end. Queue pairs in the notice are queues.
    fn handle_notice(&self, disk: DiskId, notice: DeviceNotice);
}

/// vhost-user device of a disk. Dropping it detaches its queues and removes the socket.
pub trait DiskDevice: Send {
    /// Returns queues in use and negotiated features.
    fn status(&self) -> VhostUserDiskStatus;

    /// Changes the length of the disk and notifies a running guest (configuration change
    /// interrupt).
    ///
    /// # Errors
    /// Fails if the length is not supported; the disk keeps its length.
    fn resize(&self, bytes: u64) -> Result<(), DeviceError>;
}

/// Description of a disk for NBD clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedDisk {
    /// Export name that clients request.
    pub name: String,
    /// Length of the disk in bytes.
    pub size_bytes: u64,
    /// Sector size in bytes. Offsets and lengths of requests are multiples of it.
    pub sector_bytes: u32,
    /// True if the export is read-only.
    pub is_read_only: bool,
    /// Limits on the connections of the export.
    pub limits: NbdLimits,
    /// True if a discard can free space.
    pub can_discard: bool,
    /// True if ranges can be zeroed without writing zeros.
    pub can_zero_fast: bool,
}

/// Exports of a listener. Queried for each new client.
pub trait DiskExports: Send + Sync {
    /// Returns the exports currently on offer.
    fn exports(&self) -> Vec<ExportedDisk>;

    /// Attaches a client's connection to the disk of this name.
    ///
    /// # Errors
    /// Returns the reason of the rejection; the client's connection is closed.
    fn attach(&self, name: &str, queue: Box<dyn DiskQueue>) -> Result<(), String>;

    /// Handles a notice of the NBD server. Must not block.
    fn handle_notice(&self, notice: NbdNotice);
}

/// NBD listener. Dropping it closes and removes its socket. Connections continue until their disk
/// is taken out of service.
pub trait NbdListener: Send {
    /// Replaces the access rules and reloads the certificate files. Applies to new connections;
    /// existing connections continue. The address must be unchanged.
    ///
    /// # Errors
    /// Fails if a file, user or group cannot be used; the previous rules remain in effect.
    fn replace_access_rules(&self, spec: &NbdServerSpec) -> Result<(), DeviceError>;
}

/// Opens the front-ends of disks.
pub trait DiskDeviceFactory: Send + Sync {
    /// Checks whether [`DiskDeviceFactory::open`] can succeed, without side effects.
    ///
    /// # Errors
    /// Returns the error that `open` would return.
    fn probe(&self, spec: &VhostUserDiskSpec) -> Result<(), DeviceError>;

    /// Opens a disk's vhost-user device. Its virtqueues are attached to `queues` when the VM starts
    /// them.
    ///
    /// # Errors
    /// Fails if the socket cannot be bound, the specification is not supported, or the device
    /// cannot offer the features that its VM depends on.
    fn open(
        &self,
        disk: DiskId,
        spec: &VhostUserDiskSpec,
        queues: Arc<dyn DiskQueueHost>,
        observer: Arc<dyn DiskObserver>,
    ) -> Result<Box<dyn DiskDevice>, DeviceError>;

    /// Checks whether a server's access rules can be used: files, users, groups. Does not check the
    /// address.
    ///
    /// # Errors
    /// Returns the error that [`DiskDeviceFactory::listen_nbd`] would return.
    fn probe_nbd(&self, spec: &NbdServerSpec) -> Result<(), DeviceError>;

    /// Starts an NBD listener.
    ///
    /// # Errors
    /// Fails if the address cannot be bound, or a file, user or group cannot be used.
    fn listen_nbd(
        &self,
        spec: &NbdServerSpec,
        exports: Arc<dyn DiskExports>,
    ) -> Result<Box<dyn NbdListener>, DeviceError>;

    /// Serves one NBD client on a connected stream socket; the caller has authenticated the peer.
    /// Does not block. The client is not listed by [`DiskDeviceFactory::nbd_clients`].
    ///
    /// # Errors
    /// Fails if no thread or descriptor is available.
    fn serve_nbd(
        &self,
        stream: OwnedFd,
        peer: &str,
        exports: Arc<dyn DiskExports>,
    ) -> Result<(), DeviceError>;

    /// Connects to an export of another NBD server over a connected stream socket. `writes`
    /// requests write access. Blocks for the negotiation, at most some seconds.
    ///
    /// # Errors
    /// Fails if the server is incompatible, lacks the export or does not reply in time.
    fn connect_nbd(
        &self,
        stream: OwnedFd,
        name: &str,
        writes: bool,
    ) -> Result<Box<dyn DiskClient>, DeviceError>;

    /// Returns the NBD clients that use exports, in order of connection.
    fn nbd_clients(&self) -> Vec<NbdClient>;

    /// Changes the limits on connections of NBD clients for the host and for each peer.
    fn set_nbd_limits(&self, host: NbdLimits, peer: NbdLimits);

    /// Changes the limits of an export for its present connections. Later connections have those of
    /// [`ExportedDisk::limits`].
    fn set_nbd_export_limits(&self, export: &str, limits: NbdLimits);

    /// Returns the connections and buffer memory of NBD clients.
    fn nbd_usage(&self) -> NbdUsage;
}
