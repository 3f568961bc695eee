//! What a plan of kind `sriov-host-cpu` says.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::bounds::{check_bounds, check_name};

/// A plan.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plan {
    pub(crate) name: String,
    /// What is carried each time, in MiB.
    pub(crate) mib: u64,
    /// How often each way is measured; the first to be measured takes turns.
    pub(crate) rounds: u64,
}

impl Plan {
    /// Checks what types do not.
    pub(crate) fn check(&self) -> Result<()> {
        check_name(&self.name)?;
        check_bounds(&[("mib", self.mib, 1, 1 << 10), ("rounds", self.rounds, 1, 100)])
    }
}
