//! Metrics of stores: space, capacity and rates.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;
use suimon_contract::{StorageState, StoreStatus};

use crate::family::{Family, Value};
use crate::readings::Readings;

const STORE: &[&str] = &["store"];
const IOPS: &str = "normalised IOPS";

/// Gauge of a store with the function that reads its value, if known.
type StoreMetric = (Family, fn(&StoreStatus) -> Option<Value>);

const STORE_METRICS: [StoreMetric; 14] = [
    (
        Family::gauge("suimon_store_up", "", STORE, "1 if the store is in service, else 0"),
        |store| Some(Value::flag(store.state == StorageState::Ready)),
    ),
    (
        Family::gauge("suimon_store_free_bytes", "bytes", STORE, "Free space of the file system"),
        |store| store.free_bytes.map(Value::real_from_integer),
    ),
    (
        Family::gauge(
            "suimon_store_total_bytes",
            "bytes",
            STORE,
            "Size of the file system or block device",
        ),
        |store| store.total_bytes.map(Value::real_from_integer),
    ),
    (
        Family::gauge(
            "suimon_store_nearly_full",
            "",
            STORE,
            "1 if the used share of the store exceeds its full_warning_percent, else 0",
        ),
        |store| Some(Value::flag(store.nearly_full)),
    ),
    (
        Family::gauge(
            "suimon_store_virtual_bytes",
            "bytes",
            STORE,
            "Sum of the sizes of the store's disks as guests see them",
        ),
        |store| Some(Value::real_from_integer(store.virtual_bytes)),
    ),
    (
        Family::gauge(
            "suimon_store_allocated_bytes",
            "bytes",
            STORE,
            "Space that the files of the store's disks occupy",
        ),
        |store| Some(Value::real_from_integer(store.allocated_bytes)),
    ),
    (
        Family::gauge(
            "suimon_store_overcommit_ratio",
            "ratio",
            STORE,
            "Overcommitment of space: sum of the disks' sizes divided by the size of the store",
        ),
        |store| store.overcommit_percent.map(Value::ratio_from_percent),
    ),
    (
        Family::gauge(
            "suimon_store_capacity_iops",
            IOPS,
            STORE,
            "Capacity of the store, as configured or measured",
        ),
        |store| store.capacity_iops.map(Value::real_from_integer),
    ),
    (
        Family::gauge(
            "suimon_store_measured_iops",
            IOPS,
            STORE,
            "Capacity found by the last measurement",
        ),
        |store| {
            store
                .last_measurement
                .as_ref()
                .map(|measurement| Value::real_from_integer(measurement.iops))
        },
    ),
    (
        Family::gauge(
            "suimon_store_estimated_iops",
            IOPS,
            STORE,
            "Estimated capacity: rate of the store when it was last saturated",
        ),
        |store| {
            store.estimate.map(|estimate_status| Value::real_from_integer(estimate_status.iops))
        },
    ),
    (
        Family::gauge("suimon_store_estimate_age_seconds", "seconds", STORE, "Age of the estimate"),
        |store| {
            store.estimate.map(|estimate_status| {
                Value::seconds_from_ns(estimate_status.age_ms.saturating_mul(1_000_000))
            })
        },
    ),
    (
        Family::gauge(
            "suimon_store_reserved_iops",
            IOPS,
            STORE,
            "Sum of all minimums on the store",
        ),
        |store| Some(Value::real_from_integer(store.reserved_iops)),
    ),
    (
        Family::gauge(
            "suimon_store_delivered_iops",
            IOPS,
            STORE,
            "Completed operations per second, mean of the last 5 s",
        ),
        |store| Some(Value::real_from_integer(store.delivered_iops)),
    ),
    (
        Family::gauge(
            "suimon_store_latency_seconds",
            "seconds",
            STORE,
            "Mean service time of a request in the device of the store, at present",
        ),
        |store| store.latency_ns.map(Value::seconds_from_ns),
    ),
];

pub(super) fn families() -> Vec<Family> {
    STORE_METRICS.map(|(family, _)| family).into()
}

impl Readings {
    pub(super) fn encode_stores(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for (family, value) in STORE_METRICS {
            let stores = self
                .stores
                .iter()
                .filter_map(|store| Some(([store.config.name.to_string()], value(store)?)));
            family.write_if_any(encoder, stores)?;
        }
        Ok(())
    }
}
