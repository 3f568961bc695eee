//! Text output of stores and disks.

use suimon_contract::{
    CapacitySource, DiskConfig, DiskCounters, DiskKind, DiskNbdTransport, DiskRequestCounters,
    DiskStatus, Resource, ResourceKind, StoreCapacity, StoreConfig, StoreMeasurement, StoreStatus,
};

use crate::columns;
use crate::detail_text::{DetailText, serialized_name, storage_state};
use crate::qos_tables::{add_flow, delivery_table, short_limits};
use crate::resource_tables::TextOutput;
use crate::table::{Table, or_dash};
use crate::units;

impl TextOutput for StoreConfig {
    fn table(statuses: &[StoreStatus]) -> Table {
        let mut table = Table::new(&columns::STORES);
        for store in statuses {
            table.add_row([
                store.config.name.to_string(),
                store.config.path.display().to_string(),
                store.disks.to_string(),
                or_dash(store.free_bytes.map(units::binary_bytes)),
                or_dash(store.total_bytes.map(units::binary_bytes)),
                virtual_size(store),
                units::count(store.delivered_iops),
                or_dash(store.capacity_iops.map(units::count)),
                reserved(store, units::count),
                or_dash(store.latency_ns.map(units::latency)),
                depth(store),
                storage_state(store.state, store.stale, store.reason.as_ref()),
            ]);
        }
        table
    }

    fn details(status: &StoreStatus) -> String {
        let mut lines = DetailText::default();
        lines.add_keys(Self::KIND, &status.config);
        lines.add("state", storage_state(status.state, status.stale, status.reason.as_ref()));
        lines.add("disks", status.disks);
        let total = or_dash(status.total_bytes.map(units::binary_bytes));
        lines.add(
            "free",
            format!("{} of {total}", or_dash(status.free_bytes.map(units::binary_bytes))),
        );
        lines.add("nearly full", if status.nearly_full { "yes" } else { "no" });
        lines.add("virtual size of disks", virtual_size(status));
        lines.add("allocated by disks", units::binary_bytes(status.allocated_bytes));
        lines.add("capacity", capacity(status));
        if let Some(measured) = &status.last_measurement {
            add_measured(&mut lines, measured);
        }
        let estimate = status.estimate.as_ref().map(|estimate| {
            format!("{}, {} ago", units::iops(estimate.iops), units::age(estimate.age_ms / 1000))
        });
        lines.add("rate at saturation", or_dash(estimate));
        lines.add("reserved", reserved(status, units::iops));
        lines.add("delivered (5 s)", units::iops(status.delivered_iops));
        lines.add("latency", or_dash(status.latency_ns.map(units::latency)));
        lines.add("requests in flight", depth(status));
        lines.into_text()
    }
}

fn capacity(store: &StoreStatus) -> String {
    match (store.capacity_iops, store.capacity_source) {
        (Some(iops), Some(CapacitySource::Declared)) => {
            format!("{} (configured)", units::iops(iops))
        }
        (Some(iops), Some(CapacitySource::Measured)) => {
            format!("{} (measured)", units::iops(iops))
        }
        (Some(iops), None) => units::iops(iops),
        (None, _) if store.config.capacity_iops == Some(StoreCapacity::MEASURED) => {
            format!("unknown; `suimon store measure {}` measures it", store.config.name)
        }
        (None, _) => "unknown".to_owned(),
    }
}

fn add_measured(lines: &mut DetailText, measured: &StoreMeasurement) {
    let measured_at = units::timestamp(measured.measured_unix_ms);
    let cache_note = if measured.is_direct_io { "" } else { ", through the page cache" };
    let file = units::binary_bytes(measured.file_bytes);
    let conditions = format!("{} s each on {file}{cache_note}", measured.seconds);
    lines.add("measured", format!("{} at {measured_at}, {conditions}", units::iops(measured.iops)));
    if measured.other_load_iops > 0 {
        lines.add("load while measuring", units::iops(measured.other_load_iops));
    }
    for figure in &measured.pattern_results {
        let (half, p99_ns) = (figure.latency_ns_p50, figure.latency_ns_p99);
        let latencies = format!("{} p50, {} p99", units::latency(half), units::latency(p99_ns));
        let text = format!("{} at depth {}, {latencies}", units::iops(figure.iops), figure.depth);
        lines.add(&format!("  {}", figure.pattern.display_name()), text);
    }
}

/// Formats the sum of the disks' sizes and its ratio to the store's size: `2.0 TiB (150 %)`.
fn virtual_size(store: &StoreStatus) -> String {
    let size = units::binary_bytes(store.virtual_bytes);
    match store.overcommit_percent {
        Some(percent) => format!("{size} ({percent} %)"),
        None => size,
    }
}

/// Formats the sum of minimums and its ratio to the capacity: `4500 (90 %)`. `format_iops` formats
/// the number.
fn reserved(store: &StoreStatus, format_iops: fn(u64) -> String) -> String {
    let iops = format_iops(store.reserved_iops);
    match store.reserved_percent {
        Some(percent) => format!("{iops} ({percent} %)"),
        None => iops,
    }
}

fn depth(store: &StoreStatus) -> String {
    format!("{} of {}", store.queue_depth, store.queue_depth_limit)
}

impl TextOutput for DiskConfig {
    fn table(statuses: &[DiskStatus]) -> Table {
        let mut table = Table::new(&columns::DISKS);
        for disk in statuses {
            table.add_row([
                disk.config.name.to_string(),
                disk.config.store.to_string(),
                format(disk),
                or_dash(disk.size_bytes.map(units::binary_bytes)),
                or_dash(disk.allocated_bytes.map(units::binary_bytes)),
                qos(&disk.config),
                units::binary_bytes(disk.counters.reads.bytes),
                units::binary_bytes(disk.counters.writes.bytes),
                units::count(errors(&disk.counters)),
                used_by(disk),
                storage_state(disk.state, disk.stale, disk.reason.as_ref()),
            ]);
        }
        table
    }

    fn details(status: &DiskStatus) -> String {
        let mut lines = DetailText::default();
        lines.add_keys(Self::KIND, &status.config);
        lines.add("state", storage_state(status.state, status.stale, status.reason.as_ref()));
        lines.add("image file", status.file.display());
        lines.add(
            "image format",
            format!(
                "{}, {}",
                serialized_name(&status.config.format),
                serialized_name(&kind(status))
            ),
        );
        lines.add("parent", or_dash(status.parent.as_ref()));
        lines.add("size", or_dash(status.size_bytes.map(units::binary_bytes)));
        lines.add("allocated", or_dash(status.allocated_bytes.map(units::binary_bytes)));
        lines.add("files", or_dash(status.layers.map(layers)));
        lines.add("metadata", or_dash(status.uncommitted_metadata_bytes.map(metadata)));
        if let Some(full) = &status.store_full {
            lines.add("requests without space", full.queued_requests);
        }
        lines.add("worker", or_dash(status.worker));
        lines.add("used by", used_by(status));
        if let Some(vhost_user) = status.vhost_user.as_ref().filter(|vhost| vhost.connected) {
            lines.add("queues in use", vhost_user.queues);
            lines.add("virtio features", vhost_user.features.join(", "));
        }
        add_clients(&mut lines, status);
        if let Some(flow) = &status.qos {
            add_flow(&mut lines, flow);
        }
        lines.add_table(&request_table(&status.counters));
        if let Some(flow) = &status.qos {
            lines.add_table(&delivery_table(flow));
        }
        lines.into_text()
    }
}

/// Formats the image format, with the kind unless it is the default: `vhdx, fixed`.
fn format(disk: &DiskStatus) -> String {
    let format = serialized_name(&disk.config.format);
    let is_usual = kind(disk) == disk.config.format.default_kind();
    if is_usual { format } else { format!("{format}, {}", serialized_name(&kind(disk))) }
}

/// Returns the kind of the open image; while the disk is not open, the kind that its configuration
/// names.
fn kind(disk: &DiskStatus) -> DiskKind {
    disk.kind.unwrap_or_else(|| disk.config.kind_of_new_file())
}

/// Formats the name of the disk's policy, or the disk's own limits.
fn qos(disk: &DiskConfig) -> String {
    disk.qos_policy.as_ref().map_or_else(|| short_limits(&disk.qos), ToString::to_string)
}

/// Formats the number of image files of a disk: `3, 2 of them parents`.
fn layers(count: u32) -> String {
    match count {
        0 | 1 => count.to_string(),
        2 => "2, one of them its parent".to_owned(),
        _ => format!("{count}, {} of them parents", count - 1),
    }
}

/// Formats whether a crash of the host would lose image metadata.
fn metadata(uncommitted_bytes: u64) -> String {
    match uncommitted_bytes {
        0 => "clean".to_owned(),
        bytes => format!("{} not durable yet", units::binary_bytes(bytes)),
    }
}

/// Formats the users of a disk: `VM, 2 NBD clients`.
fn used_by(disk: &DiskStatus) -> String {
    let vm = disk.vhost_user.as_ref().filter(|vhost_user| vhost_user.connected);
    let clients = disk.nbd.as_ref().map_or(0, |nbd| nbd.connection_count);
    let nbd = match clients {
        0 => None,
        1 => Some("1 NBD client".to_owned()),
        count => Some(format!("{count} NBD clients")),
    };
    let users: Vec<String> = vm.map(|_| "VM".to_owned()).into_iter().chain(nbd).collect();
    if users.is_empty() { "–".to_owned() } else { users.join(", ") }
}

/// Adds the number and memory of the disk's NBD connections with their limits, and a line for each
/// client.
fn add_clients(lines: &mut DetailText, disk: &DiskStatus) {
    let Some(nbd) = disk.nbd.as_ref().filter(|nbd| !nbd.connections.is_empty()) else { return };
    let (count, bytes) = (nbd.connections.len(), units::binary_bytes(nbd.buffer_bytes));
    let (count_max, bytes_max) = (nbd.connections_max, units::binary_bytes(nbd.buffer_max_bytes));
    lines.add(
        "NBD connections",
        format!("{count} of {count_max}, {bytes} of {bytes_max} buffer memory"),
    );
    for client in &nbd.connections {
        let bytes = units::binary_bytes(client.buffer_bytes);
        lines.add(
            "NBD client",
            format!("{}, {}, {bytes}", client.peer, transport(client.transport)),
        );
    }
}

const fn transport(transport: DiskNbdTransport) -> &'static str {
    match transport {
        DiskNbdTransport::Unix => "Unix socket",
        DiskNbdTransport::Tcp => "TCP without TLS",
        DiskNbdTransport::Tls => "TLS",
    }
}

fn by_kind(counters: &DiskCounters) -> [(&'static str, &DiskRequestCounters); 4] {
    [
        ("read", &counters.reads),
        ("write", &counters.writes),
        ("flush", &counters.flushes),
        ("discard", &counters.discards),
    ]
}

fn errors(counters: &DiskCounters) -> u64 {
    by_kind(counters).iter().fold(0, |sum, (_, kind)| sum.saturating_add(kind.errors))
}

fn request_table(counters: &DiskCounters) -> Table {
    let mut table = Table::new(&columns::DISK_REQUESTS);
    for (name, kind) in by_kind(counters) {
        let latency = |ns| if kind.requests == 0 { "–".to_owned() } else { units::latency(ns) };
        table.add_row([
            name.to_owned(),
            units::count(kind.requests),
            units::binary_bytes(kind.bytes),
            units::count(kind.errors),
            latency(kind.latency_ns_p50),
            latency(kind.latency_ns_p99),
            latency(kind.latency_ns_max),
        ]);
    }
    table
}

/// Returns the export's settings, its URIs and the connected clients.
pub fn export_details(disk: &DiskStatus) -> String {
    let mut lines = DetailText::default();
    lines.add("disk", &disk.config.name);
    lines.add("state", storage_state(disk.state, disk.stale, disk.reason.as_ref()));
    if let Some(vhost_user) = &disk.config.vhost_user {
        lines.add_nested_keys(ResourceKind::DiskVhostUser, "vhost_user", vhost_user);
    }
    if let Some(nbd) = &disk.config.nbd {
        lines.add_nested_keys(ResourceKind::DiskNbd, "nbd", nbd);
    }
    for uri in uris(&disk.config) {
        lines.add("NBD URI", uri);
    }
    lines.add("used by", used_by(disk));
    add_clients(&mut lines, disk);
    lines.into_text()
}

/// Returns the URIs for libnbd, QEMU and fio (`doc/uri.md` of the protocol).
fn uris(disk: &DiskConfig) -> Vec<String> {
    let Some(nbd) = &disk.nbd else { return Vec::new() };
    let name = &disk.name;
    let unix = nbd.socket.as_ref();
    let unix = unix.map(|socket| format!("nbd+unix:///{name}?socket={}", socket.display()));
    let scheme = if nbd.has_tls() { "nbds" } else { "nbd" };
    let tcp = nbd.listen.map(|address| format!("{scheme}://{address}/{name}"));
    unix.into_iter().chain(tcp).collect()
}

#[cfg(test)]
#[path = "disk_tables_tests.rs"]
mod tests;
