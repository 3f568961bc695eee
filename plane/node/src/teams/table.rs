//! Table of all teams.

use std::collections::BTreeMap;
use std::sync::Arc;

use suimon_contract::Name;
use suimon_quantity::{PortId, Time};
use suimon_recording::RecordSink;
use suimon_teaming::Distribution;

use super::effects::Effects;
use super::inbox::LinkReport;
use super::member::ControlSocketState;
use super::required_team::RequiredTeam;
use super::sockets::RequiredSocket;
use super::team_entry::{TeamEntry, TeamError};
use crate::SwitchPlane;

/// Teams that switches use, and their pending effects.
#[derive(Clone, Default)]
pub(crate) struct TeamTable {
    teams: BTreeMap<Name, TeamEntry>,
    effects: Effects,
}

impl TeamTable {
    /// Changes the teams to the required state.
    ///
    /// # Errors
    /// A team's configuration is invalid. The table is then in an undefined state, and the caller
    /// must discard it.
    pub(crate) fn update(
        &mut self,
        plans: Vec<RequiredTeam>,
        now: Time,
        sink: Option<&Arc<dyn RecordSink>>,
    ) -> Result<(), TeamError> {
        let is_planned = |entry: &TeamEntry| {
            plans.iter().any(|plan| plan.config.name == entry.name && plan.id == entry.id)
        };
        for entry in self.teams.values_mut().filter(|entry| !is_planned(entry)) {
            entry.end_lacp(now, &mut self.effects);
        }
        self.teams.retain(|_, entry| is_planned(entry));
        for plan in plans {
            let name = plan.config.name.clone();
            if !self.teams.contains_key(&name) {
                self.teams.insert(name.clone(), TeamEntry::new(&plan, now, sink)?);
            }
            if let Some(entry) = self.teams.get_mut(&name) {
                entry.update(&plan, now, &mut self.effects)?;
            }
        }
        Ok(())
    }

    pub(crate) fn find(&self, name: &Name) -> Option<&TeamEntry> {
        self.teams.get(name)
    }

    /// Returns the current distribution of each team.
    pub(crate) fn distributions(&self) -> BTreeMap<Name, Arc<Distribution>> {
        let teams = self.teams.iter();
        teams.map(|(name, entry)| (name.clone(), entry.team.distribution().clone())).collect()
    }

    /// Records that the plane has the current distributions.
    pub(crate) fn mark_published(&mut self) {
        self.teams.values_mut().for_each(TeamEntry::mark_published);
    }

    /// Processes the link state of the member whose device has this port. Passes the new
    /// distribution to the plane at once; LACPDUs, announcements and events wait for
    /// [`Self::poll`].
    pub(crate) fn handle_link(
        &mut self,
        port: PortId,
        report: LinkReport,
        plane: &dyn SwitchPlane,
        now: Time,
    ) {
        let Some((entry, index)) = self.member_at(port) else { return };
        // The state is from a device that was closed, or from one opened later, whose state the
        // table reads itself.
        if entry.0.members.get(index).is_none_or(|m| m.properties.generation != report.generation) {
            return;
        }
        let (entry, effects) = entry;
        if report.was_down && report.link.is_up {
            entry.handle_link(index, suimon_ports::LinkProperties::default(), now, effects);
        }
        entry.handle_link(index, report.link, now, effects);
        entry.publish_distribution(plane);
    }

    pub(crate) fn handle_control(&mut self, port: PortId, control: ControlSocketState, now: Time) {
        if let Some(((entry, effects), index)) = self.member_at(port) {
            entry.handle_control(index, control, now, effects);
        }
    }

    pub(crate) fn handle_frame(&mut self, port: PortId, frame: &[u8], now: Time) {
        if let Some(((entry, _), index)) = self.member_at(port) {
            entry.handle_frame(index, frame, now);
        }
    }

    /// Returns the team and index of the member whose device has this port.
    fn member_at(&mut self, port: PortId) -> Option<((&mut TeamEntry, &mut Effects), usize)> {
        let effects = &mut self.effects;
        self.teams
            .values_mut()
            .find_map(|entry| {
                let index = entry.member_index(port)?;
                Some((entry, index))
            })
            .map(|(entry, index)| ((entry, effects), index))
    }

    /// Processes everything that is due, and returns the effects for the caller to execute.
    pub(crate) fn poll(&mut self, plane: &dyn SwitchPlane, now: Time) -> Effects {
        for entry in self.teams.values_mut() {
            entry.poll(now, &mut self.effects);
            entry.tick(plane, now, &mut self.effects);
            entry.publish_distribution(plane);
            entry.flush_recording();
        }
        std::mem::take(&mut self.effects)
    }

    /// Returns the next deadline; `None` without teams.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.teams.values().map(TeamEntry::next_deadline).min()
    }

    /// Returns the control sockets that members need. Announcements need them in all modes.
    pub(crate) fn required_sockets(&self) -> BTreeMap<PortId, RequiredSocket> {
        let members = self.teams.values().flat_map(|entry| &entry.members);
        let with_control =
            members.filter(|m| m.properties.is_open && m.properties.supports_control_socket);
        with_control
            .map(|member| {
                let properties = &member.properties;
                let required = RequiredSocket {
                    uplink: properties.uplink.clone(),
                    device: properties.device.clone(),
                    generation: properties.generation,
                };
                (properties.port, required)
            })
            .collect()
    }

    /// Ends LACP of all teams. The returned effects contain the last LACPDUs to the partners.
    pub(crate) fn end_lacp(&mut self, now: Time) -> Effects {
        for entry in self.teams.values_mut() {
            entry.end_lacp(now, &mut self.effects);
            entry.flush_recording();
        }
        std::mem::take(&mut self.effects)
    }
}
