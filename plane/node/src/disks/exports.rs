//! NBD servers, and which disks are offered by each.

use std::collections::BTreeMap;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use suimon_ports::{
    DeviceError, DiskDevices, DiskExports, DiskListener, DiskQueue, ExportedDisk, NbdNotice,
    NbdPlace, NbdServerSpec,
};
use suimon_quantity::DiskId;

use super::plane::DiskPlane;
use crate::control::Command;

/// All servers.
pub(crate) struct Exports {
    plane: Arc<dyn DiskPlane>,
    devices: Arc<dyn DiskDevices>,
    servers: Mutex<BTreeMap<NbdPlace, Server>>,
}

struct Server {
    spec: NbdServerSpec,
    offered: Arc<Offered>,
    /// Held for as long as clients may come.
    listener: Box<dyn DiskListener>,
}

/// What one server offers.
struct Offered {
    plane: Arc<dyn DiskPlane>,
    notices: SyncSender<Command>,
    disks: Mutex<BTreeMap<String, (DiskId, ExportedDisk)>>,
    refusals: Arc<Refusals>,
}

impl Exports {
    pub(crate) fn new(plane: Arc<dyn DiskPlane>, devices: Arc<dyn DiskDevices>) -> Self {
        Self { plane, devices, servers: Mutex::default() }
    }

    /// Offers a disk by this server, or offers it there as it is now. Whom the server lets
    /// in is as `spec` says from then on, for all of its disks.
    pub(crate) fn offer(
        &self,
        spec: &NbdServerSpec,
        disk: DiskId,
        exported: ExportedDisk,
        notices: &SyncSender<Command>,
    ) -> Result<(), DeviceError> {
        let mut servers = self.lock();
        if let Some(open) = servers.get_mut(&spec.place()) {
            if open.spec != *spec {
                open.listener.change(spec)?;
                open.spec = spec.clone();
            }
            open.offered.lock().insert(exported.name.clone(), (disk, exported));
            return Ok(());
        }
        let disks = BTreeMap::from([(exported.name.clone(), (disk, exported))]);
        let offered = Arc::new(Offered {
            plane: self.plane.clone(),
            notices: notices.clone(),
            disks: Mutex::new(disks),
            refusals: Arc::default(),
        });
        let listener = self.devices.listen_nbd(spec, offered.clone())?;
        servers.insert(spec.place(), Server { spec: spec.clone(), offered, listener });
        Ok(())
    }

    /// Offers a disk at this place no more. Its clients go on until the disk is closed, or
    /// they are ended.
    pub(crate) fn withdraw(&self, place: &NbdPlace, name: &str) {
        let mut servers = self.lock();
        let Some(open) = servers.get(place) else { return };
        open.offered.lock().remove(name);
        let is_empty = open.offered.lock().is_empty();
        if is_empty {
            servers.remove(place);
        }
    }

    /// Has every server read its files anew, as when certificates were renewed.
    ///
    /// # Errors
    /// Those that cannot; they go on with what they have read before.
    pub(crate) fn reload(&self) -> Vec<(NbdPlace, DeviceError)> {
        let servers = self.lock();
        let reloaded = servers.iter().filter_map(|(place, server)| {
            let error = server.listener.change(&server.spec).err()?;
            Some((place.clone(), error))
        });
        reloaded.collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<NbdPlace, Server>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn handle_notice(&self, notice: NbdNotice) {
        let command = match notice {
            NbdNotice::Refused { .. } => {
                if !self.refusals.add(notice) {
                    return;
                }
                Command::NbdRefusals(self.refusals.clone())
            }
            NbdNotice::NotOffered { .. } => Command::NbdNotice(notice),
        };
        match self.notices.try_send(command) {
            Ok(()) => {}
            Err(TrySendError::Full(Command::NbdRefusals(refusals))) => refusals.not_asked(),
            Err(_) => tracing::warn!("a notice of an NBD server was lost"),
        }
    }
}

/// Refused clients of a server of which the control thread does not know yet. However many there
/// are, one command at most waits for it, so that they keep out nobody else's.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<Untold>);

#[derive(Debug, Default)]
struct Untold {
    last: Option<NbdNotice>,
    count: u64,
    /// A command waits for the control thread.
    is_asked: bool,
}

impl Refusals {
    /// Adds one; says whether the control thread is to be asked to look.
    fn add(&self, notice: NbdNotice) -> bool {
        let mut untold = self.lock();
        untold.last = Some(notice);
        untold.count += 1;
        !std::mem::replace(&mut untold.is_asked, true)
    }

    /// The control thread could not be asked. The next refusal tries again.
    fn not_asked(&self) {
        self.lock().is_asked = false;
    }

    /// Takes the last refusal and the number of those that it stands for.
    pub(crate) fn take(&self) -> Option<(NbdNotice, u64)> {
        let Untold { last, count, .. } = std::mem::take(&mut *self.lock());
        last.map(|last| (last, count))
    }

    fn lock(&self) -> MutexGuard<'_, Untold> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
