//! Properties of ports on which the Selection Logic is based, and the rank of each port in its
//! group.

use super::lag::LagId;
use super::port::{Eligibility, Port};
use super::{ChurnState, LacpSpec, Selected};
use crate::MEMBERS_MAX;

/// Properties of a port that the Selection Logic uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortView {
    /// Group that the port may join.
    pub(crate) eligibility: Eligibility,
    /// Group that the port is selected for; `None` if it is not selected.
    pub(crate) lag: Option<LagId>,
    pub(crate) is_selected: bool,
    pub(crate) is_attached: bool,
    pub(crate) is_in_use: bool,
    /// True if the port is not attached and its wait time has not expired.
    pub(crate) is_waiting: bool,
    /// True unless the Partner has been out of sync for 60 s, which indicates that it does not use
    /// the link.
    pub(crate) is_used_by_partner: bool,
    pub(crate) speed_mbps: u64,
    /// Local Port Identifier (priority and number).
    pub(crate) port_id: u32,
    rank: Rank,
    /// Position of the port in its group: number of ports with a better rank.
    pub(crate) rank_index: usize,
}

/// Order in which links of one group are used; lower first. The Port Identifiers of the System with
/// the lower Identifier decide, so that both ends select the same links (IEEE 802.1AX-2014, 6.7.1).
/// Links that the Partner does not use come last.
type Rank = (bool, u32, u32);

impl PortView {
    fn new(team: &LacpSpec, port: &Port) -> Self {
        let (actor, partner) = (&port.vars.actor, &port.vars.partner);
        let decides = if actor.system_id() < partner.system_id() { actor } else { partner };
        let is_wanted = port.partner_churn.state != ChurnState::Churn;
        Self {
            eligibility: port.eligibility(team),
            lag: port.lag,
            is_selected: port.vars.selected == Selected::Selected,
            is_attached: port.is_attached(),
            is_in_use: port.is_in_use(),
            is_waiting: !port.is_attached() && !port.vars.ready_n,
            is_used_by_partner: is_wanted,
            speed_mbps: port.link.map_or(0, |link| u64::from(link.speed_mbps.max(1))),
            port_id: actor.port_id(),
            rank: (!is_wanted, decides.port_id(), actor.port_id()),
            rank_index: 0,
        }
    }

    /// Returns the group that the port may join; `None` if it may join none at present.
    pub(crate) const fn group(&self) -> Option<LagId> {
        match self.eligibility {
            Eligibility::Group(lag) => Some(lag),
            Eligibility::KeepCurrent | Eligibility::Ineligible(_) => None,
        }
    }

    /// Returns the group that the port is selected for if it has no Partner at present and may stay
    /// in the group; otherwise `None`.
    pub(crate) fn retained_group(&self) -> Option<LagId> {
        if self.eligibility == Eligibility::KeepCurrent && self.is_selected {
            self.lag
        } else {
            None
        }
    }
}

/// Ports of a team in ascending order of member identifiers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortViews([Option<PortView>; MEMBERS_MAX]);

impl PortViews {
    pub(crate) fn new(team: &LacpSpec, ports: &[Port]) -> Self {
        let mut views = [None; MEMBERS_MAX];
        for (slot, port) in views.iter_mut().zip(ports) {
            *slot = Some(PortView::new(team, port));
        }
        let port_views = Self(views);
        for view in views.iter_mut().flatten() {
            let is_same_group = |other: &&PortView| match view.group() {
                Some(lag) => other.group() == Some(lag),
                None => {
                    other.retained_group().is_some()
                        && other.retained_group() == view.retained_group()
                }
            };
            view.rank_index = port_views
                .iter()
                .filter(is_same_group)
                .filter(|other| other.rank < view.rank)
                .count();
        }
        Self(views)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &PortView> + Clone {
        self.0.iter().flatten()
    }

    /// Returns the ports that may join this group.
    pub(crate) fn eligible_ports(&self, lag: LagId) -> impl Iterator<Item = &PortView> + Clone {
        self.iter().filter(move |view| view.group() == Some(lag))
    }
}
