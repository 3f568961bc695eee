//! Settings: how much is carried.

use anyhow::Result;
use serde::Deserialize;

use crate::kinds::bounds::check_bounds;

/// `[settings]` of plans of kind `sriov-host-cpu`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// What is carried each time, 1 to 20 480 MiB.
    pub(super) mib: u64,
}

impl Settings {
    /// Whether it is possible.
    pub(super) fn check(&self) -> Result<()> {
        check_bounds(&[("mib", self.mib, 1, 20 << 10)])
    }
}
