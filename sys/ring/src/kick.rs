//! Eventfd with which a driver kicks a ring.

use std::sync::Arc;

use suimon_eventfd::PeerEventFd;
use suimon_ports::{FaultKind, QueueFault};

use crate::setup::RingSetup;

/// Returns the driver's kick eventfd. If the driver never kicks, returns a new eventfd.
///
/// # Errors
/// No file descriptor is available.
pub(crate) fn kick_eventfd(setup: &RingSetup) -> Result<Arc<PeerEventFd>, QueueFault> {
    if let Some(kick) = &setup.kick {
        return Ok(Arc::clone(kick));
    }
    PeerEventFd::unshared().map(Arc::new).map_err(|error| QueueFault {
        kind: FaultKind::SystemCallFailed,
        detail: format!("cannot create an eventfd: {error}; raise the limit of open files"),
    })
}
