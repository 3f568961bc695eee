//! Status of disks and stores as API types.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use suimon_contract::{
    ApiError, ByteSize, CapacitySource, DiskConfig, DiskCounters, DiskFormat, DiskRequestCounters,
    DiskStatus, DiskVhostUserStatus, HostConfig, Name, QosFlowStatus, QosPolicyConfig,
    QosPolicyKind, QosPolicyStatus, ResourceKind, StorageState, StoreCapacityEstimate, StoreConfig,
    StoreReservations, StoreStatus, TopDisk, WhatIfRequest, WhatIfResponse,
};
use suimon_ports::{FileName, StoreFiles, StoreSpace, VhostUserDiskStatus};
use suimon_quantity::DiskId;
use suimon_storage::{DiskView, StoreView};
use suimon_storage_engine::{DiskIoCounters, OpCounters};
use suimon_storage_qos::Capacity;

use super::Disks;
use super::entry::DiskEntry;
use super::full_stores::{add_full_store_factor, full_reason, full_status, used_percent};
use super::limits::store_reservations;
use super::measured_capacity::{capacity, find_measurement};
use super::required::{RequiredDisk, contract_kind, store_file};
use super::store_threads::{STATUS_TIMEOUT, StoreOperationError};
use crate::errors::not_found;
use crate::shared::Shared;

/// Feature bits of virtio-blk (virtio 1.2, 5.2.3) and of all devices (virtio 1.2, 6).
const FEATURES: [(u32, &str); 16] = [
    (1, "SIZE_MAX"),
    (2, "SEG_MAX"),
    (4, "GEOMETRY"),
    (5, "RO"),
    (6, "BLK_SIZE"),
    (9, "FLUSH"),
    (10, "TOPOLOGY"),
    (11, "CONFIG_WCE"),
    (12, "MQ"),
    (13, "DISCARD"),
    (14, "WRITE_ZEROES"),
    (28, "INDIRECT_DESC"),
    (29, "EVENT_IDX"),
    (32, "VERSION_1"),
    (34, "RING_PACKED"),
    (35, "IN_ORDER"),
];

/// Counters and states of all disks and stores, read once per request.
struct PlaneSnapshot {
    disks: BTreeMap<DiskId, DiskView>,
    allocated: BTreeMap<DiskId, u64>,
    stores: Vec<StoreView>,
    flows: BTreeMap<DiskId, QosFlowStatus>,
}

/// Own image file of an open disk.
struct DiskFileOf {
    disk: DiskId,
    files: Arc<dyn StoreFiles>,
    name: FileName,
}

impl DiskFileOf {
    /// Returns the disk, and the space that the file occupies in the store, in bytes; `None` if the
    /// store reports an error.
    fn allocated(&self) -> Option<(DiskId, u64)> {
        Some((self.disk, self.files.status(&self.name).ok()?.allocated_bytes))
    }
}

impl Shared {
    pub(crate) fn disks(&self) -> Vec<DiskStatus> {
        let snapshot = self.seen_with_files(self.disks.all());
        let desired = self.desired();
        desired.config.disks.iter().map(|disk| self.disk_status(disk, &snapshot)).collect()
    }

    pub(crate) fn disk(&self, name: &str) -> Result<DiskStatus, ApiError> {
        let desired = self.desired();
        let disk = desired.config.disks.iter().find(|disk| disk.name.as_str() == name);
        let disk = disk.ok_or_else(|| not_found(ResourceKind::Disk, name))?;
        let entry = self.disks.find(&disk.name);
        Ok(self.disk_status(disk, &self.seen_with_files(entry.into_iter().collect())))
    }

    pub(crate) fn stores(&self) -> Vec<StoreStatus> {
        let (desired, snapshot) = (self.desired(), self.seen_with_files(self.disks.all()));
        let promises = store_reservations(&desired.config, &self.disks.measurements());
        let stores = desired.config.stores.iter().zip(&promises);
        stores.map(|(store, promises)| self.store_status(store, promises, &snapshot)).collect()
    }

    pub(crate) fn store(&self, name: &str) -> Result<StoreStatus, ApiError> {
        let mut stores = self.stores().into_iter();
        let store_status = stores.find(|store| store.config.name.as_str() == name);
        store_status.ok_or_else(|| not_found(ResourceKind::Store, name))
    }

    pub(crate) fn qos_policies(&self) -> Vec<QosPolicyStatus> {
        let (desired, snapshot) = (self.desired(), self.plane_snapshot());
        let policies = desired.config.qos_policies.iter();
        policies.map(|policy| self.qos_policy_status(&desired.config, policy, &snapshot)).collect()
    }

    pub(crate) fn qos_policy(&self, name: &str) -> Result<QosPolicyStatus, ApiError> {
        let mut policies = self.qos_policies().into_iter();
        let policy_status = policies.find(|policy| policy.config.name.as_str() == name);
        policy_status.ok_or_else(|| not_found(ResourceKind::QosPolicy, name))
    }

    /// Returns the disks for `top`, sorted by name.
    pub(crate) fn top_disks(&self) -> Vec<TopDisk> {
        let (desired, snapshot) = (self.desired(), self.plane_snapshot());
        let disks = desired.config.disks.iter().map(|config| {
            let entry = self.disks.find(&config.name);
            let state = entry.as_ref().map(|entry| entry.lock().condition().0);
            let id = self.disks.disk_id(&config.name);
            let view = snapshot.disks.get(&id);
            let io_counters = view.map(|view| view.counters).unwrap_or_default();
            TopDisk::new(
                (config.name.clone(), config.store.clone()),
                (
                    state.unwrap_or(StorageState::Failed),
                    self.disks.is_worker_unresponsive(id, view),
                ),
                &counters(&io_counters),
                io_counters.latency_sum_ns(),
                snapshot.flows.get(&id).map(|flow| flow.last_5_s.clone()),
            )
        });
        let mut disks: Vec<_> = disks.collect();
        disks.sort_by(|a, b| a.name.cmp(&b.name));
        disks
    }

    /// Returns the QoS status of every disk in service, in configured order.
    pub(crate) fn qos_flows(&self) -> Vec<QosFlowStatus> {
        let (desired, mut snapshot) = (self.desired(), self.plane_snapshot());
        let ids = desired.config.disks.iter().map(|disk| self.disks.disk_id(&disk.name));
        ids.filter_map(|id| snapshot.flows.remove(&id)).collect()
    }

    /// Returns minimums and capacity of the stores that these proposals would affect.
    pub(crate) fn what_if(&self, request: &WhatIfRequest) -> Result<WhatIfResponse, Vec<ApiError>> {
        let desired = self.desired();
        let changed_config = request.apply_to(&desired.config)?;
        let measured = self.disks.measurements();
        let before = store_reservations(&desired.config, &measured);
        let mut stores = store_reservations(&changed_config, &measured);
        // Stores that the proposals do not affect are left out.
        stores.retain(|store| !before.contains(store));
        let fits = stores.iter().all(|store| store.fits);
        Ok(WhatIfResponse { fits, stores, warnings: Vec::new() })
    }

    fn plane_snapshot(&self) -> PlaneSnapshot {
        let plane = &self.disks.dependencies.plane;
        let stores = plane.stores();
        let mut flows = self.disks.flows(&stores);
        let disks: BTreeMap<DiskId, DiskView> =
            plane.disks().into_iter().map(|view| (view.disk, view)).collect();
        for (disk, flow) in &mut flows {
            if let Some(full) = disks.get(disk).and_then(|view| view.full_store) {
                add_full_store_factor(flow, &full);
            }
        }
        PlaneSnapshot { disks, stores, flows, allocated: BTreeMap::new() }
    }

    /// Returns the counters and states, with the space that the image files of these disks occupy.
    /// The space is omitted for disks on a store that does not respond within [`STATUS_TIMEOUT`].
    fn seen_with_files(&self, entries: Vec<Arc<DiskEntry>>) -> PlaneSnapshot {
        let mut by_store: BTreeMap<PathBuf, Vec<DiskFileOf>> = BTreeMap::new();
        for entry in entries {
            let state = entry.lock();
            let disk_file = state.open.as_ref().and_then(|open| {
                let name = open.layer_files.first()?.clone();
                Some(DiskFileOf { disk: entry.id, files: open.files.clone(), name })
            });
            by_store.entry(state.required.store.path.clone()).or_default().extend(disk_file);
        }
        let mut snapshot = self.plane_snapshot();
        for (store, files) in by_store.into_iter().filter(|(_, files)| !files.is_empty()) {
            let query = move || files.iter().filter_map(DiskFileOf::allocated).collect();
            let allocated: Result<Vec<(DiskId, u64)>, _> =
                self.disks.threads.run(&store, STATUS_TIMEOUT, query, drop);
            snapshot.allocated.extend(allocated.unwrap_or_default());
        }
        snapshot
    }

    fn disk_status(&self, config: &DiskConfig, snapshot: &PlaneSnapshot) -> DiskStatus {
        let Some(entry) = self.disks.find(&config.name) else {
            return absent(config);
        };
        let view = snapshot.disks.get(&entry.id);
        let state = entry.lock();
        let failed_flush = view.and_then(|view| view.flush_error.as_deref()).map(|error| {
            format!(
                "a flush failed ({error}), so that writes and flushes fail; repair the store, then \
                 run `suimon disk reopen {}`",
                config.name
            )
        });
        let (condition, reason) = match view.and_then(|view| view.stalled_for) {
            Some(stalled_for) if state.open.is_some() => {
                let text = format!("the store has not responded for {} s", stalled_for.as_secs());
                (StorageState::Stalled, Some(text))
            }
            _ => match (state.condition(), view.and_then(|view| view.full_store)) {
                ((StorageState::Ready, _), _) if failed_flush.is_some() => {
                    (StorageState::Faulted, failed_flush)
                }
                ((StorageState::Ready, _), Some(full)) => {
                    (StorageState::Full, Some(full_reason(config, &full)))
                }
                (condition, _) => condition,
            },
        };
        let open = state.open.as_ref();
        // Includes the socket that the disk of a VM has without the key.
        let vhost_user = state.required.config.vhost_user.as_ref().map(|_| {
            let device = open.and_then(|open| open.device.as_ref());
            vhost_user_status(device.map(|device| device.status()).unwrap_or_default())
        });
        let clients = view.map_or(0, |view| view.clients);
        DiskStatus {
            config: config.clone(),
            state: condition,
            reason,
            file: path_of(&state.required),
            kind: open.and_then(|open| open.kind).map(contract_kind),
            parent: open.and_then(|open| open.layer_files.get(1)).and_then(store_file),
            size_bytes: open.map(|open| open.geometry.size_bytes),
            allocated_bytes: open.and_then(|_| snapshot.allocated.get(&entry.id).copied()),
            layers: open.and_then(|open| u32::try_from(open.layer_files.len()).ok()),
            uncommitted_metadata_bytes: view.map(|view| view.uncommitted_bytes),
            store_full: view.and_then(|view| view.full_store).map(|full| full_status(&full)),
            worker: view.map(|view| view.worker.0),
            vhost_user,
            nbd: (config.nbd.is_some() || state.required.emulator_socket.is_some())
                .then(|| self.disks.nbd_status(config.name.as_str(), config.nbd.as_ref(), clients)),
            counters: view.map(|view| counters(&view.counters)).unwrap_or_default(),
            qos: snapshot.flows.get(&entry.id).cloned(),
            stale: self.disks.is_worker_unresponsive(entry.id, view),
        }
    }

    /// Returns the size of a disk as seen by its guest in bytes; the configured size while the disk
    /// is not open.
    fn virtual_bytes(&self, disk: &DiskConfig) -> Option<u64> {
        let configured = || disk.size_bytes.map(ByteSize::bytes);
        self.disks.disk_size_bytes(&disk.name).or_else(configured)
    }

    fn store_status(
        &self,
        config: &StoreConfig,
        promises: &StoreReservations,
        snapshot: &PlaneSnapshot,
    ) -> StoreStatus {
        let (space, reason) = match self.disks.space(&config.path) {
            Ok(space) => (Some(space), None),
            Err(reason) => (None, Some(reason)),
        };
        let (desired, measured) = (self.desired(), self.disks.measurements());
        let disks: Vec<&DiskConfig> =
            desired.config.disks.iter().filter(|disk| disk.store == config.name).collect();
        let virtual_bytes = disks.iter().filter_map(|disk| self.virtual_bytes(disk)).sum::<u64>();
        let allocated = disks.iter().map(|disk| self.disks.disk_id(&disk.name));
        let allocated_bytes = allocated.filter_map(|id| snapshot.allocated.get(&id)).sum();
        let total_bytes = space.map(|space| space.total_bytes).filter(|bytes| *bytes > 0);
        let overcommit = total_bytes.map(|total| {
            let percent = (u128::from(virtual_bytes) * 100).div_ceil(total.into());
            u64::try_from(percent).unwrap_or(u64::MAX)
        });
        // A pass-through disk uses the whole block device by design.
        let has_files = disks.iter().all(|disk| disk.format != DiskFormat::PassThrough);
        let used = space.as_ref().filter(|_| has_files).and_then(used_percent);
        let is_nearly_full = used.is_some_and(|used| used >= config.full_warning_percent.into());
        let id = self.disks.store_id(&config.name);
        // All workers with disks of the store report the same, those that do not respond as of an
        // earlier time.
        let budget = snapshot.stores.iter().filter(|view| view.store == id);
        let budget = budget.max_by_key(|view| (view.is_current, view.read_at));
        // A worker that has not responded since its first disk of the store has no view.
        let has_disks =
            || disks.iter().any(|disk| self.disks.is_in_service(self.disks.disk_id(&disk.name)));
        let flows = snapshot.flows.values().filter(|flow| flow.store == config.name);
        let percent =
            |capacity: u64| (u128::from(promises.minimums_iops) * 100).div_ceil(capacity.into());
        StoreStatus {
            config: config.clone(),
            state: if reason.is_none() { StorageState::Ready } else { StorageState::Failed },
            reason,
            total_bytes: space.map(|space| space.total_bytes),
            free_bytes: space.map(|space| space.free_bytes),
            nearly_full: is_nearly_full,
            virtual_bytes,
            allocated_bytes,
            overcommit_percent: overcommit,
            capacity_iops: promises.capacity_iops,
            capacity_source: source(capacity(config, &measured)),
            last_measurement: find_measurement(config, &measured).cloned(),
            estimate: budget.and_then(estimate),
            reserved_iops: promises.minimums_iops,
            reserved_percent: promises
                .capacity_iops
                .filter(|iops| *iops > 0)
                .map(|iops| u64::try_from(percent(iops)).unwrap_or(u64::MAX)),
            disks: disks.len(),
            delivered_iops: flows.map(|flow| flow.last_5_s.delivered_iops).sum(),
            latency_ns: budget.map(|view| view.status.mean_latency_ns).filter(|ns| *ns > 0),
            queue_depth: budget.map_or(0, |view| view.status.in_flight_of_all_workers),
            queue_depth_limit: budget
                .map_or(config.queue_depth_max, |view| view.status.depth_limit),
            stale: budget.map_or_else(has_disks, |view| !view.is_current),
        }
    }

    fn qos_policy_status(
        &self,
        config: &HostConfig,
        policy: &QosPolicyConfig,
        snapshot: &PlaneSnapshot,
    ) -> QosPolicyStatus {
        let uses_policy = |disk: &&DiskConfig| disk.qos_policy.as_ref() == Some(&policy.name);
        let disks: Vec<&DiskConfig> = config.disks.iter().filter(uses_policy).collect();
        // Disks of an aggregated policy share one minimum on each store.
        let stores: BTreeSet<&Name> = disks.iter().map(|disk| &disk.store).collect();
        let minimums = match policy.kind {
            QosPolicyKind::Dedicated => disks.len(),
            QosPolicyKind::Aggregated => stores.len(),
        };
        let flows =
            disks.iter().filter_map(|disk| snapshot.flows.get(&self.disks.disk_id(&disk.name)));
        QosPolicyStatus {
            config: policy.clone(),
            reserved_iops: policy.min_iops.unwrap_or_default().saturating_mul(minimums as u64),
            delivered_iops: flows.map(|flow| flow.last_5_s.delivered_iops).sum(),
            disks: disks.iter().map(|disk| disk.name.clone()).collect(),
            shares: self.policy_shares_status(&policy.name),
        }
    }
}

impl Disks {
    /// Returns the space of a store, or the reason why it is not available.
    fn space(&self, store: &Path) -> Result<StoreSpace, String> {
        let (stores, path) = (self.stores.clone(), store.to_owned());
        let query = move || stores.files(&path).and_then(|files| files.space());
        let space = self.threads.run(store, STATUS_TIMEOUT, query, drop);
        let space =
            space.map_err(|unanswered| StoreOperationError::abandon(unanswered).to_string())?;
        space.map_err(|error| error.to_string())
    }
}

const fn source(capacity: Capacity) -> Option<CapacitySource> {
    match capacity {
        Capacity::Unknown => None,
        Capacity::Declared(_) => Some(CapacitySource::Declared),
        Capacity::Measured(_) => Some(CapacitySource::Measured),
    }
}

fn estimate(view: &StoreView) -> Option<StoreCapacityEstimate> {
    let estimate = view.status.estimate?;
    let age = view.read_at.since(estimate.sampled_at).as_millis();
    Some(StoreCapacityEstimate {
        iops: estimate.iops,
        age_ms: u64::try_from(age).unwrap_or(u64::MAX),
    })
}

/// Returns the status of a disk that is being created or was just deleted.
fn absent(config: &DiskConfig) -> DiskStatus {
    DiskStatus {
        config: config.clone(),
        state: StorageState::Failed,
        reason: Some("the disk is being changed".to_owned()),
        file: PathBuf::new(),
        kind: None,
        parent: None,
        size_bytes: None,
        allocated_bytes: None,
        layers: None,
        uncommitted_metadata_bytes: None,
        store_full: None,
        worker: None,
        vhost_user: None,
        nbd: None,
        counters: DiskCounters::default(),
        qos: None,
        stale: false,
    }
}

/// Returns the path of a disk's file, or of its block device.
fn path_of(required: &RequiredDisk) -> PathBuf {
    match required.config.effective_file() {
        Some(file) => required.store.path.join(file.as_str()),
        None => required.store.path.clone(),
    }
}

fn vhost_user_status(status: VhostUserDiskStatus) -> DiskVhostUserStatus {
    let features = status.features.unwrap_or_default();
    let has_feature = |bit: &u32| features & (1 << bit) != 0;
    DiskVhostUserStatus {
        connected: status.features.is_some(),
        queues: status.queues,
        features: FEATURES
            .iter()
            .filter(|(bit, _)| has_feature(bit))
            .map(|(_, name)| (*name).to_owned())
            .collect(),
    }
}

fn counters(counters: &DiskIoCounters) -> DiskCounters {
    let request_counters = |op_counters: &OpCounters| DiskRequestCounters {
        requests: op_counters.requests,
        bytes: op_counters.bytes,
        errors: op_counters.failed,
        latency_ns_p50: op_counters.latencies.p50_ns,
        latency_ns_p99: op_counters.latencies.p99_ns,
        latency_ns_max: op_counters.latencies.max_ns,
    };
    DiskCounters {
        reads: request_counters(&counters.reads),
        writes: request_counters(&counters.writes),
        flushes: request_counters(&counters.flushes),
        discards: request_counters(&counters.discards),
    }
}
