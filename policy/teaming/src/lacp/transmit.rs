//! Transmit machine (IEEE 802.1AX-2014, 6.4.16).

use suimon_quantity::Time;

use super::PeriodicState;
use super::rate_limiter::RateLimiter;
use super::variables::Variables;

/// Transmit machine of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TransmitMachine {
    rate: RateLimiter,
}

impl TransmitMachine {
    /// Clears NTT (need to transmit) if the port must not transmit: LACP is disabled, or the
    /// periodic machine is in NO_PERIODIC.
    pub(crate) fn clear_ntt_if_disabled(vars: &mut Variables, periodic: PeriodicState) {
        if !vars.lacp_enabled || periodic == PeriodicState::NoPeriodic {
            vars.ntt = false;
        }
    }

    /// Returns true if a LACPDU must be sent at `now`, and clears NTT. NTT stays set while the rate
    /// limit is exceeded.
    pub(crate) fn transition(
        &mut self,
        vars: &mut Variables,
        periodic: PeriodicState,
        now: Time,
    ) -> bool {
        Self::clear_ntt_if_disabled(vars, periodic);
        if !vars.ntt || !self.rate.take(now) {
            return false;
        }
        vars.ntt = false;
        true
    }

    /// Returns the time at which a LACPDU delayed by the rate limit may be sent; `None` if none is
    /// pending.
    pub(crate) fn deadline(&self, vars: &Variables) -> Option<Time> {
        if vars.ntt { self.rate.next_send_time() } else { None }
    }
}

#[cfg(test)]
#[path = "transmit_tests.rs"]
mod tests;
