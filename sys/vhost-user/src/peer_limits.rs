//! Limits on what the front-ends of a device may cause.

use std::time::{Duration, Instant};

use suimon_socket_runtime::{LogRateLimit, ReconnectPause, RejectionRateLimit};
use tokio::time::sleep;

use crate::pace::RingPace;

/// Limits on the costs and log entries that a device's front-ends and other connections cause.
#[derive(Default)]
pub(crate) struct PeerLimits {
    pub(crate) pause: ReconnectPause,
    /// Delay before further connections are accepted and closed while a front-end is served.
    pub(crate) rejections: RejectionRateLimit,
    pub(crate) rejections_log: LogRateLimit,
    pub(crate) refused_log: LogRateLimit,
    /// Not reset by a new connection.
    pub(crate) rings: Option<(Instant, RingPace)>,
}

impl PeerLimits {
    /// Delays a front-end that stops more rings of a NIC than [`RingPace`] permits.
    pub(crate) async fn limit_ring_rate(&mut self, rings: usize) {
        if rings == 0 {
            return;
        }
        let (started_at, pace) =
            self.rings.get_or_insert_with(|| (Instant::now(), RingPace::new(0)));
        loop {
            let now_ms = u64::try_from(started_at.elapsed().as_millis()).unwrap_or(u64::MAX);
            match pace.take(now_ms, rings) {
                Ok(()) => return,
                Err(ms) => sleep(Duration::from_millis(ms)).await,
            }
        }
    }
}
