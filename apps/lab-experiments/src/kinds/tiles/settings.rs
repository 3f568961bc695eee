//! Settings of plans of kind `tiles`.

use anyhow::Result;
use serde::Deserialize;

use crate::bounds::check_bounds;

/// Table `[settings]` of plans of kind `tiles`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Numbers of tiles, 1 to 50 each.
    pub(super) tiles: Vec<usize>,
    /// CPUs of each application VM, 1 to 64.
    pub(super) vcpus: usize,
    /// Size of a database's disk in MiB, 256 to 65 536.
    pub(super) disk_mib: u64,
    /// Number of client threads of each database, 1 to 256.
    pub(super) threads: u32,
    /// Number of tables, 1 to 64.
    pub(super) tables: u32,
    /// Rows per table, 100 to 10 million.
    pub(super) rows: u32,
    /// Number of connections to each web VM, 1 to 1000.
    pub(super) connections: u32,
    /// Size of a JVM's heap in MiB, 64 to 65 536.
    pub(super) heap_mib: u32,
    pub(super) warm_up_s: u64,
    pub(super) measure_s: u64,
}

impl Settings {
    /// Checks the settings.
    pub(super) fn check(&self) -> Result<()> {
        check_bounds(&[
            ("tiles", self.tiles.len() as u64, 1, 16),
            ("vcpus", self.vcpus as u64, 1, 64),
            ("disk_mib", self.disk_mib, 256, 65_536),
            ("threads", self.threads.into(), 1, 256),
            ("tables", self.tables.into(), 1, 64),
            ("rows", self.rows.into(), 100, 10_000_000),
            ("connections", self.connections.into(), 1, 1000),
            ("heap_mib", self.heap_mib.into(), 64, 65_536),
            ("warm_up_s", self.warm_up_s, 1, 600),
            ("measure_s", self.measure_s, 2, 3600),
        ])?;
        for tiles in &self.tiles {
            check_bounds(&[("tiles", *tiles as u64, 1, 50)])?;
        }
        Ok(())
    }
}
