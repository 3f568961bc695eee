//! Text output of Storage QoS: policies, and rates of disks.

use suimon_contract::{
    QosDelivery, QosFlowStatus, QosLimits, QosPolicyConfig, QosPolicyShare, QosPolicyStatus,
    QosTimeShare, Resource, StoreReservations,
};

use crate::columns;
use crate::detail_text::{DetailText, serialized_name};
use crate::resource_tables::TextOutput;
use crate::table::{Table, or_dash};
use crate::units;

impl TextOutput for QosPolicyConfig {
    fn table(statuses: &[QosPolicyStatus]) -> Table {
        let mut table = Table::new(&columns::QOS_POLICIES);
        for policy in statuses {
            let limits = policy.config.limits();
            table.add_row([
                policy.config.name.to_string(),
                kind(&policy.config),
                or_dash(limits.min_iops.map(units::count)),
                or_dash(limits.max_iops.map(units::count)),
                or_dash(max_bytes(&limits)),
                or_dash(burst(&limits)),
                limits.weight.to_string(),
                policy.disks.len().to_string(),
                units::count(policy.reserved_iops),
                units::count(policy.delivered_iops),
            ]);
        }
        table
    }

    fn details(status: &QosPolicyStatus) -> String {
        let mut lines = DetailText::default();
        lines.add_keys(Self::KIND, &status.config);
        let disks: Vec<_> = status.disks.iter().map(ToString::to_string).collect();
        lines.add("disks", if disks.is_empty() { "–".to_owned() } else { disks.join(", ") });
        lines.add("reserved", units::iops(status.reserved_iops));
        lines.add("delivered (5 s)", units::iops(status.delivered_iops));
        if !status.shares.is_empty() {
            lines.add_table(&parts(&status.shares));
        }
        lines.into_text()
    }
}

/// Returns a table of this host's parts of a policy that spans nodes.
fn parts(parts: &[QosPolicyShare]) -> Table {
    let mut table = Table::new(&columns::QOS_POLICY_SHARES);
    for QosPolicyShare { store, min_iops, max } in parts {
        let lease = max.and_then(|max| max.lease_remaining_ms);
        table.add_row([
            store.to_string(),
            units::count(*min_iops),
            or_dash(max.map(|max| units::count(max.iops))),
            or_dash(max.map(|max| units::count(max.reserved_iops))),
            or_dash(lease.map(|ms| format!("{ms} ms"))),
        ]);
    }
    table
}

/// Formats the scope of a policy: `aggregated, shared`.
fn kind(policy: &QosPolicyConfig) -> String {
    let kind = serialized_name(&policy.kind);
    if policy.shared { format!("{kind}, shared") } else { kind }
}

/// Formats the maximum throughput: `100 MiB/s`.
fn max_bytes(limits: &QosLimits) -> Option<String> {
    limits.max_bytes_per_s.map(|bytes| format!("{}/s", units::binary_bytes(bytes.bytes())))
}

/// Formats the burst: `20.0 k for 60 s`.
fn burst(limits: &QosLimits) -> Option<String> {
    let (iops, seconds) = limits.burst_iops.zip(limits.burst_s)?;
    Some(format!("{} for {seconds} s", units::count(iops)))
}

/// Formats limits: `min 500, max 1000 and 8.00 MiB/s, weight 200`; `–` without limits.
pub(crate) fn short_limits(limits: &QosLimits) -> String {
    let iops = limits.max_iops.map(units::count);
    let max: Vec<String> = iops.into_iter().chain(max_bytes(limits)).collect();
    let parts = [
        limits.min_iops.map(|min| format!("min {}", units::count(min))),
        (!max.is_empty()).then(|| format!("max {}", max.join(" and "))),
        burst(limits).map(|burst| format!("burst {burst}")),
        (limits.weight != QosLimits::NONE.weight).then(|| format!("weight {}", limits.weight)),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "–".to_owned() } else { parts.join(", ") }
}

/// Returns a table with one row per disk. Rates are normalised operations per second over 5 s.
pub fn flow_table(flows: &[QosFlowStatus]) -> Table {
    let mut table = Table::new(&columns::QOS_FLOWS);
    for flow in flows {
        table.add_row([
            flow.disk.to_string(),
            flow.store.to_string(),
            flow.holder.clone(),
            short_limits(&flow.limits),
            units::count(flow.last_5_s.guaranteed_iops),
            units::count(flow.last_5_s.demand_iops),
            units::count(flow.last_5_s.delivered_iops),
            units::count(flow.last_5_min.delivered_iops),
            units::count(flow.queued.into()),
            units::count(flow.in_flight.into()),
            first_limit(&flow.last_5_s),
        ]);
    }
    table
}

/// Returns the first limiting factor with its share of the time: `its own maximum 93 %`.
fn first_limit(delivery: &QosDelivery) -> String {
    or_dash(delivery.limited_by.first().map(limit))
}

fn limit(share: &QosTimeShare) -> String {
    format!("{} {}", share.factor.text(), percent(share.share_ppm))
}

/// Formats parts per million as a percentage: `93 %`, or `<1 %`.
fn percent(ppm: u32) -> String {
    match (ppm + 5_000) / 10_000 {
        0 => "<1 %".to_owned(),
        percent => format!("{percent} %"),
    }
}

/// Returns limits and rates of a disk.
pub fn flow_details(flow: &QosFlowStatus) -> String {
    let mut lines = DetailText::default();
    lines.add("disk", &flow.disk);
    lines.add("store", &flow.store);
    add_flow(&mut lines, flow);
    lines.add_table(&delivery_table(flow));
    lines.into_text()
}

/// Adds the limits of a disk and its current requests.
pub(crate) fn add_flow(lines: &mut DetailText, flow: &QosFlowStatus) {
    let limits = short_limits(&flow.limits);
    lines.add("limits in effect", format!("{limits} (of {})", flow.holder));
    lines.add("requests queued", flow.queued);
    lines.add("requests in flight", flow.in_flight);
}

/// Returns a table with one row per time window: guaranteed, demanded and delivered rates, queue
/// depth, latency of the device, and limiting factors.
pub(crate) fn delivery_table(flow: &QosFlowStatus) -> Table {
    let mut table = Table::new(&columns::QOS_DELIVERY);
    for (window, delivery) in [("5 s", &flow.last_5_s), ("5 min", &flow.last_5_min)] {
        table.add_row([
            window.to_owned(),
            units::iops(delivery.guaranteed_iops),
            units::iops(delivery.demand_iops),
            units::iops(delivery.delivered_iops),
            queue_depth(delivery.queue_depth_milli),
            device_latency(delivery),
            limits_in_order(delivery),
        ]);
    }
    table
}

/// Formats a queue depth, given in thousandths: `15.9`.
fn queue_depth(milli: u64) -> String {
    let tenths = milli.saturating_add(50) / 100;
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// Formats the latency of the device with its baseline latency at the same depth: `3.00 ms (own
/// 1.00 ms)`.
fn device_latency(delivery: &QosDelivery) -> String {
    let latencies = delivery.device_latency_ns.zip(delivery.device_baseline_latency_ns);
    or_dash(latencies.map(|(found_ns, own_ns)| {
        format!("{} (own {})", units::latency(found_ns), units::latency(own_ns))
    }))
}

/// Returns all limiting factors with their shares, the first one first.
fn limits_in_order(delivery: &QosDelivery) -> String {
    let limits: Vec<String> = delivery.limited_by.iter().map(limit).collect();
    if limits.is_empty() { "–".to_owned() } else { limits.join(", ") }
}

/// Returns a table of the reservations of stores, actual or proposed.
pub fn reservation_table(stores: &[StoreReservations]) -> Table {
    let mut table = Table::new(&columns::WHAT_IF_STORES);
    for store in stores {
        table.add_row([
            store.store.to_string(),
            store.minimum_count.to_string(),
            units::count(store.minimums_iops),
            or_dash(store.capacity_iops.map(units::count)),
            units::count(store.reservable_iops),
            if store.fits { "yes" } else { "no" }.to_owned(),
        ]);
    }
    table
}

#[cfg(test)]
#[path = "qos_tables_tests.rs"]
mod tests;
