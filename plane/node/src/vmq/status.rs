//! How VMQ stands.

use suimon_contract::{ApiError, VmqStatus};

use crate::edit::not_found;
use crate::shared::Shared;

impl Shared {
    /// VMQ of every team and uplink that a switch uses, in the order of switches.
    pub(crate) fn vmqs(&self) -> Vec<VmqStatus> {
        Vec::new()
    }

    /// VMQ of one team or uplink.
    pub(crate) fn vmq(&self, uplink: &str) -> Result<VmqStatus, ApiError> {
        let mut all = self.vmqs().into_iter();
        all.find(|vmq| vmq.uplink.as_str() == uplink).ok_or_else(|| not_found("vmq", uplink))
    }
}
