//! Check that received descriptors are eventfds.

use std::os::fd::OwnedFd;

use suimon_eventfd::{EventFdError, PeerEventFd};

use crate::fault::DeviceFault;
use crate::message::VringFd;
use crate::request::Request;

/// Converts the descriptor of `vring_fd` to an eventfd with `accept`, which depends on its use.
/// Returns `None` if there is no descriptor.
///
/// # Errors
/// The descriptor is not an eventfd, or not one for this use.
pub(super) fn check_eventfd(
    request: Request,
    vring_fd: VringFd,
    accept: fn(OwnedFd) -> Result<PeerEventFd, EventFdError>,
) -> Result<Option<PeerEventFd>, DeviceFault> {
    let VringFd { index, fd } = vring_fd;
    let accepted = fd.map(accept).transpose();
    accepted.map_err(|source| DeviceFault::EventFd { request, index, source })
}

/// Converts the descriptor of `vring_fd` to an eventfd that the device signals. Returns `None` if
/// there is no descriptor.
///
/// # Errors
/// As [`check_eventfd`].
pub(super) fn check_signal_eventfd(
    request: Request,
    vring_fd: VringFd,
) -> Result<Option<PeerEventFd>, DeviceFault> {
    check_eventfd(request, vring_fd, PeerEventFd::for_signalling)
}
