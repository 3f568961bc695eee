//! Adapters with SR-IOV: number of virtual functions (VFs) and settings of each.
//!
//! Desired settings of an adapter are applied by a change, at the start of the daemon, and whenever
//! the control thread finds a deviation. It checks every few seconds, because a reset of the
//! adapter, its driver or an operator's `ip link` may change settings. A setting counts as applied
//! after it was read back. Settings of a VF that the configuration does not contain are left
//! unchanged.
//!
//! A change of the number of VFs removes all existing ones first. VFs are removed only while none
//! of them is in use.

mod checks;
mod setting;
mod status;
mod steps;
mod texts;
mod users;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use suimon_contract::{HostConfig, Name, PfConfig};
use suimon_ports::{DeviceError, DeviceErrorKind, PfProperties, SriovHost};

pub(crate) use self::steps::{PfStep, PfUndo, pf_steps};
pub(crate) use self::users::find_vf_user;

/// Access to the adapters, and failures to apply their desired settings.
pub(crate) struct Sriov {
    pub(crate) host: Arc<dyn SriovHost>,
    /// Reason why each adapter differs from its desired settings, by the name of its `[[pf]]`
    /// section. Adapters without a failure are absent.
    failures: Mutex<BTreeMap<Name, String>>,
}

impl Sriov {
    pub(crate) fn new(host: Arc<dyn SriovHost>) -> Self {
        Self { host, failures: Mutex::default() }
    }

    /// Records the outcome of applying an adapter's settings, `None` for success. Returns the
    /// previous failure.
    fn record_result(&self, pf: &Name, failure: Option<String>) -> Option<String> {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        match failure {
            Some(reason) => failures.insert(pf.clone(), reason),
            None => failures.remove(pf),
        }
    }

    fn failure(&self, pf: &Name) -> Option<String> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).get(pf).cloned()
    }

    /// Removes the failures of adapters that are not configured.
    pub(crate) fn retain_configured(&self, config: &HostConfig) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.retain(|name, _| config.pfs.iter().any(|pf| pf.name == *name));
    }
}

/// Returns the adapter with the configured network device or PCI address.
///
/// # Errors
/// No adapter matches.
fn find(adapters: Vec<PfProperties>, pf: &PfConfig) -> Result<PfProperties, DeviceError> {
    let labels: Vec<String> = adapters.iter().map(label).collect();
    adapters.into_iter().find(|properties| refers_to(properties, &pf.device)).ok_or_else(|| {
        let available = match labels.as_slice() {
            [] => "the host has no SR-IOV adapter".to_owned(),
            _ => format!("the SR-IOV adapters of the host are {}", labels.join(", ")),
        };
        DeviceError {
            kind: DeviceErrorKind::Missing,
            field: "device",
            detail: format!("`{}` is not a network adapter with SR-IOV; {available}", pf.device),
        }
    })
}

/// Returns true if `device` is the adapter's PCI address or network device. Devices in other
/// network namespaces match by address only.
pub(crate) fn refers_to(properties: &PfProperties, device: &str) -> bool {
    properties.address.to_string() == device
        || (properties.netns.is_none() && properties.device.as_deref() == Some(device))
}

/// Returns how messages name an adapter: its network device and PCI address, or the address alone
/// if it has no network device.
fn label(properties: &PfProperties) -> String {
    match (&properties.device, &properties.netns) {
        (Some(device), None) => format!("{device} ({})", properties.address),
        (Some(device), Some(netns)) => {
            format!("{} ({device} in namespace {netns})", properties.address)
        }
        (None, _) => properties.address.to_string(),
    }
}

#[cfg(test)]
mod tests;
