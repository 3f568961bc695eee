//! Waiting for conditions, never for a fixed time.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Shortest pause between two checks of a condition.
const PAUSE_MIN: Duration = Duration::from_millis(20);
/// Longest pause between two checks.
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// Pause between two checks, as a multiple of the duration of a check. A check often starts a
/// program, and tests run concurrently: most of the CPU time should be available to the programs
/// under test.
const PAUSE_PER_LOOK: u32 = 4;

/// Waits until `query` returns a value.
///
/// An error of `query` does not end the wait, except [`ProcessEnded`].
///
/// # Errors
/// `limit` was exceeded, with `description` and the last error of `query`; or a process has ended.
pub fn wait_for_value<T>(
    description: &str,
    limit: Duration,
    mut query: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let deadline = Instant::now() + limit;
    loop {
        let started = Instant::now();
        let last = match query() {
            Ok(Some(value)) => return Ok(value),
            Ok(None) => None,
            Err(error) if error.is::<ProcessEnded>() => {
                return Err(error.context(format!("no {description}")));
            }
            Err(error) => Some(error),
        };
        if Instant::now() >= deadline {
            match last {
                Some(error) => bail!("no {description} within {limit:?}: {error:#}"),
                None => bail!("no {description} within {limit:?}"),
            }
        }
        thread::sleep((started.elapsed() * PAUSE_PER_LOOK).clamp(PAUSE_MIN, PAUSE_MAX));
    }
}

/// Waits until `query` returns true.
///
/// # Errors
/// `limit` was exceeded, with `description`.
pub fn wait_until(
    description: &str,
    limit: Duration,
    mut query: impl FnMut() -> Result<bool>,
) -> Result<()> {
    wait_for_value(description, limit, || Ok(query()?.then_some(())))
}

/// Error of a process that has ended unexpectedly. It ends a wait ([`wait_until`]).
#[derive(Debug)]
pub(crate) struct ProcessEnded(pub(crate) String);

impl fmt::Display for ProcessEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ProcessEnded {}

/// Returns true if a process of this network namespace listens on a Unix socket. Its file exists
/// earlier, from `bind` on, and does not accept connections until then.
#[must_use]
pub fn is_listening(socket: &str) -> bool {
    // Columns: number, references, protocol, flags, type, state, inode, path (unix(7)).
    const ACCEPTS_CONNECTIONS: &str = "00010000";
    let sockets = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    sockets.lines().any(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        columns.get(3) == Some(&ACCEPTS_CONNECTIONS) && columns.get(7) == Some(&socket)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Process;
    use crate::rig::Rig;

    #[test]
    fn the_end_of_a_process_ends_the_wait() {
        let rig = Rig::new().unwrap();
        let arguments = ["sh", "-c", "echo no luck today; exit 3"];
        let mut process = Process::start(&rig, "tool", &arguments).unwrap();
        let limit = Duration::from_secs(600);
        let error = wait_until("answer", limit, || process.check_running().map(|()| false));
        let text = format!("{:#}", error.unwrap_err());
        assert!(text.contains("no answer") && text.contains("no luck today"), "{text}");
        assert!(!text.contains("within"), "it has waited: {text}");
    }

    #[test]
    fn a_socket_that_is_only_bound_does_not_listen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let name = path.to_str().unwrap();
        let family = rustix::net::AddressFamily::UNIX;
        let socket = rustix::net::socket(family, rustix::net::SocketType::STREAM, None).unwrap();
        let address = rustix::net::SocketAddrUnix::new(&path).unwrap();
        rustix::net::bind(&socket, &address).unwrap();
        assert!(path.exists() && !is_listening(name));
        rustix::net::listen(&socket, 1).unwrap();
        assert!(is_listening(name));
    }
}
