//! Variables of one port (IEEE 802.1AX-2014, 6.4.7 and 6.4.8).

use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::constants::{LONG_TIMEOUT_TIME, SHORT_TIMEOUT_TIME};
use super::{PortInfo, PortState};

/// Value of `Selected`, set by the Selection Logic (6.4.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Selected {
    /// UNSELECTED: the port has no Aggregator, or must leave it.
    Unselected,
    /// STANDBY: an Aggregator is assigned, but the port must not attach yet.
    Standby,
    /// SELECTED: the port attaches to its Aggregator.
    Selected,
}

/// Variables of 6.4.7 and 6.4.8 that the machines of one port share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variables {
    /// `port_enabled`: the link is up.
    pub(crate) port_enabled: bool,
    /// `LACP_Enabled`: the link is point-to-point, which full duplex implies.
    pub(crate) lacp_enabled: bool,
    /// `port_moved`: the Partner recorded for this port was detected on another port.
    pub(crate) port_moved: bool,
    /// `Selected`: decision of the Selection Logic.
    pub(crate) selected: Selected,
    /// `Ready` of the port's Aggregator: the port may attach.
    pub(crate) ready: bool,
    /// `Ready_N`: the wait time of the port has expired.
    pub(crate) ready_n: bool,
    /// `NTT` (need to transmit): a LACPDU must be sent.
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

    /// Returns the time for which received information is valid: 3 s or 90 s, depending on the
    /// local Timeout bit.
    pub(crate) const fn current_while(&self) -> Duration {
        if self.actor_has(PortState::TIMEOUT) { SHORT_TIMEOUT_TIME } else { LONG_TIMEOUT_TIME }
    }
}
