//! TCP connections whose other side has vanished: its host lost power, or its network is gone.
//!
//! Such a client sends nothing, not even the end of its connection. The kernel finds out and ends the
//! connection, so that its place and memory are free again.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::net::sockopt::{
    set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl,
    set_tcp_user_timeout,
};

/// Time without a packet from the client after which the kernel asks whether it is there.
pub(crate) const IDLE: Duration = Duration::from_secs(60);
/// Time between two such questions, and how many remain without an answer before the connection ends.
pub(crate) const INTERVAL: Duration = Duration::from_secs(15);
pub(crate) const PROBES: u32 = 4;
/// Longest time for which sent bytes may remain without an acknowledgement. As long as the above
/// together.
pub(crate) const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(120);

/// Has the kernel end a connection whose client has vanished, after 120 s (tcp(7), `SO_KEEPALIVE`,
/// `TCP_USER_TIMEOUT`).
///
/// # Errors
/// The error of setsockopt(2).
pub(crate) fn watch(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_socket_keepalive(socket, true)?;
    set_tcp_keepidle(socket, IDLE)?;
    set_tcp_keepintvl(socket, INTERVAL)?;
    set_tcp_keepcnt(socket, PROBES)?;
    let unacknowledged_ms = u32::try_from(UNACKNOWLEDGED_MAX.as_millis()).unwrap_or(u32::MAX);
    set_tcp_user_timeout(socket, unacknowledged_ms)?;
    Ok(())
}
