//! Rates of disks from two snapshots of counters.

use serde::Serialize;
use suimon_contract::{Name, QosDelivery, StorageState, TopDisk};

use crate::top::interval::{Interval, counter_increase};

/// Rates and latency of one disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct DiskRates {
    pub(crate) name: Name,
    pub(crate) store: Name,
    pub(crate) state: StorageState,
    /// True if the disk's worker does not respond: counters and rates are the last known ones.
    pub(crate) stale: bool,
    pub(crate) reads_per_s: u64,
    pub(crate) read_bytes_per_s: u64,
    pub(crate) writes_per_s: u64,
    pub(crate) written_bytes_per_s: u64,
    /// Flushes, discards and write-zeroes requests per second.
    #[serde(rename = "others_per_s")]
    pub(crate) other_requests_per_s: u64,
    /// Mean latency from detection to completion of a request in ns; absent if none completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) latency_ns: Option<u64>,
    /// Guaranteed rate in normalised operations per second over the last 5 s, like the following
    /// two.
    pub(crate) guaranteed_iops: u64,
    pub(crate) demand_iops: u64,
    pub(crate) delivered_iops: u64,
    /// Mean time for which limits delayed an operation in the last 5 s, in ns; absent if none
    /// completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) qos_wait_ns: Option<u64>,
}

impl DiskRates {
    pub(super) fn between(interval: Interval, before: &TopDisk, after: &TopDisk) -> Self {
        let rate = |value: fn(&TopDisk) -> u64| interval.per_second(value(before), value(after));
        let requests = counter_increase(before.requests(), after.requests());
        let qos = after.last_5_s.clone().unwrap_or_default();
        Self {
            name: after.name.clone(),
            store: after.store.clone(),
            state: after.state,
            stale: after.stale,
            reads_per_s: rate(|disk| disk.reads),
            read_bytes_per_s: rate(|disk| disk.read_bytes),
            writes_per_s: rate(|disk| disk.writes),
            written_bytes_per_s: rate(|disk| disk.written_bytes),
            other_requests_per_s: rate(|disk| disk.other_requests),
            latency_ns: counter_increase(before.latency_sum_ns, after.latency_sum_ns)
                .checked_div(requests),
            guaranteed_iops: qos.guaranteed_iops,
            demand_iops: qos.demand_iops,
            delivered_iops: qos.delivered_iops,
            qos_wait_ns: wait(&qos),
        }
    }
}

/// Returns the mean time in ns for which limits delayed an operation; `None` if none completed.
fn wait(qos: &QosDelivery) -> Option<u64> {
    let queued_ns = qos.queued_ns.values().fold(0_u64, |sum, ns| sum.saturating_add(*ns));
    let operations = u128::from(qos.delivered_iops) * u128::from(qos.window_ns) / 1_000_000_000;
    u64::try_from(u128::from(queued_ns).checked_div(operations)?).ok()
}
