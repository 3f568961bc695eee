//! Construction of a [`Distribution`] from the state of a team.

use std::collections::{BTreeMap, BTreeSet};

use suimon_frame::{FlowFields, MacAddr};
use suimon_quantity::PortId;

use crate::addresses::replacement_sources;
use crate::distribution::{BUCKETS, DistributionMethod, IngressMode};
use crate::flowlet::{FlowletMember, FlowletRules, ns_per_kib};
use crate::item_assignment::{ItemAssignment, Weights};
use crate::member_roles::MemberRoles;
use crate::member_table::MemberTable;
use crate::slot_map::SlotMap;
use crate::slots::{PerSlot, SlotSet};
use crate::{Algorithm, Distribution, MemberId, MemberSlot, TeamMode, TeamSpec};

/// State of a team from which a [`Distribution`] is built.
pub(crate) struct DistributionInputs<'a> {
    pub(crate) spec: &'a TeamSpec,
    pub(crate) member_table: &'a MemberTable,
    pub(crate) roles: &'a MemberRoles,
    pub(crate) ports: &'a BTreeMap<PortId, Option<MacAddr>>,
    pub(crate) assignments: &'a ItemAssignment,
    pub(crate) bucket_assignments: &'a ItemAssignment,
    pub(crate) weights: &'a Weights,
}

/// Returns true if this combination of mode and algorithm assigns each switch port to one member.
pub(crate) fn assigns_ports(mode: TeamMode, algorithm: Algorithm) -> bool {
    algorithm == Algorithm::HyperVPort || receives(mode, algorithm) == IngressMode::PerPort
}

fn receives(mode: TeamMode, algorithm: Algorithm) -> IngressMode {
    match (mode, algorithm) {
        (TeamMode::Static | TeamMode::Lacp, _) => IngressMode::All,
        (_, Algorithm::HyperVPort | Algorithm::Dynamic) => IngressMode::PerPort,
        _ => IngressMode::Primary,
    }
}

/// Returns the key of a port in the assignment of ports to members. Ports with the same address on
/// different VLANs share the key and thus the member, because the upstream switch may learn
/// addresses independently of the VLAN.
pub(crate) fn assignment_key(port: PortId, mac: Option<MacAddr>) -> u64 {
    mac.map_or(1 << 48 | u64::from(port.0), MacAddr::to_u64)
}

/// Returns the slots of the active members: those that carry frames.
pub(crate) fn active_slots(standing: &MemberRoles, roster: &MemberTable) -> SlotSet {
    let is_active = |id: MemberId| standing.active.contains(&id);
    roster.entries().filter(|(_, entry)| is_active(entry.id)).map(|(slot, _)| slot).collect()
}

/// Returns the capacities of the active members in Mbit/s, by slot. A member of unknown speed
/// counts as the slowest of known speed.
pub(crate) fn weights(active: SlotSet, roster: &MemberTable) -> Weights {
    let speed = |slot| roster.entry(slot).map_or(0, |entry| entry.link.speed_mbps);
    let slowest = active.iter().map(speed).filter(|speed| *speed > 0).min().unwrap_or(1);
    let mut weights = Weights::default();
    for slot in active.iter() {
        *weights.at_mut(slot) = match speed(slot) {
            0 => slowest,
            speed => speed,
        };
    }
    weights
}

impl DistributionInputs<'_> {
    pub(crate) fn build(&self) -> Distribution {
        let (mode, algorithm) = (self.spec.mode, self.spec.algorithm);
        let spread = spread(algorithm);
        let macs: BTreeSet<MacAddr> = self.ports.values().flatten().copied().collect();
        let sources = replacement_sources(self.member_table, &macs);
        let is_independent = mode == TeamMode::SwitchIndependent;
        let primary = self.roles.primary.and_then(|member| self.member_table.slot(member));
        Distribution {
            team: self.spec.id,
            is_up: self.roles.is_up,
            method: spread,
            ingress_mode: receives(mode, algorithm),
            replaces_source: is_independent && spread != DistributionMethod::PerPort,
            primary,
            collecting: self.collecting(),
            idle_standby: self.idle_standby(),
            ids: self.ids(),
            port_members: self.port_members(),
            own_addresses: own_addresses(&macs, self.member_table, &sources),
            replacement_sources: sources,
            buckets: self.buckets(primary),
            flowlets: self.flowlets(),
        }
    }

    fn collecting(&self) -> SlotSet {
        if self.spec.mode == TeamMode::SwitchIndependent {
            return active_slots(self.roles, self.member_table);
        }
        let is_lacp = self.spec.mode == TeamMode::Lacp;
        let entries = self.member_table.entries();
        let collecting =
            entries.filter(|(_, entry)| entry.link.up && (!is_lacp || entry.link.collecting));
        collecting.map(|(slot, _)| slot).collect()
    }

    fn idle_standby(&self) -> Option<MemberSlot> {
        let standby = self.spec.standby?;
        if self.roles.standby_for.is_some() { None } else { self.member_table.slot(standby) }
    }

    fn ids(&self) -> PerSlot<Option<MemberId>> {
        let mut ids = PerSlot::default();
        for (slot, entry) in self.member_table.entries() {
            *ids.at_mut(slot) = Some(entry.id);
        }
        ids
    }

    fn port_members(&self) -> SlotMap {
        if !assigns_ports(self.spec.mode, self.spec.algorithm) {
            return SlotMap::new(&[]);
        }
        let members = self.ports.iter().filter_map(|(port, mac)| {
            Some((
                u64::from(port.0),
                self.assignments.assigned_member(assignment_key(*port, *mac))?,
            ))
        });
        SlotMap::new(&members.collect::<Vec<_>>())
    }

    fn buckets(&self, primary: Option<MemberSlot>) -> [MemberSlot; BUCKETS] {
        // Without active members no bucket is used, so its value is irrelevant.
        let fallback = primary.unwrap_or(MemberSlot::from_number(0));
        let mut buckets = [fallback; BUCKETS];
        for (bucket, slot) in (0..).zip(&mut buckets) {
            *slot = self.bucket_assignments.assigned_member(bucket).unwrap_or(fallback);
        }
        buckets
    }

    fn flowlets(&self) -> FlowletRules {
        let mut members = PerSlot::default();
        for slot in active_slots(self.roles, self.member_table).iter() {
            *members.at_mut(slot) = FlowletMember {
                generation: self.member_table.generation(slot),
                ns_per_kib: ns_per_kib(*self.weights.at(slot)),
            };
        }
        FlowletRules::new(members)
    }
}

fn spread(algorithm: Algorithm) -> DistributionMethod {
    match algorithm {
        Algorithm::HyperVPort => DistributionMethod::PerPort,
        Algorithm::TransportPorts => DistributionMethod::Buckets(FlowFields::Ports),
        Algorithm::IpAddresses => DistributionMethod::Buckets(FlowFields::Addresses),
        Algorithm::MacAddresses => DistributionMethod::Buckets(FlowFields::Macs),
        Algorithm::Dynamic => DistributionMethod::Flowlets(FlowFields::Ports),
    }
}

/// Returns the set of addresses that only this host sends from: those of the ports and members, and
/// the replacement addresses of members. The slots in the map have no meaning.
fn own_addresses(
    ports: &BTreeSet<MacAddr>,
    roster: &MemberTable,
    sources: &PerSlot<MacAddr>,
) -> SlotMap {
    let members = roster.entries().flat_map(|(slot, entry)| [entry.mac, *sources.at(slot)]);
    let addresses: BTreeSet<MacAddr> = ports.iter().copied().chain(members).collect();
    let unused_slot = MemberSlot::from_number(0);
    SlotMap::new(&addresses.iter().map(|mac| (mac.to_u64(), unused_slot)).collect::<Vec<_>>())
}
