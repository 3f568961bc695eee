//! Receive steering: assignment of NICs to receive queues of an uplink's device by destination
//! address.
//!
//! A device can steer if each of its receive queues is a queue of the uplink, that is, with AF_XDP.
//! A NIC takes part if VMQ assigns queues to it and its address is configured. Learned addresses
//! are excluded, because guests could then write the device's rule table.

mod rules;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use suimon_quantity::PortId;

/// Receive queue of each NIC on each uplink, by their ports. Only the control thread writes the
/// plan.
#[derive(Default)]
pub(crate) struct SteeringPlan(Mutex<BTreeMap<PortId, BTreeMap<PortId, u16>>>);

impl SteeringPlan {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<PortId, BTreeMap<PortId, u16>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "steering_tests.rs"]
mod tests;
