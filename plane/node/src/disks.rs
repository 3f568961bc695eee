//! Disks: opening from their stores, service by the storage plane, and export to VMs and NBD
//! clients.

mod created_images;
mod disk_images;
mod entry;
mod exports;
mod flows;
mod full_stores;
mod growing;
mod handover;
mod image_access;
mod image_task;
mod job_record;
mod job_thread;
mod jobs;
mod limits;
mod lock_retry;
mod measured_capacity;
mod measurement_texts;
mod measuring;
mod mirroring;
mod missing_image;
mod nbd_servers;
mod new_disks;
mod notices;
mod open_stores;
mod opening;
mod parent_protection;
mod pausing;
mod plane;
mod planning;
mod records;
mod reopening;
mod required;
mod reserved_files;
mod restoring;
mod reverting;
mod shared_stores;
mod snapshots;
mod status;
mod steps;
mod store_states;
mod store_threads;
mod unchecked_disks;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use suimon_contract::{ApiError, ErrorCode, HostConfig, Name};
use suimon_ports::{DiskDeviceFactory, FileIoFactory, RedoRecords, StoreFiles, StoreOpener};
use suimon_quantity::{DiskId, StoreId};
use suimon_storage_qos::PolicyId;

use self::created_images::CreatedImages;
pub(crate) use self::disk_images::{DiskImages, plan_deadline};
pub(crate) use self::entry::{DiskEntry, DiskMigrationState};
use self::exports::Exports;
pub(crate) use self::full_stores::QueuedWrites;
use self::full_stores::StoreSpaces;
pub(crate) use self::handover::OutgoingDisk;
pub(crate) use self::job_record::UnfinishedJobs;
pub(crate) use self::jobs::RunningJob;
pub(crate) use self::limits::check_minimums_fit;
use self::limits::published::PublishedStore;
pub(crate) use self::lock_retry::{LOCK_RELEASE_TIMEOUT, retry_until_unlocked};
use self::measured_capacity::MeasuredStores;
pub(crate) use self::measured_capacity::{MeasuredStore, capacity};
pub(crate) use self::measuring::RunningMeasurement;
use self::measuring::state::StoreInMeasurement;
pub use self::mirroring::{DiskMirror, ServedDisk};
pub(crate) use self::nbd_servers::nbd_event;
use self::open_stores::OpenStores;
pub(crate) use self::opening::errors::{disk_error, store_file_error};
pub use self::plane::DiskPlane;
pub(crate) use self::planning::{add_disk_resources, disk_steps};
pub(crate) use self::required::{
    RequiredDisk, RequiredDisks, disk_format, file_name, required_disks, required_sockets,
    taken_over_sockets,
};
pub(crate) use self::shared_stores::CreatedStoreMarker;
pub(crate) use self::steps::{DiskStep, DiskUndo};
use self::store_threads::{STORE_TIMEOUT, StoreOperationError, StoreThreads};
pub use self::work::DiskFileJob;
use crate::RandomSource;
use crate::cluster::minimums::Minimums;
use crate::state::DeferringStore;

/// Dependencies of the disk subsystem.
#[derive(Clone)]
pub struct DiskDependencies {
    /// Storage plane, which serves disks.
    pub plane: Arc<dyn DiskPlane>,
    /// Factory of front-ends (vhost-user devices, NBD servers).
    pub devices: Arc<dyn DiskDeviceFactory>,
    /// Factory of stores, which contain the image files.
    pub stores: Arc<dyn StoreOpener>,
    /// File I/O for measurements, equal to that of workers.
    pub file_io: Arc<dyn FileIoFactory>,
    /// Source of identifiers of new images.
    pub random: RandomSource,
    /// Redo records of image metadata that survive a crash of the daemon. If `None`, each write to
    /// unallocated space of a dynamic or differencing image waits for a commit of its metadata.
    pub redo_records: Option<Arc<dyn RedoRecords>>,
}

/// Desired disks and their open resources.
pub(crate) struct Disks {
    pub(crate) dependencies: DiskDependencies,
    entries: RwLock<BTreeMap<Name, Arc<DiskEntry>>>,
    /// Disks of the desired state or of the change in progress. Some have no entry yet.
    required: RwLock<Arc<RequiredDisks>>,
    pub(crate) exports: Exports,
    stores: Arc<OpenStores>,
    /// Threads that access files of stores.
    threads: StoreThreads,
    /// Space of each store as last reported.
    spaces: StoreSpaces,
    ids: Mutex<DiskObjectNumbers>,
    /// Stores as last published to the storage plane.
    published: Mutex<BTreeMap<StoreId, PublishedStore>>,
    /// Minimums in effect on stores that nodes share.
    effective_minimums: RwLock<BTreeMap<Name, Minimums>>,
    /// Results of capacity measurements of the stores.
    measured: RwLock<Arc<MeasuredStores>>,
    /// Known parents of disks that are not open.
    known_parents: Arc<parent_protection::cache::ParentCache>,
    /// Records of images that changes have created on request.
    created_images: Arc<CreatedImages>,
    /// Measurements of stores in progress.
    in_measurement: Mutex<BTreeMap<Name, StoreInMeasurement>>,
}

/// Numbers of disks, stores and policies. No number is assigned twice while the daemon runs.
#[derive(Default)]
struct DiskObjectNumbers {
    disks: NumberTable,
    stores: NumberTable,
    policies: NumberTable,
}

/// Numbers of objects of one kind, by name. Contains the names of the configuration, and names that
/// were looked up since the last change of the configuration.
#[derive(Default)]
struct NumberTable {
    by_name: BTreeMap<Name, u32>,
    next_number: u32,
}

impl NumberTable {
    /// Returns the number of a name. Assigns the next number if the name has none.
    fn number(&mut self, name: &Name) -> u32 {
        if let Some(number) = self.by_name.get(name) {
            return *number;
        }
        let number = self.next_number;
        self.next_number = number.saturating_add(1);
        self.by_name.insert(name.clone(), number);
        number
    }

    fn name(&self, number: u32) -> Option<Name> {
        let (name, _) = self.by_name.iter().find(|(_, other_number)| **other_number == number)?;
        Some(name.clone())
    }

    /// Removes the numbers of all names that are neither in `names` nor in use.
    fn retain<'a>(&mut self, names: impl Iterator<Item = &'a Name>, is_used: impl Fn(u32) -> bool) {
        let names_in_use: BTreeSet<&Name> = names.collect();
        self.by_name.retain(|name, number| names_in_use.contains(name) || is_used(*number));
    }
}

impl Disks {
    pub(crate) fn new(parts: DiskDependencies, state_store: Arc<DeferringStore>) -> Self {
        let exports = Exports::new(parts.plane.clone(), parts.devices.clone());
        let created_images = Arc::new(CreatedImages::new(state_store));
        let stores = Arc::new(OpenStores::new(parts.stores.clone(), created_images.clone()));
        Self {
            dependencies: parts,
            entries: RwLock::default(),
            required: RwLock::default(),
            exports,
            stores,
            threads: StoreThreads::default(),
            spaces: StoreSpaces::default(),
            ids: Mutex::default(),
            published: Mutex::default(),
            effective_minimums: RwLock::default(),
            measured: RwLock::default(),
            known_parents: Arc::default(),
            created_images,
            in_measurement: Mutex::default(),
        }
    }

    pub(crate) fn find(&self, name: &Name) -> Option<Arc<DiskEntry>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Runs a read-only query on the files of a store. Blocks up to [`STORE_TIMEOUT`].
    ///
    /// # Errors
    /// The store does not answer in time or cannot be opened.
    pub(crate) fn query_store<T: Send + 'static>(
        &self,
        path: &Path,
        query: impl FnOnce(&dyn StoreFiles) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        self.query_store_within(STORE_TIMEOUT, path, query)
    }

    /// As [`Self::query_store`], with a time limit.
    fn query_store_within<T: Send + 'static>(
        &self,
        limit: Duration,
        path: &Path,
        query: impl FnOnce(&dyn StoreFiles) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let (stores, store) = (self.stores.clone(), path.to_owned());
        let query_files = move || stores.files(&store).map(|files| query(files.as_ref()));
        let answer = self.threads.run(path, limit, query_files, drop);
        let answer = answer.map_err(StoreOperationError::abandon)?;
        answer.map_err(|error| ApiError::new(ErrorCode::HostError, error.to_string()))
    }

    /// Returns the size of a disk in bytes; `None` if the disk is not in service.
    pub(crate) fn disk_size_bytes(&self, name: &Name) -> Option<u64> {
        self.find(name)?.lock().open.as_ref().map(|open| open.geometry.size_bytes)
    }

    /// Sets the disks of the desired state, or of the change that is being carried out.
    pub(crate) fn set_required(&self, required: RequiredDisks) {
        *self.required.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(required);
    }

    fn required(&self) -> Arc<RequiredDisks> {
        self.required.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn find_id(&self, id: DiskId) -> Option<Arc<DiskEntry>> {
        self.all().into_iter().find(|entry| entry.id == id)
    }

    pub(crate) fn all(&self) -> Vec<Arc<DiskEntry>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Adds a disk that is not open yet.
    pub(crate) fn insert(&self, name: Name, required: RequiredDisk) -> Arc<DiskEntry> {
        let id = self.disk_id(&name);
        let entry = Arc::new(DiskEntry::new(name.clone(), id, required));
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.insert(name, entry.clone());
        entry
    }

    pub(crate) fn remove(&self, name: &Name) -> Option<Arc<DiskEntry>> {
        self.entries.write().unwrap_or_else(PoisonError::into_inner).remove(name)
    }

    pub(crate) fn disk_id(&self, name: &Name) -> DiskId {
        DiskId(self.ids().disks.number(name))
    }

    pub(crate) fn store_id(&self, name: &Name) -> StoreId {
        StoreId(self.ids().stores.number(name))
    }

    pub(crate) fn policy_id(&self, name: &Name) -> PolicyId {
        PolicyId(self.ids().policies.number(name))
    }

    /// Returns the name of the policy with this number.
    pub(crate) fn policy_name(&self, id: PolicyId) -> Option<Name> {
        self.ids().policies.name(id.0)
    }

    /// Returns the name of the store with this number.
    pub(crate) fn store_name(&self, id: StoreId) -> Option<Name> {
        self.ids().stores.name(id.0)
    }

    /// Returns the name of the disk with this number.
    pub(crate) fn disk_name(&self, id: DiskId) -> Option<Name> {
        self.ids().disks.name(id.0)
    }

    /// Returns the names of disks (first) and of stores (second), by number.
    pub(crate) fn disk_and_store_names(&self) -> (BTreeMap<u32, String>, BTreeMap<u32, String>) {
        let names = |table: &NumberTable| {
            table.by_name.iter().map(|(name, number)| (*number, name.to_string())).collect()
        };
        let ids = self.ids();
        (names(&ids.disks), names(&ids.stores))
    }

    /// Returns the number of known disks, stores and policies.
    #[cfg(test)]
    fn counts(&self) -> [usize; 3] {
        let ids = self.ids();
        [&ids.disks, &ids.stores, &ids.policies].map(|table| table.by_name.len())
    }

    /// Removes the numbers and minimums of objects that neither the configuration nor the plane
    /// contains. A disk that is being created or deleted keeps its number.
    fn remove_deleted(&self, config: &HostConfig, published: &BTreeMap<StoreId, PublishedStore>) {
        let open: BTreeSet<u32> = self.all().iter().map(|entry| entry.id.0).collect();
        let mut ids = self.ids();
        ids.disks.retain(config.disks.iter().map(|disk| &disk.name), |id| open.contains(&id));
        ids.stores.retain(config.stores.iter().map(|store| &store.name), |id| {
            published.contains_key(&StoreId(id))
        });
        ids.policies.retain(config.qos_policies.iter().map(|policy| &policy.name), |_| false);
        drop(ids);
        let mut covered = self.effective_minimums.write().unwrap_or_else(PoisonError::into_inner);
        covered.retain(|name, _| config.stores.iter().any(|store| store.name == *name));
    }

    fn ids(&self) -> MutexGuard<'_, DiskObjectNumbers> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the minimums in effect on a shared store. They apply when limits are published next.
    pub(crate) fn set_minimums_in_effect(&self, store: &Name, minimums: Minimums) {
        let mut covered = self.effective_minimums.write().unwrap_or_else(PoisonError::into_inner);
        covered.insert(store.clone(), minimums);
    }

    fn effective_minimums(&self, store: &Name) -> Minimums {
        let covered = self.effective_minimums.read().unwrap_or_else(PoisonError::into_inner);
        covered.get(store).cloned().unwrap_or_default()
    }

    fn published(&self) -> MutexGuard<'_, BTreeMap<StoreId, PublishedStore>> {
        self.published.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes stores on which no disk is required, so that their file systems can be unmounted.
    pub(crate) fn close_unused_stores(&self, required: &RequiredDisks) {
        self.stores.retain(|path| required.values().any(|disk| disk.store.path == path));
    }
}

#[cfg(test)]
mod bounds_tests;
#[cfg(test)]
mod full_tests;
#[cfg(test)]
mod image_kind_tests;
#[cfg(test)]
mod job_record_tests;
#[cfg(test)]
mod jobs_tests;
#[cfg(test)]
mod measuring_tests;
#[cfg(test)]
mod mirroring_tests;
#[cfg(test)]
mod missing_tests;
#[cfg(test)]
mod nbd_tests;
#[cfg(test)]
mod reopening_tests;
#[cfg(test)]
mod socket_tests;
#[cfg(test)]
mod stale_tests;
#[cfg(test)]
mod stalled_tests;
#[cfg(test)]
mod tests;
