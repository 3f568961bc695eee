//! State of LACP on a team and its members, for operators.

use serde::Serialize;
use suimon_quantity::Time;

use super::port::Port;
use super::{
    ChurnState, Counters, LacpReason, LagId, Link, MuxState, PeriodicState, PortInfo, ReceiveState,
    Selected,
};
use crate::MemberId;

/// LACP state of one member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemberState {
    /// Identifier of the member in its team.
    pub member: MemberId,
    /// Link properties; `None` if the link is down.
    pub link: Option<Link>,
    /// Local end of the link, as sent in LACPDUs.
    pub actor: PortInfo,
    /// Remote end of the link, as last received, or the default while no Partner is known.
    pub partner: PortInfo,
    /// State of the Receive machine.
    pub receive: ReceiveState,
    /// State of the Periodic Transmission machine.
    pub periodic: PeriodicState,
    /// State of the Mux machine.
    pub mux: MuxState,
    /// Decision of the Selection Logic.
    pub selected: Selected,
    /// Reason for which the member is in use or not.
    pub reason: LacpReason,
    /// Group for which the member is selected; `None` if it is not selected.
    pub group: Option<LagId>,
    /// True if received frames are accepted.
    pub is_collecting: bool,
    /// True if frames may be sent.
    pub is_distributing: bool,
    /// State of the Actor Churn Detection machine.
    pub actor_churn: ChurnState,
    /// State of the Partner Churn Detection machine.
    pub partner_churn: ChurnState,
    /// Port of this System that the link leads back to; `None` without a loop.
    pub looped_port: Option<u16>,
    /// Counters since the member joined.
    pub counters: Counters,
    /// Time of the last accepted LACPDU; `None` if there was none.
    pub last_pdu: Option<Time>,
}

/// LACP state of a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TeamState {
    /// Group that has the team's Aggregator; `None` before the first one was chosen.
    pub group: Option<LagId>,
    /// Number of members that collect and distribute.
    #[serde(rename = "in_use")]
    pub members_in_use: usize,
    /// Total speed of the members in use, in Mbit/s.
    pub bandwidth_mbps: u64,
}

impl MemberState {
    pub(crate) fn new(port: &Port) -> Self {
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
            looped_port: port.looped_port,
            counters: port.counters,
            last_pdu: port.last_pdu,
        }
    }
}

impl TeamState {
    pub(crate) fn new(group: Option<LagId>, ports: &[Port]) -> Self {
        let used = || ports.iter().filter(|port| port.is_in_use());
        let speed = |port: &Port| port.link.map_or(0, |link| u64::from(link.speed_mbps));
        Self { group, members_in_use: used().count(), bandwidth_mbps: used().map(speed).sum() }
    }
}
