//! Load of the disks on a shared store, for the reports of a node.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use suimon_cluster_qos::{DiskKey, DiskLoad, PolicyKey};
use suimon_contract::{HostConfig, Name, QosPolicyKind};
use suimon_quantity::{DiskId, StoreId, Time};
use suimon_storage::StoreView;
use suimon_storage_qos::{DiskQosCounters, DiskQosStatus, DiskRates};

use super::keys::disk_key;
use crate::disks::Disks;

/// Interval between samples of the disks' load.
pub(super) const SAMPLE_INTERVAL: Duration = Duration::from_millis(500);
/// Number of sampling intervals over which rates are computed.
const SAMPLES_KEPT: usize = 2;
/// Time for which the last rates are repeated while no worker with disks of the store responds.
/// Afterwards the demand is zero, so that other nodes can use the store.
const REPEATED_MAX: Duration = Duration::from_secs(5);

/// Recent samples of a store's disks.
#[derive(Default)]
pub(super) struct LoadSamples {
    samples: VecDeque<(Time, BTreeMap<DiskId, DiskQosCounters>)>,
    /// Rates of the last sample.
    rates: BTreeMap<DiskId, DiskRates>,
}

/// Load of a store's disks.
#[derive(Default)]
pub(super) struct ReportedLoad {
    pub(super) disks: Vec<DiskLoad>,
    /// Names of the disks in `disks`, for display.
    pub(super) names: BTreeMap<DiskKey, String>,
    pub(super) latency_ns: u64,
}

impl LoadSamples {
    /// Samples all disks of a store: configured ones, and copies in progress.
    pub(super) fn sample(
        &mut self,
        now: Time,
        (disks, config, policies): (&Disks, &HostConfig, &BTreeMap<Name, PolicyKey>),
        (store, id): (&Name, StoreId),
        views: &[StoreView],
    ) -> ReportedLoad {
        let of_store = || views.iter().filter(move |view| view.store == id);
        let flows: BTreeMap<DiskId, &DiskQosStatus> =
            of_store().flat_map(|view| &view.flows).map(|flow| (flow.disk, flow)).collect();
        let latency = |view: &StoreView| (view.is_current, view.status.mean_latency_ns);
        let latency_ns = of_store().map(latency).max().map_or(0, |(_, latency_ns)| latency_ns);
        let is_in_service = || {
            let mut of_store = config.disks.iter().filter(|disk| disk.store == *store);
            of_store.any(|disk| disks.is_in_service(disks.disk_id(&disk.name)))
        };
        let rates = self.rates(now, known_counters(of_store(), is_in_service));
        let mut reported = ReportedLoad { latency_ns, ..ReportedLoad::default() };
        for limited in limits((disks, config, policies), store, &flows) {
            let Limited { disk, name, policy, min_iops, max_iops, weight } = limited;
            let key = disk_key(store, &name);
            let mut load = DiskLoad {
                disk: key,
                policy,
                min_iops,
                max_iops,
                fallback_iops: None,
                weight,
                demand_iops: 0,
                delivered_iops: 0,
                waits_for_grant: false,
                waits_for_store: false,
                is_fully_utilised: false,
            };
            if let Some(rates) = rates.get(&disk) {
                set_rates(&mut load, rates);
            }
            reported.names.insert(key, name);
            reported.disks.push(load);
        }
        let spec = config.stores.iter().find(|configured| configured.name == *store);
        fall_back(&mut reported.disks, spec.and_then(|spec| spec.fallback_iops));
        reported
    }

    /// Adds a sample of the disks' counters; `None` if they are not known. Returns the rates of the
    /// disks. Disks whose counters began again have none.
    fn rates(
        &mut self,
        now: Time,
        counters: Option<BTreeMap<DiskId, DiskQosCounters>>,
    ) -> &BTreeMap<DiskId, DiskRates> {
        let Some(counters) = counters else {
            if self
                .samples
                .back()
                .is_some_and(|(sampled_at, _)| now.since(*sampled_at) > REPEATED_MAX)
            {
                *self = Self::default();
            }
            return &self.rates;
        };
        self.rates.clear();
        if let Some((sampled_at, before)) = self.samples.front() {
            let span = now.since(*sampled_at);
            let both = counters.iter().filter_map(|(disk, disk_counters)| {
                Some((*disk, disk_counters, before.get(disk)?))
            });
            let rates = both.filter_map(|(disk, disk_counters, before)| {
                Some((disk, disk_counters.rates(before, span)?))
            });
            self.rates = rates.collect();
        }
        self.samples.push_back((now, counters));
        if self.samples.len() > SAMPLES_KEPT {
            self.samples.pop_front();
        }
        &self.rates
    }
}

/// Returns the counters of a store's disks from the store's views; `None` if no worker that
/// responds reports them. Without a report, they are known only if none of the disks is in service:
/// a worker that has not responded since its first disk of the store has no view.
fn known_counters<'a>(
    views: impl Iterator<Item = &'a StoreView> + Clone,
    is_in_service: impl FnOnce() -> bool,
) -> Option<BTreeMap<DiskId, DiskQosCounters>> {
    let reporters = views.clone().filter(|view| !view.flows.is_empty());
    let is_current = reporters.map(|view| view.is_current).max();
    let is_known = is_current.unwrap_or_else(|| !is_in_service());
    let flows = views.flat_map(|view| &view.flows).map(|flow| (flow.disk, flow.counters));
    is_known.then(|| flows.collect())
}

/// Assigns the host's fallback rate to its first disk. Only the sum matters.
fn fall_back(disks: &mut [DiskLoad], iops: Option<u64>) {
    let Some(iops) = iops else { return };
    for (index, disk) in disks.iter_mut().enumerate() {
        disk.fallback_iops = Some(if index == 0 { iops } else { 0 });
    }
}

fn set_rates(load: &mut DiskLoad, rates: &DiskRates) {
    load.demand_iops = rates.demanded_iops;
    load.delivered_iops = rates.delivered_iops;
    load.waits_for_grant = rates.waits_for_cap;
    load.waits_for_store = rates.waits_for_device;
    load.is_fully_utilised = rates.is_fully_utilised;
}

/// Disk on a store, with the limits in effect.
struct Limited {
    disk: DiskId,
    name: String,
    /// QoS policy of the disk, if disks on several nodes share its limits.
    policy: Option<PolicyKey>,
    min_iops: u64,
    max_iops: Option<u64>,
    weight: u32,
}

/// Returns the disks of this host on a store, with their limits. The minimum of an aggregated
/// policy that only this host uses is divided equally among its disks on the store.
fn limits(
    (disks, config, policies): (&Disks, &HostConfig, &BTreeMap<Name, PolicyKey>),
    store: &Name,
    flows: &BTreeMap<DiskId, &DiskQosStatus>,
) -> Vec<Limited> {
    let store_disks = || config.disks.iter().filter(|disk| disk.store == *store);
    let mut limited_flows: Vec<_> = store_disks()
        .map(|disk| {
            let policy = disk.qos_policy.as_ref();
            let policy = policy.and_then(|name| {
                config.qos_policies.iter().find(|candidate| candidate.name == *name)
            });
            let limits = policy.map_or_else(|| disk.qos, |policy| policy.limits());
            let mut min_iops = limits.min_iops.unwrap_or_default();
            let mut max_iops = limits.max_iops;
            if let Some(policy) = policy.filter(|policy| policy.kind == QosPolicyKind::Aggregated) {
                let policy_disks =
                    || store_disks().filter(|disk| disk.qos_policy.as_ref() == Some(&policy.name));
                let count = u64::try_from(policy_disks().count()).unwrap_or(u64::MAX).max(1);
                let is_first = policy_disks().next().is_some_and(|first| first.name == disk.name);
                min_iops = min_iops / count + if is_first { min_iops % count } else { 0 };
                max_iops = None;
            }
            let spans = policy.filter(|policy| policy.spans_nodes());
            if spans.is_some() {
                min_iops = 0;
            }
            Limited {
                disk: disks.disk_id(&disk.name),
                name: disk.name.to_string(),
                policy: spans.and_then(|policy| policies.get(&policy.name).copied()),
                min_iops,
                max_iops,
                weight: u32::from(limits.weight),
            }
        })
        .collect();
    let copied = flows.values().filter(|flow| suimon_storage::disk_of_copy(flow.disk).is_some());
    limited_flows.extend(copied.filter_map(|flow| {
        Some(Limited {
            disk: flow.disk,
            name: disks.disk_or_copy_name(flow.disk)?,
            policy: None,
            min_iops: 0,
            max_iops: None,
            weight: u32::from(flow.limits.weight.number()),
        })
    }));
    limited_flows
}

#[cfg(test)]
mod tests {
    use suimon_quantity::WorkerId;
    use suimon_storage_engine::{StoreRole, WorkerStoreStatus};
    use suimon_storage_qos::{DeliveryStats, Limits, LimitsOwner};

    use super::*;

    const DISK: DiskId = DiskId(3);

    /// Returns the demand after each of these samples, which are taken in the usual interval.
    fn demands(loads: &mut LoadSamples, begin: u32, samples: &[Option<u64>]) -> Vec<u64> {
        let demand = |(index, demanded): (u32, &Option<u64>)| {
            let now = Time::from_ns(1 << 40) + index * SAMPLE_INTERVAL;
            let counters = demanded.map(|demanded| {
                let counters =
                    DiskQosCounters { demanded_operations: demanded, ..DiskQosCounters::default() };
                BTreeMap::from([(DISK, counters)])
            });
            loads.rates(now, counters).get(&DISK).map_or(0, |rates| rates.demanded_iops)
        };
        (begin..).zip(samples).map(demand).collect()
    }

    #[test]
    fn rates_are_repeated_for_a_limited_time_while_no_worker_responds() {
        let mut loads = LoadSamples::default();
        let first = demands(&mut loads, 0, &[Some(0), Some(500), Some(1000), None, None]);
        assert_eq!(first, [0, 1000, 1000, 1000, 1000]);
        // The rate over the whole time, when the worker proceeds.
        assert_eq!(demands(&mut loads, 5, &[Some(2000), Some(2500)]), [750, 750]);
        assert!(demands(&mut loads, 7, &[None; 10]).iter().all(|demand| *demand == 750));
        assert_eq!(demands(&mut loads, 17, &[None; 3]), [0, 0, 0]);
        assert_eq!(demands(&mut loads, 20, &[Some(9000), Some(9100)]), [0, 200]);
    }

    #[test]
    fn the_time_of_the_repetition_does_not_depend_on_the_number_of_samples() {
        let mut loads = LoadSamples::default();
        demands(&mut loads, 0, &[Some(0), Some(500)]);
        let demands_after = |loads: &mut LoadSamples, begin| demands(loads, begin, &[None]);
        assert_eq!(demands_after(&mut loads, 11), [1000]);
        assert_eq!(demands_after(&mut loads, 12), [0]);
        let mut loads = LoadSamples::default();
        demands(&mut loads, 0, &[Some(0), Some(500)]);
        for _ in 0..100 {
            assert_eq!(demands_after(&mut loads, 2), [1000]);
        }
    }

    #[test]
    fn counters_that_begin_again_give_no_rate() {
        let samples = [Some(5000), Some(5500), None, None, Some(10), Some(20)];
        assert_eq!(demands(&mut LoadSamples::default(), 0, &samples), [0, 1000, 1000, 1000, 0, 0]);
        let mut loads = LoadSamples::default();
        let delivered = |loads: &mut LoadSamples, index: u32, delivered: u64| {
            let counters =
                DiskQosCounters { delivered_operations: delivered, ..DiskQosCounters::default() };
            let now = Time::from_ns(1 << 40) + index * SAMPLE_INTERVAL;
            let rates = loads.rates(now, Some(BTreeMap::from([(DISK, counters)])));
            rates.get(&DISK).map(|rates| rates.delivered_iops)
        };
        assert_eq!(delivered(&mut loads, 0, 5000), None);
        assert_eq!(delivered(&mut loads, 1, 5500), Some(1000));
        assert_eq!(delivered(&mut loads, 2, 10), None);
        assert_eq!(delivered(&mut loads, 3, 20), None);
        assert_eq!(delivered(&mut loads, 4, 35), Some(25));
    }

    /// Returns the view of a worker with this number of delivered operations of the disk; without
    /// the disk if it is `None`.
    fn view(delivered: Option<u64>, is_current: bool) -> StoreView {
        let flow = |delivered| DiskQosStatus {
            disk: DISK,
            owner: LimitsOwner::Disk(DISK),
            limits: Limits::default(),
            waiting: 0,
            in_flight: 0,
            counters: DiskQosCounters {
                delivered_operations: delivered,
                ..DiskQosCounters::default()
            },
            short: DeliveryStats::default(),
            long: DeliveryStats::default(),
        };
        let status = WorkerStoreStatus {
            role: StoreRole::Shared,
            waiting: 0,
            in_flight_of_worker: 0,
            in_flight_of_all_workers: 0,
            depth_limit: 8,
            mean_latency_ns: 1,
            estimate: None,
        };
        let (worker, at) = (WorkerId(0), Time::ZERO);
        let flows = delivered.map(flow).into_iter().collect();
        StoreView { store: StoreId(0), worker, status, read_at: at, flows, is_current }
    }

    #[test]
    fn counters_are_unknown_only_while_the_worker_with_the_disks_does_not_respond() {
        let delivered_of = |views: &[StoreView], is_in_service| {
            let counters = known_counters(views.iter(), || is_in_service)?;
            Some(
                counters.values().map(|counters| counters.delivered_operations).collect::<Vec<_>>(),
            )
        };
        assert_eq!(delivered_of(&[view(Some(5), true), view(None, false)], true), Some(vec![5]));
        // The other worker leaves the store.
        assert_eq!(delivered_of(&[view(Some(5), false), view(None, true)], true), None);
        for views in [&[][..], &[view(None, false)], &[view(None, true)]] {
            // The worker with the disks has never replied.
            assert_eq!(delivered_of(views, true), None);
            assert_eq!(delivered_of(views, false), Some(vec![]), "no disk is in service");
        }
    }
}
