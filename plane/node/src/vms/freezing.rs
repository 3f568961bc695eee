//! Frozen guest file systems (guest agent), with a thaw that depends neither on the client that
//! requested the freeze nor on this daemon.

mod driving;

use std::time::{Duration, Instant};

/// Freeze of a guest's file systems.
#[derive(Clone, Copy, Debug)]
pub(super) struct GuestFreeze {
    /// Time of the thaw, or of the next attempt.
    pub(super) thaw_at: Instant,
    /// True if an event has reported that the thaw failed.
    is_reported: bool,
}

impl GuestFreeze {
    /// Creates the state of a freeze that is thawed after `time` at the latest.
    pub(super) fn lasting(time: Duration) -> Self {
        Self { thaw_at: Instant::now() + time, is_reported: false }
    }
}
