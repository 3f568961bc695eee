//! Eventfd by which a driver kicks a ring.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};
use suimon_ports::{FaultKind, PortFault};

use crate::setup::RingSetup;

/// Returns the driver's kick eventfd. If the driver never kicks, returns a new eventfd that is
/// never signalled by the driver.
///
/// # Errors
/// No file descriptor is available.
pub(crate) fn kick_of(setup: &RingSetup) -> Result<Arc<OwnedFd>, PortFault> {
    if let Some(kick) = &setup.kick {
        return Ok(Arc::clone(kick));
    }
    let own = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
    own.map(Arc::new).map_err(|errno| PortFault {
        kind: FaultKind::Host,
        detail: format!("cannot make an eventfd: {errno}; raise the limit of open files"),
    })
}
