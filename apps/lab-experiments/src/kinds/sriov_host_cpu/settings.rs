//! Settings of plans of kind `sriov-host-cpu`.

use anyhow::Result;
use serde::Deserialize;

use crate::bounds::check_bounds;

/// Table `[settings]` of plans of kind `sriov-host-cpu`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Amount transferred by each stream in MiB, 1 to 20 480.
    #[serde(rename = "mib")]
    pub(super) transfer_mib: u64,
}

impl Settings {
    /// Checks the settings.
    pub(super) fn check(&self) -> Result<()> {
        check_bounds(&[("mib", self.transfer_mib, 1, 20 << 10)])
    }
}
