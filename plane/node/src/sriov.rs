//! SR-IOV adapters: number and settings of their virtual functions (VFs).
//!
//! The configuration of an adapter is applied by a change and at the daemon's start. The control
//! thread checks adapters every few seconds and applies it again after a reset of the adapter, a
//! reload of its driver or an external change such as by `ip link`. A setting counts as applied
//! only after it was read back. Settings of VFs that are not configured are left unchanged.
//!
//! A change of the number of VFs always removes all of them, and is therefore made only while none
//! is in use.

mod checks;
mod setting;
mod status;
mod steps;
mod texts;
mod users;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use suimon_contract::{HostConfig, Name, PfConfig};
use suimon_ports::{DeviceError, DeviceErrorKind, PfFacts, SriovHost};

pub(crate) use self::steps::{PfStep, PfUndo, pf_steps};
pub(crate) use self::users::user_of;

/// SR-IOV of the host, and the adapters that differ from their configuration.
pub(crate) struct Sriov {
    pub(crate) host: Arc<dyn SriovHost>,
    /// Reasons why adapters differ from their configuration, by `[[pf]]` name.
    failures: Mutex<BTreeMap<Name, String>>,
}

impl Sriov {
    pub(crate) fn new(host: Arc<dyn SriovHost>) -> Self {
        Self { host, failures: Mutex::default() }
    }

    /// Records the result for an adapter; `None` for success. Returns the previous failure.
    fn note(&self, pf: &Name, failure: Option<String>) -> Option<String> {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        match failure {
            Some(reason) => failures.insert(pf.clone(), reason),
            None => failures.remove(pf),
        }
    }

    fn failure(&self, pf: &Name) -> Option<String> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).get(pf).cloned()
    }

    /// Deletes the results of adapters that are no longer configured.
    pub(crate) fn keep_only(&self, config: &HostConfig) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.retain(|name, _| config.pfs.iter().any(|pf| pf.name == *name));
    }
}

/// Returns the adapter that a `[[pf]]` refers to by network device or PCI address.
///
/// # Errors
/// [`DeviceErrorKind::Missing`], with the list of existing adapters.
fn find(adapters: Vec<PfFacts>, pf: &PfConfig) -> Result<PfFacts, DeviceError> {
    let known: Vec<String> = adapters.iter().map(label).collect();
    adapters.into_iter().find(|facts| is_meant(facts, &pf.device)).ok_or_else(|| {
        let there = match known.as_slice() {
            [] => "this host has none".to_owned(),
            _ => format!("there are: {}", known.join(", ")),
        };
        DeviceError {
            kind: DeviceErrorKind::Missing,
            field: "device",
            detail: format!("`{}` is no network adapter with SR-IOV; {there}", pf.device),
        }
    })
}

/// Returns true if `device` is the network device or the PCI address of the adapter. Network
/// devices in other namespaces do not match by name.
pub(crate) fn is_meant(facts: &PfFacts, device: &str) -> bool {
    facts.address.to_string() == device
        || (facts.netns.is_none() && facts.device.as_deref() == Some(device))
}

/// Returns a description of an adapter: network device, namespace and PCI address.
fn label(facts: &PfFacts) -> String {
    match (&facts.device, &facts.netns) {
        (Some(device), None) => format!("{device} ({})", facts.address),
        (Some(device), Some(netns)) => {
            format!("{} ({device} in namespace {netns})", facts.address)
        }
        (None, _) => facts.address.to_string(),
    }
}

#[cfg(test)]
mod tests;
