//! Notifications to systemd (sd_notify(3)).

use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Extends systemd's time limit for the start to 60 s from now, unless it ends later.
const EXTEND: &str = "EXTEND_TIMEOUT_USEC=60000000";

/// Minimum interval between extensions of the time limit.
const EXTEND_INTERVAL: Duration = Duration::from_secs(1);

/// Progress of the daemon's start, by which systemd's time limit for the start is extended
/// (`TimeoutStartSec=`). A start that makes no progress is ended by systemd.
#[derive(Clone, Default)]
pub(crate) struct StartProgress(Arc<Mutex<Extensions>>);

#[derive(Default)]
struct Extensions {
    last: Option<Instant>,
    is_ended: bool,
}

impl StartProgress {
    /// Returns a function that reports progress. It extends the time limit at most once per
    /// [`EXTEND_INTERVAL`].
    pub(crate) fn reporter(&self) -> Arc<dyn Fn() + Send + Sync> {
        let progress = self.clone();
        Arc::new(move || {
            if progress.is_due(Instant::now()) {
                notify(EXTEND);
            }
        })
    }

    /// Ignores later reports: openings that are repeated later are no progress of the start.
    pub(crate) fn end(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_ended = true;
    }

    fn is_due(&self, now: Instant) -> bool {
        let mut extensions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_early = extensions.last.is_some_and(|last| now < last + EXTEND_INTERVAL);
        if extensions.is_ended || is_early {
            return false;
        }
        extensions.last = Some(now);
        true
    }
}

/// Sends a state such as `READY=1` to `NOTIFY_SOCKET`, if systemd set it.
pub(crate) fn notify(state: &str) {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let path = path.as_encoded_bytes();
    let address = match path.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(path)),
    };
    let result = address
        .and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
    if let Err(error) = result {
        tracing::warn!(%error, state, "cannot notify systemd");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_extends_the_start_once_per_second_until_the_start_ends() {
        let progress = StartProgress::default();
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let due = [0, 10, 999, 1000, 1500, 2000].map(|ms| progress.is_due(at(ms)));
        assert_eq!(due, [true, false, false, true, false, true]);
        progress.end();
        assert!(!progress.is_due(at(60_000)));
    }
}
