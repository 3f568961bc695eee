//! Selection Logic (IEEE 802.1AX-2014, 6.4.14): selects the group of links that gets the team's one
//! Aggregator, and the links of the group that are used.
//!
//! The best group has usable links, is an aggregate if one exists, and has the highest bandwidth;
//! ties are resolved in favour of the lowest Partner System. A group that carries traffic is
//! replaced only by a better one, never by an equal one.
//!
//! Links of other groups and those beyond `max_active` are STANDBY: their wait time has already
//! expired when they are selected, so a change costs no `Aggregate_Wait_Time`.

use suimon_quantity::Time;

use super::constants::SHORT_TIMEOUT_TIME;
use super::lag::{LagClass, LagId};
use super::port::{Eligibility, Port};
use super::port_view::{PortView, PortViews};
use super::{LacpReason, LacpSpec, MuxState, Selected};

/// State of the Selection Logic: the group that has the team's one Aggregator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    pub(crate) chosen: Option<LagId>,
    /// Time since which no member of the chosen group has been in use; `None` while one is.
    unused_since: Option<Time>,
    /// Time at which an unused group is replaced by an equal one; `None` if there is none to
    /// replace it.
    pub(crate) deadline: Option<Time>,
}

/// Group of links that could get the Aggregator.
#[derive(Clone, Copy)]
struct Group {
    lag: LagId,
    bandwidth_mbps: u64,
    /// Lowest local Port Identifier of the group's ports.
    first_port: u32,
}

/// Merit of a group, lower is better: (true if no link is usable, class, 2^64 - 1 minus the
/// bandwidth in Mbit/s).
type Merit = (bool, LagClass, u64);

impl Group {
    fn new(views: &PortViews, lag: LagId, limit: usize) -> Self {
        // A Partner with its own link limit keeps some links out of sync and reveals which only by
        // timeout. Only a Partner that uses none of the links makes the group unusable.
        let is_wanted = views.eligible_ports(lag).any(|view| view.is_used_by_partner);
        let used = views.eligible_ports(lag).filter(|view| is_wanted && view.rank_index < limit);
        let first_port = views.eligible_ports(lag).map(|view| view.port_id).min();
        Self {
            lag,
            bandwidth_mbps: used.map(|view| view.speed_mbps).sum(),
            first_port: first_port.unwrap_or(u32::MAX),
        }
    }

    fn merit(&self) -> Merit {
        (self.bandwidth_mbps == 0, self.lag.class, u64::MAX - self.bandwidth_mbps)
    }

    /// Returns a key by which groups are compared; the lowest is the best group.
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

/// Decision for one port: value of `Selected`, group, and reason.
type Decision = (Selected, Option<LagId>, LacpReason);

impl Selection {
    /// Decides for all ports and returns whether any decision changed.
    pub(crate) fn run(&mut self, team: &LacpSpec, ports: &mut [Port], now: Time) -> bool {
        let views = PortViews::new(team, ports);
        let limit = usize::from(team.max_active);
        self.choose(&views, limit, now);
        let mut changed = false;
        for (port, view) in ports.iter_mut().zip(views.iter()) {
            let (desired, lag, verdict) = self.decision(&views, view, limit);
            changed |= port.apply_selection(desired, lag, verdict);
        }
        changed | update_ready(ports)
    }

    /// Updates the group that has the Aggregator (`chosen`).
    fn choose(&mut self, views: &PortViews, limit: usize, now: Time) {
        let is_carrying = views.iter().any(|view| view.is_in_use && view.lag == self.chosen);
        if is_carrying {
            self.unused_since = None;
        }
        let unused_since = if is_carrying { now } else { *self.unused_since.get_or_insert(now) };
        self.deadline = None;
        // Each group is represented by its port with the best rank.
        let leaders = views.iter().filter(|view| view.rank_index == 0).filter_map(PortView::group);
        let groups = leaders.map(|lag| Group::new(views, lag, limit));
        let Some(best) = groups.clone().min_by_key(Group::order) else {
            // Without a candidate the previous group keeps the Aggregator, because its Partner may
            // return.
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
            // A Partner may be out of sync briefly; one that never gets in sync must not block the
            // Aggregator.
            let lapses = unused_since + SHORT_TIMEOUT_TIME;
            if now < lapses {
                self.deadline = Some(lapses);
                return;
            }
        }
        self.chosen = Some(best.lag);
        self.unused_since = Some(now);
    }

    fn decision(&self, views: &PortViews, view: &PortView, limit: usize) -> Decision {
        let lag = match view.eligibility {
            Eligibility::Ineligible(reason) => return (Selected::Unselected, None, reason),
            Eligibility::KeepCurrent => return self.decision_without_partner(views, view, limit),
            Eligibility::Group(lag) => lag,
        };
        if Some(lag) != self.chosen {
            (Selected::Standby, Some(lag), LacpReason::OtherGroup)
        } else if is_among_used(views, view, lag, limit) {
            (Selected::Selected, Some(lag), LacpReason::AggregateWait)
        } else {
            (Selected::Standby, Some(lag), LacpReason::Standby)
        }
    }

    /// Decides for a port without a Partner. It stays selected if no other port needs its place in
    /// the group, so that a returning Partner requires no new negotiation (6.4.12).
    fn decision_without_partner(
        &self,
        views: &PortViews,
        view: &PortView,
        limit: usize,
    ) -> Decision {
        let verdict = LacpReason::PartnerSilent;
        match view.retained_group() {
            Some(lag)
                if Some(lag) == self.chosen
                    && views.eligible_ports(lag).count() + view.rank_index < limit =>
            {
                (Selected::Selected, Some(lag), verdict)
            }
            _ => (Selected::Unselected, None, verdict),
        }
    }
}

/// Returns true if a port of the chosen group is among the `limit` ports that are used. A port
/// whose wait time has not expired does not displace an attached port until it is ready.
fn is_among_used(views: &PortViews, view: &PortView, lag: LagId, limit: usize) -> bool {
    let is_first = |view: &PortView| view.rank_index < limit;
    let members = views.eligible_ports(lag);
    let displaced = members.clone().filter(|view| view.is_attached && !is_first(view));
    let joining = members.filter(|view| view.is_waiting && is_first(view));
    let exchanges = displaced.clone().count().min(joining.clone().count());
    if is_first(view) {
        let lower_ranked = joining.filter(|other| other.rank_index > view.rank_index).count();
        !view.is_waiting || lower_ranked >= exchanges
    } else {
        let before = displaced.filter(|other| other.rank_index < view.rank_index).count();
        view.is_attached && before < exchanges
    }
}

/// Updates `Ready` of all ports (6.4.8): true for waiting ports once the wait time of all of them
/// has expired. Returns whether it changed for any port.
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
