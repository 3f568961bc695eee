//! Metrics of disks and stores: requests, latencies, and what Storage QoS delivers.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;
use suimon_contract::{
    DiskCounters, DiskRequestCounters, DiskStatus, QosDelivery, StorageState, StoreStatus,
};

use super::Readings;
use super::family::{Family, Value};

const STORE: &[&str] = &["store"];
const DISK: &[&str] = &["disk"];
const OPERATION: &[&str] = &["disk", "operation"];
const IOPS: &str = "normalised IOPS";

/// A gauge of a store, and its value if it is known.
type StoreMetric = (Family, fn(&StoreStatus) -> Option<Value>);

const STORE_METRICS: [StoreMetric; 9] = [
    (Family::gauge("suimon_store_up", "", STORE, "1 if the store is in service, else 0"), |of| {
        Some(Value::flag(of.state == StorageState::Ready))
    }),
    (
        Family::gauge("suimon_store_free_bytes", "bytes", STORE, "Free space of the file system"),
        |of| of.free_bytes.map(Value::real),
    ),
    (
        Family::gauge(
            "suimon_store_capability_iops",
            IOPS,
            STORE,
            "Capacity of the store, as configured or measured",
        ),
        |of| of.capability_iops.map(Value::real),
    ),
    (
        Family::gauge(
            "suimon_store_measured_iops",
            IOPS,
            STORE,
            "Capacity that the last measurement found",
        ),
        |of| of.measured.as_ref().map(|found| Value::real(found.iops)),
    ),
    (
        Family::gauge(
            "suimon_store_estimated_iops",
            IOPS,
            STORE,
            "Rate of the store when requests were last queued for its device",
        ),
        |of| of.estimate.map(|found| Value::real(found.iops)),
    ),
    (
        Family::gauge("suimon_store_estimate_age_seconds", "seconds", STORE, "Age of the estimate"),
        |of| of.estimate.map(|found| Value::seconds(found.age_ms.saturating_mul(1_000_000))),
    ),
    (
        Family::gauge(
            "suimon_store_promised_iops",
            IOPS,
            STORE,
            "Sum of all minimums on the store",
        ),
        |of| Some(Value::real(of.promised_iops)),
    ),
    (
        Family::gauge(
            "suimon_store_delivered_iops",
            IOPS,
            STORE,
            "Completed operations per second, mean of the last 5 s",
        ),
        |of| Some(Value::real(of.delivered_iops)),
    ),
    (
        Family::gauge(
            "suimon_store_latency_seconds",
            "seconds",
            STORE,
            "Current time of a request in the device of the store",
        ),
        |of| of.latency_ns.map(Value::seconds),
    ),
];

/// A flag of a disk, and the state in which it is 1.
type StateMetric = (Family, StorageState);

const STATE_METRICS: [StateMetric; 3] = [
    (
        Family::gauge("suimon_disk_up", "", DISK, "1 if the disk is in service, else 0"),
        StorageState::Ready,
    ),
    (
        Family::gauge(
            "suimon_disk_working",
            "",
            DISK,
            "1 while the disk is out of service because an operation works on its file, else 0",
        ),
        StorageState::Working,
    ),
    (
        Family::gauge(
            "suimon_disk_away",
            "",
            DISK,
            "1 while another node has the file of the disk open, during a migration, else 0",
        ),
        StorageState::Away,
    ),
];

/// A counter of requests, and its value.
type RequestMetric = (Family, fn(&DiskRequestCounters) -> u64);

const REQUEST_METRICS: [RequestMetric; 3] = [
    (
        Family::counter(
            "suimon_disk_requests",
            "requests",
            OPERATION,
            "Completed requests, failed ones included. Requests of any size, not normalised",
        ),
        |of| of.requests,
    ),
    (
        Family::counter("suimon_disk_bytes", "bytes", OPERATION, "Bytes of completed requests"),
        |of| of.bytes,
    ),
    (
        Family::counter("suimon_disk_failed_requests", "requests", OPERATION, "Failed requests"),
        |of| of.errors,
    ),
];

const LATENCY: Family = Family::gauge(
    "suimon_disk_latency_seconds",
    "seconds",
    &["disk", "operation", "quantile"],
    "Latency from receipt to completion since the disk was opened, time in the scheduler included. Quantile \
     1 is the highest",
);

/// A quantile of latencies, and its value in nanoseconds.
type Quantile = (&'static str, fn(&DiskRequestCounters) -> u64);

const QUANTILES: [Quantile; 3] = [
    ("0.5", |of| of.latency_ns_p50),
    ("0.99", |of| of.latency_ns_p99),
    ("1", |of| of.latency_ns_max),
];

/// A gauge of what a disk gets, and its value.
type FlowMetric = (Family, fn(&QosDelivery) -> u64);

const FLOW_METRICS: [FlowMetric; 3] = [
    (
        Family::gauge(
            "suimon_disk_entitled_iops",
            IOPS,
            DISK,
            "Guaranteed IOPS: the minimum, as far as the disk had demand for it, mean of the last 5 s",
        ),
        |of| of.entitled_iops,
    ),
    (
        Family::gauge(
            "suimon_disk_demanded_iops",
            IOPS,
            DISK,
            "Demand: operations that the clients submitted per second, mean of the last 5 s",
        ),
        |of| of.demanded_iops,
    ),
    (
        Family::gauge(
            "suimon_disk_delivered_iops",
            IOPS,
            DISK,
            "Completed operations per second, mean of the last 5 s",
        ),
        |of| of.delivered_iops,
    ),
];

const LIMITED: Family = Family::gauge(
    "suimon_disk_limited_ratio",
    "ratio",
    &["disk", "factor"],
    "Share of the last 5 s by limiting factor. The factors of a disk add up to 1",
);

pub(super) fn families() -> Vec<Family> {
    let stores = STORE_METRICS.map(|(family, _)| family);
    let states = STATE_METRICS.map(|(family, _)| family);
    let requests = REQUEST_METRICS.map(|(family, _)| family);
    let flows = FLOW_METRICS.map(|(family, _)| family);
    let disks = states.into_iter().chain(requests).chain([LATENCY]).chain(flows);
    stores.into_iter().chain(disks).chain([LIMITED]).collect()
}

impl Readings {
    pub(super) fn encode_disks(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for (family, value) in STORE_METRICS {
            let stores = self
                .stores
                .iter()
                .filter_map(|store| Some(([store.config.name.to_string()], value(store)?)));
            family.write_if_any(encoder, stores)?;
        }
        for (family, state) in STATE_METRICS {
            let disks = self
                .disks
                .iter()
                .map(|disk| ([disk.config.name.to_string()], Value::flag(disk.state == state)));
            family.write_if_any(encoder, disks)?;
        }
        for (family, value) in REQUEST_METRICS {
            let requests = self.disks.iter().flat_map(|disk| {
                kinds(&disk.counters).into_iter().map(move |(kind, counters)| {
                    let labels = [disk.config.name.to_string(), kind.to_owned()];
                    (labels, Value::Integer(value(counters)))
                })
            });
            family.write_if_any(encoder, requests)?;
        }
        LATENCY.write_if_any(encoder, self.disks.iter().flat_map(latencies))?;
        for (family, value) in FLOW_METRICS {
            let flows = self.disks.iter().filter_map(|disk| {
                let flow = disk.qos.as_ref()?;
                let value = Value::real(value(&flow.last_5_s));
                Some(([disk.config.name.to_string()], value))
            });
            family.write_if_any(encoder, flows)?;
        }
        let flows = self.disks.iter().filter_map(|disk| disk.qos.as_ref());
        let shares = flows.flat_map(|flow| {
            flow.last_5_s.limited_by.iter().map(|share| {
                let labels = [flow.disk.to_string(), share.factor.to_string()];
                (labels, Value::ratio(share.share_ppm))
            })
        });
        LIMITED.write_if_any(encoder, shares)
    }
}

/// Latencies of one disk; none of kinds of requests of which it completed none.
fn latencies(disk: &DiskStatus) -> Vec<([String; 3], Value)> {
    let mut series = Vec::new();
    for (kind, counters) in kinds(&disk.counters) {
        for (quantile, value) in QUANTILES.iter().filter(|_| counters.requests > 0) {
            let labels = [disk.config.name.to_string(), kind.to_owned(), (*quantile).to_owned()];
            series.push((labels, Value::seconds(value(counters))));
        }
    }
    series
}

const fn kinds(counters: &DiskCounters) -> [(&'static str, &DiskRequestCounters); 4] {
    [
        ("read", &counters.reads),
        ("write", &counters.writes),
        ("flush", &counters.flushes),
        ("discard", &counters.discards),
    ]
}
