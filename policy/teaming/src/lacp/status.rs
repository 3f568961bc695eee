//! What there is to show of a team and its members.

use serde::Serialize;
use suimon_quantity::Time;

use super::port::Port;
use super::{
    ChurnState, Counters, LagId, Link, MuxState, PeriodicState, PortInfo, Reason, ReceiveState,
    Selected,
};
use crate::MemberId;

/// One member as it is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemberState {
    /// Which.
    pub member: MemberId,
    /// The link; `None` if it is down.
    pub link: Option<Link>,
    /// Our end.
    pub actor: PortInfo,
    /// The other end, as it was heard last or is assumed.
    pub partner: PortInfo,
    /// State of the Receive machine.
    pub receive: ReceiveState,
    /// State of the Periodic Transmission machine.
    pub periodic: PeriodicState,
    /// State of the Mux machine.
    pub mux: MuxState,
    /// What the Selection Logic decided.
    pub selected: Selected,
    /// Why it is used, or what it lacks.
    pub reason: Reason,
    /// The group that it is selected for.
    pub group: Option<LagId>,
    /// Whether frames from it are taken.
    pub is_collecting: bool,
    /// Whether frames may be sent on it.
    pub is_distributing: bool,
    /// The Actor's churn.
    pub actor_churn: ChurnState,
    /// The Partner's churn.
    pub partner_churn: ChurnState,
    /// The port of this System that the link leads back to.
    pub looped_port: Option<u16>,
    /// What was counted.
    pub counters: Counters,
    /// When the last LACPDU was taken.
    pub last_pdu: Option<Time>,
}

/// A team as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TeamState {
    /// The group that the team uses, or used last.
    pub group: Option<LagId>,
    /// Members that collect and distribute.
    pub in_use: usize,
    /// Megabits per second of those.
    pub bandwidth_mbps: u64,
}

impl MemberState {
    pub(crate) fn of(port: &Port) -> Self {
        Self {
            member: port.member,
            link: port.link,
            actor: port.vars.actor,
            partner: port.vars.partner,
            receive: port.receive.state,
            periodic: port.periodic.state,
            mux: port.mux.state,
            selected: port.vars.selected,
            reason: port.reason(),
            group: port.lag,
            is_collecting: port.is_in_use(),
            is_distributing: port.is_in_use(),
            actor_churn: port.actor_churn.state,
            partner_churn: port.partner_churn.state,
            looped_port: port.looped,
            counters: port.counters,
            last_pdu: port.last_pdu,
        }
    }
}

impl TeamState {
    pub(crate) fn of(group: Option<LagId>, ports: &[Port]) -> Self {
        let used = || ports.iter().filter(|port| port.is_in_use());
        let speed = |port: &Port| port.link.map_or(0, |link| u64::from(link.speed_mbps));
        Self { group, in_use: used().count(), bandwidth_mbps: used().map(speed).sum() }
    }
}
