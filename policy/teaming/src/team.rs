//! Control side of a team: state of its members, and construction of distributions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use suimon_frame::MacAddr;
use suimon_quantity::PortId;

use crate::build::{DistributionInputs, active_slots, assignment_key, assigns_ports, weights};
use crate::distribution::BUCKETS;
use crate::item_assignment::ItemAssignment;
use crate::member_roles::MemberRoles;
use crate::member_table::MemberTable;
use crate::rebalance::Rebalancer;
use crate::slots::SlotSet;
use crate::{
    Algorithm, AnnounceRequest, BucketLoad, Distribution, MemberId, MemberLink, TeamChange,
    TeamMode, TeamSpec, TeamSpecError, UnknownMember,
};

/// Port of the switch that has the team as its uplink. The port of the team itself is not included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamPort {
    /// Identifier of a port on the team's switch.
    pub id: PortId,
    /// Configured MAC address of the port; `None` if it has none.
    pub mac: Option<MacAddr>,
}

/// State of a member in its team, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    /// Link state as last reported.
    pub link: MemberLink,
    /// True if the link is up and, with LACP, the member may distribute.
    pub is_usable: bool,
    /// True if the member carries frames while the team is up. An idle standby is usable but not
    /// active.
    pub is_active: bool,
    /// True if the member is the single receiver, and the member for ports unknown to the team.
    pub is_primary: bool,
    /// True if the member is the configured standby.
    pub is_standby: bool,
    /// Number of flow buckets assigned to the member, out of [`BUCKETS`].
    pub buckets: u32,
    /// Number of port addresses assigned to the member; 0 if ports are not assigned to members.
    pub assigned_ports: u32,
}

/// Address of a port and member by which upstream switches see it.
type PortLocation = (Option<MacAddr>, MemberId);

/// Control side of a team: processes links, ports, configuration and loads, and returns the
/// resulting [`TeamChange`].
///
/// A team starts with all links down and no ports. Repeating an input has no effect.
#[derive(Clone, Debug)]
pub struct Team {
    spec: TeamSpec,
    roster: MemberTable,
    standing: MemberRoles,
    ports: BTreeMap<PortId, Option<MacAddr>>,
    port_members: ItemAssignment,
    buckets: ItemAssignment,
    rebalancer: Rebalancer,
    locations: BTreeMap<PortId, PortLocation>,
    /// Slots of the members that carry frames while the team is up.
    active: SlotSet,
    distribution: Arc<Distribution>,
}

impl Team {
    /// Creates a team with all links down.
    ///
    /// # Errors
    ///
    /// The contradiction in the configuration.
    pub fn new(spec: TeamSpec) -> Result<Self, TeamSpecError> {
        spec.check()?;
        let mut roster = MemberTable::default();
        roster.set_members(&spec.members);
        let (standing, ports) = (MemberRoles::default(), BTreeMap::new());
        let (port_members, mut buckets) = (ItemAssignment::default(), ItemAssignment::default());
        buckets.set_items(0..BUCKETS as u64);
        let distribution = Arc::new(
            DistributionInputs {
                spec: &spec,
                member_table: &roster,
                roles: &standing,
                ports: &ports,
                assignments: &port_members,
                bucket_assignments: &buckets,
                weights: &weights(SlotSet::default(), &roster),
            }
            .build(),
        );
        Ok(Self {
            spec,
            roster,
            standing,
            ports,
            port_members,
            buckets,
            rebalancer: Rebalancer::default(),
            locations: BTreeMap::new(),
            active: SlotSet::default(),
            distribution,
        })
    }

    /// Returns the configuration in effect.
    pub const fn spec(&self) -> &TeamSpec {
        &self.spec
    }

    /// Returns the distribution in effect.
    pub const fn distribution(&self) -> &Arc<Distribution> {
        &self.distribution
    }

    /// Processes the link state of a member.
    ///
    /// # Errors
    ///
    /// The member is not in the team.
    pub fn handle_member_link(
        &mut self,
        member: MemberId,
        link: MemberLink,
    ) -> Result<TeamChange, UnknownMember> {
        if !self.roster.set_link(member, link) {
            let members = self.spec.members.iter().map(|spec| spec.id).collect();
            return Err(UnknownMember { member, members });
        }
        Ok(self.refresh())
    }

    /// Sets the ports of the switch, each once, without the port of the team.
    pub fn set_ports(&mut self, ports: &[TeamPort]) -> TeamChange {
        self.ports = ports.iter().map(|port| (port.id, port.mac)).collect();
        let keys: BTreeSet<u64> =
            self.ports.iter().map(|(port, mac)| assignment_key(*port, *mac)).collect();
        self.port_members.set_items(keys.into_iter());
        self.refresh()
    }

    /// Changes the configuration. Members that stay in the team keep their links, and their ports
    /// and flows where the new configuration permits.
    ///
    /// # Errors
    ///
    /// The contradiction in the configuration; the previous one stays in effect.
    pub fn set_spec(&mut self, spec: TeamSpec) -> Result<TeamChange, TeamSpecError> {
        if spec.id != self.spec.id {
            return Err(TeamSpecError::WrongTeam { team: self.spec.id, named_team: spec.id });
        }
        spec.check()?;
        if spec.algorithm != self.spec.algorithm {
            self.rebalancer = Rebalancer::default();
        }
        self.roster.set_members(&spec.members);
        self.spec = spec;
        Ok(self.refresh())
    }

    /// Processes the traffic of each bucket in the last
    /// [`REBALANCE_PERIOD`](crate::REBALANCE_PERIOD). No effect unless the algorithm is `Dynamic`.
    pub fn handle_loads(&mut self, loads: &[BucketLoad; BUCKETS]) -> TeamChange {
        if self.spec.algorithm != Algorithm::Dynamic || self.active.is_empty() {
            return TeamChange::default();
        }
        let mut buckets = self.distribution.buckets;
        let weights = weights(self.active, &self.roster);
        self.rebalancer.handle_period(loads, &mut buckets, self.active, &weights);
        for (bucket, slot) in (0..).zip(buckets) {
            self.buckets.assign(bucket, slot);
        }
        self.refresh()
    }

    /// Returns the state of a member; `None` if it is not in the team.
    pub fn member_status(&self, member: MemberId) -> Option<MemberStatus> {
        let slot = self.roster.slot(member)?;
        let is_active = self.standing.active.contains(&member);
        let has_homes = assigns_ports(self.spec.mode, self.spec.algorithm);
        Some(MemberStatus {
            link: self.roster.entry(slot)?.link,
            is_usable: self.standing.usable.contains(&member),
            is_active,
            is_primary: self.standing.primary == Some(member),
            is_standby: self.spec.standby == Some(member),
            buckets: if is_active { self.buckets.count(slot) } else { 0 },
            assigned_ports: if is_active && has_homes { self.port_members.count(slot) } else { 0 },
        })
    }

    /// Returns the member assigned to a port, also while the team is down; `None` if ports are not
    /// assigned to members or the port is unknown.
    pub fn assigned_member(&self, port: PortId) -> Option<MemberId> {
        if !assigns_ports(self.spec.mode, self.spec.algorithm) {
            return None;
        }
        let slot =
            self.port_members.assigned_member(assignment_key(port, *self.ports.get(&port)?))?;
        self.roster.entry(slot).map(|entry| entry.id)
    }

    /// Derives roles, assignments and distribution from configuration, links and ports, and returns
    /// the changes.
    fn refresh(&mut self) -> TeamChange {
        let standing = MemberRoles::derive(&self.spec, &self.roster, self.standing.primary);
        let events = standing.events_since(&self.standing, &self.spec, &self.roster);
        let active = active_slots(&standing, &self.roster);
        for slot in self.active.without(active).iter() {
            self.roster.invalidate_flowlets(slot);
        }
        let weights = weights(active, &self.roster);
        self.port_members.rebalance(active, &weights, active);
        // With `Dynamic`, loads determine the buckets; counts apply only to members that just
        // became active.
        let receivers = match self.spec.algorithm {
            Algorithm::Dynamic => active.without(self.active),
            _ => active,
        };
        self.buckets.rebalance(active, &weights, receivers);
        self.active = active;
        self.standing = standing;
        let distribution = DistributionInputs {
            spec: &self.spec,
            member_table: &self.roster,
            roles: &self.standing,
            ports: &self.ports,
            assignments: &self.port_members,
            bucket_assignments: &self.buckets,
            weights: &weights,
        }
        .build();
        let is_new = distribution != *self.distribution;
        if is_new {
            self.distribution = Arc::new(distribution);
        }
        TeamChange {
            distribution: is_new.then(|| Arc::clone(&self.distribution)),
            announcements: self.announce(),
            events,
        }
    }

    /// Updates the recorded locations of the ports, and returns an announcement for each port whose
    /// location changed.
    fn announce(&mut self) -> Vec<AnnounceRequest> {
        let locations = self.port_locations();
        let announcements = locations
            .iter()
            .filter(|(port, member)| self.locations.get(port) != Some(member))
            .map(|(port, (_, member))| AnnounceRequest { port: *port, member: *member })
            .collect();
        self.locations = locations;
        announcements
    }

    /// Returns by port the address and member by which upstream switches see it. Empty while the
    /// team is down, and in modes other than switch-independent, in which upstream switches see the
    /// team as one logical port.
    fn port_locations(&self) -> BTreeMap<PortId, PortLocation> {
        if self.spec.mode != TeamMode::SwitchIndependent || !self.standing.is_up {
            return BTreeMap::new();
        }
        self.ports
            .iter()
            .filter_map(|(port, mac)| {
                let slot = self.distribution.source_member(*port)?;
                Some((*port, (*mac, self.distribution.member(slot)?)))
            })
            .collect()
    }
}

#[cfg(test)]
#[path = "team_tests.rs"]
mod tests;
