//! The Selection Logic (IEEE 802.1AX-2014, 6.4.14): which group of links the
//! team's one Aggregator gets, and which of its links.
//!
//! The best group has links that can be used, is an aggregate if one is there,
//! and has the most bandwidth; among equals the lowest Partner System goes
//! first. A group that carries traffic is left only for a better one, never for
//! an equal one.
//!
//! Links of other groups, and those beyond `max_active`, are STANDBY: they have
//! waited when their turn comes, so a change costs no `Aggregate_Wait_Time`.

use suimon_quantity::Time;

use super::constants::SHORT_TIMEOUT_TIME;
use super::lag::{LagClass, LagId};
use super::port::{Claim, Port};
use super::seat::{Seat, Seats};
use super::{LacpSpec, MuxState, Reason, Selected};

/// What the team's Aggregator is used for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    pub(crate) chosen: Option<LagId>,
    /// Since when no member of the chosen group is in use.
    unused_since: Option<Time>,
    /// When a group that is not in use is left for an equal one.
    pub(crate) deadline: Option<Time>,
}

/// A group as the competition for the Aggregator sees it.
#[derive(Clone, Copy)]
struct Group {
    lag: LagId,
    bandwidth_mbps: u64,
    /// Our lowest Port Identifier in it.
    first_port: u32,
}

/// Lower is better: unusable or not, class, and what lacks in bandwidth.
type Merit = (bool, LagClass, u64);

impl Group {
    fn of(seats: &Seats, lag: LagId, limit: usize) -> Self {
        // A Partner with a limit of its own keeps some links out of sync, and which
        // it tells only by time: only one that wants none of them counts.
        let is_wanted = seats.claiming(lag).any(|seat| seat.is_wanted);
        let used = seats.claiming(lag).filter(|seat| is_wanted && seat.place < limit);
        let first_port = seats.claiming(lag).map(|seat| seat.port_id).min();
        Self {
            lag,
            bandwidth_mbps: used.map(|seat| seat.speed_mbps).sum(),
            first_port: first_port.unwrap_or(u32::MAX),
        }
    }

    fn merit(&self) -> Merit {
        (self.bandwidth_mbps == 0, self.lag.class, u64::MAX - self.bandwidth_mbps)
    }

    /// Lower goes first; no two groups are equal.
    fn order(&self) -> (Merit, u16, u64, u16, u16, u32) {
        let lag = &self.lag;
        (
            self.merit(),
            lag.partner_system_priority,
            lag.partner_system.to_u64(),
            lag.partner_key,
            lag.actor_key,
            self.first_port,
        )
    }
}

/// What becomes of one port.
type Decision = (Selected, Option<LagId>, Reason);

impl Selection {
    /// Decides for all ports; whether any decision changed.
    pub(crate) fn run(&mut self, team: &LacpSpec, ports: &mut [Port], now: Time) -> bool {
        let seats = Seats::of(team, ports);
        let limit = usize::from(team.max_active);
        self.choose(&seats, limit, now);
        let mut changed = false;
        for (port, seat) in ports.iter_mut().zip(seats.iter()) {
            let (wish, lag, verdict) = self.decision(&seats, seat, limit);
            changed |= port.decide(wish, lag, verdict);
        }
        changed | update_ready(ports)
    }

    /// Chooses the group that gets the Aggregator.
    fn choose(&mut self, seats: &Seats, limit: usize, now: Time) {
        let is_carrying = seats.iter().any(|seat| seat.is_in_use && seat.lag == self.chosen);
        if is_carrying {
            self.unused_since = None;
        }
        let unused_since = if is_carrying { now } else { *self.unused_since.get_or_insert(now) };
        self.deadline = None;
        // The best port of each group speaks for it.
        let leaders = seats.iter().filter(|seat| seat.place == 0).filter_map(Seat::group);
        let groups = leaders.map(|lag| Group::of(seats, lag, limit));
        let Some(best) = groups.clone().min_by_key(Group::order) else {
            // Nobody could use the Aggregator better than who may come back.
            return;
        };
        if Some(best.lag) == self.chosen {
            return;
        }
        let current = groups.clone().find(|group| Some(group.lag) == self.chosen);
        if current.is_some_and(|current| current.merit() <= best.merit()) {
            if is_carrying {
                return;
            }
            // A Partner may be out of sync for a moment; one that never gets in sync
            // must not keep the Aggregator from another.
            let lapses = unused_since + SHORT_TIMEOUT_TIME;
            if now < lapses {
                self.deadline = Some(lapses);
                return;
            }
        }
        self.chosen = Some(best.lag);
        self.unused_since = Some(now);
    }

    fn decision(&self, seats: &Seats, seat: &Seat, limit: usize) -> Decision {
        let lag = match seat.claim {
            Claim::Nothing(reason) => return (Selected::Unselected, None, reason),
            Claim::Hold => return self.decision_without_partner(seats, seat, limit),
            Claim::Group(lag) => lag,
        };
        if Some(lag) != self.chosen {
            (Selected::Standby, Some(lag), Reason::OtherGroup)
        } else if has_place(seats, seat, lag, limit) {
            (Selected::Selected, Some(lag), Reason::AggregateWait)
        } else {
            (Selected::Standby, Some(lag), Reason::Standby)
        }
    }

    /// A port without Partner for now keeps its place if nobody needs it: when the
    /// same Partner is back, nothing has to be built up again (6.4.12).
    fn decision_without_partner(&self, seats: &Seats, seat: &Seat, limit: usize) -> Decision {
        let verdict = Reason::PartnerSilent;
        match seat.held_group() {
            Some(lag)
                if Some(lag) == self.chosen && seats.claiming(lag).count() + seat.place < limit =>
            {
                (Selected::Selected, Some(lag), verdict)
            }
            _ => (Selected::Unselected, None, verdict),
        }
    }
}

/// Whether a port of the chosen group is among those that are used. One that is
/// fresh does not take the place of one that is attached: the one goes when the
/// other is ready.
fn has_place(seats: &Seats, seat: &Seat, lag: LagId, limit: usize) -> bool {
    let is_first = |seat: &Seat| seat.place < limit;
    let members = seats.claiming(lag);
    let displaced = members.clone().filter(|seat| seat.is_attached && !is_first(seat));
    let fresh = members.filter(|seat| seat.is_fresh && is_first(seat));
    let exchanges = displaced.clone().count().min(fresh.clone().count());
    if is_first(seat) {
        let behind = fresh.filter(|other| other.place > seat.place).count();
        !seat.is_fresh || behind >= exchanges
    } else {
        let before = displaced.filter(|other| other.place < seat.place).count();
        seat.is_attached && before < exchanges
    }
}

/// `Ready` (6.4.8): all ports that wait for the Aggregator have waited long
/// enough. Whether it changed for any.
fn update_ready(ports: &mut [Port]) -> bool {
    let is_waiting = |port: &Port| {
        port.vars.selected == Selected::Selected && port.mux.state == MuxState::Waiting
    };
    let ready = ports.iter().filter(|port| is_waiting(port)).all(|port| port.vars.ready_n);
    let mut changed = false;
    for port in ports.iter_mut() {
        let ready = ready && is_waiting(port);
        changed |= port.vars.ready != ready;
        port.vars.ready = ready;
    }
    changed
}

#[cfg(test)]
#[path = "selection_tests.rs"]
mod tests;
