//! Storage QoS: passes stores, policies and limits of the configuration to the storage plane, and
//! checks minimums against the capacity of stores.

pub(super) mod published;
mod setting;

use std::collections::{BTreeMap, BTreeSet};

use suimon_contract::{
    ApiError, ByteSize, DiskConfig, ErrorCode, HostConfig, Name, QosLimits, QosPolicyConfig,
    QosPolicyKind, StoreCapacity, StoreConfig, StoreReservations,
};
use suimon_quantity::{ByteRate, DiskId, Iops};
use suimon_storage_qos::{
    AdmissionError, Burst, Capacity, Limits, LimitsSource, MinimumsCheck, Normalization, PolicyId,
    PolicyKind, PolicySpec, Proposal, Store, StoreSpec, Weight,
};

use self::published::PublishedStore;
use super::Disks;
use super::measured_capacity::{MeasuredStores, capacity, measured_latency};
use crate::cluster::{Minimums, disk_minimum_key, policy_minimum_key, shared_stores};

// Validation rejects more disks per store than the scheduler has queues for.
const _: () = assert!(suimon_contract::STORE_DISKS_MAX == suimon_storage_qos::DISKS_MAX);

/// Maximum number of requests queued in the scheduler of one store, of all its disks.
const WAITING_MAX: u32 = 16_384;

/// Returns the settings of a store according to the configuration. On a shared store, minimums are
/// reduced to those in effect.
fn required(
    disks: &Disks,
    config: &HostConfig,
    store: &StoreConfig,
    measured: &MeasuredStores,
) -> PublishedStore {
    let disks_on_store = config.disks.iter().filter(|disk| disk.store == store.name);
    let is_shared = shared_stores(config).contains_key(&store.name);
    let covered = is_shared.then(|| disks.effective_minimums(&store.name));
    let assigned = |disk: &DiskConfig| {
        let policy = disk.qos_policy.as_ref();
        let policy = policy.and_then(|name| {
            config.qos_policies.iter().find(|qos_policy| qos_policy.name == *name)
        });
        let qos = policy.map_or(disk.qos, QosPolicyConfig::limits);
        let own_limits = |covered| {
            LimitsSource::Own(as_covered(limits(&qos), covered, &disk_minimum_key(&disk.name)))
        };
        let assignment = match (policy, &covered) {
            (Some(policy), Some(covered)) if policy.kind == QosPolicyKind::Dedicated => {
                own_limits(covered)
            }
            (Some(policy), _) => LimitsSource::Policy(disks.policy_id(&policy.name)),
            (None, Some(covered)) => own_limits(covered),
            (None, None) => LimitsSource::Own(limits(&qos)),
        };
        (disks.disk_id(&disk.name), assignment)
    };
    let used: BTreeSet<&Name> =
        disks_on_store.clone().filter_map(|disk| disk.qos_policy.as_ref()).collect();
    let policies = config.qos_policies.iter().filter(|policy| used.contains(&policy.name));
    let spanning = policies.clone().filter(|policy| is_shared && policy.spans_nodes());
    PublishedStore {
        spanning_policies: spanning.map(|policy| disks.policy_id(&policy.name)).collect(),
        spec: Some(store_spec(store)),
        capacity: capacity(store, measured),
        latency: measured_latency(store, measured),
        disks: disks_on_store.map(assigned).collect(),
        policies: policies
            .map(|policy| {
                let mut spec = policy_spec(policy);
                // The cluster thread sets this node's share of a policy that spans nodes.
                if let Some(covered) = covered.as_ref().filter(|_| !policy.spans_nodes()) {
                    spec.limits =
                        as_covered(spec.limits, covered, &policy_minimum_key(&policy.name));
                }
                (disks.policy_id(&policy.name), spec)
            })
            .collect(),
    }
}

/// Returns `limits` with the minimum reduced to the one that is in effect in the cluster: that of
/// `key` in `covered`, or 0.
fn as_covered(limits: Limits, covered: &Minimums, key: &str) -> Limits {
    let covered_iops = covered.get(key).copied().unwrap_or_default();
    let min_iops = limits.min_iops.and_then(|min| Iops::new(min.per_second().min(covered_iops)));
    Limits { min_iops, ..limits }
}

/// Returns the proposals that change the settings from those published to the required ones. With
/// `removes`, settings that are not required are removed; false while their disks may still be in
/// service.
fn proposals(
    published: &PublishedStore,
    required: &PublishedStore,
    removes: bool,
) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for (policy, spec) in &required.policies {
        if published.policies.get(policy) != Some(spec) {
            proposals.push(Proposal::SetPolicy(*policy, *spec));
        }
    }
    for (disk, assignment) in &required.disks {
        if published.disks.get(disk) != Some(assignment) {
            proposals.push(Proposal::SetDisk(*disk, *assignment));
        }
    }
    if removes {
        let removed = published.disks.keys().filter(|disk| !required.disks.contains_key(disk));
        proposals.extend(removed.map(|disk| Proposal::RemoveDisk(*disk)));
        let removed =
            published.policies.keys().filter(|policy| !required.policies.contains_key(policy));
        proposals.extend(removed.map(|policy| Proposal::RemovePolicy(*policy)));
    }
    proposals
}

/// Checks the minimums of a configuration against the capacity of its stores. Returns an error per
/// store whose minimums do not fit, unless the change neither increases the minimums nor decreases
/// the capacity.
pub(crate) fn check_minimums_fit(
    from: &HostConfig,
    to: &HostConfig,
    measured: &MeasuredStores,
) -> Vec<ApiError> {
    let before = all_reservations(from, measured).into_iter();
    let before: BTreeMap<&Name, MinimumsCheck> =
        before.map(|(store, promises)| (&store.name, promises)).collect();
    let mut errors = Vec::new();
    for (store, promises) in all_reservations(to, measured) {
        let name = &store.name;
        let previous = before.get(name);
        let is_more = previous.is_none_or(|previous| {
            promises.minimums_iops > previous.minimums_iops
                || promises.admissible_iops() < previous.admissible_iops()
        });
        if promises.is_admissible() || !is_more || promises.minimums_iops == 0 {
            continue;
        }
        let text = refusal(store, promises);
        errors.push(
            ApiError::new(ErrorCode::Overcommitted, text).with_resource(format!("store/{name}")),
        );
    }
    errors
}

/// Returns minimums and capacity of each store of a configuration.
pub(crate) fn store_reservations(
    config: &HostConfig,
    measured: &MeasuredStores,
) -> Vec<StoreReservations> {
    let reservations = all_reservations(config, measured).into_iter();
    reservations
        .map(|(store, promises)| StoreReservations {
            store: store.name.clone(),
            minimum_count: promises.minimum_count,
            minimums_iops: promises.minimums_iops,
            capacity_iops: promises.capacity.iops(),
            reservable_iops: promises.admissible_iops(),
            fits: promises.is_admissible(),
            explanation: if promises.is_admissible() {
                promises.to_string()
            } else {
                refusal(store, promises)
            },
        })
        .collect()
}

/// Returns the error text for minimums that exceed the capacity, with the remedy.
fn refusal(store: &StoreConfig, promises: MinimumsCheck) -> String {
    let text = AdmissionError::Overcommitted(promises).to_string();
    let is_due = store.capacity_iops == Some(StoreCapacity::MEASURED)
        && promises.capacity == Capacity::Unknown;
    if is_due {
        format!("{text}; measure the store with `suimon store measure {}`", store.name)
    } else {
        text
    }
}

fn all_reservations<'a>(
    config: &'a HostConfig,
    measured: &MeasuredStores,
) -> Vec<(&'a StoreConfig, MinimumsCheck)> {
    let numbers: BTreeMap<&Name, u32> =
        config.qos_policies.iter().map(|policy| &policy.name).zip(0..).collect();
    let of_store = |store: &'a StoreConfig| {
        let mut scheduler_store = Store::new(capacity(store, measured));
        let policies = config.qos_policies.iter().zip(0..);
        let policies =
            policies.map(|(policy, id)| Proposal::SetPolicy(PolicyId(id), policy_spec(policy)));
        let disks = config.disks.iter().zip(0..).filter(|(disk, _)| disk.store == store.name);
        let disks = disks.map(|(disk, id)| {
            let policy = disk.qos_policy.as_ref().and_then(|policy| numbers.get(policy));
            let own_limits = || LimitsSource::Own(limits(&disk.qos));
            let assignment =
                policy.map_or_else(own_limits, |id| LimitsSource::Policy(PolicyId(*id)));
            Proposal::SetDisk(DiskId(id), assignment)
        });
        let proposals: Vec<Proposal> = policies.chain(disks).collect();
        // Validation has rejected contradictory limits.
        let _ = scheduler_store.apply(&proposals, true);
        (store, scheduler_store.minimums_check())
    };
    config.stores.iter().map(of_store).collect()
}

pub(super) fn store_spec(store: &StoreConfig) -> StoreSpec {
    let normalization = u32::try_from(store.normalization_bytes.bytes()).ok();
    StoreSpec {
        normalization: normalization.and_then(Normalization::new).unwrap_or_default(),
        depth_max: store.queue_depth_max,
        waiting_max: WAITING_MAX,
        ..StoreSpec::default()
    }
}

fn policy_spec(policy: &QosPolicyConfig) -> PolicySpec {
    PolicySpec {
        kind: match policy.kind {
            QosPolicyKind::Dedicated => PolicyKind::Dedicated,
            QosPolicyKind::Aggregated => PolicyKind::Aggregated,
        },
        limits: limits(&policy.limits()),
    }
}

fn limits(qos: &QosLimits) -> Limits {
    Limits {
        min_iops: qos.min_iops.and_then(Iops::new),
        max_iops: qos.max_iops.and_then(Iops::new),
        max_bandwidth: qos.max_bytes_per_s.map(ByteSize::bytes).and_then(ByteRate::new),
        weight: Weight::new(qos.weight).unwrap_or_default(),
        burst: qos
            .burst_iops
            .and_then(Iops::new)
            .zip(qos.burst_s)
            .map(|(iops, seconds)| Burst { iops, seconds }),
    }
}

/// Converts limits in effect to the API type.
pub(crate) fn limits_status(limits: &Limits) -> QosLimits {
    QosLimits {
        min_iops: limits.min_iops.map(Iops::per_second),
        max_iops: limits.max_iops.map(Iops::per_second),
        max_bytes_per_s: limits.max_bandwidth.map(|rate| ByteSize::new(rate.bytes_per_second())),
        weight: limits.weight.number(),
        burst_iops: limits.burst.map(|burst| burst.iops.per_second()),
        burst_s: limits.burst.map(|burst| burst.seconds),
    }
}
