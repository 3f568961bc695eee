//! A port as the Selection Logic sees it, and its place among others.

use super::lag::LagId;
use super::port::{Claim, Port};
use super::{ChurnState, LacpSpec, Selected};
use crate::MEMBERS_MAX;

/// What the Selection Logic needs to know of a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat {
    /// Which group it would join.
    pub(crate) claim: Claim,
    /// The group that it is in, if it is selected for one.
    pub(crate) lag: Option<LagId>,
    pub(crate) is_selected: bool,
    pub(crate) is_attached: bool,
    pub(crate) is_in_use: bool,
    /// It is not attached and has not waited for others yet.
    pub(crate) is_fresh: bool,
    /// The Partner did not keep out of sync for 60 s: it wants the link.
    pub(crate) is_wanted: bool,
    pub(crate) speed_mbps: u64,
    /// Our Port Identifier.
    pub(crate) port_id: u32,
    rank: Rank,
    /// How many ports of its group go before it.
    pub(crate) place: usize,
}

/// In which order links of one group are used; lower goes first. By the Port
/// Identifiers of the System with the lower Identifier, so that both ends choose
/// the same links (IEEE 802.1AX-2014, 6.7.1), but links that the Partner does not
/// want come last.
type Rank = (bool, u32, u32);

impl Seat {
    fn of(team: &LacpSpec, port: &Port) -> Self {
        let (actor, partner) = (&port.vars.actor, &port.vars.partner);
        let decides = if actor.system_id() < partner.system_id() { actor } else { partner };
        let is_wanted = port.partner_churn.state != ChurnState::Churn;
        Self {
            claim: port.claim(team),
            lag: port.lag,
            is_selected: port.vars.selected == Selected::Selected,
            is_attached: port.is_attached(),
            is_in_use: port.is_in_use(),
            is_fresh: !port.is_attached() && !port.vars.ready_n,
            is_wanted,
            speed_mbps: port.link.map_or(0, |link| u64::from(link.speed_mbps.max(1))),
            port_id: actor.port_id(),
            rank: (!is_wanted, decides.port_id(), actor.port_id()),
            place: 0,
        }
    }

    /// The group that it would join.
    pub(crate) const fn group(&self) -> Option<LagId> {
        match self.claim {
            Claim::Group(lag) => Some(lag),
            Claim::Hold | Claim::Nothing(_) => None,
        }
    }

    /// The group that it is selected for and may stay in without Partner.
    pub(crate) fn held_group(&self) -> Option<LagId> {
        if self.claim == Claim::Hold && self.is_selected { self.lag } else { None }
    }
}

/// All ports of a team, in their order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seats([Option<Seat>; MEMBERS_MAX]);

impl Seats {
    pub(crate) fn of(team: &LacpSpec, ports: &[Port]) -> Self {
        let mut seats = [None; MEMBERS_MAX];
        for (seat, port) in seats.iter_mut().zip(ports) {
            *seat = Some(Seat::of(team, port));
        }
        let all = Self(seats);
        for seat in seats.iter_mut().flatten() {
            let same = |other: &&Seat| match seat.group() {
                Some(lag) => other.group() == Some(lag),
                None => other.held_group().is_some() && other.held_group() == seat.held_group(),
            };
            seat.place = all.iter().filter(same).filter(|other| other.rank < seat.rank).count();
        }
        Self(seats)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Seat> + Clone {
        self.0.iter().flatten()
    }

    /// The ports that would join the group.
    pub(crate) fn claiming(&self, lag: LagId) -> impl Iterator<Item = &Seat> + Clone {
        self.iter().filter(move |seat| seat.group() == Some(lag))
    }
}
