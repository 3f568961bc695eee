//! The aggregation of one team.

use suimon_quantity::Time;

use super::action::{Action, Received, report_trouble, report_use};
use super::parse::{SlowPdu, parse};
use super::port::Port;
use super::selection::Selection;
use super::{
    LacpSpec, Lacpdu, Link, Marker, MarkerKind, MemberState, PduError, PortSpec, ReceiveState,
    SpecError, TeamState,
};
use crate::MEMBERS_MAX;
use crate::MemberId;

/// Rounds of ports and Selection Logic in one poll. Three settle any event; what
/// is left after these is done at the next poll, at once.
const ROUNDS_MAX: usize = 8;

/// The aggregation of one team: LACP on all its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lacp {
    spec: LacpSpec,
    /// In the order of their identifiers.
    ports: Vec<Port>,
    selection: Selection,
    /// What members that left still have to send.
    farewells: Vec<Action>,
    /// When something happened that the next poll has to look at.
    touched: Option<Time>,
    /// When a timer runs out.
    deadline: Option<Time>,
}

impl Lacp {
    /// A team without members.
    ///
    /// # Errors
    /// What of the specification cannot be.
    pub fn new(spec: LacpSpec) -> Result<Self, SpecError> {
        spec.check()?;
        Ok(Self {
            spec,
            ports: Vec::new(),
            selection: Selection::default(),
            farewells: Vec::new(),
            touched: None,
            deadline: None,
        })
    }

    /// What is configured.
    pub const fn spec(&self) -> &LacpSpec {
        &self.spec
    }

    /// Changes what is configured. Timer, activity, limits: traffic goes on. System
    /// and key: members leave their groups and join again.
    ///
    /// # Errors
    /// What of the specification cannot be; nothing is changed then.
    pub fn set_spec(&mut self, spec: LacpSpec, now: Time) -> Result<(), SpecError> {
        spec.check()?;
        self.spec = spec;
        for port in &mut self.ports {
            port.configure(&self.spec);
            port.run(now);
        }
        self.touched = Some(now);
        Ok(())
    }

    /// Adds a member, without link.
    ///
    /// # Errors
    /// There are too many, it is there already, or its port cannot be.
    pub fn add_member(
        &mut self,
        member: MemberId,
        spec: PortSpec,
        now: Time,
    ) -> Result<(), SpecError> {
        self.check_port(member, &spec)?;
        let Err(at) = self.ports.binary_search_by_key(&member, |port| port.member) else {
            return Err(SpecError::DuplicateMember(member));
        };
        if self.ports.len() >= MEMBERS_MAX {
            return Err(SpecError::TooManyMembers);
        }
        self.ports.insert(at, Port::new(member, spec, &self.spec, now));
        self.touched = Some(now);
        Ok(())
    }

    /// Changes a member's port.
    ///
    /// # Errors
    /// It is not in the team, or its port cannot be; nothing is changed then.
    pub fn set_member(
        &mut self,
        member: MemberId,
        spec: PortSpec,
        now: Time,
    ) -> Result<(), SpecError> {
        self.check_port(member, &spec)?;
        let team = self.spec.clone();
        let port = self.port_mut(member).ok_or(SpecError::UnknownMember(member))?;
        port.spec = spec;
        port.configure(&team);
        port.run(now);
        self.touched = Some(now);
        Ok(())
    }

    /// Removes a member. The next poll still has a LACPDU for it that tells the
    /// Partner not to use the link any more, unless too many were just sent.
    ///
    /// # Errors
    /// It is not in the team.
    pub fn remove_member(&mut self, member: MemberId, now: Time) -> Result<(), SpecError> {
        let at = self.position(member).ok_or(SpecError::UnknownMember(member))?;
        let mut port = self.ports.remove(at);
        let frame = port.farewell(now);
        self.farewells.extend(frame.map(|frame| Action::Send { member, frame }));
        self.touched = Some(now);
        Ok(())
    }

    /// A member's link came up, changed, or went down (`None`).
    ///
    /// # Errors
    /// The member is not in the team.
    pub fn handle_link(
        &mut self,
        member: MemberId,
        link: Option<Link>,
        now: Time,
    ) -> Result<(), SpecError> {
        let at = self.position(member).ok_or(SpecError::UnknownMember(member))?;
        if let Some(port) = self.ports.get_mut(at) {
            port.handle_link(link, &self.spec, now);
        }
        self.touched = Some(now);
        Ok(())
    }

    /// A frame of the slow protocols arrived on a member: all of it, without FCS.
    ///
    /// # Errors
    /// What is wrong with the frame; it is counted and has no other effect.
    pub fn handle_frame(
        &mut self,
        member: MemberId,
        frame: &[u8],
        now: Time,
    ) -> Result<Received, PduError> {
        let Some(port) = self.port_mut(member) else { return Ok(Received::NotAMember) };
        match parse(frame) {
            Ok(SlowPdu::Lacp(pdu)) => Ok(self.handle_lacpdu(member, &pdu, now)),
            Ok(SlowPdu::Marker(marker)) => Ok(self.handle_marker(member, marker, frame, now)),
            Ok(SlowPdu::Other { subtype }) => {
                port.counters.unknown_rx += 1;
                Ok(Received::Other { subtype })
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

    fn handle_lacpdu(&mut self, member: MemberId, pdu: &Lacpdu, now: Time) -> Received {
        let Some(port) = self.port_mut(member) else { return Received::NotAMember };
        let before = (port.vars.clone(), port.looped, port.receive.state, port.mux.state);
        if !port.handle_pdu(pdu, now) {
            return Received::Ignored;
        }
        // What only confirms what is known gives a poll nothing to do.
        let mut is_news =
            before != (port.vars.clone(), port.looped, port.receive.state, port.mux.state);
        for other in self.ports.iter_mut().filter(|other| other.member != member) {
            let partner = &other.vars.partner;
            if other.receive.state == ReceiveState::PortDisabled
                && partner.system == pdu.actor.system
                && partner.port == pdu.actor.port
                && partner.port != 0
            {
                // `port_moved` (6.4.8): the cable was put into this port.
                other.vars.port_moved = true;
                other.run(now);
                is_news = true;
            }
        }
        if is_news {
            self.touched = Some(now);
        }
        Received::Lacpdu
    }

    fn handle_marker(
        &mut self,
        member: MemberId,
        marker: Marker,
        frame: &[u8],
        now: Time,
    ) -> Received {
        let Some(port) = self.port_mut(member) else { return Received::NotAMember };
        if marker.kind == MarkerKind::Response {
            port.counters.marker_responses_rx += 1;
            return Received::MarkerResponse;
        }
        port.counters.markers_rx += 1;
        let source = port.spec.mac;
        let is_answered =
            port.vars.port_enabled && port.responder.handle_marker(frame, source, now);
        if is_answered {
            self.touched = Some(now);
        } else {
            port.counters.markers_unanswered += 1;
        }
        Received::Marker { is_answered }
    }

    /// Appends what has to be done now to `out`.
    pub fn poll(&mut self, now: Time, out: &mut Vec<Action>) {
        let is_due = self.deadline.is_some_and(|deadline| deadline <= now);
        if self.touched.is_none() && !is_due {
            return;
        }
        self.touched = if self.settle(now) { None } else { Some(now) };
        let stops_first = [false, true];
        for in_use in stops_first {
            for port in self.ports.iter_mut().filter(|port| port.is_in_use() == in_use) {
                report_use(port, out);
            }
        }
        out.append(&mut self.farewells);
        for port in &mut self.ports {
            let member = port.member;
            while let Some(frame) = port.responder.poll() {
                port.counters.marker_responses_tx += 1;
                out.push(Action::Send { member, frame });
            }
            out.extend(port.poll_lacpdu(now).map(|frame| Action::Send { member, frame }));
            report_trouble(port, out);
        }
        let ports = self.ports.iter().filter_map(Port::deadline);
        self.deadline = ports.chain(self.selection.deadline).min();
    }

    /// When [`Lacp::poll`] has to be called next; `None` if after the next event
    /// only. A time that has passed means now.
    pub fn next_deadline(&self) -> Option<Time> {
        self.touched.or(self.deadline)
    }

    /// Makes all transitions that are due; whether that came to an end.
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

    /// The members, lowest identifier first.
    pub fn members(&self) -> impl Iterator<Item = MemberId> + '_ {
        self.ports.iter().map(|port| port.member)
    }

    /// Everything there is to show of a member; `None` if it is not in the team.
    pub fn member_state(&self, member: MemberId) -> Option<MemberState> {
        self.position(member).and_then(|at| self.ports.get(at)).map(MemberState::of)
    }

    /// The team as a whole.
    pub fn team_state(&self) -> TeamState {
        TeamState::of(self.selection.chosen, &self.ports)
    }

    fn check_port(&self, member: MemberId, spec: &PortSpec) -> Result<(), SpecError> {
        spec.check(member)?;
        let same = |port: &&Port| port.member != member && port.spec.port == spec.port;
        match self.ports.iter().find(same) {
            Some(port) => {
                let other = port.member;
                Err(SpecError::DuplicatePort { member, port: spec.port, other })
            }
            None => Ok(()),
        }
    }

    fn position(&self, member: MemberId) -> Option<usize> {
        self.ports.binary_search_by_key(&member, |port| port.member).ok()
    }

    fn port_mut(&mut self, member: MemberId) -> Option<&mut Port> {
        let at = self.position(member)?;
        self.ports.get_mut(at)
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
