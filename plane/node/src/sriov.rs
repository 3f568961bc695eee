//! Adapters with SR-IOV: how many virtual functions they have, and how each is set up.
//!
//! What is desired of an adapter is made so by a change, by the daemon's start, and again
//! whenever it is found otherwise, which the control thread looks for every few seconds: a
//! reset of the adapter, its driver, or somebody's `ip link` may have changed it. It counts
//! as made only when it was read back. What is not written of a virtual function is left
//! alone.
//!
//! Virtual functions are taken away, which a change of their number always does, only while
//! nobody uses one.

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

/// The SR-IOV of the host, and what of it is not as desired.
pub(crate) struct Sriov {
    pub(crate) host: Arc<dyn SriovHost>,
    /// Why the adapters are not as desired that are not.
    failures: Mutex<BTreeMap<Name, String>>,
}

impl Sriov {
    pub(crate) fn new(host: Arc<dyn SriovHost>) -> Self {
        Self { host, failures: Mutex::default() }
    }

    /// Remembers how it went; returns what was remembered before.
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

    /// Forgets the adapters of which nothing is desired any more.
    pub(crate) fn keep_only(&self, config: &HostConfig) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.retain(|name, _| config.pfs.iter().any(|pf| pf.name == *name));
    }
}

/// The adapter that is meant by its network device or its PCI address.
///
/// # Errors
/// There is none.
fn find(adapters: Vec<PfFacts>, pf: &PfConfig) -> Result<PfFacts, DeviceError> {
    let known: Vec<String> = adapters.iter().map(label).collect();
    adapters.into_iter().find(|facts| is_meant(facts, &pf.device)).ok_or_else(|| {
        let there = match known.as_slice() {
            [] => "the host has no SR-IOV adapter".to_owned(),
            _ => format!("the SR-IOV adapters of the host are {}", known.join(", ")),
        };
        DeviceError {
            kind: DeviceErrorKind::Missing,
            field: "device",
            detail: format!("`{}` is not a network adapter with SR-IOV; {there}", pf.device),
        }
    })
}

/// Whether a text is the device or the address of an adapter. A device in another namespace
/// is meant by nobody's name here.
pub(crate) fn is_meant(facts: &PfFacts, device: &str) -> bool {
    facts.address.to_string() == device
        || (facts.netns.is_none() && facts.device.as_deref() == Some(device))
}

/// An adapter in words.
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
