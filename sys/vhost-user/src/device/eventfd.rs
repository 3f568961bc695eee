//! Check of received eventfds.

use std::os::fd::OwnedFd;

use suimon_eventfd::{EventFdError, PeerEventFd};

use crate::fault::DeviceFault;
use crate::message::VringFd;
use crate::request::Request;

/// Converts a received descriptor to an eventfd with `accept`, which determines its use. Descriptors
/// of other kinds are rejected.
pub(super) fn checked(
    request: Request,
    vring_fd: VringFd,
    accept: fn(OwnedFd) -> Result<PeerEventFd, EventFdError>,
) -> Result<Option<PeerEventFd>, DeviceFault> {
    let VringFd { index, fd } = vring_fd;
    let accepted = fd.map(accept).transpose();
    accepted.map_err(|source| DeviceFault::EventFd { request, index, source })
}
