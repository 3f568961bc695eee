//! The Transmit machine (IEEE 802.1AX-2014, 6.4.16).

use suimon_quantity::Time;

use super::PeriodicState;
use super::rate::Rate;
use super::variables::Variables;

/// The machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Transmit {
    rate: Rate,
}

impl Transmit {
    /// Clears NTT where nothing may be sent: without LACP, and in NO_PERIODIC.
    pub(crate) fn clear(vars: &mut Variables, periodic: PeriodicState) {
        if !vars.lacp_enabled || periodic == PeriodicState::NoPeriodic {
            vars.ntt = false;
        }
    }

    /// Whether a LACPDU has to be sent now. Beyond the limit, NTT waits.
    pub(crate) fn transition(
        &mut self,
        vars: &mut Variables,
        periodic: PeriodicState,
        now: Time,
    ) -> bool {
        Self::clear(vars, periodic);
        if !vars.ntt || !self.rate.take(now) {
            return false;
        }
        vars.ntt = false;
        true
    }

    /// When a LACPDU that is held back may be sent.
    pub(crate) fn deadline(&self, vars: &Variables) -> Option<Time> {
        if vars.ntt { self.rate.next() } else { None }
    }
}

#[cfg(test)]
#[path = "transmit_tests.rs"]
mod tests;
