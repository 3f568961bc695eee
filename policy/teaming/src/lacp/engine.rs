//! LACP of one team: all its ports, and the selection of links.

use suimon_quantity::Time;

use super::action::{LacpAction, ReceivedPdu, report_churn_and_loops, report_use};
use super::parse::{SlowPdu, parse};
use super::port::Port;
use super::selection::Selection;
use super::{
    LacpPortSpec, LacpSpec, LacpSpecError, Lacpdu, Link, Marker, MarkerKind, MemberState, PduError,
    ReceiveState, TeamState,
};
use crate::MEMBERS_MAX;
use crate::MemberId;

/// Maximum number of times that one poll runs the machines of all ports and the Selection Logic.
/// Three settle any event; the next poll, due immediately, continues after this limit.
const ROUNDS_MAX: usize = 8;

/// LACP state of one team: its ports and the Aggregator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lacp {
    spec: LacpSpec,
    /// Ports in ascending order of member identifiers.
    ports: Vec<Port>,
    selection: Selection,
    /// Actions that send the final LACPDUs of removed members at the next poll.
    final_lacpdus: Vec<LacpAction>,
    /// Time of the event that the next poll must process; `None` if there is none.
    pending_since: Option<Time>,
    /// Earliest expiry of a timer of any port or of the selection; `None` if no timer runs.
    deadline: Option<Time>,
}

impl Lacp {
    /// Creates the LACP state of a team without members.
    ///
    /// # Errors
    ///
    /// The invalid field of the configuration.
    pub fn new(spec: LacpSpec) -> Result<Self, LacpSpecError> {
        spec.check()?;
        Ok(Self {
            spec,
            ports: Vec::new(),
            selection: Selection::default(),
            final_lacpdus: Vec::new(),
            pending_since: None,
            deadline: None,
        })
    }

    /// Returns the configuration in effect.
    pub const fn spec(&self) -> &LacpSpec {
        &self.spec
    }

    /// Changes the configuration. Changes of timer, activity and limits do not interrupt traffic.
    /// Changes of System or key make members leave their groups and rejoin.
    ///
    /// # Errors
    ///
    /// The invalid field; the configuration is unchanged.
    pub fn set_spec(&mut self, spec: LacpSpec, now: Time) -> Result<(), LacpSpecError> {
        spec.check()?;
        self.spec = spec;
        for port in &mut self.ports {
            port.configure(&self.spec);
            port.run(now);
        }
        self.pending_since = Some(now);
        Ok(())
    }

    /// Adds a member with its link down.
    ///
    /// # Errors
    ///
    /// The team is full, the member exists, or its port is invalid or used by another member.
    pub fn add_member(
        &mut self,
        member: MemberId,
        spec: LacpPortSpec,
        now: Time,
    ) -> Result<(), LacpSpecError> {
        self.check_port(member, &spec)?;
        let Err(index) = self.ports.binary_search_by_key(&member, |port| port.member) else {
            return Err(LacpSpecError::DuplicateMember(member));
        };
        if self.ports.len() >= MEMBERS_MAX {
            return Err(LacpSpecError::TooManyMembers);
        }
        self.ports.insert(index, Port::new(member, spec, &self.spec, now));
        self.pending_since = Some(now);
        Ok(())
    }

    /// Changes the port configuration of a member.
    ///
    /// # Errors
    ///
    /// The member is not in the team or the port is invalid; the configuration is unchanged.
    pub fn set_member(
        &mut self,
        member: MemberId,
        spec: LacpPortSpec,
        now: Time,
    ) -> Result<(), LacpSpecError> {
        self.check_port(member, &spec)?;
        let team = self.spec.clone();
        let port = self.port_mut(member).ok_or(LacpSpecError::UnknownMember(member))?;
        port.spec = spec;
        port.configure(&team);
        port.run(now);
        self.pending_since = Some(now);
        Ok(())
    }

    /// Removes a member. The next poll returns a final LACPDU that makes the Partner stop using the
    /// link, unless the rate limit is exceeded.
    ///
    /// # Errors
    ///
    /// The member is not in the team.
    pub fn remove_member(&mut self, member: MemberId, now: Time) -> Result<(), LacpSpecError> {
        let index = self.position(member).ok_or(LacpSpecError::UnknownMember(member))?;
        let mut port = self.ports.remove(index);
        let frame = port.final_lacpdu(now);
        self.final_lacpdus.extend(frame.map(|frame| LacpAction::Send { member, frame }));
        self.pending_since = Some(now);
        Ok(())
    }

    /// Processes the link state of a member; `None` if the link is down.
    ///
    /// # Errors
    ///
    /// The member is not in the team.
    pub fn handle_link(
        &mut self,
        member: MemberId,
        link: Option<Link>,
        now: Time,
    ) -> Result<(), LacpSpecError> {
        let index = self.position(member).ok_or(LacpSpecError::UnknownMember(member))?;
        if let Some(port) = self.ports.get_mut(index) {
            port.handle_link(link, &self.spec, now);
        }
        self.pending_since = Some(now);
        Ok(())
    }

    /// Processes a slow protocol frame received on a member: the complete frame without FCS.
    ///
    /// # Errors
    ///
    /// The defect of the frame. Such a frame is counted and has no other effect.
    pub fn handle_frame(
        &mut self,
        member: MemberId,
        frame: &[u8],
        now: Time,
    ) -> Result<ReceivedPdu, PduError> {
        let Some(port) = self.port_mut(member) else { return Ok(ReceivedPdu::NotAMember) };
        match parse(frame) {
            Ok(SlowPdu::Lacp(pdu)) => Ok(self.handle_lacpdu(member, &pdu, now)),
            Ok(SlowPdu::Marker(marker)) => Ok(self.handle_marker(member, marker, frame, now)),
            Ok(SlowPdu::Other { subtype }) => {
                port.counters.unknown_rx += 1;
                Ok(ReceivedPdu::Other { subtype })
            }
            Err(error @ (PduError::Destination { .. } | PduError::EtherType { .. })) => {
                port.counters.unknown_rx += 1;
                Err(error)
            }
            Err(error) => {
                port.counters.illegal_rx += 1;
                Err(error)
            }
        }
    }

    fn handle_lacpdu(&mut self, member: MemberId, pdu: &Lacpdu, now: Time) -> ReceivedPdu {
        let Some(port) = self.port_mut(member) else { return ReceivedPdu::NotAMember };
        let before = (port.vars.clone(), port.looped_port, port.receive.state, port.mux.state);
        if !port.handle_pdu(pdu, now) {
            return ReceivedPdu::Ignored;
        }
        // A LACPDU that only confirms the recorded state requires no poll.
        let mut is_news =
            before != (port.vars.clone(), port.looped_port, port.receive.state, port.mux.state);
        for other in self.ports.iter_mut().filter(|other| other.member != member) {
            let partner = &other.vars.partner;
            if other.receive.state == ReceiveState::PortDisabled
                && partner.system == pdu.actor.system
                && partner.port == pdu.actor.port
                && partner.port != 0
            {
                // `port_moved` (6.4.8): the cable was moved to this port.
                other.vars.port_moved = true;
                other.run(now);
                is_news = true;
            }
        }
        if is_news {
            self.pending_since = Some(now);
        }
        ReceivedPdu::Lacpdu
    }

    fn handle_marker(
        &mut self,
        member: MemberId,
        marker: Marker,
        frame: &[u8],
        now: Time,
    ) -> ReceivedPdu {
        let Some(port) = self.port_mut(member) else { return ReceivedPdu::NotAMember };
        if marker.kind == MarkerKind::Response {
            port.counters.marker_responses_rx += 1;
            return ReceivedPdu::MarkerResponse;
        }
        port.counters.markers_rx += 1;
        let source = port.spec.mac;
        let is_answered =
            port.vars.port_enabled && port.responder.handle_marker(frame, source, now);
        if is_answered {
            self.pending_since = Some(now);
        } else {
            port.counters.markers_unanswered += 1;
        }
        ReceivedPdu::Marker { is_answered }
    }

    /// Appends the actions due at `now` to `out`.
    pub fn poll(&mut self, now: Time, out: &mut Vec<LacpAction>) {
        let is_due = self.deadline.is_some_and(|deadline| deadline <= now);
        if self.pending_since.is_none() && !is_due {
            return;
        }
        self.pending_since = if self.settle(now) { None } else { Some(now) };
        let stops_first = [false, true];
        for in_use in stops_first {
            for port in self.ports.iter_mut().filter(|port| port.is_in_use() == in_use) {
                report_use(port, out);
            }
        }
        out.append(&mut self.final_lacpdus);
        for port in &mut self.ports {
            let member = port.member;
            while let Some(frame) = port.responder.poll() {
                port.counters.marker_responses_tx += 1;
                out.push(LacpAction::Send { member, frame });
            }
            out.extend(port.poll_lacpdu(now).map(|frame| LacpAction::Send { member, frame }));
            report_churn_and_loops(port, out);
        }
        let ports = self.ports.iter().filter_map(Port::deadline);
        self.deadline = ports.chain(self.selection.deadline).min();
    }

    /// Returns when [`Lacp::poll`] must be called next; `None` if not before the next event. A time
    /// in the past means immediately.
    pub fn next_deadline(&self) -> Option<Time> {
        self.pending_since.or(self.deadline)
    }

    /// Makes all transitions that are due. Returns false if transitions may be left after
    /// [`ROUNDS_MAX`] rounds.
    fn settle(&mut self, now: Time) -> bool {
        for _ in 0..ROUNDS_MAX {
            let mut changed = false;
            for port in &mut self.ports {
                changed |= port.run(now);
            }
            changed |= self.selection.run(&self.spec, &mut self.ports, now);
            if !changed {
                return true;
            }
        }
        false
    }

    /// Returns the members in ascending order of identifiers.
    pub fn members(&self) -> impl Iterator<Item = MemberId> + '_ {
        self.ports.iter().map(|port| port.member)
    }

    /// Returns the state of a member; `None` if it is not in the team.
    pub fn member_state(&self, member: MemberId) -> Option<MemberState> {
        self.position(member).and_then(|index| self.ports.get(index)).map(MemberState::new)
    }

    /// Returns the state of the team.
    pub fn team_state(&self) -> TeamState {
        TeamState::new(self.selection.chosen, &self.ports)
    }

    fn check_port(&self, member: MemberId, spec: &LacpPortSpec) -> Result<(), LacpSpecError> {
        spec.check(member)?;
        let is_duplicate = |port: &&Port| port.member != member && port.spec.port == spec.port;
        match self.ports.iter().find(is_duplicate) {
            Some(port) => {
                let other = port.member;
                Err(LacpSpecError::DuplicatePort { member, port: spec.port, other })
            }
            None => Ok(()),
        }
    }

    fn position(&self, member: MemberId) -> Option<usize> {
        self.ports.binary_search_by_key(&member, |port| port.member).ok()
    }

    fn port_mut(&mut self, member: MemberId) -> Option<&mut Port> {
        let index = self.position(member)?;
        self.ports.get_mut(index)
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
