//! Storage environment: stores in memory, a storage plane without workers, recorded sockets.

mod devices;
mod faults;
mod full_stores;
mod nbd;
mod plane;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use suimon_image_files::LayerStack;
use suimon_ports::testing::{
    MemoryRedoRecords, MemoryStore as MemoryFiles, RateLimit, RateLimitedIo,
};
use suimon_ports::{
    DiskExports, NbdClient, NbdLimits, NbdServerSpec, StoreFault, StoreFileError, StoreFiles,
    StoreIdentity, StoreOpener,
};
use suimon_quantity::{DiskId, StoreId, TimedRateLimit};
use suimon_storage::{PlaneNotice, StoreView};
use suimon_storage_engine::{FullStorePolicy, FullStoreView};
use suimon_storage_qos::{PolicyId, PolicyShare, Store};

use crate::DiskDependencies;
use crate::testing::BoundSockets;

/// Storage environment of one host. Clones share the state.
#[derive(Clone, Default)]
pub(crate) struct FakeDisks(Arc<Mutex<World>>);

#[derive(Default)]
struct World {
    stores: BTreeMap<PathBuf, MemoryFiles>,
    in_service: BTreeMap<DiskId, LayerStack>,
    /// Number of disks taken into service so far.
    served: usize,
    sockets: BTreeMap<PathBuf, DiskId>,
    listeners: BTreeMap<PathBuf, (NbdServerSpec, Arc<dyn DiskExports>)>,
    /// Clients reported for NBD servers.
    clients: Vec<NbdClient>,
    /// Limits of the host and of each peer on connections.
    nbd_limits: Option<(NbdLimits, NbdLimits)>,
    /// Limits of exports that were changed.
    export_limits: BTreeMap<String, NbdLimits>,
    /// Number of changes of servers, including reloads of their files.
    reloaded: usize,
    refused: BTreeSet<PathBuf>,
    /// Store that stalls when a socket is refused next.
    stalled_at_refusal: Option<PathBuf>,
    /// Capacities in bytes reported to VMs.
    resized: Vec<u64>,
    limits: BTreeMap<StoreId, Store>,
    /// Limits of all disks of a store.
    caps: BTreeMap<StoreId, TimedRateLimit>,
    /// This node's shares of policies that span nodes.
    parts: BTreeMap<PolicyId, PolicyShare>,
    /// True if suspended disks cannot be resumed.
    resume_refused: bool,
    /// True if VMs are connected to disks.
    connected: bool,
    /// True if connected VMs have started the devices.
    started: bool,
    /// Devices used by capacity measurements.
    devices: RateLimitedIo,
    /// Store views that the plane returns, and its queued notices.
    views: Vec<StoreView>,
    is_stale: bool,
    is_unseen: bool,
    /// True if no worker responds to commands.
    blocks_workers: bool,
    notices: VecDeque<PlaneNotice>,
    /// Sockets of NICs and disks.
    bound: BoundSockets,
    /// True if stores do not respond.
    stalls: bool,
    /// Disks that are being copied.
    copied: BTreeSet<DiskId>,
    /// Size in bytes of disks at the remote end of connections; `None`: there is no remote end.
    far_bytes: Option<u64>,
    /// Redo records of images.
    records: MemoryRedoRecords,
    /// Full-store policies of the disks.
    full_policies: BTreeMap<DiskId, FullStorePolicy>,
    /// Full-store policies that were set, oldest first.
    full_changes: Vec<FullStorePolicy>,
    /// Disks whose store is full.
    full: BTreeMap<DiskId, FullStoreView>,
}

impl FakeDisks {
    /// Returns a host with an empty store at this path.
    pub(crate) fn with_store(path: &str) -> Self {
        let disks = Self::default();
        disks.lock().stores.insert(path.into(), MemoryFiles::default());
        disks
    }

    /// Returns the host after a kill of the process that served its disks.
    pub(crate) fn host_after_kill(&self) -> Self {
        let world = self.lock();
        let remaining_stores = world.stores.iter();
        let remaining_stores =
            remaining_stores.map(|(path, store)| (path.clone(), store.after_kill()));
        let stores = remaining_stores.collect();
        Self(Arc::new(Mutex::new(World { stores, ..World::default() })))
    }

    pub(crate) fn parts(&self) -> DiskDependencies {
        DiskDependencies {
            plane: Arc::new(self.clone()),
            devices: Arc::new(self.clone()),
            stores: Arc::new(self.clone()),
            file_io: Arc::new(self.devices()),
            random: Arc::new(|| [7; 16]),
            redo_records: Some(Arc::new(self.lock().records.clone())),
        }
    }

    /// Returns the devices used by capacity measurements. Those of a new host do not respond.
    pub(crate) fn devices(&self) -> RateLimitedIo {
        self.lock().devices.clone()
    }

    /// Sets the behavior of the devices used by capacity measurements.
    pub(crate) fn set_pace(&self, pace: RateLimit) {
        self.devices().set(pace);
    }

    /// Removes and returns a store, as if its file system was unmounted.
    pub(crate) fn take_store(&self, path: &str) -> MemoryFiles {
        self.lock().stores.remove(Path::new(path)).unwrap()
    }

    pub(crate) fn put_store(&self, path: &str, store: MemoryFiles) {
        self.lock().stores.insert(path.into(), store);
    }

    /// Returns the names of a store's files.
    pub(crate) fn files(&self, store: &str) -> Vec<String> {
        let world = self.lock();
        world.stores[Path::new(store)].files().keys().map(ToString::to_string).collect()
    }

    /// Returns an existing store.
    pub(crate) fn store(&self, path: &str) -> MemoryFiles {
        self.lock().stores[Path::new(path)].clone()
    }

    fn lock(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoreOpener for FakeDisks {
    fn open(&self, path: &Path) -> Result<Arc<dyn StoreFiles>, StoreFileError> {
        let store = self.lock().stores.get(path).cloned();
        let missing = || StoreFileError::new(path.to_string_lossy(), StoreFault::Missing);
        Ok(Arc::new(store.ok_or_else(missing)?))
    }

    fn identity(&self, path: &Path) -> Result<StoreIdentity, StoreFileError> {
        Ok(StoreOpener::open(self, path)?.identity())
    }
}
