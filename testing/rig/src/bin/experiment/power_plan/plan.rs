//! Plans of kind `power-plan`.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use crate::bounds::{check_bounds, check_folder, check_name};

/// With what others are compared.
pub(crate) const REFERENCE: &str = "balanced";

/// A plan, as its file has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plan {
    /// What it is called; the record's file too.
    pub(crate) name: String,
    /// The folder in which the disk's file is made, and removed.
    pub(crate) folder: String,
    /// Size of the disk in MiB, 16 to 65 536.
    pub(crate) disk_mib: u64,
    /// Plans of `suimon power`, `balanced` among them.
    pub(crate) plans: Vec<String>,
    /// TCP connections, 1 to 64, each with one request under way.
    pub(crate) sessions: u64,
    /// What each measurement takes, 100 to 600 000 ms.
    pub(crate) window_ms: u64,
    /// How often all are repeated, 1 to 100.
    pub(crate) rounds: usize,
}

impl Plan {
    /// Whether it is possible. Which plans there are is the daemon's to say.
    pub(crate) fn check(&self) -> Result<()> {
        check_name(&self.name)?;
        check_folder(&self.folder)?;
        check_bounds(&[
            ("disk_mib", self.disk_mib, 16, 1 << 16),
            ("plans", self.plans.len() as u64, 2, 4),
            ("sessions", self.sessions, 1, 64),
            ("window_ms", self.window_ms, 100, 600_000),
            ("rounds", self.rounds as u64, 1, 100),
        ])?;
        ensure!(
            self.plans.iter().any(|plan| plan == REFERENCE),
            "plans: `{REFERENCE}` is missing, with which others are compared"
        );
        Ok(())
    }
}
