//! Storage plane without workers: disks in service, limits of stores, and notices.

use std::sync::Arc;

use suimon_image_files::LayerStack;
use suimon_ports::{DiskQueue, DiskQueueHost};
use suimon_quantity::{DiskId, StoreId, TimedRateLimit, WorkerId};
use suimon_storage::{AddDiskError, DiskView, PlaneError, PlaneNotice, ResumeDiskError, StoreView};
use suimon_storage_engine::{DirtyMap, DiskIoCounters, FullStorePolicy, STALLED_AFTER};
use suimon_storage_qos::{
    AdmissionError, Capacity, MeasuredLatency, MinimumsCheck, PolicyId, PolicyShare, Proposal,
    Store, StoreSpec,
};

use super::FakeDisks;
use crate::DiskPlane;

impl FakeDisks {
    /// Returns this node's shares of policies that span nodes.
    pub(crate) fn policy_parts(&self) -> Vec<PolicyShare> {
        self.lock().parts.values().copied().collect()
    }

    /// Returns the limits of stores that are limited.
    pub(crate) fn caps(&self) -> Vec<TimedRateLimit> {
        self.lock().caps.values().copied().collect()
    }

    /// Sets the store views that the plane returns.
    pub(crate) fn set_views(&self, views: Vec<StoreView>) {
        self.lock().views = views;
    }

    /// Queues a notice of the plane.
    pub(crate) fn report(&self, notice: PlaneNotice) {
        self.lock().notices.push_back(notice);
    }

    /// Returns the number of disks in service, and of those taken into service so far.
    pub(crate) fn served_counts(&self) -> (usize, usize) {
        let world = self.lock();
        (world.in_service.len(), world.served)
    }

    /// Returns the admitted minimums of each store.
    pub(crate) fn admitted_minimums(&self) -> Vec<MinimumsCheck> {
        self.lock().limits.values().map(Store::minimums_check).collect()
    }

    /// Returns the number of disks that are being copied.
    pub(crate) fn copied(&self) -> usize {
        self.lock().copied.len()
    }
}

impl DiskPlane for FakeDisks {
    fn queue_host(&self) -> Arc<dyn DiskQueueHost> {
        Arc::new(self.clone())
    }

    fn add_disk(&self, disk: DiskId, spec: LayerStack, store: StoreId) -> Result<(), AddDiskError> {
        let mut world = self.lock();
        let has_limits = world.limits.get(&store).is_some_and(|limits| limits.slot(disk).is_some());
        let error = match () {
            () if world.blocks_workers => PlaneError::NoResponse(WorkerId(0)),
            () if !has_limits => PlaneError::NoSuchStore,
            () if world.in_service.contains_key(&disk) => PlaneError::AlreadyInService,
            () => {
                world.served += 1;
                world.in_service.insert(disk, spec);
                return Ok(());
            }
        };
        Err(AddDiskError { error, spec: Some(spec) })
    }

    fn suspend_disk(&self, disk: DiskId) -> Result<LayerStack, PlaneError> {
        let mut world = self.lock();
        let spec = world.in_service.get_mut(&disk).ok_or(PlaneError::NoSuchDisk)?;
        if spec.layers.is_empty() {
            return Err(PlaneError::Suspended);
        }
        if let Some(error) = spec.layers[0].file.first_flush_error() {
            return Err(PlaneError::FlushFailed(error.to_owned()));
        }
        Ok(std::mem::replace(spec, LayerStack { layers: Vec::new() }))
    }

    fn suspend_disk_to_reopen(&self, disk: DiskId) -> Result<LayerStack, PlaneError> {
        let mut world = self.lock();
        let spec = world.in_service.get_mut(&disk).ok_or(PlaneError::NoSuchDisk)?;
        Ok(std::mem::replace(spec, LayerStack { layers: Vec::new() }))
    }

    fn resume_disk(&self, disk: DiskId, spec: LayerStack) -> Result<(), ResumeDiskError> {
        let mut world = self.lock();
        let is_refused = world.resume_refused;
        match world
            .in_service
            .get_mut(&disk)
            .filter(|served_spec| served_spec.layers.is_empty() && !is_refused)
        {
            Some(served_spec) => {
                *served_spec = spec;
                Ok(())
            }
            None => Err(ResumeDiskError { error: PlaneError::NoSuchDisk, spec: Some(spec) }),
        }
    }

    fn announce_removal(&self, _disk: DiskId) {}

    fn take_disk(&self, disk: DiskId) -> Result<LayerStack, PlaneError> {
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

    fn set_full_policy(&self, disk: DiskId, policy: FullStorePolicy) {
        let mut world = self.lock();
        world.full_policies.insert(disk, policy);
        world.full_changes.push(policy);
    }

    fn detach_clients(&self, _disk: DiskId) {}

    fn begin_mirror(&self, disk: DiskId, _: Option<Arc<DirtyMap>>) -> Result<(), PlaneError> {
        match self.lock().copied.insert(disk) {
            true => Ok(()),
            false => Err(PlaneError::MirrorInProgress),
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

    fn change_limits(
        &self,
        store: StoreId,
        proposals: &[Proposal],
        force: bool,
    ) -> Result<(), AdmissionError> {
        let mut world = self.lock();
        world.limits.entry(store).or_default().apply(proposals, force).map(|_| ())
    }

    fn disks(&self) -> Vec<DiskView> {
        let world = self.lock();
        let failed_flush =
            |spec: &LayerStack| spec.layers.first()?.file.first_flush_error().map(str::to_owned);
        let view = |(disk, spec): (&DiskId, &LayerStack)| DiskView {
            disk: *disk,
            worker: WorkerId(0),
            clients: 0,
            counters: DiskIoCounters::default(),
            stalled_for: world.stalls.then_some(STALLED_AFTER),
            uncommitted_bytes: 0,
            full_store: world.full.get(disk).copied(),
            flush_error: failed_flush(spec),
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
