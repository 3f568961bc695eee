//! Metrics of disks: state, requests, latencies, and what Storage QoS delivers.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;
use suimon_contract::{DiskCounters, DiskRequestCounters, DiskStatus, QosDelivery, StorageState};

use crate::family::{Family, Value};
use crate::readings::Readings;

const DISK: &[&str] = &["disk"];
const OPERATION: &[&str] = &["disk", "operation"];
const IOPS: &str = "normalised IOPS";

/// Gauge of a disk's state with the function that reads its value.
type StateMetric = (Family, fn(&DiskStatus) -> Value);

const STATE_METRICS: [StateMetric; 6] = [
    (
        Family::gauge(
            "suimon_disk_up",
            "",
            DISK,
            "1 if the disk is in service, also while its store is full, else 0",
        ),
        |disk| Value::flag(matches!(disk.state, StorageState::Ready | StorageState::Full)),
    ),
    (
        Family::gauge(
            "suimon_disk_working",
            "",
            DISK,
            "1 while the disk is out of service because an operation works on its file, else 0",
        ),
        |disk| Value::flag(disk.state == StorageState::OperationInProgress),
    ),
    (
        Family::gauge(
            "suimon_disk_away",
            "",
            DISK,
            "1 while another node has the disk's file open, during a migration, else 0",
        ),
        |disk| Value::flag(disk.state == StorageState::OpenOnOtherNode),
    ),
    (
        Family::gauge(
            "suimon_disk_faulted",
            "",
            DISK,
            "1 while writes and flushes of the disk fail because a flush has failed, else 0",
        ),
        |disk| Value::flag(disk.state == StorageState::Faulted),
    ),
    (
        Family::gauge(
            "suimon_disk_full",
            "",
            DISK,
            "1 while the store has no space for requests of the disk, else 0",
        ),
        |disk| Value::flag(disk.store_full.is_some()),
    ),
    (
        Family::gauge(
            "suimon_disk_full_queued_requests",
            "requests",
            DISK,
            "Requests that are queued until the store has space",
        ),
        |disk| Value::real_from_integer(disk.store_full.map_or(0, |full| full.queued_requests)),
    ),
];

/// Counter of requests with the function that reads its value.
type RequestMetric = (Family, fn(&DiskRequestCounters) -> u64);

const REQUEST_METRICS: [RequestMetric; 3] = [
    (
        Family::counter(
            "suimon_disk_requests",
            "requests",
            OPERATION,
            "Completed requests, failed ones included. Requests of any size, not normalised",
        ),
        |counters| counters.requests,
    ),
    (
        Family::counter("suimon_disk_bytes", "bytes", OPERATION, "Bytes of completed requests"),
        |counters| counters.bytes,
    ),
    (
        Family::counter("suimon_disk_failed_requests", "requests", OPERATION, "Failed requests"),
        |counters| counters.errors,
    ),
];

const LATENCY: Family = Family::gauge(
    "suimon_disk_latency_seconds",
    "seconds",
    &["disk", "operation", "quantile"],
    "Latency from receipt to completion since the disk was opened, time in the scheduler \
     included. Quantile 1 is the highest",
);

/// Quantile of latencies with the function that reads its value in ns.
type Quantile = (&'static str, fn(&DiskRequestCounters) -> u64);

const QUANTILES: [Quantile; 3] = [
    ("0.5", |counters| counters.latency_ns_p50),
    ("0.99", |counters| counters.latency_ns_p99),
    ("1", |counters| counters.latency_ns_max),
];

/// Gauge of a disk's delivered rates with the function that reads its value.
type FlowMetric = (Family, fn(&QosDelivery) -> u64);

const FLOW_METRICS: [FlowMetric; 3] = [
    (
        Family::gauge(
            "suimon_disk_guaranteed_iops",
            IOPS,
            DISK,
            "Guaranteed IOPS in the last 5 s: `min_iops`, multiplied by the share of this time in \
             which the disk had requests. With an aggregated policy, the guarantee of all its disks \
             in the store together",
        ),
        |delivery| delivery.guaranteed_iops,
    ),
    (
        Family::gauge(
            "suimon_disk_demand_iops",
            IOPS,
            DISK,
            "Demand: operations that the clients submitted per second, mean of the last 5 s",
        ),
        |delivery| delivery.demand_iops,
    ),
    (
        Family::gauge(
            "suimon_disk_delivered_iops",
            IOPS,
            DISK,
            "Completed operations per second, mean of the last 5 s",
        ),
        |delivery| delivery.delivered_iops,
    ),
];

const LIMITED: Family = Family::gauge(
    "suimon_disk_limited_ratio",
    "ratio",
    &["disk", "factor"],
    "Share of the last 5 s by limiting factor. The factors of a disk add up to 1",
);

pub(super) fn families() -> Vec<Family> {
    let states = STATE_METRICS.map(|(family, _)| family);
    let requests = REQUEST_METRICS.map(|(family, _)| family);
    let flows = FLOW_METRICS.map(|(family, _)| family);
    states.into_iter().chain(requests).chain([LATENCY]).chain(flows).chain([LIMITED]).collect()
}

impl Readings {
    pub(super) fn encode_disks(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for (family, value) in STATE_METRICS {
            let disks = self.disks.iter().map(|disk| ([disk.config.name.to_string()], value(disk)));
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
                let value = Value::real_from_integer(value(&flow.last_5_s));
                Some(([disk.config.name.to_string()], value))
            });
            family.write_if_any(encoder, flows)?;
        }
        let flows = self.disks.iter().filter_map(|disk| disk.qos.as_ref());
        let shares = flows.flat_map(|flow| {
            flow.last_5_s.limited_by.iter().map(|share| {
                let labels = [flow.disk.to_string(), share.factor.to_string()];
                (labels, Value::ratio_from_ppm(share.share_ppm))
            })
        });
        LIMITED.write_if_any(encoder, shares)
    }
}

/// Returns the latency series of one disk, omitting kinds of requests without completions.
fn latencies(disk: &DiskStatus) -> Vec<([String; 3], Value)> {
    let mut series = Vec::new();
    for (kind, counters) in kinds(&disk.counters) {
        for (quantile, value) in QUANTILES.iter().filter(|_| counters.requests > 0) {
            let labels = [disk.config.name.to_string(), kind.to_owned(), (*quantile).to_owned()];
            series.push((labels, Value::seconds_from_ns(value(counters))));
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
