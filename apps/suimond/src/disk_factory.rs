//! Brings what disks are offered by to the node.

use std::path::Path;
use std::sync::Arc;

use suimon_confine::{Confinement, Role};
use suimon_nbd::{BlockSizes, Export, ExportSpec, Features};
use suimon_nbd_server::{NbdExports, NbdQueue, NbdServer, UnixAccess};
use suimon_node::DiskParts;
use suimon_ports::{
    DeviceError, DeviceErrorKind, DiskDevice, DiskDevices, DiskExports, DiskListener, DiskObserver,
    DiskQueueHost, ExportedDisk, ThreadStart, VhostUserDiskSpec, VhostUserDiskStatus,
};
use suimon_quantity::DiskId;
use suimon_storage::StoragePlane;
use suimon_uring::{HostStores, UringSource};
use suimon_vhost_user::VhostUserDisk;

/// What disks of this host need: `plane` serves them, files and random numbers are the
/// system's.
pub fn host_disks(plane: StoragePlane, confinement: Confinement) -> DiskParts {
    DiskParts {
        plane: Arc::new(plane),
        devices: Arc::new(HostDisks::new(confinement)),
        stores: Arc::new(HostStores),
        io: Arc::new(UringSource),
        random: Arc::new(random),
    }
}

/// Sockets of VMs' disks and of NBD clients.
pub(crate) struct HostDisks {
    /// Confines the threads that read what front-ends say.
    on_front_end_start: ThreadStart,
}

impl HostDisks {
    /// Nothing is open yet.
    pub(crate) fn new(confinement: Confinement) -> Self {
        let on_front_end_start: ThreadStart =
            Arc::new(move || confinement.confine_thread(Role::FrontEnd).map_err(Into::into));
        Self { on_front_end_start }
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
        let on_start = &self.on_front_end_start;
        let device = VhostUserDisk::open_with(disk, spec, queues, observer, on_start)?;
        Ok(Box::new(Device(device)))
    }

    fn listen_nbd(
        &self,
        socket: &Path,
        exports: Arc<dyn DiskExports>,
    ) -> Result<Box<dyn DiskListener>, DeviceError> {
        let server = NbdServer::listen(socket, UnixAccess::default(), Arc::new(Exports(exports)));
        let server = server.map_err(|error| DeviceError {
            kind: match error.kind() {
                std::io::ErrorKind::AddrInUse => DeviceErrorKind::Busy,
                std::io::ErrorKind::NotFound => DeviceErrorKind::Missing,
                std::io::ErrorKind::PermissionDenied => DeviceErrorKind::Denied,
                _ => DeviceErrorKind::Host,
            },
            field: "socket",
            detail: format!("cannot listen at {}: {error}", socket.display()),
        })?;
        Ok(Box::new(Listener(server)))
    }
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

/// Held for as long as clients may come.
struct Listener(#[allow(dead_code, reason = "its end is what it is for")] NbdServer);

impl DiskListener for Listener {}

/// What is offered, in NBD's words.
struct Exports(Arc<dyn DiskExports>);

impl NbdExports for Exports {
    fn exports(&self) -> Vec<Export> {
        self.0.exports().into_iter().filter_map(export).collect()
    }

    fn attach(&self, name: &str, queue: NbdQueue) -> Result<(), String> {
        self.0.attach(name, Box::new(queue))
    }
}

fn export(disk: ExportedDisk) -> Option<Export> {
    let name = disk.name.clone();
    let export = Export::new(ExportSpec {
        name: disk.name,
        description: String::new(),
        size: disk.bytes,
        block_sizes: BlockSizes { min: disk.sector_bytes, ..BlockSizes::default() },
        features: Features {
            read_only: disk.is_read_only,
            flush: true,
            fua: true,
            trim: true,
            write_zeroes: true,
            fast_zero: true,
            multi_conn: true,
            allocation: true,
            ..Features::default()
        },
    });
    export.inspect_err(|error| tracing::error!(disk = name, %error, "not offered over NBD")).ok()
}

/// From the kernel's generator, which every kernel that is new enough for io_uring has.
fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        // Interrupted at most: nothing else can be wrong with memory of one's own.
        filled += rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty()).unwrap_or(0);
    }
    bytes
}
