//! One team: its inputs produce distributions, frames and events.

mod events;

use std::collections::BTreeMap;
use std::sync::Arc;

use suimon_contract::{Name, TeamAlgorithm, TeamMode};
use suimon_frame::MacAddr;
use suimon_ports::LinkProperties;
use suimon_quantity::{PortId, SwitchId, Time};
use suimon_recording::{RecordSink, Recorded};
use suimon_teaming::lacp::LacpAction;
use suimon_teaming::{
    Algorithm, Distribution, MemberFault, MemberId, MemberSpec, REBALANCE_PERIOD, Team, TeamChange,
    TeamId, TeamSpec, TeamSpecError,
};
use thiserror::Error;

use super::effects::{AnnouncementTarget, Effects};
use super::member::{ControlSocketState, LacpDirections, Member, placeholder_mac};
use super::required_team::RequiredTeam;
use super::team_lacp::TeamLacp;
use super::texts::{churn_event, loopback_event, partner_changed_event};
use crate::SwitchPlane;

/// Error of a configuration that a policy rejects. It indicates a defect, because validation
/// rejects such configurations before.
#[derive(Debug, Error)]
pub(crate) enum TeamError {
    #[error(transparent)]
    Team(#[from] TeamSpecError),
    #[error(transparent)]
    Lacp(#[from] suimon_teaming::lacp::LacpSpecError),
}

/// Team that a switch uses.
#[derive(Clone)]
pub(crate) struct TeamEntry {
    pub(crate) name: Name,
    /// Port that represents the team on its switch.
    pub(crate) id: PortId,
    switch: SwitchId,
    pub(crate) team: Recorded<Team>,
    pub(crate) lacp: Option<TeamLacp>,
    sink: Option<Arc<dyn RecordSink>>,
    /// Members in the order of the configuration.
    pub(crate) members: Vec<Member>,
    /// Names of members, including those that have just left.
    names: BTreeMap<MemberId, Name>,
    /// Distribution that the plane has.
    published: Option<Arc<Distribution>>,
    /// True if the plane has rejected the last distribution. Further rejections are not logged.
    is_refused: bool,
    /// Time of the last periodic rebalancing; see [`REBALANCE_PERIOD`].
    ticked: Time,
}

impl TeamEntry {
    /// Creates a team. `sink`: recorder of its inputs and decisions, if any.
    pub(crate) fn new(
        plan: &RequiredTeam,
        now: Time,
        sink: Option<&Arc<dyn RecordSink>>,
    ) -> Result<Self, TeamError> {
        let members: Vec<Member> = plan.members.iter().cloned().map(Member::new).collect();
        Ok(Self {
            name: plan.config.name.clone(),
            id: plan.id,
            switch: plan.switch,
            team: Recorded::record_team(
                sink,
                (now, plan.config.name.as_str()),
                spec(plan, &members),
            )?,
            lacp: None,
            sink: sink.cloned(),
            members,
            names: BTreeMap::new(),
            published: None,
            is_refused: false,
            ticked: now,
        })
    }

    /// Changes the team to the required state. Remaining members keep their state.
    ///
    /// # Errors
    /// A policy rejects the configuration.
    pub(crate) fn update(
        &mut self,
        plan: &RequiredTeam,
        now: Time,
        effects: &mut Effects,
    ) -> Result<(), TeamError> {
        self.switch = plan.switch;
        self.follow_members(plan);
        let change = self.team.set_spec(now, spec(plan, &self.members))?;
        self.absorb(change, effects);
        let change = self.team.set_ports(now, &plan.ports);
        self.absorb(change, effects);
        match (plan.config.lacp(), &mut self.lacp) {
            (Some(settings), lacp) => {
                let side = match lacp {
                    Some(side) => side,
                    None => lacp.insert(TeamLacp::new(
                        self.sink.as_ref(),
                        (now, self.name.as_str()),
                        (plan.id, settings),
                        &self.members,
                    )?),
                };
                side.update(plan.id, settings, &self.members, now)?;
            }
            (None, Some(_)) => self.end_lacp(now, effects),
            (None, None) => {}
        }
        for index in 0..self.members.len() {
            self.pass_link(index, now, effects);
        }
        self.poll(now, effects);
        let members = &self.members;
        self.names.retain(|id, _| members.iter().any(|member| member.id() == *id));
        Ok(())
    }

    fn follow_members(&mut self, plan: &RequiredTeam) {
        let mut before = std::mem::take(&mut self.members);
        for properties in plan.members.iter().cloned() {
            let known_index =
                before.iter().position(|member| member.properties.port == properties.port);
            let mut member = match known_index {
                Some(index) => before.swap_remove(index),
                None => Member::new(properties.clone()),
            };
            member.update(properties);
            self.names.insert(member.id(), member.name().clone());
            self.members.push(member);
        }
        self.settle_addresses();
    }

    /// Assigns each member an address of its own, by which physical switches distinguish its port.
    /// A member whose address another member has cannot be used.
    fn settle_addresses(&mut self) {
        let mut owners = BTreeMap::<MacAddr, Name>::new();
        for member in &mut self.members {
            member.mac = placeholder_mac(member.properties.port);
            member.exclusion = None;
            let Some(mac) = member.properties.mac else { continue };
            match owners.get(&mac) {
                Some(owner) => {
                    let text = format!(
                        "its MAC address {mac} is also that of member `{owner}`; set another (`ip \
                         link set DEVICE address MAC`)"
                    );
                    member.exclusion = Some(text);
                }
                None => {
                    owners.insert(mac, member.properties.uplink.clone());
                    member.mac = mac;
                }
            }
        }
    }

    /// Ends LACP and sends last LACPDUs, so that the partners stop sending to this system.
    pub(crate) fn end_lacp(&mut self, now: Time, effects: &mut Effects) {
        let Some(mut side) = self.lacp.take() else { return };
        side.remove_all_members(now);
        let mut actions = Vec::new();
        side.lacp.poll(now, &mut actions);
        side.lacp.flush();
        for action in actions {
            if let LacpAction::Send { member, frame } = action {
                effects.frames.push((PortId(member.0), frame));
            }
        }
        for member in &mut self.members {
            member.lacp = LacpDirections::default();
        }
    }

    /// Returns the index of the member whose device has this port.
    pub(crate) fn member_index(&self, port: PortId) -> Option<usize> {
        self.members.iter().position(|member| member.properties.port == port)
    }

    /// Processes a member's link state.
    pub(crate) fn handle_link(
        &mut self,
        index: usize,
        link: LinkProperties,
        now: Time,
        effects: &mut Effects,
    ) {
        let Some(member) = self.members.get_mut(index) else { return };
        member.link = link;
        self.pass_link(index, now, effects);
        self.poll(now, effects);
    }

    /// Processes the state of a member's control socket.
    pub(crate) fn handle_control(
        &mut self,
        index: usize,
        control: ControlSocketState,
        now: Time,
        effects: &mut Effects,
    ) {
        let Some(member) = self.members.get_mut(index) else { return };
        if member.control != control {
            member.control = control;
            self.pass_link(index, now, effects);
        }
    }

    /// Passes a member's link state to the team policy and to LACP. The team policy is first,
    /// because it moves the traffic.
    fn pass_link(&mut self, index: usize, now: Time, effects: &mut Effects) {
        let Some(member) = self.members.get(index) else { return };
        let (id, link) = (member.id(), member.lacp_link());
        self.pass_team(index, now, effects);
        if let Some(side) = &mut self.lacp {
            side.set_member_link(id, link, now);
        }
    }

    fn pass_team(&mut self, index: usize, now: Time, effects: &mut Effects) {
        let Some(member) = self.members.get(index) else { return };
        match self.team.handle_member_link(now, member.id(), member.team_link()) {
            Ok(change) => self.absorb(change, effects),
            Err(error) => tracing::error!(%error, "the team rejected the link state of a member"),
        }
    }

    /// Passes a frame of the slow protocols that a member has received to LACP, which counts
    /// invalid ones.
    pub(crate) fn handle_frame(&mut self, index: usize, frame: &[u8], now: Time) {
        let id = self.members.get(index).map(Member::id);
        if let (Some(side), Some(id)) = (&mut self.lacp, id) {
            if let Err(error) = side.lacp.handle_frame(now, id, frame) {
                tracing::debug!(team = %self.name, member = id.0, %error, "not a LACPDU");
            }
        }
    }

    /// Flushes recorded inputs and decisions to the recorder.
    pub(crate) fn flush_recording(&mut self) {
        self.team.flush();
        if let Some(side) = &mut self.lacp {
            side.lacp.flush();
        }
    }

    /// Executes LACP actions that are due.
    pub(crate) fn poll(&mut self, now: Time, effects: &mut Effects) {
        let Some(side) = &mut self.lacp else { return };
        let mut actions = Vec::new();
        side.lacp.poll(now, &mut actions);
        let changes = side.take_partner_changes(now);
        for action in actions {
            self.execute(action, now, effects);
        }
        for change in changes {
            let draft = partner_changed_event(&self.name, self.name_of(change.member), &change);
            effects.drafts.push(draft.rate_limited());
        }
    }

    fn execute(&mut self, action: LacpAction, now: Time, effects: &mut Effects) {
        match action {
            LacpAction::SetMemberUse { member, collecting, distributing, .. } => {
                let Some(index) = self.member_index(PortId(member.0)) else { return };
                if let Some(member) = self.members.get_mut(index) {
                    member.lacp = LacpDirections { collecting, distributing };
                }
                self.pass_team(index, now, effects);
            }
            LacpAction::Send { member, frame } => effects.frames.push((PortId(member.0), frame)),
            LacpAction::ReportChurn { member, side, is_churning } => {
                let draft = churn_event(&self.name, self.name_of(member), side, is_churning);
                effects.drafts.push(draft.rate_limited());
            }
            LacpAction::ReportLoopback { member, port } => {
                let draft = loopback_event(&self.name, self.name_of(member), port);
                effects.drafts.push(draft.rate_limited());
            }
        }
    }

    /// Samples rates and, for algorithm `dynamic`, redistributes flows by load. Does nothing within
    /// [`REBALANCE_PERIOD`] of the last tick.
    pub(crate) fn tick(&mut self, plane: &dyn SwitchPlane, now: Time, effects: &mut Effects) {
        if now < self.next_tick() {
            return;
        }
        self.ticked = now;
        for member in &mut self.members {
            member.rates.sample(now, &plane.port_counters(member.properties.port));
        }
        if self.team.spec().algorithm == Algorithm::Dynamic {
            if let Some(loads) = plane.take_bucket_loads(self.id) {
                let change = self.team.handle_loads(now, &loads);
                self.absorb(change, effects);
            }
        }
        self.poll(now, effects);
    }

    fn next_tick(&self) -> Time {
        self.ticked + REBALANCE_PERIOD
    }

    /// Returns the earliest time at which a timer of the team is due.
    pub(crate) fn next_deadline(&self) -> Time {
        let lacp = self.lacp.as_ref().and_then(|side| side.lacp.next_deadline());
        lacp.unwrap_or(Time::NEVER).min(self.next_tick())
    }

    /// Passes the distribution to the plane if it has changed. A rejected distribution is passed
    /// again at the next call.
    pub(crate) fn publish_distribution(&mut self, plane: &dyn SwitchPlane) {
        let current = self.team.distribution();
        if self.published.as_ref().is_some_and(|published| Arc::ptr_eq(published, current)) {
            return;
        }
        match plane.set_distribution(self.id, current) {
            Ok(()) => {
                self.published = Some(current.clone());
                self.is_refused = false;
            }
            Err(error) if !self.is_refused => {
                self.is_refused = true;
                tracing::error!(team = %self.name, %error, "frames are distributed as before");
            }
            Err(_) => {}
        }
    }

    /// Records that the plane has the current distribution.
    pub(crate) fn mark_published(&mut self) {
        self.published = Some(self.team.distribution().clone());
        self.is_refused = false;
    }

    /// Returns true if at least `min_links` members are active.
    pub(crate) fn is_up(&self) -> bool {
        let status = |member: &Member| self.team.member_status(member.id());
        let active = self.members.iter().filter_map(status).filter(|status| status.is_active);
        u32::try_from(active.count()).unwrap_or(u32::MAX) >= self.team.spec().min_links
    }

    fn absorb(&mut self, change: TeamChange, effects: &mut Effects) {
        for announcement in change.announcements {
            let (switch, member) = (self.switch, PortId(announcement.member.0));
            effects.announcements.insert(announcement.port, AnnouncementTarget { switch, member });
        }
        for event in change.events {
            effects.drafts.push(self.team_event(&event).rate_limited());
        }
    }

    /// Returns the reason why a member cannot be used.
    pub(crate) fn fault_text(&self, member: &Member, fault: MemberFault) -> String {
        let state = self.lacp.as_ref().and_then(|side| side.lacp.member_state(member.id()));
        member.fault_text(fault, state.map(|state| state.reason))
    }

    /// Returns the name of a member, including one that has just left.
    pub(crate) fn name_of(&self, member: MemberId) -> &str {
        self.names.get(&member).map_or("?", |name| name.as_str())
    }
}

fn spec(plan: &RequiredTeam, members: &[Member]) -> TeamSpec {
    let id_of = |name: &Option<Name>| {
        let named_member = members.iter().find(|member| Some(member.name()) == name.as_ref());
        named_member.map(Member::id)
    };
    TeamSpec {
        id: TeamId(plan.id.0),
        mode: match plan.config.mode {
            TeamMode::Static => suimon_teaming::TeamMode::Static,
            TeamMode::Lacp => suimon_teaming::TeamMode::Lacp,
            TeamMode::SwitchIndependent => suimon_teaming::TeamMode::SwitchIndependent,
        },
        algorithm: match plan.config.algorithm {
            TeamAlgorithm::HyperVPort => Algorithm::HyperVPort,
            TeamAlgorithm::TransportPorts => Algorithm::TransportPorts,
            TeamAlgorithm::IpAddresses => Algorithm::IpAddresses,
            TeamAlgorithm::MacAddresses => Algorithm::MacAddresses,
            TeamAlgorithm::Dynamic => Algorithm::Dynamic,
        },
        members: members.iter().map(|m| MemberSpec { id: m.id(), mac: m.mac }).collect(),
        min_links: u32::from(plan.config.min_links),
        standby: id_of(&plan.config.standby),
        primary: id_of(&plan.config.primary),
    }
}
