//! Rate limits on what the front-ends of a device can cause.

use std::time::{Duration, Instant};

use suimon_socket_runtime::{LogRateLimit, ReconnectPause, RejectionRateLimit};
use tokio::time::sleep;

use crate::rate_limits::RingRateLimit;

/// Rate limits on the work and the log entries that a device's front-ends and other connections
/// cause.
#[derive(Default)]
pub(crate) struct PeerLimits {
    pub(crate) pause: ReconnectPause,
    /// Limit on connections that are accepted and closed while a front-end is served.
    pub(crate) rejections: RejectionRateLimit,
    pub(crate) rejected_connections_log: LogRateLimit,
    pub(crate) warnings_log: LogRateLimit,
    /// Limit on stopped rings, with the start of its clock; `None` before the first one. A new
    /// connection does not reset it.
    pub(crate) ring_rate: Option<(Instant, RingRateLimit)>,
}

impl PeerLimits {
    /// Waits until [`RingRateLimit`] permits a front-end to stop `rings` rings of a NIC.
    pub(crate) async fn limit_ring_rate(&mut self, rings: usize) {
        if rings == 0 {
            return;
        }
        let (started_at, pace) =
            self.ring_rate.get_or_insert_with(|| (Instant::now(), RingRateLimit::new(0)));
        loop {
            let now_ms = u64::try_from(started_at.elapsed().as_millis()).unwrap_or(u64::MAX);
            match pace.take(now_ms, rings) {
                Ok(()) => return,
                Err(ms) => sleep(Duration::from_millis(ms)).await,
            }
        }
    }
}
