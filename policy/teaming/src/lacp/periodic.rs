//! Periodic Transmission machine (IEEE 802.1AX-2014, 6.4.13, Figure 6-19).

use serde::{Deserialize, Serialize};
use suimon_quantity::Time;

use super::PortState;
use super::constants::{FAST_PERIODIC_TIME, SLOW_PERIODIC_TIME};
use super::variables::Variables;

/// State of the Periodic Transmission machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PeriodicState {
    /// NO_PERIODIC: no periodic transmission, because the link is down or half duplex, or both ends
    /// are passive.
    NoPeriodic,
    /// FAST_PERIODIC: transmission every second.
    FastPeriodic,
    /// SLOW_PERIODIC: transmission every 30 s.
    SlowPeriodic,
    /// PERIODIC_TX: a transmission is due. The machine leaves this state immediately.
    PeriodicTx,
}

/// Periodic Transmission machine of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeriodicMachine {
    pub(crate) state: PeriodicState,
    /// Expiry of `periodic_timer`; `None` while it does not run.
    pub(crate) timer: Option<Time>,
}

impl PeriodicMachine {
    /// Creates the machine in its state at BEGIN.
    pub(crate) const fn new() -> Self {
        Self { state: PeriodicState::NoPeriodic, timer: None }
    }

    /// Makes one transition if one is due, and returns whether it made one.
    pub(crate) fn transition(&mut self, vars: &mut Variables, now: Time) -> bool {
        use PeriodicState::{FastPeriodic, NoPeriodic, PeriodicTx, SlowPeriodic};
        let is_silent = !vars.port_enabled
            || !vars.lacp_enabled
            || !(vars.actor_has(PortState::ACTIVITY) || vars.partner_has(PortState::ACTIVITY));
        let is_over = self.timer.is_some_and(|deadline| deadline <= now);
        let is_fast = vars.partner_has(PortState::TIMEOUT);
        let next = match self.state {
            NoPeriodic if is_silent => return false,
            _ if is_silent => NoPeriodic,
            NoPeriodic => FastPeriodic,
            FastPeriodic if is_over => PeriodicTx,
            FastPeriodic if !is_fast => SlowPeriodic,
            SlowPeriodic if is_over || is_fast => PeriodicTx,
            FastPeriodic | SlowPeriodic => return false,
            PeriodicTx if is_fast => FastPeriodic,
            PeriodicTx => SlowPeriodic,
        };
        self.state = next;
        match next {
            NoPeriodic => self.timer = None,
            FastPeriodic => self.timer = Some(now + FAST_PERIODIC_TIME),
            SlowPeriodic => self.timer = Some(now + SLOW_PERIODIC_TIME),
            PeriodicTx => vars.ntt = true,
        }
        true
    }
}

#[cfg(test)]
#[path = "periodic_tests.rs"]
mod tests;
