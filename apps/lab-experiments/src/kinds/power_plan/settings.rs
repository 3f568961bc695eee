//! Settings of plans of kind `power-plan`: power plans and load.

use anyhow::{Result, ensure};
use serde::Deserialize;
use suimon_lab_run::folder::check_id;

use crate::bounds::check_bounds;

/// Plan that the others are compared with.
const REFERENCE: &str = "balanced";

/// Table `[settings]` of plans of kind `power-plan`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Size of the disk in MiB, 16 to 65 536.
    pub(super) disk_mib: u64,
    /// Power plans of `suimon power`; must include `balanced`.
    pub(super) plans: Vec<String>,
    /// Number of TCP connections, 1 to 64, each with one request in flight.
    pub(super) sessions: u64,
    /// Measuring time in ms, 100 to 60 000.
    pub(super) window_ms: u64,
}

impl Settings {
    /// Checks the settings. The daemon checks the names of plans.
    pub(super) fn check(&self) -> Result<()> {
        check_bounds(&[
            ("disk_mib", self.disk_mib, 16, 1 << 16),
            ("plans", self.plans.len() as u64, 2, 4),
            ("sessions", self.sessions, 1, 64),
            ("window_ms", self.window_ms, 100, 60_000),
        ])?;
        self.plans.iter().try_for_each(|plan| check_id("plans", plan))?;
        ensure!(
            self.plans.iter().any(|plan| plan == REFERENCE),
            "plans: `{REFERENCE}`, the reference for others, is missing"
        );
        Ok(())
    }
}
