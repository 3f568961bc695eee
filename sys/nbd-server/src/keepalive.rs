//! Detection of TCP clients that vanished, after a power loss or network failure.
//!
//! Such a client sends nothing, not even the end of its connection. The kernel detects it by probes
//! and ends the connection, so that it does not count towards the limits any more.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::net::sockopt::{
    set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl,
    set_tcp_user_timeout,
};

/// Time without a packet from the client after which the kernel sends a probe.
pub(crate) const IDLE: Duration = Duration::from_secs(60);
/// Interval of probes.
pub(crate) const INTERVAL: Duration = Duration::from_secs(15);
/// Number of consecutive unanswered probes after which the connection ends.
pub(crate) const PROBES: u32 = 4;
/// Maximum time for which sent bytes may remain unacknowledged: `IDLE` plus the time of all probes.
pub(crate) const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(120);

/// Configures the kernel to end the connection of a vanished client after 120 s (tcp(7),
/// `SO_KEEPALIVE`, `TCP_USER_TIMEOUT`).
///
/// # Errors
/// The error of setsockopt(2).
pub(crate) fn enable_keepalive(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_socket_keepalive(socket, true)?;
    set_tcp_keepidle(socket, IDLE)?;
    set_tcp_keepintvl(socket, INTERVAL)?;
    set_tcp_keepcnt(socket, PROBES)?;
    let unacknowledged_ms = u32::try_from(UNACKNOWLEDGED_MAX.as_millis()).unwrap_or(u32::MAX);
    set_tcp_user_timeout(socket, unacknowledged_ms)?;
    Ok(())
}
