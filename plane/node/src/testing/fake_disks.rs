//! Stores in memory, a storage plane without processors, and sockets that are remembered.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use suimon_ports::testing::{MemoryRecords, MemoryStore as MemoryFiles, Pace, PacedDevices};
use suimon_ports::{
    DeviceError, DeviceErrorKind, DiskClient, DiskDevice, DiskDevices, DiskExports, DiskListener,
    DiskObserver, DiskQueue, DiskQueueHost, ExportedDisk, NbdClient, NbdNotice, NbdPlace,
    NbdServerSpec, StoreFault, StoreFileError, StoreFiles, StoreSource, VhostUserDiskSpec,
    VhostUserDiskStatus,
};
use suimon_quantity::{Cap, DiskId, ProcessorId, StoreId};
use suimon_storage::{
    DirtyMap, DiskSpec, DiskTally, DiskView, FullChange, FullPolicy, FullView, NotResumed,
    PlaneError, PlaneNotice, STALLED_AFTER, StoreView,
};
use suimon_storage_qos::{
    Capability, MeasuredLatency, PolicyId, PolicyPart, Promises, Proposal, Refusal, Store,
    StoreSpec,
};

use crate::testing::{BoundSockets, HollowDisk, refused};
use crate::{DiskParts, DiskPlane};

/// Everything that disks of one host need. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct FakeDisks(Arc<Mutex<World>>);

#[derive(Default)]
struct World {
    stores: BTreeMap<PathBuf, MemoryFiles>,
    in_service: BTreeMap<DiskId, DiskSpec>,
    /// How often disks were taken into service.
    served: usize,
    sockets: BTreeMap<PathBuf, DiskId>,
    listeners: BTreeMap<PathBuf, (NbdServerSpec, Arc<dyn DiskExports>)>,
    /// Clients of NBD servers.
    clients: Vec<NbdClient>,
    /// How often servers were changed, or read their files anew.
    reloaded: usize,
    refused: BTreeSet<PathBuf>,
    /// Lengths that VMs were told.
    resized: Vec<u64>,
    limits: BTreeMap<StoreId, Store>,
    /// What all disks of a store may do.
    caps: BTreeMap<StoreId, Cap>,
    /// What is here of policies that span nodes.
    parts: BTreeMap<PolicyId, PolicyPart>,
    /// Whether disks that were suspended cannot go on.
    resume_refused: bool,
    /// Whether VMs are connected to disks.
    connected: bool,
    /// Whether those VMs have started the devices.
    started: bool,
    /// What measurements find.
    devices: PacedDevices,
    /// What the plane shows of stores, and reports.
    views: Vec<StoreView>,
    notices: VecDeque<PlaneNotice>,
    /// What NICs and disks listen on.
    bound: BoundSockets,
    /// Whether stores do not answer.
    stalls: bool,
    /// Disks that are copied.
    copied: BTreeSet<DiskId>,
    /// Bytes of the disks at the ends of connections; nobody answers there if absent.
    far_bytes: Option<u64>,
    /// Changes of images' metadata.
    records: MemoryRecords,
    /// What requests of disks do if their store is full.
    full_policies: BTreeMap<DiskId, FullPolicy>,
    /// All that was set of that, in order.
    full_changes: Vec<FullPolicy>,
    /// Disks whose store is full.
    full: BTreeMap<DiskId, FullView>,
}

impl FakeDisks {
    /// A host with an empty store at this path.
    pub(crate) fn with_store(path: &str) -> Self {
        let disks = Self::default();
        disks.lock().stores.insert(path.into(), MemoryFiles::default());
        disks
    }

    /// The host after the process that served its disks was killed.
    pub(crate) fn host_left(&self) -> Self {
        let world = self.lock();
        let left = world.stores.iter();
        let left = left.map(|(path, store)| (path.clone(), MemoryFiles::with_files(store.files())));
        let stores = left.collect();
        Self(Arc::new(Mutex::new(World { stores, ..World::default() })))
    }

    /// Stalls or resumes reads and writes of all files of the stores.
    pub(crate) fn stall_files(&self, stalls: bool) {
        for store in self.lock().stores.values() {
            store.stall(stalls);
        }
    }

    pub(crate) fn parts(&self) -> DiskParts {
        DiskParts {
            plane: Arc::new(self.clone()),
            devices: Arc::new(self.clone()),
            stores: Arc::new(self.clone()),
            io: Arc::new(self.devices()),
            random: Arc::new(|| [7; 16]),
            records: Some(Arc::new(self.lock().records.clone())),
        }
    }

    /// The devices that measurements find; those of a new host answer nothing.
    pub(crate) fn devices(&self) -> PacedDevices {
        self.lock().devices.clone()
    }

    /// How these behave from now on.
    pub(crate) fn set_pace(&self, pace: Pace) {
        self.devices().set(pace);
    }

    /// What is here of policies that span nodes.
    pub(crate) fn policy_parts(&self) -> Vec<PolicyPart> {
        self.lock().parts.values().copied().collect()
    }

    /// What all disks of each store may do, where they may not do what they can.
    pub(crate) fn caps(&self) -> Vec<Cap> {
        self.lock().caps.values().copied().collect()
    }

    /// What the plane shows of stores.
    pub(crate) fn set_views(&self, views: Vec<StoreView>) {
        self.lock().views = views;
    }

    /// The plane reports something.
    pub(crate) fn report(&self, notice: PlaneNotice) {
        self.lock().notices.push_back(notice);
    }

    /// Whether sockets at this path can be bound.
    pub(crate) fn refuse(&self, socket: &str, is_refused: bool) {
        let mut world = self.lock();
        if is_refused {
            world.refused.insert(socket.into());
        } else {
            world.refused.remove(Path::new(socket));
        }
    }

    /// A store goes, as when a file system is unmounted, and what it was.
    pub(crate) fn take_store(&self, path: &str) -> MemoryFiles {
        self.lock().stores.remove(Path::new(path)).unwrap()
    }

    pub(crate) fn put_store(&self, path: &str, store: MemoryFiles) {
        self.lock().stores.insert(path.into(), store);
    }

    /// Names of a store's files.
    pub(crate) fn files(&self, store: &str) -> Vec<String> {
        let world = self.lock();
        world.stores[Path::new(store)].files().keys().map(ToString::to_string).collect()
    }

    /// How many disks are in service, and how many were taken into service so far.
    pub(crate) fn served(&self) -> (usize, usize) {
        let world = self.lock();
        (world.in_service.len(), world.served)
    }

    /// What each store promises.
    pub(crate) fn promises(&self) -> Vec<Promises> {
        self.lock().limits.values().map(Store::promises).collect()
    }

    /// Sockets of VMs' disks that are open, and those for NBD clients with what they offer.
    pub(crate) fn sockets(&self) -> (Vec<PathBuf>, BTreeMap<PathBuf, Vec<String>>) {
        let world = self.lock();
        let offered = world.listeners.iter().map(|(path, (_, exports))| {
            let names = exports.exports().into_iter().map(|of| of.name).collect();
            (path.clone(), names)
        });
        (world.sockets.keys().cloned().collect(), offered.collect())
    }

    /// Lengths that VMs were told so far.
    pub(crate) fn resized(&self) -> Vec<u64> {
        self.lock().resized.clone()
    }

    /// What is offered to NBD clients.
    pub(crate) fn exported(&self) -> Vec<ExportedDisk> {
        self.lock().listeners.values().flat_map(|(_, exports)| exports.exports()).collect()
    }

    /// NBD servers as they are, and how often they were changed or read files anew.
    pub(crate) fn servers(&self) -> (Vec<NbdServerSpec>, usize) {
        let world = self.lock();
        (world.listeners.values().map(|(spec, _)| spec.clone()).collect(), world.reloaded)
    }

    /// What a server tells.
    pub(crate) fn tell(&self, place: &str, notice: NbdNotice) {
        let exports = self.lock().listeners[Path::new(place)].1.clone();
        exports.handle_notice(notice);
    }

    /// Who uses exports.
    pub(crate) fn set_clients(&self, clients: Vec<NbdClient>) {
        self.lock().clients = clients;
    }

    /// Whether the certificate that a server is to show can be used.
    fn check_files(&self, spec: &NbdServerSpec) -> Result<(), DeviceError> {
        let NbdServerSpec::Tcp { access, .. } = spec else { return Ok(()) };
        let Some(tls) = &access.tls else { return Ok(()) };
        let error = |error| DeviceError { field: "tls_certificate", ..error };
        self.check(&tls.certificate).map_err(error)
    }

    /// Whether disks that are suspended cannot go on.
    pub(crate) fn refuse_resuming(&self, is_refused: bool) {
        self.lock().resume_refused = is_refused;
    }

    /// Whether VMs are connected to disks.
    pub(crate) fn connect(&self, is_connected: bool) {
        self.lock().connected = is_connected;
    }

    /// Whether VMs that are connected have started the devices.
    pub(crate) fn start_devices(&self, is_started: bool) {
        self.lock().started = is_started;
    }

    /// Disks at the ends of connections have so many bytes, or there are none.
    pub(crate) fn set_far_bytes(&self, bytes: Option<u64>) {
        self.lock().far_bytes = bytes;
    }

    /// How many disks are copied, as the plane knows.
    pub(crate) fn copied(&self) -> usize {
        self.lock().copied.len()
    }

    /// They listen on the same host as these NICs.
    pub(crate) fn share_sockets(&self, bound: BoundSockets) {
        self.lock().bound = bound;
    }

    /// The store of every disk answers no more, or does again.
    pub(crate) fn stall(&self, stalls: bool) {
        let mut world = self.lock();
        world.stalls = stalls;
        let waited = STALLED_AFTER;
        let disks: Vec<DiskId> = world.in_service.keys().copied().collect();
        let told = disks.into_iter().map(|disk| PlaneNotice::DiskStall { disk, stalls, waited });
        world.notices.extend(told);
    }

    /// A flush of every disk fails.
    pub(crate) fn fail_flush(&self, detail: &str) {
        let mut world = self.lock();
        let disks: Vec<DiskId> = world.in_service.keys().copied().collect();
        for spec in world.in_service.values() {
            let failure = spec.layers[0].file.flush_failure().unwrap();
            failure.note(&std::io::Error::other(detail.to_owned()));
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

    /// The store of every disk becomes full, with so many requests queued, or has space again.
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

    /// No request of any disk has needed space for a while.
    pub(crate) fn need_no_space(&self) {
        let mut world = self.lock();
        let (change, lasted) = (FullChange::NotNeeded, Duration::from_secs(10));
        let disks: Vec<DiskId> = std::mem::take(&mut world.full).into_keys().collect();
        let told = disks.into_iter().map(|disk| PlaneNotice::DiskFull { disk, change, lasted });
        world.notices.extend(told);
    }

    /// What was set since this was asked last.
    pub(crate) fn take_full_changes(&self) -> Vec<FullPolicy> {
        std::mem::take(&mut self.lock().full_changes)
    }

    /// What requests of a disk do if its store is full.
    pub(crate) fn full_policies(&self) -> Vec<FullPolicy> {
        self.lock().full_policies.values().copied().collect()
    }

    /// The plane loses all disks, and says so.
    pub(crate) fn lose(&self, reason: &str) {
        let mut world = self.lock();
        for disk in std::mem::take(&mut world.in_service).into_keys() {
            let reason = reason.to_owned();
            world.notices.push_back(PlaneNotice::DiskLost { disk, reason });
        }
    }

    /// A store that is there.
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
        if self.lock().refused.contains(socket) {
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
}

impl DiskPlane for FakeDisks {
    fn queue_host(&self) -> Arc<dyn DiskQueueHost> {
        Arc::new(self.clone())
    }

    fn add_disk(&self, disk: DiskId, spec: DiskSpec, store: StoreId) -> Result<(), PlaneError> {
        let mut world = self.lock();
        let limits = world.limits.get(&store).ok_or(PlaneError::NoSuchStore)?;
        limits.slot(disk).ok_or(PlaneError::NoSuchStore)?;
        world.served += 1;
        match world.in_service.insert(disk, spec) {
            None => Ok(()),
            Some(_) => Err(PlaneError::InService),
        }
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

    fn begin_end(&self, _disk: DiskId) {}

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

    fn under_way(&self, _: DiskId) -> Result<usize, PlaneError> {
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

    fn set_capability(&self, store: StoreId, capability: Capability) {
        if let Some(limits) = self.lock().limits.get_mut(&store) {
            limits.set_capability(capability);
        }
    }

    fn set_latency(&self, _store: StoreId, _latency: Option<MeasuredLatency>) {}

    fn set_cap(&self, store: StoreId, cap: Option<Cap>) {
        let mut world = self.lock();
        let Some(cap) = cap else {
            world.caps.remove(&store);
            return;
        };
        world.caps.insert(store, cap);
    }

    fn set_part(&self, _: StoreId, policy: PolicyId, part: Option<PolicyPart>) {
        let parts = &mut self.lock().parts;
        match part {
            Some(part) => parts.insert(policy, part),
            None => parts.remove(&policy),
        };
    }

    fn hold_policy(&self, _: StoreId, policy: PolicyId) {
        let nothing = PolicyPart { min_iops: 0, max: Some(Cap::default()) };
        self.lock().parts.entry(policy).or_insert(nothing);
    }

    fn propose(&self, store: StoreId, proposals: &[Proposal], force: bool) -> Result<(), Refusal> {
        let mut world = self.lock();
        world.limits.entry(store).or_default().propose(proposals, force).map(|_| ())
    }

    fn disks(&self) -> Vec<DiskView> {
        let world = self.lock();
        let failed_flush =
            |spec: &DiskSpec| spec.layers.first()?.file.failed_flush().map(str::to_owned);
        let view = |(disk, spec): (&DiskId, &DiskSpec)| DiskView {
            disk: *disk,
            processor: ProcessorId(0),
            clients: 0,
            tally: DiskTally::default(),
            stalled: world.stalls.then_some(STALLED_AFTER),
            uncommitted_bytes: 0,
            full: world.full.get(disk).copied(),
            failed_flush: failed_flush(spec),
        };
        world.in_service.iter().map(view).collect()
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
        let place = path_of(&spec.place());
        self.check(&place)?;
        self.check_files(spec)?;
        self.bind(&place)?;
        self.lock().listeners.insert(place, (spec.clone(), exports));
        Ok(Box::new(FakeListener { world: self.clone(), place: spec.place() }))
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
    place: NbdPlace,
}

/// A TCP address as a path, so that it can be refused and counted like a socket.
fn path_of(place: &NbdPlace) -> PathBuf {
    match place {
        NbdPlace::Unix(path) => path.clone(),
        NbdPlace::Tcp(address) => address.to_string().into(),
    }
}

impl DiskListener for FakeListener {
    fn change(&self, spec: &NbdServerSpec) -> Result<(), DeviceError> {
        assert_eq!(spec.place(), self.place, "a server stays where it is");
        self.world.check_files(spec)?;
        let mut world = self.world.lock();
        world.reloaded += 1;
        world.listeners.get_mut(&path_of(&self.place)).unwrap().0 = spec.clone();
        Ok(())
    }
}

impl Drop for FakeListener {
    fn drop(&mut self) {
        let place = path_of(&self.place);
        let mut world = self.world.lock();
        world.bound.release(&place);
        let exports = world.listeners.remove(&place);
        drop(world);
        drop(exports);
    }
}
