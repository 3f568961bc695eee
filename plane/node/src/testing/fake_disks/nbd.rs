//! NBD servers: exports, clients, limits, and changes of servers.

use std::path::{Path, PathBuf};

use suimon_ports::{
    DeviceError, ExportedDisk, NbdAddress, NbdClient, NbdLimits, NbdListener, NbdNotice,
    NbdServerSpec,
};

use super::FakeDisks;

impl FakeDisks {
    /// Returns the disks exported over NBD.
    pub(crate) fn exported(&self) -> Vec<ExportedDisk> {
        self.lock().listeners.values().flat_map(|(_, exports)| exports.exports()).collect()
    }

    /// Returns the NBD servers, and the number of changes and reloads.
    pub(crate) fn servers(&self) -> (Vec<NbdServerSpec>, usize) {
        let world = self.lock();
        (world.listeners.values().map(|(spec, _)| spec.clone()).collect(), world.reloaded)
    }

    /// Reports a notice of an NBD server.
    pub(crate) fn notify(&self, path: &str, notice: NbdNotice) {
        let exports = self.lock().listeners[Path::new(path)].1.clone();
        exports.handle_notice(notice);
    }

    /// Returns the exports of the server at this path.
    pub(crate) fn exports_at(&self, path: &str) -> Vec<ExportedDisk> {
        let world = self.lock();
        let (_, exports) = &world.listeners[Path::new(path)];
        exports.exports()
    }

    /// Returns the limits of the host and of each peer on connections, and those of an export.
    pub(crate) fn nbd_limits(&self, export: &str) -> (NbdLimits, NbdLimits, Option<NbdLimits>) {
        let world = self.lock();
        let (host, peer) =
            world.nbd_limits.unwrap_or((NbdLimits::HOST_DEFAULT, NbdLimits::PEER_DEFAULT));
        (host, peer, world.export_limits.get(export).copied())
    }

    /// Sets the clients reported for NBD servers.
    pub(crate) fn set_clients(&self, clients: Vec<NbdClient>) {
        self.lock().clients = clients;
    }

    /// Checks that the certificate of a server can be read.
    pub(super) fn check_files(&self, spec: &NbdServerSpec) -> Result<(), DeviceError> {
        let NbdServerSpec::Tcp { access, .. } = spec else { return Ok(()) };
        let Some(tls) = &access.tls else { return Ok(()) };
        let error = |error| DeviceError { field: "tls_certificate", ..error };
        self.check(&tls.certificate).map_err(error)
    }
}

pub(super) struct FakeListener {
    pub(super) world: FakeDisks,
    pub(super) address: NbdAddress,
}

/// Returns a TCP address as a path, so that it is treated like a socket path.
pub(super) fn path_of(address: &NbdAddress) -> PathBuf {
    match address {
        NbdAddress::Unix(path) => path.clone(),
        NbdAddress::Tcp(address) => address.to_string().into(),
    }
}

impl NbdListener for FakeListener {
    fn replace_access_rules(&self, spec: &NbdServerSpec) -> Result<(), DeviceError> {
        assert_eq!(spec.address(), self.address, "a server stays where it is");
        self.world.check_files(spec)?;
        let mut world = self.world.lock();
        world.reloaded += 1;
        world.listeners.get_mut(&path_of(&self.address)).unwrap().0 = spec.clone();
        Ok(())
    }
}

impl Drop for FakeListener {
    fn drop(&mut self) {
        let path = path_of(&self.address);
        let mut world = self.world.lock();
        world.bound.release(&path);
        let exports = world.listeners.remove(&path);
        drop(world);
        drop(exports);
    }
}
