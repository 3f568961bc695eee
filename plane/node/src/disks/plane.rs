//! Interface of the node to the storage plane.
//!
//! A trait, so that tests can simulate failures of the plane. [`StoragePlane`] is the
//! implementation.

use std::sync::Arc;

use suimon_image_files::LayerStack;
use suimon_ports::{DiskQueue, DiskQueueHost};
use suimon_quantity::{DiskId, StoreId, TimedRateLimit};
use suimon_storage::{
    AddDiskError, DiskView, PlaneError, PlaneNotice, ResumeDiskError, StoragePlane, StoreView,
};
use suimon_storage_engine::{DirtyMap, FullStorePolicy};
use suimon_storage_qos::{
    AdmissionError, Capacity, MeasuredLatency, PolicyId, PolicyShare, Proposal, StoreSpec,
};

/// Storage plane as used by the node. [`StoragePlane`] describes each function in detail.
pub trait DiskPlane: Send + Sync {
    /// Returns the interface by which front-ends attach queues.
    fn queue_host(&self) -> Arc<dyn DiskQueueHost>;

    /// Puts a disk into service.
    ///
    /// # Errors
    /// Fails if no worker can serve the disk. The caller must close the returned images.
    fn add_disk(&self, disk: DiskId, spec: LayerStack, store: StoreId) -> Result<(), AddDiskError>;

    /// Adds a store, or replaces the specification of one without disks in service.
    ///
    /// # Errors
    /// Fails if the store has disks in service.
    fn add_store(&self, store: StoreId, spec: StoreSpec) -> Result<(), PlaneError>;

    /// Removes a store.
    ///
    /// # Errors
    /// Fails if the store has disks in service.
    fn remove_store(&self, store: StoreId) -> Result<(), PlaneError>;

    /// Sets the capacity of a store.
    fn set_capacity(&self, store: StoreId, capability: Capacity);

    /// Sets the latency of a store's device from a measurement; `None` if it was not measured.
    fn set_latency(&self, store: StoreId, latency: Option<MeasuredLatency>);

    /// Sets the limit of all disks of a store together; `None` removes it.
    fn set_cap(&self, store: StoreId, cap: Option<TimedRateLimit>);

    /// Sets this node's share of the limits of a policy that spans nodes. `None`: the limits of the
    /// policy apply in full to this node's disks.
    fn set_policy_share(&self, store: StoreId, policy: PolicyId, part: Option<PolicyShare>);

    /// Blocks requests of a policy's disks until this node's share is set, unless it is set
    /// already.
    fn block_policy(&self, store: StoreId, policy: PolicyId);

    /// Changes limits. `force` permits minimums that exceed the capacity.
    ///
    /// # Errors
    /// Returns the reason of the rejection; nothing was changed.
    fn change_limits(
        &self,
        store: StoreId,
        proposals: &[Proposal],
        force: bool,
    ) -> Result<(), AdmissionError>;

    /// Returns the state of each store at each worker.
    fn stores(&self) -> Vec<StoreView>;

    /// Announces that a disk will be taken out of service. Detaching its queues then does not wait
    /// for a stalled store.
    fn announce_removal(&self, disk: DiskId);

    /// Takes a disk out of service and returns its images. The caller must close the first image,
    /// which belongs to the disk itself; the others are parents, which are only read.
    ///
    /// # Errors
    /// Fails if the disk is not in service, or if its store does not complete requests. In the
    /// second case, the disk is closed as soon as the store responds.
    fn take_disk(&self, disk: DiskId) -> Result<LayerStack, PlaneError>;

    /// Suspends a disk: returns its images and files, of which the caller must close the first.
    /// Queues stay attached.
    ///
    /// # Errors
    /// Fails if the disk is not in service, or cannot be made durable; then it stays in service.
    fn suspend_disk(&self, disk: DiskId) -> Result<LayerStack, PlaneError>;

    /// Takes the images and files of a disk that is to be reopened. Those of a disk whose flush has
    /// failed are taken as they are.
    ///
    /// # Errors
    /// The disk is not in service, or continues because its writes could not be made durable.
    fn suspend_disk_to_reopen(&self, disk: DiskId) -> Result<LayerStack, PlaneError>;

    /// Resumes a suspended disk with these images.
    ///
    /// # Errors
    /// Fails if the files cannot be used; the disk stays suspended.
    fn resume_disk(&self, disk: DiskId, spec: LayerStack) -> Result<(), ResumeDiskError>;

    /// Attaches an NBD client's connection to a disk. Returns its number among the disk's clients.
    ///
    /// # Errors
    /// Fails if the disk is not in service.
    fn attach_client(&self, disk: DiskId, queue: Box<dyn DiskQueue>) -> Result<u64, PlaneError>;

    /// Attaches the connection of a QEMU that emulates the disk's controller.
    ///
    /// # Errors
    /// Fails if the disk is not in service.
    fn attach_vm_client(&self, disk: DiskId, queue: Box<dyn DiskQueue>) -> Result<(), PlaneError>;

    /// Sets whether requests of a disk are queued or fail if its store is full, and for how long.
    fn set_full_policy(&self, disk: DiskId, policy: FullStorePolicy);

    /// Closes the connections of a disk's NBD clients; its VM stays connected.
    fn detach_clients(&self, disk: DiskId);

    /// Marks a disk as being copied. With `dirty`, the disk is the source and its writes are marked
    /// there.
    ///
    /// # Errors
    /// Fails if the disk is being copied already, suspended or not in service.
    fn begin_mirror(&self, disk: DiskId, dirty: Option<Arc<DirtyMap>>) -> Result<(), PlaneError>;

    /// Attaches the connection by which a disk is copied.
    ///
    /// # Errors
    /// Fails if the disk is not marked as being copied, or not in service.
    fn attach_mirror(&self, disk: DiskId, queue: Box<dyn DiskQueue>) -> Result<(), PlaneError>;

    /// Returns the number of requests of a disk's clients that have not completed.
    ///
    /// # Errors
    /// Fails if the disk is not in service.
    fn in_flight(&self, disk: DiskId) -> Result<usize, PlaneError>;

    /// Ends the copying of a disk. When this function returns, none of its requests is in flight.
    ///
    /// # Errors
    /// Fails if the store does not respond.
    fn end_mirror(&self, disk: DiskId) -> Result<(), PlaneError>;

    /// Returns the counters and state of all disks.
    fn disks(&self) -> Vec<DiskView>;

    /// Returns true if a disk is in service, whether its worker responds or not.
    fn has_disk(&self, disk: DiskId) -> bool;

    /// Returns the next notice of the plane; `None` if none is queued.
    fn poll_notice(&self) -> Option<PlaneNotice>;
}

impl DiskPlane for StoragePlane {
    fn queue_host(&self) -> Arc<dyn DiskQueueHost> {
        Arc::new(self.clone())
    }

    fn add_disk(&self, disk: DiskId, spec: LayerStack, store: StoreId) -> Result<(), AddDiskError> {
        Self::add_disk(self, disk, spec, Some(store))
    }

    fn add_store(&self, store: StoreId, spec: StoreSpec) -> Result<(), PlaneError> {
        Self::add_store(self, store, spec)
    }

    fn remove_store(&self, store: StoreId) -> Result<(), PlaneError> {
        Self::remove_store(self, store)
    }

    fn set_capacity(&self, store: StoreId, capability: Capacity) {
        Self::set_capacity(self, store, capability);
    }

    fn set_latency(&self, store: StoreId, latency: Option<MeasuredLatency>) {
        Self::set_latency(self, store, latency);
    }

    fn set_cap(&self, store: StoreId, cap: Option<TimedRateLimit>) {
        Self::set_cap(self, store, cap);
    }

    fn set_policy_share(&self, store: StoreId, policy: PolicyId, part: Option<PolicyShare>) {
        Self::set_policy_share(self, store, policy, part);
    }

    fn block_policy(&self, store: StoreId, policy: PolicyId) {
        Self::block_policy(self, store, policy);
    }

    fn change_limits(
        &self,
        store: StoreId,
        proposals: &[Proposal],
        force: bool,
    ) -> Result<(), AdmissionError> {
        Self::apply_proposals(self, store, proposals, force)
    }

    fn stores(&self) -> Vec<StoreView> {
        Self::stores(self)
    }

    fn announce_removal(&self, disk: DiskId) {
        Self::announce_removal(self, disk);
    }

    fn take_disk(&self, disk: DiskId) -> Result<LayerStack, PlaneError> {
        Self::remove_disk(self, disk)
    }

    fn suspend_disk(&self, disk: DiskId) -> Result<LayerStack, PlaneError> {
        Self::suspend_disk(self, disk)
    }

    fn suspend_disk_to_reopen(&self, disk: DiskId) -> Result<LayerStack, PlaneError> {
        Self::suspend_disk_to_reopen(self, disk)
    }

    fn resume_disk(&self, disk: DiskId, spec: LayerStack) -> Result<(), ResumeDiskError> {
        Self::resume_disk(self, disk, spec)
    }

    fn attach_client(&self, disk: DiskId, queue: Box<dyn DiskQueue>) -> Result<u64, PlaneError> {
        Self::attach_client(self, disk, queue)
    }

    fn attach_vm_client(&self, disk: DiskId, queue: Box<dyn DiskQueue>) -> Result<(), PlaneError> {
        Self::attach_emulated_disk_client(self, disk, queue)
    }

    fn set_full_policy(&self, disk: DiskId, policy: FullStorePolicy) {
        if let Err(error) = Self::set_full_store_policy(self, disk, policy) {
            tracing::debug!(?disk, %error, "requests fail at once if the store is full");
        }
    }

    fn detach_clients(&self, disk: DiskId) {
        Self::detach_clients(self, disk);
    }

    fn begin_mirror(&self, disk: DiskId, dirty: Option<Arc<DirtyMap>>) -> Result<(), PlaneError> {
        Self::begin_mirror(self, disk, dirty)
    }

    fn attach_mirror(&self, disk: DiskId, queue: Box<dyn DiskQueue>) -> Result<(), PlaneError> {
        Self::attach_mirror(self, disk, queue)
    }

    fn in_flight(&self, disk: DiskId) -> Result<usize, PlaneError> {
        Self::requests_in_flight(self, disk)
    }

    fn end_mirror(&self, disk: DiskId) -> Result<(), PlaneError> {
        Self::end_mirror(self, disk)
    }

    fn disks(&self) -> Vec<DiskView> {
        Self::disks(self)
    }

    fn has_disk(&self, disk: DiskId) -> bool {
        Self::has_disk(self, disk)
    }

    fn poll_notice(&self) -> Option<PlaneNotice> {
        Self::poll_notice(self)
    }
}
