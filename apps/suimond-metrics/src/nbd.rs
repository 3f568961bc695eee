//! Metrics of NBD clients: connections and buffer memory, with their limits.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;
use suimon_contract::{DiskNbdStatus, NbdStatus};

use crate::family::{Family, Value};
use crate::readings::Readings;

const DISK: &[&str] = &["disk"];

/// Gauge of the host with the function that reads its value.
type HostMetric = (Family, fn(&NbdStatus) -> u64);

const HOST: [HostMetric; 4] = [
    (Family::gauge("suimon_nbd_connections", "", &[], "Connections of NBD clients"), |status| {
        status.connections.into()
    }),
    (
        Family::gauge(
            "suimon_nbd_connections_max",
            "",
            &[],
            "Limit of the connections of NBD clients of all disks (`nbd_connections_max` in `[host]`)",
        ),
        |status| status.connections_max.into(),
    ),
    (
        Family::gauge(
            "suimon_nbd_buffer_bytes",
            "bytes",
            &[],
            "Buffer memory of NBD connections, reserved memory included",
        ),
        |status| status.buffer_bytes,
    ),
    (
        Family::gauge(
            "suimon_nbd_buffer_max_bytes",
            "bytes",
            &[],
            "Limit of the buffer memory of the NBD connections of all disks (`nbd_buffer_max_bytes` in \
             `[host]`)",
        ),
        |status| status.buffer_max_bytes,
    ),
];

const SHORTAGES: Family = Family::counter(
    "suimon_nbd_buffer_shortages",
    "requests",
    &[],
    "Requests of NBD clients that were delayed or processed in parts, because a limit on buffer memory was \
     reached",
);

/// Gauge of a disk with the function that reads its value.
type DiskMetric = (Family, fn(&DiskNbdStatus) -> u64);

const DISKS: [DiskMetric; 4] = [
    (
        Family::gauge(
            "suimon_disk_nbd_connections",
            "",
            DISK,
            "Connections of NBD clients to the disk",
        ),
        |status| status.connections.len() as u64,
    ),
    (
        Family::gauge(
            "suimon_disk_nbd_connections_max",
            "",
            DISK,
            "Limit of the connections of NBD clients to the disk (`connections_max` in `[disk.nbd]`)",
        ),
        |status| status.connections_max.into(),
    ),
    (
        Family::gauge(
            "suimon_disk_nbd_buffer_bytes",
            "bytes",
            DISK,
            "Buffer memory of the disk's NBD connections, reserved memory included",
        ),
        |status| status.buffer_bytes,
    ),
    (
        Family::gauge(
            "suimon_disk_nbd_buffer_max_bytes",
            "bytes",
            DISK,
            "Limit of the buffer memory of the disk's NBD connections (`buffer_max_bytes` in `[disk.nbd]`)",
        ),
        |status| status.buffer_max_bytes,
    ),
];

pub(super) fn families() -> Vec<Family> {
    let host = HOST.map(|(family, _)| family).into_iter();
    host.chain([SHORTAGES]).chain(DISKS.map(|(family, _)| family)).collect()
}

impl Readings {
    pub(super) fn encode_nbd(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let host = &self.host.nbd;
        for (family, value) in HOST {
            family.write(encoder, [([], Value::Integer(value(host)))].into_iter())?;
        }
        SHORTAGES.write(encoder, [([], Value::Integer(host.buffer_shortages))].into_iter())?;
        for (family, value) in DISKS {
            let exported = self.disks.iter().filter_map(|disk| {
                let nbd = disk.nbd.as_ref()?;
                Some(([disk.config.name.to_string()], Value::Integer(value(nbd))))
            });
            family.write_if_any(encoder, exported)?;
        }
        Ok(())
    }
}
