//! Variables of one port (IEEE 802.1AX-2014, 6.4.7 and 6.4.8).

use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::constants::{LONG_TIMEOUT_TIME, SHORT_TIMEOUT_TIME};
use super::{PortInfo, PortState};

/// Value of `Selected`, set by the Selection Logic (6.4.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Selected {
    /// UNSELECTED: no Aggregator, or the port has to leave it.
    Unselected,
    /// STANDBY: an Aggregator is assigned, but the port must not attach yet.
    Standby,
    /// SELECTED: the port attaches to its Aggregator.
    Selected,
}

/// Variables shared by the machines of one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variables {
    /// `port_enabled`: the link is up.
    pub(crate) port_enabled: bool,
    /// `LACP_Enabled`: the link is point-to-point, which full duplex implies.
    pub(crate) lacp_enabled: bool,
    /// `port_moved`: the Partner was detected on another port.
    pub(crate) port_moved: bool,
    /// `Selected`: decision of the Selection Logic.
    pub(crate) selected: Selected,
    /// `Ready` of the port's Aggregator.
    pub(crate) ready: bool,
    /// `Ready_N`: the wait time of the port has expired.
    pub(crate) ready_n: bool,
    /// `NTT` (need to transmit).
    pub(crate) ntt: bool,
    /// `Actor_Oper_*` parameters.
    pub(crate) actor: PortInfo,
    /// `Partner_Oper_*` parameters.
    pub(crate) partner: PortInfo,
}

impl Variables {
    /// Creates the variables in their state at BEGIN, without a link.
    pub(crate) fn new(actor: PortInfo) -> Self {
        Self {
            port_enabled: false,
            lacp_enabled: true,
            port_moved: false,
            selected: Selected::Unselected,
            ready: false,
            ready_n: false,
            ntt: false,
            actor,
            partner: PortInfo::default(),
        }
    }

    pub(crate) const fn actor_has(&self, bits: PortState) -> bool {
        self.actor.state.has(bits)
    }

    pub(crate) const fn partner_has(&self, bits: PortState) -> bool {
        self.partner.state.has(bits)
    }

    /// Returns the validity of received information.
    pub(crate) const fn current_while(&self) -> Duration {
        if self.actor_has(PortState::TIMEOUT) { SHORT_TIMEOUT_TIME } else { LONG_TIMEOUT_TIME }
    }
}
