//! Settings of virtual functions.

use suimon_ports::{VfSettings, VfSettingsChange};

use super::VfAddress;
use crate::shared::Shared;

impl Shared {
    /// Changes the settings of a VF. `change` computes the change from the current settings.
    ///
    /// # Errors
    /// The adapter, the VF or one of the settings is not available; the text states the cause.
    pub(crate) fn set_vf(
        &self,
        vf: &VfAddress,
        change: impl FnOnce(&VfSettings) -> VfSettingsChange,
    ) -> Result<(), String> {
        let host = &self.sriov.host;
        let adapters = host.adapters().map_err(|error| error.detail)?;
        let pf = adapters.into_iter().find(|pf| pf.address == vf.adapter);
        let found_vf =
            pf.and_then(|pf| pf.vfs.into_iter().find(|properties| properties.index == vf.index));
        let settings = found_vf.ok_or_else(|| format!("{vf} does not exist any more"))?.settings;
        let Some(current) = settings else {
            return Err(format!("the adapter's driver does not report the settings of {vf}"));
        };
        let change = change(&current);
        if change.is_empty() {
            return Ok(());
        }
        host.change_vf(vf.adapter, vf.index, &change).map_err(|error| error.detail)
    }
}
