//! Receive machine (IEEE 802.1AX-2014, 6.4.12, Figure 6-18).

use serde::{Deserialize, Serialize};
use suimon_quantity::Time;

use super::constants::SHORT_TIMEOUT_TIME;
use super::variables::Variables;
use super::{Lacpdu, PortState, Selected};

/// State of the Receive machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiveState {
    /// INITIALIZE: the recorded Partner is cleared. The machine leaves this state immediately.
    Initialize,
    /// PORT_DISABLED: the link is down; the recorded Partner is kept.
    PortDisabled,
    /// EXPIRED: no LACPDU was received within the timeout; the Partner is requested to send every
    /// second, for 3 s.
    Expired,
    /// LACP_DISABLED: the link cannot aggregate, because it is half duplex.
    LacpDisabled,
    /// DEFAULTED: no Partner is known; the configured default applies.
    Defaulted,
    /// CURRENT: a Partner is recorded and its information is valid.
    Current,
}

/// Receive machine of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReceiveMachine {
    pub(crate) state: ReceiveState,
    /// Expiry of `current_while_timer`; `None` while it does not run.
    pub(crate) current_while: Option<Time>,
}

impl ReceiveMachine {
    /// Creates the machine in its state at BEGIN.
    pub(crate) fn new(vars: &mut Variables) -> Self {
        let mut machine = Self { state: ReceiveState::Initialize, current_while: None };
        machine.enter(ReceiveState::Initialize, vars, Time::ZERO);
        machine
    }

    /// Makes one transition if one is due, and returns whether it made one.
    pub(crate) fn transition(&mut self, vars: &mut Variables, now: Time) -> bool {
        use ReceiveState::{Current, Defaulted, Expired, Initialize, LacpDisabled, PortDisabled};
        let is_over = self.current_while.is_some_and(|deadline| deadline <= now);
        let next = match self.state {
            Initialize => PortDisabled,
            PortDisabled if vars.port_moved => Initialize,
            PortDisabled if vars.port_enabled && vars.lacp_enabled => Expired,
            PortDisabled if vars.port_enabled => LacpDisabled,
            PortDisabled => return false,
            _ if !vars.port_enabled && !vars.port_moved => PortDisabled,
            Expired if is_over => Defaulted,
            Current if is_over => Expired,
            Expired | LacpDisabled | Defaulted | Current => return false,
        };
        self.enter(next, vars, now);
        true
    }

    /// Processes a received LACPDU and returns true if it was accepted, which is the case in
    /// EXPIRED, DEFAULTED and CURRENT.
    pub(crate) fn handle_pdu(&mut self, vars: &mut Variables, pdu: &Lacpdu, now: Time) -> bool {
        use ReceiveState::{Current, Defaulted, Expired};
        if !vars.port_enabled || !matches!(self.state, Expired | Defaulted | Current) {
            return false;
        }
        self.state = Current;
        vars.update_selected(pdu);
        vars.update_ntt(pdu);
        vars.record_pdu(pdu);
        self.current_while = Some(now + vars.current_while());
        vars.actor.state.set(PortState::EXPIRED, false);
        true
    }

    fn enter(&mut self, state: ReceiveState, vars: &mut Variables, now: Time) {
        self.state = state;
        // The timer runs in EXPIRED and CURRENT only.
        self.current_while = None;
        match state {
            ReceiveState::Initialize => {
                vars.selected = Selected::Unselected;
                vars.record_default();
                vars.actor.state.set(PortState::EXPIRED, false);
                vars.port_moved = false;
            }
            ReceiveState::PortDisabled => {
                vars.partner.state.set(PortState::SYNCHRONIZATION, false);
            }
            ReceiveState::Expired => {
                vars.partner.state.set(PortState::SYNCHRONIZATION, false);
                vars.partner.state.set(PortState::TIMEOUT, true);
                self.current_while = Some(now + SHORT_TIMEOUT_TIME);
                vars.actor.state.set(PortState::EXPIRED, true);
            }
            ReceiveState::LacpDisabled => {
                vars.selected = Selected::Unselected;
                vars.record_default();
                vars.partner.state.set(PortState::AGGREGATION, false);
                vars.actor.state.set(PortState::EXPIRED, false);
            }
            ReceiveState::Defaulted => {
                vars.update_default_selected();
                vars.record_default();
                vars.actor.state.set(PortState::EXPIRED, false);
            }
            // Only `handle_pdu`, which has the LACPDU, enters CURRENT.
            ReceiveState::Current => {}
        }
    }
}

#[cfg(test)]
#[path = "receive_tests.rs"]
mod tests;
