//! Supervision of the data plane's workers, the systemd watchdog, and the deadline of the daemon's
//! end.
//!
//! The thread of the watchdog and the thread of the deadline wait for no other thread of the
//! daemon. They therefore work while a worker, the control thread or the API is stalled.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use suimon_switch::{DataPlane, STALLED_AFTER};
use tokio::signal::unix::{SignalKind, signal};

use crate::notify::notify;

/// Interval at which workers are checked.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// Time from SIGTERM or SIGINT to the end of the process. Acknowledged writes do not depend on an
/// orderly end.
const END_MAX: Duration = Duration::from_secs(30);

/// Counter of the API's progress, which a task of its async runtime increases.
#[derive(Clone, Default)]
pub(crate) struct Heartbeat(Arc<AtomicU64>);

impl Heartbeat {
    /// Reports progress once per [`CHECK_EVERY`], for as long as the runtime runs.
    pub(crate) async fn increment_periodically(self) {
        loop {
            self.0.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(CHECK_EVERY).await;
        }
    }
}

/// Starts the watchdog thread and the deadline thread. Returns the counter by which the API reports
/// its progress.
///
/// # Errors
/// The host has no thread or descriptor left.
pub(crate) fn start(plane: DataPlane) -> io::Result<Heartbeat> {
    let heartbeat = Heartbeat::default();
    watch(plane, heartbeat.clone())?;
    end_by_deadline()?;
    Ok(heartbeat)
}

/// Starts the thread that checks the workers. It reports stalled ones and, if systemd requests it
/// (`WatchdogSec=`), reports to systemd for as long as workers and API proceed.
///
/// # Errors
/// The host has no thread left.
fn watch(plane: DataPlane, heartbeat: Heartbeat) -> io::Result<()> {
    let limit = watchdog_limit();
    thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
        let (mut beats, mut heartbeat_at) = (0, Instant::now());
        let mut reported: Option<Instant> = None;
        loop {
            thread::sleep(CHECK_EVERY);
            let (round, device) = plane.check_workers();
            if round >= STALLED_AFTER && round < STALLED_AFTER + 2 * CHECK_EVERY {
                tracing::error!(?device, ?round, "a worker is stalled");
            }
            let now = heartbeat.0.load(Ordering::Relaxed);
            if now != beats {
                (beats, heartbeat_at) = (now, Instant::now());
            }
            let Some(limit) = limit else { continue };
            let proceeds = round < limit / 2 && heartbeat_at.elapsed() < limit / 2;
            if proceeds && reported.is_none_or(|reported_at| reported_at.elapsed() >= limit / 4) {
                notify("WATCHDOG=1");
                reported = Some(Instant::now());
            }
        }
    })?;
    Ok(())
}

/// Returns the interval in which systemd expects a report; `None` if it expects none of this
/// process (sd_watchdog_enabled(3)).
fn watchdog_limit() -> Option<Duration> {
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    let is_own = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
    number("WATCHDOG_USEC").filter(|usec| is_own && *usec > 0).map(Duration::from_micros)
}

/// Starts the thread that ends the process [`END_MAX`] after SIGTERM or SIGINT, if it has not ended
/// in order by then.
///
/// # Errors
/// The host has no thread or descriptor left.
fn end_by_deadline() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    thread::Builder::new().name("deadline".to_owned()).spawn(move || {
        let requested = runtime.block_on(async {
            let mut terminate = signal(SignalKind::terminate())?;
            let mut interrupt = signal(SignalKind::interrupt())?;
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            Ok::<_, io::Error>(())
        });
        if let Err(error) = requested {
            tracing::error!(%error, "the daemon's exit has no deadline");
            return;
        }
        thread::sleep(END_MAX);
        tracing::error!("the daemon did not end within {} s of the signal", END_MAX.as_secs());
        std::process::exit(1);
    })?;
    Ok(())
}
