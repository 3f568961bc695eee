//! Marker Responder (IEEE 802.1AX-2014, 6.5.4.2, Figure 6-30).

use suimon_frame::MacAddr;
use suimon_quantity::Time;

use super::constants::LACPDUS_SENT_MAX;
use super::rate_limiter::RateLimiter;
use super::{Marker, SlowFrame};

/// Marker Responder of a member, with the responses to send at the next poll. It answers at most
/// three Markers in any second and drops the others, so that a flood of Markers is not reflected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Responder {
    rate: RateLimiter,
    responses: [Option<SlowFrame>; LACPDUS_SENT_MAX],
}

impl Responder {
    /// Queues a response to the Marker PDU in `frame` with the source address `source`. Returns
    /// false, without a response, if the rate limit is exceeded.
    pub(crate) fn handle_marker(&mut self, frame: &[u8], source: MacAddr, now: Time) -> bool {
        let Some(free) = self.responses.iter_mut().find(|response| response.is_none()) else {
            return false;
        };
        if !self.rate.take(now) {
            return false;
        }
        *free = Some(Marker::response(frame, source));
        true
    }

    /// Removes and returns the next response to send; `None` if there is none.
    pub(crate) fn poll(&mut self) -> Option<SlowFrame> {
        self.responses.iter_mut().find_map(Option::take)
    }

    /// Discards responses that were not sent yet.
    pub(crate) fn clear(&mut self) {
        self.responses = Default::default();
    }
}
