//! Functions of the Receive machine that compare and record the information in LACPDUs (IEEE
//! 802.1AX-2014, 6.4.9).

use suimon_frame::MacAddr;

use super::variables::Variables;
use super::{Lacpdu, PortInfo, PortState, Selected};

/// `Partner_Admin_*` parameters (6.4.7), which apply while no Partner is known: individual link, in
/// sync. The Timeout bit is set to Short, so that a Partner that appears later is detected within
/// seconds.
pub(crate) const PARTNER_ADMIN: PortInfo = PortInfo {
    system_priority: 0,
    system: MacAddr::new([0; 6]),
    key: 0,
    port_priority: 0,
    port: 0,
    state: PortState::TIMEOUT.or(PortState::SYNCHRONIZATION).or(PortState::COLLECTING),
};

/// State bits compared by `update_NTT`.
const NTT_BITS: PortState = PortState::ACTIVITY
    .or(PortState::TIMEOUT)
    .or(PortState::SYNCHRONIZATION)
    .or(PortState::AGGREGATION);

impl Variables {
    /// Implements `recordPDU`: records the Partner from a received LACPDU.
    pub(crate) fn record_pdu(&mut self, pdu: &Lacpdu) {
        let partner_state = pdu.actor.state;
        let knows_us = pdu.partner.agrees(&self.actor, PortState::AGGREGATION);
        let is_individual = !partner_state.has(PortState::AGGREGATION);
        let is_maintained = partner_state.has(PortState::ACTIVITY)
            || (self.actor_has(PortState::ACTIVITY) && pdu.partner.state.has(PortState::ACTIVITY));
        let in_sync = partner_state.has(PortState::SYNCHRONIZATION)
            && is_maintained
            && (knows_us || is_individual);
        self.partner = pdu.actor;
        self.partner.state.set(PortState::SYNCHRONIZATION, in_sync);
        self.actor.state.set(PortState::DEFAULTED, false);
    }

    /// Implements `recordDefault`: replaces the recorded Partner by the configured default.
    pub(crate) fn record_default(&mut self) {
        self.partner = PARTNER_ADMIN;
        self.actor.state.set(PortState::DEFAULTED, true);
    }

    /// Implements `update_Selected`: unselects the port if a LACPDU names another Partner than the
    /// recorded one.
    pub(crate) fn update_selected(&mut self, pdu: &Lacpdu) {
        if !pdu.actor.agrees(&self.partner, PortState::AGGREGATION) {
            self.selected = Selected::Unselected;
        }
    }

    /// Implements `update_Default_Selected`: unselects the port if the configured default differs
    /// from the recorded Partner.
    pub(crate) fn update_default_selected(&mut self) {
        if !PARTNER_ADMIN.agrees(&self.partner, PortState::AGGREGATION) {
            self.selected = Selected::Unselected;
        }
    }

    /// Implements `update_NTT`: requests a transmission if the Partner's view of this end is
    /// outdated.
    pub(crate) fn update_ntt(&mut self, pdu: &Lacpdu) {
        if !pdu.partner.agrees(&self.actor, NTT_BITS) {
            self.ntt = true;
        }
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
