//! Mux machine with coupled control (IEEE 802.1AX-2014, 6.4.15, Figure 6-22): a member starts
//! collecting and distributing at the same time.

use serde::{Deserialize, Serialize};
use suimon_quantity::Time;

use super::constants::AGGREGATE_WAIT_TIME;
use super::variables::Variables;
use super::{PortState, Selected};

/// State of the Mux machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MuxState {
    /// DETACHED: the port has no Aggregator.
    Detached,
    /// WAITING: the port waits so that several ports attach together, or until another port has
    /// left the Aggregator.
    Waiting,
    /// ATTACHED: the port is attached to the Aggregator, but the Partner is not in sync yet.
    Attached,
    /// COLLECTING_DISTRIBUTING: the port is in use.
    CollectingDistributing,
}

/// Mux machine of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MuxMachine {
    pub(crate) state: MuxState,
    /// Expiry of `wait_while_timer`; `None` while it does not run.
    pub(crate) wait_while: Option<Time>,
}

impl MuxMachine {
    /// Creates the machine in its state at BEGIN.
    pub(crate) fn new(vars: &mut Variables) -> Self {
        let mut machine = Self { state: MuxState::Detached, wait_while: None };
        machine.enter(MuxState::Detached, vars, Time::ZERO);
        machine
    }

    /// Sets `Ready_N` if `wait_while_timer` has expired, and returns whether it was set now.
    pub(crate) fn tick(&mut self, vars: &mut Variables, now: Time) -> bool {
        let is_over = self.wait_while.is_some_and(|deadline| deadline <= now);
        if is_over {
            self.wait_while = None;
            vars.ready_n = true;
        }
        is_over
    }

    /// Makes one transition if one is due, and returns whether it made one.
    pub(crate) fn transition(&mut self, vars: &mut Variables, now: Time) -> bool {
        use MuxState::{Attached, CollectingDistributing, Detached, Waiting};
        let is_selected = vars.selected == Selected::Selected;
        let in_sync = vars.partner_has(PortState::SYNCHRONIZATION);
        let next = match self.state {
            Detached if vars.selected != Selected::Unselected => Waiting,
            Waiting if vars.selected == Selected::Unselected => Detached,
            Waiting if is_selected && vars.ready => Attached,
            Attached if !is_selected => Detached,
            Attached if in_sync => CollectingDistributing,
            CollectingDistributing if !is_selected || !in_sync => Attached,
            Detached | Waiting | Attached | CollectingDistributing => return false,
        };
        self.enter(next, vars, now);
        true
    }

    fn enter(&mut self, state: MuxState, vars: &mut Variables, now: Time) {
        const USED: PortState = PortState::COLLECTING.or(PortState::DISTRIBUTING);
        self.state = state;
        self.wait_while = None;
        vars.ready = false;
        vars.ready_n = false;
        match state {
            MuxState::Detached => {
                vars.actor.state.set(PortState::SYNCHRONIZATION.or(USED), false);
                vars.ntt = true;
            }
            MuxState::Waiting => self.wait_while = Some(now + AGGREGATE_WAIT_TIME),
            MuxState::Attached => {
                vars.actor.state.set(PortState::SYNCHRONIZATION, true);
                vars.actor.state.set(USED, false);
                vars.ntt = true;
            }
            MuxState::CollectingDistributing => {
                vars.actor.state.set(USED, true);
                vars.ntt = true;
            }
        }
    }
}

#[cfg(test)]
#[path = "mux_tests.rs"]
mod tests;
