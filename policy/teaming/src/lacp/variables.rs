//! The variables of one port (IEEE 802.1AX-2014, 6.4.7 and 6.4.8).

use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::constants::{LONG_TIMEOUT_TIME, SHORT_TIMEOUT_TIME};
use super::{PortInfo, PortState};

/// What the Selection Logic decided (6.4.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Selected {
    /// No Aggregator, or it has to be left.
    Unselected,
    /// An Aggregator, but the port may not attach yet.
    Standby,
    /// To be attached to its Aggregator.
    Selected,
}

/// What the machines of one port share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variables {
    /// `port_enabled`: the link is up.
    pub(crate) port_enabled: bool,
    /// `LACP_Enabled`: the link is point to point, which full duplex is.
    pub(crate) lacp_enabled: bool,
    /// `port_moved`: the Partner was heard on another port.
    pub(crate) port_moved: bool,
    /// `Selected`.
    pub(crate) selected: Selected,
    /// `Ready` of the port's Aggregator.
    pub(crate) ready: bool,
    /// `Ready_N`: the port has waited long enough.
    pub(crate) ready_n: bool,
    /// `NTT`: something has to be sent.
    pub(crate) ntt: bool,
    /// The `Actor_Oper_*`.
    pub(crate) actor: PortInfo,
    /// The `Partner_Oper_*`.
    pub(crate) partner: PortInfo,
}

impl Variables {
    /// As at BEGIN, without a link.
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

    /// How long received information is valid.
    pub(crate) const fn current_while(&self) -> Duration {
        if self.actor_has(PortState::TIMEOUT) { SHORT_TIMEOUT_TIME } else { LONG_TIMEOUT_TIME }
    }
}
