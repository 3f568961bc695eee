//! NBD servers, and the disks that each server exports.

use std::collections::BTreeMap;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use suimon_ports::{
    DeviceError, DiskDeviceFactory, DiskExports, DiskQueue, ExportedDisk, NbdAddress, NbdListener,
    NbdNotice, NbdServerSpec,
};
use suimon_quantity::DiskId;

use super::plane::DiskPlane;
use crate::command::Command;

/// Open NBD servers by address. Servers are shared: several disks may be exported by one.
pub(crate) struct Exports {
    plane: Arc<dyn DiskPlane>,
    devices: Arc<dyn DiskDeviceFactory>,
    servers: Mutex<BTreeMap<NbdAddress, Server>>,
}

struct Server {
    spec: NbdServerSpec,
    offered: Arc<ServerExports>,
    /// Listener; dropping it closes the socket.
    listener: Box<dyn NbdListener>,
}

/// Exports of one server, queried by the listener for each client.
struct ServerExports {
    plane: Arc<dyn DiskPlane>,
    notices: SyncSender<Command>,
    disks: Mutex<BTreeMap<String, (DiskId, ExportedDisk)>>,
    /// True if the clients are the QEMU of a VM that emulates the disk's controller.
    is_vm_qemu: bool,
    refusals: Mutex<Refusals>,
}

/// Rejected clients of one server by kind of rejection: the last client, and the number since the
/// control thread last read them. Clients determine how many there are, and must not displace other
/// notices.
#[derive(Default)]
struct Refusals {
    refused: Option<(NbdNotice, u64)>,
    limited: Option<(NbdNotice, u64)>,
}

impl Exports {
    pub(crate) fn new(plane: Arc<dyn DiskPlane>, devices: Arc<dyn DiskDeviceFactory>) -> Self {
        Self { plane, devices, servers: Mutex::default() }
    }

    /// Exports a disk on a server, which is opened if necessary, or updates the existing export.
    /// The access rules of `spec` apply to all disks of the server from then on. `is_vm_qemu`: the
    /// clients are the QEMU of the disk's VM, which pauses the VM if the store is full.
    pub(crate) fn add(
        &self,
        spec: &NbdServerSpec,
        disk: DiskId,
        exported: ExportedDisk,
        is_vm_qemu: bool,
        notices: &SyncSender<Command>,
    ) -> Result<(), DeviceError> {
        self.devices.set_nbd_export_limits(&exported.name, exported.limits);
        let mut servers = self.lock();
        if let Some(open) = servers.get_mut(&spec.address()) {
            if open.spec != *spec {
                open.listener.replace_access_rules(spec)?;
                open.spec = spec.clone();
            }
            open.offered.lock().insert(exported.name.clone(), (disk, exported));
            return Ok(());
        }
        let disks = BTreeMap::from([(exported.name.clone(), (disk, exported))]);
        let offered = Arc::new(ServerExports {
            plane: self.plane.clone(),
            notices: notices.clone(),
            disks: Mutex::new(disks),
            is_vm_qemu,
            refusals: Mutex::default(),
        });
        let listener = self.devices.listen_nbd(spec, offered.clone())?;
        servers.insert(spec.address(), Server { spec: spec.clone(), offered, listener });
        Ok(())
    }

    /// Removes the export of a disk from a server, and closes the server if it has no other export.
    /// Connected clients continue until the disk is closed or they are detached.
    pub(crate) fn remove(&self, address: &NbdAddress, name: &str) {
        let mut servers = self.lock();
        let Some(open) = servers.get(address) else { return };
        open.offered.lock().remove(name);
        let is_empty = open.offered.lock().is_empty();
        if is_empty {
            servers.remove(address);
        }
    }

    /// Reloads the certificates, users and groups of all servers.
    ///
    /// # Errors
    /// Returns the servers that cannot use their files; the previous rules remain in effect there.
    pub(crate) fn reload(&self) -> Vec<(NbdAddress, DeviceError)> {
        let servers = self.lock();
        let reloaded = servers.iter().filter_map(|(address, server)| {
            let error = server.listener.replace_access_rules(&server.spec).err()?;
            Some((address.clone(), error))
        });
        reloaded.collect()
    }

    /// Returns the last clients that each server has rejected, and the number of rejections since
    /// the previous call.
    pub(crate) fn take_rejections(&self) -> Vec<(NbdNotice, u64)> {
        let take_refusals = |server: &Server| {
            let mut refusals = server.offered.refusals();
            [refusals.refused.take(), refusals.limited.take()]
        };
        self.lock().values().flat_map(take_refusals).flatten().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<NbdAddress, Server>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerExports {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, (DiskId, ExportedDisk)>> {
        self.disks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refusals(&self) -> MutexGuard<'_, Refusals> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DiskExports for ServerExports {
    fn exports(&self) -> Vec<ExportedDisk> {
        self.lock().values().map(|(_, exported)| exported.clone()).collect()
    }

    fn attach(&self, name: &str, queue: Box<dyn DiskQueue>) -> Result<(), String> {
        let disk = self.lock().get(name).map(|(disk, _)| *disk);
        let disk = disk.ok_or_else(|| "NBD export of a disk ended".to_owned())?;
        let attached = match self.is_vm_qemu {
            true => self.plane.attach_vm_client(disk, queue),
            false => self.plane.attach_client(disk, queue).map(drop),
        };
        attached.map_err(|error| error.to_string())
    }

    fn handle_notice(&self, notice: NbdNotice) {
        let mut refusals = self.refusals();
        let last = match notice {
            NbdNotice::Refused { .. } => Some(&mut refusals.refused),
            NbdNotice::LimitReached { .. } => Some(&mut refusals.limited),
            NbdNotice::ExportFailed { .. } => None,
        };
        if let Some(last) = last {
            let count = last.as_ref().map_or(0, |(_, count)| *count);
            *last = Some((notice, count.saturating_add(1)));
            return;
        }
        drop(refusals);
        if self.notices.try_send(Command::NbdNotice(notice)).is_err() {
            tracing::warn!("a notice of an NBD server was lost");
        }
    }
}
