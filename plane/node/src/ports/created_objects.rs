//! Records of TAPs and socket files that the daemon created and may delete.
//!
//! TAPs and socket files outlive a killed process. Each is recorded before it is created, and the
//! record is removed after the deletion, so that a crash at any time leaves nothing behind
//! permanently. Objects that existed before are never deleted.
//!
//! Another program may create or replace an object of a recorded name at any time, for example
//! while its opening fails. A record of a TAP therefore only states that the daemon may have
//! created it: the device factory marks the TAPs that it creates, and deletes only those. The
//! identity of a socket file (device, inode) is recorded once it exists, and only a file with this
//! identity is deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use suimon_ports::{
    DeviceFactory, PortDeviceSpec, SocketFiles, StaleSocket, StateStore, StateStoreError,
};

use super::claims::{created_socket, created_tap};
use super::created_records::{
    clear_created_tap, clear_socket, load_created_taps, load_sockets, save_created_tap, save_socket,
};
use crate::UnixClock;
use crate::state::StoreChange;
use crate::transaction::NetworkDeviceId;

/// TAPs and socket files that the daemon created, as recorded in the state store.
pub(crate) struct CreatedObjects {
    devices: Arc<dyn DeviceFactory>,
    socket_files: Arc<dyn SocketFiles>,
    clock: UnixClock,
    store: Arc<dyn StateStore>,
    taps: BTreeSet<NetworkDeviceId>,
    sockets: BTreeMap<PathBuf, StaleSocket>,
}

impl CreatedObjects {
    pub(crate) fn load(
        store: Arc<dyn StateStore>,
        devices: Arc<dyn DeviceFactory>,
        socket_files: Arc<dyn SocketFiles>,
        clock: UnixClock,
    ) -> Result<Self, StateStoreError> {
        let taps = load_created_taps(store.as_ref())?.into_iter().collect();
        let sockets = load_sockets(store.as_ref())?;
        let sockets = sockets.into_iter().map(|socket| (socket.path.clone(), socket)).collect();
        Ok(Self { devices, socket_files, clock, store, taps, sockets })
    }

    /// Records the TAPs and socket files that opening the devices would create, in one commit.
    pub(crate) fn record<'s>(
        &mut self,
        specs: impl IntoIterator<Item = &'s PortDeviceSpec>,
    ) -> Result<(), StateStoreError> {
        let (mut taps, mut sockets) = (BTreeSet::new(), Vec::new());
        for spec in specs {
            taps.extend(created_tap(spec).filter(|tap| !self.taps.contains(tap)));
            sockets.extend(created_socket(spec));
        }
        let changes = taps.iter().map(save_created_tap).collect::<Result<Vec<_>, _>>()?;
        self.record_with(changes, sockets)?;
        self.taps.extend(taps);
        Ok(())
    }

    /// Records socket files that are about to be created.
    pub(crate) fn record_sockets(
        &mut self,
        paths: impl IntoIterator<Item = PathBuf>,
    ) -> Result<(), StateStoreError> {
        self.record_with(Vec::new(), paths)
    }

    fn record_with(
        &mut self,
        mut changes: Vec<StoreChange>,
        paths: impl IntoIterator<Item = PathBuf>,
    ) -> Result<(), StateStoreError> {
        let absent_unix_ms = (self.clock)();
        let mut sockets = BTreeMap::new();
        for path in paths.into_iter().filter(|path| self.is_free(path)) {
            let socket = StaleSocket { path: path.clone(), identity: None, absent_unix_ms };
            changes.push(save_socket(&socket)?);
            sockets.insert(path, socket);
        }
        self.commit(&changes)?;
        self.sockets.extend(sockets);
        Ok(())
    }

    /// Records the identity of the socket files of devices that were opened.
    pub(crate) fn record_opened<'s>(
        &mut self,
        specs: impl IntoIterator<Item = &'s PortDeviceSpec>,
    ) -> Result<(), StateStoreError> {
        self.record_socket_identities(specs.into_iter().filter_map(created_socket))
    }

    /// Records the identity of existing socket files.
    pub(crate) fn record_socket_identities(
        &mut self,
        paths: impl IntoIterator<Item = PathBuf>,
    ) -> Result<(), StateStoreError> {
        let mut noted = Vec::new();
        for path in paths {
            let identity = self.socket_files.identity(&path);
            let Some(known_socket) = self.sockets.get(&path) else { continue };
            if identity.is_some() && known_socket.identity != identity {
                noted.push(StaleSocket { identity, ..known_socket.clone() });
            }
        }
        let changes = noted.iter().map(save_socket).collect::<Result<Vec<_>, _>>()?;
        self.commit(&changes)?;
        self.sockets.extend(noted.into_iter().map(|socket| (socket.path.clone(), socket)));
        Ok(())
    }

    /// Deletes recorded TAPs and socket files that are not required: `required` are the devices of
    /// the required ports, `of_disks` the required sockets of disks. Failed deletions are logged
    /// and retried after the next change.
    pub(crate) fn delete_unrequired<'s>(
        &mut self,
        required: impl Iterator<Item = &'s PortDeviceSpec> + Clone,
        of_disks: &BTreeSet<PathBuf>,
    ) {
        let taps = self.sweep_taps(required.clone());
        let sockets = self.sweep_sockets(required, of_disks);
        let mut changes: Vec<_> = taps.iter().map(clear_created_tap).collect();
        changes.extend(sockets.iter().map(|path| clear_socket(path)));
        match self.commit(&changes) {
            Ok(()) => {
                self.taps.retain(|tap| !taps.contains(tap));
                self.sockets.retain(|path, _| !sockets.contains(path));
            }
            Err(error) => tracing::warn!(
                %error,
                "a deleted resource is still recorded as the daemon's"
            ),
        }
    }

    fn sweep_taps<'s>(
        &self,
        required: impl Iterator<Item = &'s PortDeviceSpec>,
    ) -> BTreeSet<NetworkDeviceId> {
        let required: BTreeSet<NetworkDeviceId> = required.filter_map(created_tap).collect();
        let mut removed = BTreeSet::new();
        for tap in self.taps.difference(&required) {
            match self.devices.remove_tap(&tap.device, tap.netns.as_deref()) {
                Ok(is_removed) => {
                    if !is_removed {
                        let (device, netns) = (&tap.device, tap.netns.as_deref());
                        tracing::info!(device, netns, "TAP kept: another program created it");
                    }
                    removed.insert(tap.clone());
                }
                Err(error) => tracing::warn!(
                    device = tap.device,
                    %error,
                    "cannot delete a TAP device of the daemon"
                ),
            }
        }
        removed
    }

    fn sweep_sockets<'s>(
        &self,
        required: impl Iterator<Item = &'s PortDeviceSpec>,
        of_disks: &BTreeSet<PathBuf>,
    ) -> BTreeSet<PathBuf> {
        let mut required: BTreeSet<PathBuf> = required.filter_map(created_socket).collect();
        required.extend(of_disks.iter().cloned());
        let mut removed = BTreeSet::new();
        for (path, socket) in self.sockets.iter().filter(|(path, _)| !required.contains(*path)) {
            match self.socket_files.remove_stale(socket) {
                Ok(_) => {
                    removed.insert(path.clone());
                }
                Err(error) => {
                    tracing::warn!(
                        socket = %path.display(), %error,
                        "cannot delete a socket of the daemon"
                    );
                }
            }
        }
        removed
    }

    fn is_free(&self, path: &PathBuf) -> bool {
        !self.sockets.contains_key(path) && self.socket_files.identity(path).is_none()
    }

    fn commit(&self, changes: &[StoreChange]) -> Result<(), StateStoreError> {
        if changes.is_empty() { Ok(()) } else { self.store.commit(changes) }
    }
}
