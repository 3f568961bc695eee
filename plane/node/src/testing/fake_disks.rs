//! Storage environment: stores in memory, a storage plane without workers, recorded sockets.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use suimon_ports::testing::{MemoryRecords, MemoryStore as MemoryFiles, RateLimit, RateLimitedIo};
use suimon_ports::{
    DeviceError, DeviceErrorKind, DiskClient, DiskDevice, DiskDevices, DiskExports, DiskListener,
    DiskObserver, DiskQueue, DiskQueueHost, ExportedDisk, NbdAddress, NbdClient, NbdLevel,
    NbdLimits, NbdNotice, NbdServerSpec, NbdUsage, StoreFault, StoreFileError, StoreFiles,
    StoreIdentity, StoreSource, VhostUserDiskSpec, VhostUserDiskStatus,
};
use suimon_quantity::{DiskId, StoreId, TimedRateLimit, WorkerId};
use suimon_storage::{
    DirtyMap, DiskCounterCells, DiskSpec, DiskView, FullChange, FullPolicy, FullView, NotResumed,
    NotServed, PlaneError, PlaneNotice, STALLED_AFTER, StoreView,
};
use suimon_storage_qos::{
    AdmissionError, AdmittedMinimums, Capacity, MeasuredLatency, PolicyId, PolicyShare, Proposal,
    Store, StoreSpec,
};

use crate::testing::{BoundSockets, HollowDisk, refused};
use crate::{DiskDependencies, DiskPlane};

/// Storage environment of one host. Clones share the state.
#[derive(Clone, Default)]
pub(crate) struct FakeDisks(Arc<Mutex<World>>);

#[derive(Default)]
struct World {
    stores: BTreeMap<PathBuf, MemoryFiles>,
    in_service: BTreeMap<DiskId, DiskSpec>,
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
    /// Local parts of cluster-wide QoS policies.
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
    /// Disks that are mirrored.
    copied: BTreeSet<DiskId>,
    /// Size in bytes of disks at the remote end of connections; `None`: there is no remote end.
    far_bytes: Option<u64>,
    /// Redo records of images.
    records: MemoryRecords,
    /// Behavior of disks on a full store.
    full_policies: BTreeMap<DiskId, FullPolicy>,
    /// Full-store policies that were set, oldest first.
    full_changes: Vec<FullPolicy>,
    /// Disks whose store is full.
    full: BTreeMap<DiskId, FullView>,
}

impl FakeDisks {
    /// Returns a host with an empty store at this path.
    pub(crate) fn with_store(path: &str) -> Self {
        let disks = Self::default();
        disks.lock().stores.insert(path.into(), MemoryFiles::default());
        disks
    }

    /// Returns the host after a kill of the process that served its disks.
    pub(crate) fn host_left(&self) -> Self {
        let world = self.lock();
        let left = world.stores.iter();
        let left = left.map(|(path, store)| (path.clone(), store.after_kill()));
        let stores = left.collect();
        Self(Arc::new(Mutex::new(World { stores, ..World::default() })))
    }

    /// Stalls or resumes reads and writes of all files of the stores.
    pub(crate) fn stall_files(&self, stalls: bool) {
        for store in self.lock().stores.values() {
            store.set_stalled(stalls);
        }
    }

    pub(crate) fn parts(&self) -> DiskDependencies {
        DiskDependencies {
            plane: Arc::new(self.clone()),
            devices: Arc::new(self.clone()),
            stores: Arc::new(self.clone()),
            io: Arc::new(self.devices()),
            random: Arc::new(|| [7; 16]),
            records: Some(Arc::new(self.lock().records.clone())),
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

    /// Returns the local parts of cluster-wide QoS policies.
    pub(crate) fn policy_parts(&self) -> Vec<PolicyShare> {
        self.lock().parts.values().copied().collect()
    }

    /// Returns the limits of stores that are limited.
    pub(crate) fn caps(&self) -> Vec<TimedRateLimit> {
        self.lock().caps.values().copied().collect()
    }

    /// Simulates a worker that does not respond, so that the state of disks is the last known one.
    pub(crate) fn set_stale(&self, is_stale: bool) {
        self.lock().is_stale = is_stale;
    }

    /// Simulates a worker that has not reported its disks yet.
    pub(crate) fn set_unseen(&self, is_unseen: bool) {
        self.lock().is_unseen = is_unseen;
    }

    /// Sets whether no worker responds to commands.
    pub(crate) fn block_workers(&self, blocks: bool) {
        self.lock().blocks_workers = blocks;
    }

    /// Sets the store views that the plane returns.
    pub(crate) fn set_views(&self, views: Vec<StoreView>) {
        self.lock().views = views;
    }

    /// Queues a notice of the plane.
    pub(crate) fn report(&self, notice: PlaneNotice) {
        self.lock().notices.push_back(notice);
    }

    /// Has a store stall when a socket is rejected next.
    pub(crate) fn stall_at_refusal(&self, store: &str) {
        self.lock().stalled_at_refusal = Some(store.into());
    }

    /// Sets whether sockets at this path are rejected.
    pub(crate) fn refuse(&self, socket: &str, is_refused: bool) {
        let mut world = self.lock();
        if is_refused {
            world.refused.insert(socket.into());
        } else {
            world.refused.remove(Path::new(socket));
        }
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

    /// Returns the number of disks in service, and of those taken into service so far.
    pub(crate) fn served(&self) -> (usize, usize) {
        let world = self.lock();
        (world.in_service.len(), world.served)
    }

    /// Returns the guaranteed shares of each store.
    pub(crate) fn negotiated_features(&self) -> Vec<AdmittedMinimums> {
        self.lock().limits.values().map(Store::admitted).collect()
    }

    /// Returns the open sockets of VM disks, and the NBD sockets with their export names.
    pub(crate) fn sockets(&self) -> (Vec<PathBuf>, BTreeMap<PathBuf, Vec<String>>) {
        let world = self.lock();
        let offered = world.listeners.iter().map(|(path, (_, exports))| {
            let names = exports.exports().into_iter().map(|of| of.name).collect();
            (path.clone(), names)
        });
        (world.sockets.keys().cloned().collect(), offered.collect())
    }

    /// Returns the capacities reported to VMs so far.
    pub(crate) fn resized(&self) -> Vec<u64> {
        self.lock().resized.clone()
    }

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
    pub(crate) fn notify(&self, place: &str, notice: NbdNotice) {
        let exports = self.lock().listeners[Path::new(place)].1.clone();
        exports.handle_notice(notice);
    }

    /// Returns the exports of the server at this place.
    pub(crate) fn exports_at(&self, place: &str) -> Vec<ExportedDisk> {
        let world = self.lock();
        let (_, exports) = &world.listeners[Path::new(place)];
        exports.exports()
    }

    /// Returns the limits of the host and of each peer on connections, and those of an export.
    pub(crate) fn nbd_limits(&self, export: &str) -> (NbdLimits, NbdLimits, Option<NbdLimits>) {
        let world = self.lock();
        let (host, peer) = world.nbd_limits.unwrap_or((NbdLimits::HOST, NbdLimits::PEER));
        (host, peer, world.export_limits.get(export).copied())
    }

    /// Sets the clients reported for NBD servers.
    pub(crate) fn set_clients(&self, clients: Vec<NbdClient>) {
        self.lock().clients = clients;
    }

    /// Checks that the certificate of a server can be read.
    fn check_files(&self, spec: &NbdServerSpec) -> Result<(), DeviceError> {
        let NbdServerSpec::Tcp { access, .. } = spec else { return Ok(()) };
        let Some(tls) = &access.tls else { return Ok(()) };
        let error = |error| DeviceError { field: "tls_certificate", ..error };
        self.check(&tls.certificate).map_err(error)
    }

    /// Sets whether suspended disks cannot be resumed.
    pub(crate) fn refuse_resuming(&self, is_refused: bool) {
        self.lock().resume_refused = is_refused;
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

    /// Returns the number of mirrored disks.
    pub(crate) fn copied(&self) -> usize {
        self.lock().copied.len()
    }

    /// Shares sockets with the NICs of the same host.
    pub(crate) fn share_sockets(&self, bound: BoundSockets) {
        self.lock().bound = bound;
    }

    /// Sets whether stores respond, and reports it for each disk.
    pub(crate) fn stall(&self, stalls: bool) {
        let mut world = self.lock();
        world.stalls = stalls;
        let waited = STALLED_AFTER;
        let disks: Vec<DiskId> = world.in_service.keys().copied().collect();
        let told = disks.into_iter().map(|disk| PlaneNotice::DiskStall { disk, stalls, waited });
        world.notices.extend(told);
    }

    /// Makes a flush of every disk in service fail with this error, and reports it.
    pub(crate) fn fail_flush(&self, detail: &str) {
        let mut world = self.lock();
        let disks: Vec<DiskId> = world.in_service.keys().copied().collect();
        for spec in world.in_service.values() {
            let failure = spec.layers[0].file.flush_failure().unwrap();
            failure.record(&std::io::Error::other(detail.to_owned()));
        }
        let detail = || detail.to_owned();
        let told =
            disks.into_iter().map(|disk| PlaneNotice::FlushFailed { disk, detail: detail() });
        world.notices.extend(told);
    }

    /// Overwrites the files of all disks at an offset.
    pub(crate) fn overwrite(&self, offset: u64, bytes: &[u8]) {
        for spec in self.lock().in_service.values() {
            spec.layers[0].file.write_at(offset, bytes).unwrap();
        }
    }

    /// Makes the stores of all disks full, with this number of queued requests, or gives them space
    /// again.
    pub(crate) fn fill(&self, queued: Option<usize>) {
        let mut world = self.lock();
        let lasts = Duration::from_secs(2);
        let disks: Vec<DiskId> = world.in_service.keys().copied().collect();
        world.full = queued
            .map(|queued| disks.iter().map(|disk| (*disk, FullView { queued, lasts })).collect())
            .unwrap_or_default();
        let (change, lasted) = match queued {
            Some(_) => (FullChange::Full, Duration::ZERO),
            None => (FullChange::HasSpace, lasts),
        };
        let told = disks.into_iter().map(|disk| PlaneNotice::DiskFull { disk, change, lasted });
        world.notices.extend(told);
    }

    /// Reports for each disk that no request has needed space for a while.
    pub(crate) fn need_no_space(&self) {
        let mut world = self.lock();
        let (change, lasted) = (FullChange::NotNeeded, Duration::from_secs(10));
        let disks: Vec<DiskId> = std::mem::take(&mut world.full).into_keys().collect();
        let told = disks.into_iter().map(|disk| PlaneNotice::DiskFull { disk, change, lasted });
        world.notices.extend(told);
    }

    /// Returns the changes of full policies since the last call.
    pub(crate) fn take_full_changes(&self) -> Vec<FullPolicy> {
        std::mem::take(&mut self.lock().full_changes)
    }

    /// Returns the full policies of all disks.
    pub(crate) fn full_policies(&self) -> Vec<FullPolicy> {
        self.lock().full_policies.values().copied().collect()
    }

    /// Removes all disks from service and reports it.
    pub(crate) fn lose(&self, reason: &str) {
        let mut world = self.lock();
        for disk in std::mem::take(&mut world.in_service).into_keys() {
            let reason = reason.to_owned();
            world.notices.push_back(PlaneNotice::DiskLost { disk, reason });
        }
    }

    /// Returns an existing store.
    pub(crate) fn store(&self, path: &str) -> MemoryFiles {
        self.lock().stores[Path::new(path)].clone()
    }

    fn lock(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bind(&self, socket: &Path) -> Result<(), DeviceError> {
        self.lock().bound.bind(socket)
    }

    fn check(&self, socket: &Path) -> Result<(), DeviceError> {
        let mut world = self.lock();
        if world.refused.contains(socket) {
            let stalled = world.stalled_at_refusal.take();
            stalled.iter().for_each(|store| world.stores[store].set_stalled(true));
            Err(refused(DeviceErrorKind::Busy))
        } else {
            Ok(())
        }
    }
}

impl StoreSource for FakeDisks {
    fn open(&self, path: &Path) -> Result<Arc<dyn StoreFiles>, StoreFileError> {
        let store = self.lock().stores.get(path).cloned();
        let missing = || StoreFileError::new(path.to_string_lossy(), StoreFault::Missing);
        Ok(Arc::new(store.ok_or_else(missing)?))
    }

    fn identity(&self, path: &Path) -> Result<StoreIdentity, StoreFileError> {
        Ok(StoreSource::open(self, path)?.identity())
    }
}

impl DiskPlane for FakeDisks {
    fn queue_host(&self) -> Arc<dyn DiskQueueHost> {
        Arc::new(self.clone())
    }

    fn add_disk(&self, disk: DiskId, spec: DiskSpec, store: StoreId) -> Result<(), NotServed> {
        let mut world = self.lock();
        let has_limits = world.limits.get(&store).is_some_and(|of| of.slot(disk).is_some());
        let error = match () {
            () if world.blocks_workers => PlaneError::NoResponse(WorkerId(0)),
            () if !has_limits => PlaneError::NoSuchStore,
            () if world.in_service.contains_key(&disk) => PlaneError::InService,
            () => {
                world.served += 1;
                world.in_service.insert(disk, spec);
                return Ok(());
            }
        };
        Err(NotServed { error, spec: Some(spec) })
    }

    fn suspend_disk(&self, disk: DiskId) -> Result<DiskSpec, PlaneError> {
        let mut world = self.lock();
        let spec = world.in_service.get_mut(&disk).ok_or(PlaneError::NoSuchDisk)?;
        if spec.layers.is_empty() {
            return Err(PlaneError::Suspended);
        }
        if let Some(error) = spec.layers[0].file.failed_flush() {
            return Err(PlaneError::FlushFailed(error.to_owned()));
        }
        Ok(std::mem::replace(spec, DiskSpec { layers: Vec::new() }))
    }

    fn suspend_disk_to_reopen(&self, disk: DiskId) -> Result<DiskSpec, PlaneError> {
        let mut world = self.lock();
        let spec = world.in_service.get_mut(&disk).ok_or(PlaneError::NoSuchDisk)?;
        Ok(std::mem::replace(spec, DiskSpec { layers: Vec::new() }))
    }

    fn resume_disk(&self, disk: DiskId, spec: DiskSpec) -> Result<(), NotResumed> {
        let mut world = self.lock();
        let is_refused = world.resume_refused;
        match world.in_service.get_mut(&disk).filter(|of| of.layers.is_empty() && !is_refused) {
            Some(of) => {
                *of = spec;
                Ok(())
            }
            None => Err(NotResumed { error: PlaneError::NoSuchDisk, spec: Some(spec) }),
        }
    }

    fn announce_removal(&self, _disk: DiskId) {}

    fn take_disk(&self, disk: DiskId) -> Result<DiskSpec, PlaneError> {
        self.lock().in_service.remove(&disk).ok_or(PlaneError::NoSuchDisk)
    }

    fn attach_client(&self, _disk: DiskId, _queue: Box<dyn DiskQueue>) -> Result<u64, PlaneError> {
        Ok(0)
    }

    fn attach_vm_client(
        &self,
        _disk: DiskId,
        _queue: Box<dyn DiskQueue>,
    ) -> Result<(), PlaneError> {
        Ok(())
    }

    fn set_full_policy(&self, disk: DiskId, policy: FullPolicy) {
        let mut world = self.lock();
        world.full_policies.insert(disk, policy);
        world.full_changes.push(policy);
    }

    fn detach_clients(&self, _disk: DiskId) {}

    fn begin_mirror(&self, disk: DiskId, _: Option<Arc<DirtyMap>>) -> Result<(), PlaneError> {
        match self.lock().copied.insert(disk) {
            true => Ok(()),
            false => Err(PlaneError::Mirrored),
        }
    }

    fn attach_mirror(&self, _: DiskId, _: Box<dyn DiskQueue>) -> Result<(), PlaneError> {
        Ok(())
    }

    fn in_flight(&self, _: DiskId) -> Result<usize, PlaneError> {
        Ok(0)
    }

    fn end_mirror(&self, disk: DiskId) -> Result<(), PlaneError> {
        let mut world = self.lock();
        if world.stalls {
            return Err(PlaneError::Stalled);
        }
        world.copied.remove(&disk);
        Ok(())
    }

    fn add_store(&self, store: StoreId, _spec: StoreSpec) -> Result<(), PlaneError> {
        self.lock().limits.entry(store).or_default();
        Ok(())
    }

    fn remove_store(&self, store: StoreId) -> Result<(), PlaneError> {
        self.lock().limits.remove(&store).map(|_| ()).ok_or(PlaneError::NoSuchStore)
    }

    fn set_capacity(&self, store: StoreId, capability: Capacity) {
        if let Some(limits) = self.lock().limits.get_mut(&store) {
            limits.set_capacity(capability);
        }
    }

    fn set_latency(&self, _store: StoreId, _latency: Option<MeasuredLatency>) {}

    fn set_cap(&self, store: StoreId, cap: Option<TimedRateLimit>) {
        let mut world = self.lock();
        let Some(cap) = cap else {
            world.caps.remove(&store);
            return;
        };
        world.caps.insert(store, cap);
    }

    fn set_policy_share(&self, _: StoreId, policy: PolicyId, part: Option<PolicyShare>) {
        let parts = &mut self.lock().parts;
        match part {
            Some(part) => parts.insert(policy, part),
            None => parts.remove(&policy),
        };
    }

    fn block_policy(&self, _: StoreId, policy: PolicyId) {
        let nothing = PolicyShare { min_iops: 0, max: Some(TimedRateLimit::default()) };
        self.lock().parts.entry(policy).or_insert(nothing);
    }

    fn propose(
        &self,
        store: StoreId,
        proposals: &[Proposal],
        force: bool,
    ) -> Result<(), AdmissionError> {
        let mut world = self.lock();
        world.limits.entry(store).or_default().propose(proposals, force).map(|_| ())
    }

    fn disks(&self) -> Vec<DiskView> {
        let world = self.lock();
        let failed_flush =
            |spec: &DiskSpec| spec.layers.first()?.file.failed_flush().map(str::to_owned);
        let view = |(disk, spec): (&DiskId, &DiskSpec)| DiskView {
            disk: *disk,
            worker: WorkerId(0),
            clients: 0,
            tally: DiskCounterCells::default(),
            stalled: world.stalls.then_some(STALLED_AFTER),
            uncommitted_bytes: 0,
            full: world.full.get(disk).copied(),
            failed_flush: failed_flush(spec),
            is_current: !world.is_stale,
        };
        world.in_service.iter().filter(|_| !world.is_unseen).map(view).collect()
    }

    fn has_disk(&self, disk: DiskId) -> bool {
        self.lock().in_service.contains_key(&disk)
    }

    fn stores(&self) -> Vec<StoreView> {
        self.lock().views.clone()
    }

    fn poll_notice(&self) -> Option<PlaneNotice> {
        self.lock().notices.pop_front()
    }
}

impl DiskQueueHost for FakeDisks {
    fn attach(&self, _disk: DiskId, _index: u16, _queue: Box<dyn DiskQueue>) {}

    fn detach(&self, _disk: DiskId, _index: u16) {}

    fn detach_disk(&self, _disk: DiskId) {}
}

impl DiskDevices for FakeDisks {
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
    ) -> Result<Box<dyn DiskListener>, DeviceError> {
        let place = path_of(&spec.address());
        self.check(&place)?;
        self.check_files(spec)?;
        self.bind(&place)?;
        self.lock().listeners.insert(place, (spec.clone(), exports));
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
            None => Err(refused(DeviceErrorKind::Host)),
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
        let limits = self.lock().nbd_limits.map_or(NbdLimits::HOST, |(host, _)| host);
        let level = NbdLevel { connections: 2, buffer_bytes: 1 << 20, limits };
        let peers = vec![("user 107".to_owned(), level)];
        NbdUsage { host: level, peers, exports: Vec::new(), shortages: 3 }
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

struct FakeListener {
    world: FakeDisks,
    address: NbdAddress,
}

/// Returns a TCP address as a path, so that it is treated like a socket path.
fn path_of(place: &NbdAddress) -> PathBuf {
    match place {
        NbdAddress::Unix(path) => path.clone(),
        NbdAddress::Tcp(address) => address.to_string().into(),
    }
}

impl DiskListener for FakeListener {
    fn change(&self, spec: &NbdServerSpec) -> Result<(), DeviceError> {
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
        let place = path_of(&self.address);
        let mut world = self.world.lock();
        world.bound.release(&place);
        let exports = world.listeners.remove(&place);
        drop(world);
        drop(exports);
    }
}
