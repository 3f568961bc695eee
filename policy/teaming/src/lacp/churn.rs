//! Actor and Partner Churn Detection machines (IEEE 802.1AX-2014, 6.4.17, Figures 6-23 and 6-24),
//! implemented as one machine that monitors the Synchronization of either end.

use serde::{Deserialize, Serialize};
use suimon_quantity::Time;

use super::constants::CHURN_DETECTION_TIME;

/// State of a churn detection machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChurnState {
    /// ACTOR_CHURN_MONITOR, PARTNER_CHURN_MONITOR: the end has been out of sync for less than 60 s.
    Monitor,
    /// NO_ACTOR_CHURN, NO_PARTNER_CHURN: the end is in sync.
    NoChurn,
    /// ACTOR_CHURN, PARTNER_CHURN: the end has been out of sync for 60 s or longer.
    Churn,
}

/// Churn detection machine of one end of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChurnMachine {
    pub(crate) state: ChurnState,
    /// Expiry of the churn timer (`actor_churn_timer`, `partner_churn_timer`); `None` while it does
    /// not run.
    pub(crate) timer: Option<Time>,
}

impl ChurnMachine {
    /// Creates the machine in its state at BEGIN.
    pub(crate) const fn new() -> Self {
        Self { state: ChurnState::Monitor, timer: None }
    }

    /// Makes one transition if one is due, and returns whether it made one. `in_sync` is the
    /// Synchronization bit of the monitored end.
    pub(crate) fn transition(&mut self, port_enabled: bool, in_sync: bool, now: Time) -> bool {
        use ChurnState::{Churn, Monitor, NoChurn};
        if !port_enabled {
            // The figure enters MONITOR continuously while the port is disabled, so the timer
            // starts when the port is enabled.
            let previous = core::mem::replace(&mut self.state, Monitor);
            self.timer = None;
            return previous != Monitor;
        }
        let is_over = self.timer.is_some_and(|deadline| deadline <= now);
        let next = match self.state {
            Monitor if in_sync => NoChurn,
            Monitor if is_over => Churn,
            Monitor if self.timer.is_none() => Monitor,
            NoChurn if !in_sync => Monitor,
            Churn if in_sync => NoChurn,
            Monitor | NoChurn | Churn => return false,
        };
        self.state = next;
        self.timer = (next == Monitor).then(|| now + CHURN_DETECTION_TIME);
        true
    }
}

#[cfg(test)]
#[path = "churn_tests.rs"]
mod tests;
