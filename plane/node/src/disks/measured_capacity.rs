//! Capacity of stores: declared in the configuration, or measured.

mod table;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use suimon_contract::{ByteSize, Name, StoreCapacity, StoreConfig, StoreMeasurement};
use suimon_storage_qos::{Capacity, MeasuredLatency};

/// Last measurement of a store, with the configuration keys that determine its result. The
/// measurement counts only while these keys are unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MeasuredStore {
    pub(crate) path: PathBuf,
    pub(crate) normalization_bytes: ByteSize,
    pub(crate) depth_max: u32,
    pub(crate) measurement: StoreMeasurement,
}

pub(crate) type MeasuredStores = BTreeMap<Name, MeasuredStore>;

impl MeasuredStore {
    pub(crate) fn new(store: &StoreConfig, measurement: StoreMeasurement) -> Self {
        Self {
            path: store.path.clone(),
            normalization_bytes: store.normalization_bytes,
            depth_max: store.queue_depth_max,
            measurement,
        }
    }

    /// Returns true if the measurement was made with the store's present path, normalization and
    /// queue depth.
    fn matches(&self, store: &StoreConfig) -> bool {
        (&self.path, self.normalization_bytes, self.depth_max)
            == (&store.path, store.normalization_bytes, store.queue_depth_max)
    }
}

/// Returns the measurement of a store; `None` if there is none for its present configuration.
pub(crate) fn find_measurement<'a>(
    store: &StoreConfig,
    measured: &'a MeasuredStores,
) -> Option<&'a StoreMeasurement> {
    let measured_store =
        measured.get(&store.name).filter(|measured_store| measured_store.matches(store));
    measured_store.map(|measured_store| &measured_store.measurement)
}

/// Returns the capacity of a store for admission control. [`Capacity::Unknown`] if the capacity
/// is neither declared nor measured.
pub(crate) fn capacity(store: &StoreConfig, measured: &MeasuredStores) -> Capacity {
    match store.capacity_iops {
        None => Capacity::Unknown,
        Some(StoreCapacity::Declared(iops)) => Capacity::Declared(iops),
        Some(StoreCapacity::Measured(_)) => find_measurement(store, measured)
            .map_or(Capacity::Unknown, |measured_store| Capacity::Measured(measured_store.iops)),
    }
}

/// Returns the latency of a store's device by Little's law: queue depth divided by rate, for the
/// measured pattern with the highest result. `None` without a measurement.
pub(crate) fn measured_latency(
    store: &StoreConfig,
    measured: &MeasuredStores,
) -> Option<MeasuredLatency> {
    let figures = find_measurement(store, measured)?.pattern_results.iter();
    let latencies = figures.filter_map(|figure| {
        let latency_ns = (u64::from(figure.depth) * 1_000_000_000).checked_div(figure.iops)?;
        Some(MeasuredLatency { depth: figure.depth, latency_ns })
    });
    latencies.max_by_key(|latency| latency.latency_ns)
}
