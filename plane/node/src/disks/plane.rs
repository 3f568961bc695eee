//! The storage plane, as the node sees it.
//!
//! A trait, so that failures of the plane can be tested; [`StoragePlane`] is the
//! implementation.

use std::sync::Arc;

use suimon_ports::{DiskQueue, DiskQueueHost};
use suimon_quantity::{Cap, DiskId, StoreId};
use suimon_storage::{
    DirtyMap, DiskSpec, DiskView, FullPolicy, NotResumed, PlaneError, PlaneNotice, StoragePlane,
    StoreView,
};
use suimon_storage_qos::{
    Capability, MeasuredLatency, PolicyId, PolicyPart, Proposal, Refusal, StoreSpec,
};

/// What the node asks of the storage plane. See [`StoragePlane`] for the meaning of each.
pub trait DiskPlane: Send + Sync {
    /// The plane as a taker of queues.
    fn queue_host(&self) -> Arc<dyn DiskQueueHost>;

    /// Takes a disk into service.
    ///
    /// # Errors
    /// Nobody can serve it.
    fn add_disk(&self, disk: DiskId, spec: DiskSpec, store: StoreId) -> Result<(), PlaneError>;

    /// Has a store, or gives one without disks in service another specification.
    ///
    /// # Errors
    /// It has disks in service.
    fn add_store(&self, store: StoreId, spec: StoreSpec) -> Result<(), PlaneError>;

    /// Has a store no more.
    ///
    /// # Errors
    /// It has disks in service.
    fn remove_store(&self, store: StoreId) -> Result<(), PlaneError>;

    /// What a store can do.
    fn set_capability(&self, store: StoreId, capability: Capability);

    /// Sets the latency of a store's device that a measurement found.
    fn set_latency(&self, store: StoreId, latency: Option<MeasuredLatency>);

    /// What all disks of a store may do together; `None`: what they can.
    fn set_cap(&self, store: StoreId, cap: Option<Cap>);

    /// What a policy's disks may do together here, of one that spans nodes; `None`: what it says.
    fn set_part(&self, store: StoreId, policy: PolicyId, part: Option<PolicyPart>);

    /// A policy's disks may do nothing until it is said what, unless it was.
    fn hold_policy(&self, store: StoreId, policy: PolicyId);

    /// Changes limits.
    ///
    /// # Errors
    /// What is wrong with them; nothing was changed.
    fn propose(&self, store: StoreId, proposals: &[Proposal], force: bool) -> Result<(), Refusal>;

    /// What all processors do for stores.
    fn stores(&self) -> Vec<StoreView>;

    /// A disk is about to be taken out of service.
    fn begin_end(&self, disk: DiskId);

    /// Takes a disk out of service; its own image is to be closed.
    ///
    /// # Errors
    /// It is not in service, or its store does not answer.
    fn take_disk(&self, disk: DiskId) -> Result<DiskSpec, PlaneError>;

    /// Takes a disk's images and files, of which the first is to be closed; its queues stay.
    ///
    /// # Errors
    /// It is not in service, or goes on because it could not be made durable.
    fn suspend_disk(&self, disk: DiskId) -> Result<DiskSpec, PlaneError>;

    /// Takes the images and files of a disk that is to be reopened. Those of a disk whose flush has
    /// failed are taken as they are.
    ///
    /// # Errors
    /// It is not in service, or goes on because it could not be made durable.
    fn suspend_disk_to_reopen(&self, disk: DiskId) -> Result<DiskSpec, PlaneError>;

    /// Goes on with a suspended disk.
    ///
    /// # Errors
    /// The files cannot be used; it stays suspended.
    fn resume_disk(&self, disk: DiskId, spec: DiskSpec) -> Result<(), NotResumed>;

    /// Gives a disk a client's connection.
    ///
    /// # Errors
    /// It is not in service.
    fn attach_client(&self, disk: DiskId, queue: Box<dyn DiskQueue>) -> Result<u64, PlaneError>;

    /// Gives a disk the connection of a QEMU that emulates its controller.
    ///
    /// # Errors
    /// It is not in service.
    fn attach_vm_client(&self, disk: DiskId, queue: Box<dyn DiskQueue>) -> Result<(), PlaneError>;

    /// Sets what requests of a disk do if its store is full.
    fn set_full_policy(&self, disk: DiskId, policy: FullPolicy);

    /// Ends the connections of a disk's clients; its VM stays.
    fn detach_clients(&self, disk: DiskId);

    /// A disk is going to be copied; from here if what changes is to be marked.
    ///
    /// # Errors
    /// It is copied already, suspended or not in service.
    fn begin_mirror(&self, disk: DiskId, dirty: Option<Arc<DirtyMap>>) -> Result<(), PlaneError>;

    /// Gives a disk that is copied the connection by which it is.
    ///
    /// # Errors
    /// It is not copied, or not in service.
    fn attach_mirror(&self, disk: DiskId, queue: Box<dyn DiskQueue>) -> Result<(), PlaneError>;

    /// Requests of a disk's clients that are not answered.
    ///
    /// # Errors
    /// It is not in service.
    fn under_way(&self, disk: DiskId) -> Result<usize, PlaneError>;

    /// A disk is copied no more, and nothing of that is under way.
    ///
    /// # Errors
    /// Its store does not answer.
    fn end_mirror(&self, disk: DiskId) -> Result<(), PlaneError>;

    /// What all disks have done.
    fn disks(&self) -> Vec<DiskView>;

    /// The next of what the plane has to report.
    fn poll_notice(&self) -> Option<PlaneNotice>;
}

impl DiskPlane for StoragePlane {
    fn queue_host(&self) -> Arc<dyn DiskQueueHost> {
        Arc::new(self.clone())
    }

    fn add_disk(&self, disk: DiskId, spec: DiskSpec, store: StoreId) -> Result<(), PlaneError> {
        Self::add_disk(self, disk, spec, Some(store))
    }

    fn add_store(&self, store: StoreId, spec: StoreSpec) -> Result<(), PlaneError> {
        Self::add_store(self, store, spec)
    }

    fn remove_store(&self, store: StoreId) -> Result<(), PlaneError> {
        Self::remove_store(self, store)
    }

    fn set_capability(&self, store: StoreId, capability: Capability) {
        Self::set_capability(self, store, capability);
    }

    fn set_latency(&self, store: StoreId, latency: Option<MeasuredLatency>) {
        Self::set_latency(self, store, latency);
    }

    fn set_cap(&self, store: StoreId, cap: Option<Cap>) {
        Self::set_cap(self, store, cap);
    }

    fn set_part(&self, store: StoreId, policy: PolicyId, part: Option<PolicyPart>) {
        Self::set_part(self, store, policy, part);
    }

    fn hold_policy(&self, store: StoreId, policy: PolicyId) {
        Self::hold_policy(self, store, policy);
    }

    fn propose(&self, store: StoreId, proposals: &[Proposal], force: bool) -> Result<(), Refusal> {
        Self::propose(self, store, proposals, force)
    }

    fn stores(&self) -> Vec<StoreView> {
        Self::stores(self)
    }

    fn begin_end(&self, disk: DiskId) {
        Self::begin_end(self, disk);
    }

    fn take_disk(&self, disk: DiskId) -> Result<DiskSpec, PlaneError> {
        Self::take_disk(self, disk)
    }

    fn suspend_disk(&self, disk: DiskId) -> Result<DiskSpec, PlaneError> {
        Self::suspend_disk(self, disk)
    }

    fn suspend_disk_to_reopen(&self, disk: DiskId) -> Result<DiskSpec, PlaneError> {
        Self::suspend_disk_to_reopen(self, disk)
    }

    fn resume_disk(&self, disk: DiskId, spec: DiskSpec) -> Result<(), NotResumed> {
        Self::resume_disk(self, disk, spec)
    }

    fn attach_client(&self, disk: DiskId, queue: Box<dyn DiskQueue>) -> Result<u64, PlaneError> {
        Self::attach_client(self, disk, queue)
    }

    fn attach_vm_client(&self, disk: DiskId, queue: Box<dyn DiskQueue>) -> Result<(), PlaneError> {
        Self::attach_vm_client(self, disk, queue)
    }

    fn set_full_policy(&self, disk: DiskId, policy: FullPolicy) {
        if let Err(error) = Self::set_full_policy(self, disk, policy) {
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

    fn under_way(&self, disk: DiskId) -> Result<usize, PlaneError> {
        Self::under_way(self, disk)
    }

    fn end_mirror(&self, disk: DiskId) -> Result<(), PlaneError> {
        Self::end_mirror(self, disk)
    }

    fn disks(&self) -> Vec<DiskView> {
        Self::disks(self)
    }

    fn poll_notice(&self) -> Option<PlaneNotice> {
        Self::poll_notice(self)
    }
}
