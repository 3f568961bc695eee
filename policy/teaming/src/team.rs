//! A team as the control plane holds it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use suimon_frame::MacAddr;
use suimon_quantity::PortId;

use crate::build::{Parts, active_slots, has_homes, home_key, weights};
use crate::distribution::BUCKETS;
use crate::rebalance::Rebalancer;
use crate::roster::Roster;
use crate::shares::Shares;
use crate::slots::SlotSet;
use crate::standing::Standing;
use crate::{
    Algorithm, Announcement, BucketLoad, Change, Distribution, MemberId, MemberLink, SpecError,
    TeamMode, TeamSpec, UnknownMember,
};

/// A port of the switch that the team is the uplink of; not the team's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamPort {
    /// Which port.
    pub id: PortId,
    /// The address it has by configuration, if any.
    pub mac: Option<MacAddr>,
}

/// What one member does in the team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    /// What was last said of its link.
    pub link: MemberLink,
    /// Whether it could carry frames.
    pub is_usable: bool,
    /// Whether frames leave by it. A standby in waiting is usable and not active.
    pub is_active: bool,
    /// Whether it receives where one member does, and is where ports live that the
    /// team does not know.
    pub is_primary: bool,
    /// Whether it is the standby.
    pub is_standby: bool,
    /// Buckets of flows that leave by it, out of [`BUCKETS`].
    pub buckets: u32,
    /// Addresses of ports that live on it; 0 where ports have no homes.
    pub homes: u32,
}

/// The face that a port shows to switches on the other side: its address and the
/// member that it is on.
type Face = (Option<MacAddr>, MemberId);

/// A team: hears of links, ports, configuration and loads, and says what follows.
///
/// It starts with all links down and no ports. What is said again changes nothing.
#[derive(Clone, Debug)]
pub struct Team {
    spec: TeamSpec,
    roster: Roster,
    standing: Standing,
    ports: BTreeMap<PortId, Option<MacAddr>>,
    homes: Shares,
    buckets: Shares,
    rebalancer: Rebalancer,
    faces: BTreeMap<PortId, Face>,
    /// The places of active members.
    active: SlotSet,
    distribution: Arc<Distribution>,
}

impl Team {
    /// A team with all links down.
    ///
    /// # Errors
    /// What in the specification contradicts itself.
    pub fn new(spec: TeamSpec) -> Result<Self, SpecError> {
        spec.check()?;
        let mut roster = Roster::default();
        roster.set_members(&spec.members);
        let (standing, ports) = (Standing::default(), BTreeMap::new());
        let (homes, mut buckets) = (Shares::default(), Shares::default());
        buckets.set_things(0..BUCKETS as u64);
        let distribution = Arc::new(
            Parts {
                spec: &spec,
                roster: &roster,
                standing: &standing,
                ports: &ports,
                homes: &homes,
                buckets: &buckets,
                weights: &weights(SlotSet::default(), &roster),
            }
            .build(),
        );
        Ok(Self {
            spec,
            roster,
            standing,
            ports,
            homes,
            buckets,
            rebalancer: Rebalancer::default(),
            faces: BTreeMap::new(),
            active: SlotSet::default(),
            distribution,
        })
    }

    /// As it is configured.
    pub const fn spec(&self) -> &TeamSpec {
        &self.spec
    }

    /// The current distribution.
    pub const fn distribution(&self) -> &Arc<Distribution> {
        &self.distribution
    }

    /// Hears of a member's link.
    ///
    /// # Errors
    /// The team does not have this member.
    pub fn handle_member(
        &mut self,
        member: MemberId,
        link: MemberLink,
    ) -> Result<Change, UnknownMember> {
        if !self.roster.set_link(member, link) {
            let members = self.spec.members.iter().map(|spec| spec.id).collect();
            return Err(UnknownMember { member, members });
        }
        Ok(self.refresh())
    }

    /// Hears of all ports of the switch, each once, without the team's own.
    pub fn handle_ports(&mut self, ports: &[TeamPort]) -> Change {
        self.ports = ports.iter().map(|port| (port.id, port.mac)).collect();
        let keys: BTreeSet<u64> =
            self.ports.iter().map(|(port, mac)| home_key(*port, *mac)).collect();
        self.homes.set_things(keys.into_iter());
        self.refresh()
    }

    /// Changes the configuration. Members that stay keep their links, ports and flows
    /// where the new configuration lets them.
    ///
    /// # Errors
    /// What in the specification contradicts itself; nothing was changed.
    pub fn set_spec(&mut self, spec: TeamSpec) -> Result<Change, SpecError> {
        if spec.id != self.spec.id {
            return Err(SpecError::OtherTeam { team: self.spec.id, other: spec.id });
        }
        spec.check()?;
        if spec.algorithm != self.spec.algorithm {
            self.rebalancer = Rebalancer::default();
        }
        self.roster.set_members(&spec.members);
        self.spec = spec;
        Ok(self.refresh())
    }

    /// Hears what each bucket carried in the last
    /// [`REBALANCE_PERIOD`](crate::REBALANCE_PERIOD). Means nothing unless the
    /// algorithm is `Dynamic`.
    pub fn handle_loads(&mut self, loads: &[BucketLoad; BUCKETS]) -> Change {
        if self.spec.algorithm != Algorithm::Dynamic || self.active.is_empty() {
            return Change::default();
        }
        let mut wanted = self.distribution.buckets;
        let weights = weights(self.active, &self.roster);
        self.rebalancer.handle_period(loads, &mut wanted, self.active, &weights);
        for (bucket, slot) in (0..).zip(wanted) {
            self.buckets.set_home(bucket, slot);
        }
        self.refresh()
    }

    /// What a member does; `None` if it is not in the team.
    pub fn member_status(&self, member: MemberId) -> Option<MemberStatus> {
        let slot = self.roster.slot(member)?;
        let is_active = self.standing.active.contains(&member);
        let has_homes = has_homes(self.spec.mode, self.spec.algorithm);
        Some(MemberStatus {
            link: self.roster.seat(slot)?.link,
            is_usable: self.standing.usable.contains(&member),
            is_active,
            is_primary: self.standing.primary == Some(member),
            is_standby: self.spec.standby == Some(member),
            buckets: if is_active { self.buckets.count(slot) } else { 0 },
            homes: if is_active && has_homes { self.homes.count(slot) } else { 0 },
        })
    }

    /// The member that a port lives on, or would if the team were up; `None` if ports
    /// have no homes, or the port is not known.
    pub fn home(&self, port: PortId) -> Option<MemberId> {
        if !has_homes(self.spec.mode, self.spec.algorithm) {
            return None;
        }
        let slot = self.homes.home(home_key(port, *self.ports.get(&port)?))?;
        self.roster.seat(slot).map(|seat| seat.id)
    }

    /// Works everything out anew and says what differs.
    fn refresh(&mut self) -> Change {
        let standing = Standing::of(&self.spec, &self.roster, self.standing.primary);
        let events = standing.events_since(&self.standing, &self.spec, &self.roster);
        let active = active_slots(&standing, &self.roster);
        for slot in self.active.without(active).iter() {
            self.roster.renew(slot);
        }
        let weights = weights(active, &self.roster);
        self.homes.settle(active, &weights, active);
        // Where loads decide, numbers do only for members that had no part in it yet.
        let receivers = match self.spec.algorithm {
            Algorithm::Dynamic => active.without(self.active),
            _ => active,
        };
        self.buckets.settle(active, &weights, receivers);
        self.active = active;
        self.standing = standing;
        let distribution = Parts {
            spec: &self.spec,
            roster: &self.roster,
            standing: &self.standing,
            ports: &self.ports,
            homes: &self.homes,
            buckets: &self.buckets,
            weights: &weights,
        }
        .build();
        let is_new = distribution != *self.distribution;
        if is_new {
            self.distribution = Arc::new(distribution);
        }
        Change {
            distribution: is_new.then(|| Arc::clone(&self.distribution)),
            announcements: self.announce(),
            events,
        }
    }

    /// Notes the ports' faces; says which are new.
    fn announce(&mut self) -> Vec<Announcement> {
        let faces = self.faces_now();
        let announcements = faces
            .iter()
            .filter(|(port, face)| self.faces.get(port) != Some(face))
            .map(|(port, (_, member))| Announcement { port: *port, member: *member })
            .collect();
        self.faces = faces;
        announcements
    }

    /// Where ports show their addresses. In other modes than switch-independent the
    /// switches on the other side see one port, and while the team is down, none.
    fn faces_now(&self) -> BTreeMap<PortId, Face> {
        if self.spec.mode != TeamMode::SwitchIndependent || !self.standing.is_up {
            return BTreeMap::new();
        }
        self.ports
            .iter()
            .filter_map(|(port, mac)| {
                let slot = self.distribution.anchor(*port)?;
                Some((*port, (*mac, self.distribution.member(slot)?)))
            })
            .collect()
    }
}

#[cfg(test)]
#[path = "team_tests.rs"]
mod tests;
