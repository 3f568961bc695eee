//! Devices of VMs, and sockets on which disks are offered.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use suimon_ports::{
    DeviceError, DeviceErrorKind, DiskClient, DiskDevice, DiskDeviceFactory, DiskExports,
    DiskObserver, DiskQueueHost, NbdClient, NbdLevelUsage, NbdLimits, NbdListener, NbdServerSpec,
    NbdUsage, VhostUserDiskSpec, VhostUserDiskStatus,
};
use suimon_quantity::DiskId;

use super::FakeDisks;
use super::nbd::{FakeListener, path_of};
use crate::testing::{BoundSockets, HollowDisk, device_error};

impl FakeDisks {
    /// Returns the open sockets of VM disks, and the NBD sockets with their export names.
    pub(crate) fn sockets(&self) -> (Vec<PathBuf>, BTreeMap<PathBuf, Vec<String>>) {
        let world = self.lock();
        let offered = world.listeners.iter().map(|(path, (_, exports))| {
            let names = exports.exports().into_iter().map(|export| export.name).collect();
            (path.clone(), names)
        });
        (world.sockets.keys().cloned().collect(), offered.collect())
    }

    /// Returns the capacities reported to VMs so far.
    pub(crate) fn resized(&self) -> Vec<u64> {
        self.lock().resized.clone()
    }

    /// Sets whether VMs are connected to disks.
    pub(crate) fn connect(&self, is_connected: bool) {
        self.lock().connected = is_connected;
    }

    /// Sets whether connected VMs have started the devices.
    pub(crate) fn start_devices(&self, is_started: bool) {
        self.lock().started = is_started;
    }

    /// Sets the size in bytes of disks at the remote end of connections; `None`: there is no remote
    /// end.
    pub(crate) fn set_far_bytes(&self, bytes: Option<u64>) {
        self.lock().far_bytes = bytes;
    }

    /// Shares sockets with the NICs of the same host.
    pub(crate) fn share_sockets(&self, bound: BoundSockets) {
        self.lock().bound = bound;
    }

    pub(super) fn bind(&self, socket: &Path) -> Result<(), DeviceError> {
        self.lock().bound.bind(socket)
    }
}

impl DiskDeviceFactory for FakeDisks {
    fn probe(&self, spec: &VhostUserDiskSpec) -> Result<(), DeviceError> {
        self.check(&spec.socket)
    }

    fn open(
        &self,
        disk: DiskId,
        spec: &VhostUserDiskSpec,
        _queues: Arc<dyn DiskQueueHost>,
        _observer: Arc<dyn DiskObserver>,
    ) -> Result<Box<dyn DiskDevice>, DeviceError> {
        self.check(&spec.socket)?;
        self.bind(&spec.socket)?;
        self.lock().sockets.insert(spec.socket.clone(), disk);
        Ok(Box::new(FakeDevice { world: self.clone(), socket: spec.socket.clone() }))
    }

    fn probe_nbd(&self, spec: &NbdServerSpec) -> Result<(), DeviceError> {
        self.check_files(spec)
    }

    fn listen_nbd(
        &self,
        spec: &NbdServerSpec,
        exports: Arc<dyn DiskExports>,
    ) -> Result<Box<dyn NbdListener>, DeviceError> {
        let path = path_of(&spec.address());
        self.check(&path)?;
        self.check_files(spec)?;
        self.bind(&path)?;
        self.lock().listeners.insert(path, (spec.clone(), exports));
        Ok(Box::new(FakeListener { world: self.clone(), address: spec.address() }))
    }

    fn serve_nbd(
        &self,
        _stream: OwnedFd,
        _peer: &str,
        _exports: Arc<dyn DiskExports>,
    ) -> Result<(), DeviceError> {
        Ok(())
    }

    fn connect_nbd(
        &self,
        _stream: OwnedFd,
        _name: &str,
        _writes: bool,
    ) -> Result<Box<dyn DiskClient>, DeviceError> {
        match self.lock().far_bytes {
            Some(bytes) => Ok(Box::new(HollowDisk { bytes })),
            None => Err(device_error(DeviceErrorKind::Host)),
        }
    }

    fn nbd_clients(&self) -> Vec<NbdClient> {
        self.lock().clients.clone()
    }

    fn set_nbd_limits(&self, host: NbdLimits, peer: NbdLimits) {
        self.lock().nbd_limits = Some((host, peer));
    }

    fn set_nbd_export_limits(&self, export: &str, limits: NbdLimits) {
        self.lock().export_limits.insert(export.to_owned(), limits);
    }

    fn nbd_usage(&self) -> NbdUsage {
        let limits = self.lock().nbd_limits.map_or(NbdLimits::HOST_DEFAULT, |(host, _)| host);
        let level = NbdLevelUsage { connections: 2, buffer_bytes: 1 << 20, limits };
        let peers = vec![("user 107".to_owned(), level)];
        NbdUsage { host: level, peers, exports: Vec::new(), delayed_requests: 3 }
    }
}

struct FakeDevice {
    world: FakeDisks,
    socket: PathBuf,
}

impl DiskDevice for FakeDevice {
    fn status(&self) -> VhostUserDiskStatus {
        let world = self.world.lock();
        let features = world.connected.then_some(0);
        VhostUserDiskStatus { queues: u16::from(world.connected && world.started), features }
    }

    fn resize(&self, bytes: u64) -> Result<(), DeviceError> {
        self.world.lock().resized.push(bytes);
        Ok(())
    }
}

impl Drop for FakeDevice {
    fn drop(&mut self) {
        let mut world = self.world.lock();
        world.sockets.remove(&self.socket);
        world.bound.release(&self.socket);
    }
}
