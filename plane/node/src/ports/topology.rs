//! Conversion of the desired state to the forwarding tables of the switching plane.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use suimon_contract::{
    HostConfig, Name, NicConfig, SwitchConfig, SwitchKind, TeamConfig, UplinkConfig,
};
use suimon_forwarding::{self as forwarding, PortRole, VlanMode, VlanSet};
use suimon_frame::VlanId;
use suimon_offload::OffloadReason;
use suimon_quantity::{BitRate, PortId, SwitchId};
use suimon_switch::{PortTopology, TeamMember, TeamTopology, Topology};
use suimon_teaming::{Distribution, MemberId};

use crate::PortKey;
use crate::offloads::{offload_toggles, uplink_coalescing};
use crate::ports::bound_addresses::{Binding, binds_source};
use crate::ports::desired::{RequiredPorts, host_nic_mtu, required_teams};

/// Identifiers of switches, ports and teams in use. No identifier is assigned twice while the
/// daemon runs, not even after a change that was rolled back.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlaneIds {
    switches: BTreeMap<Name, SwitchId>,
    ports: BTreeMap<PortKey, PortId>,
    switches_given: u32,
    ports_given: u32,
}

impl PlaneIds {
    /// Returns the identifier of a port.
    pub(crate) fn port(&self, key: &PortKey) -> Option<PortId> {
        self.ports.get(key).copied()
    }

    /// Returns the teams that have identifiers. Teams have no device and are not in the port table.
    pub(crate) fn teams(&self) -> impl Iterator<Item = (&PortKey, PortId)> {
        let teams = self.ports.iter().filter(|(key, _)| matches!(key, PortKey::Team(_)));
        teams.map(|(key, id)| (key, *id))
    }

    /// Returns the names of ports: that of their NIC, uplink, team or switch.
    pub(crate) fn port_names(&self) -> BTreeMap<u32, String> {
        self.ports.iter().map(|(key, id)| (id.0, key.name().to_string())).collect()
    }

    /// Returns the identifier of a switch.
    pub(crate) fn switch(&self, name: &Name) -> Option<SwitchId> {
        self.switches.get(name).copied()
    }

    /// Assigns identifiers to switches, ports and teams without one.
    pub(crate) fn assign(&mut self, config: &HostConfig, required: &RequiredPorts) {
        for switch in &config.switches {
            if !self.switches.contains_key(&switch.name) {
                self.switches.insert(switch.name.clone(), SwitchId(self.switches_given));
                self.switches_given = self.switches_given.wrapping_add(1);
            }
        }
        let teams = required_teams(config).map(|(team, _)| PortKey::Team(team.name.clone()));
        for key in required.keys().cloned().chain(teams) {
            if !self.ports.contains_key(&key) {
                self.ports.insert(key, PortId(self.ports_given));
                self.ports_given = self.ports_given.wrapping_add(1);
            }
        }
    }

    /// Removes the identifiers of objects that the configuration does not contain.
    pub(crate) fn release(&mut self, config: &HostConfig, required: &RequiredPorts) {
        let switches: BTreeSet<&Name> = config.switches.iter().map(|s| &s.name).collect();
        self.switches.retain(|name, _| switches.contains(name));
        let teams: BTreeSet<&Name> = required_teams(config).map(|(team, _)| &team.name).collect();
        self.ports.retain(|key, _| match key {
            PortKey::Team(name) => teams.contains(name),
            _ => required.contains_key(key),
        });
    }
}

/// Returns the tables for `config`.
///
/// - `device_mtu`: MTU of open devices, for uplinks without a configured MTU
/// - `distributions`: frame distributions of teams
/// - `bound`: addresses bound to NICs without `mac`
///
/// Ports without an identifier and teams without a distribution are omitted.
pub(crate) fn topology(
    config: &HostConfig,
    ids: &PlaneIds,
    device_mtu: &dyn Fn(&PortKey) -> Option<u16>,
    distributions: &BTreeMap<Name, Arc<Distribution>>,
    bound: &BTreeMap<Name, Binding>,
) -> Topology {
    let switches = config
        .switches
        .iter()
        .filter_map(|switch| {
            let id = ids.switch(&switch.name)?;
            let ageing = Duration::from_secs(u64::from(switch.ageing_s));
            Some(forwarding::SwitchSpec { id, ageing })
        })
        .collect();
    let mut ports = Vec::new();
    for nic in config.nics.iter().filter(|nic| config.is_connected(nic)) {
        ports.extend(nic_port(nic, ids, bound.get(&nic.name).copied()));
    }
    for switch in &config.switches {
        ports.extend(host_nic_port(config, switch, ids));
        ports.extend(uplink_port(config, switch, ids, device_mtu));
    }
    let mut teams = Vec::new();
    for (team, switch) in required_teams(config) {
        let Some(distribution) = distributions.get(&team.name) else { continue };
        let port = team_port(config, team, switch, ids, device_mtu);
        teams.extend(port.as_ref().map(|port| TeamTopology {
            port: port.spec.id,
            members: team_members(team, ids),
            distribution: distribution.clone(),
        }));
        ports.extend(port);
    }
    Topology { switches, ports, teams }
}

fn nic_port(nic: &NicConfig, ids: &PlaneIds, bound: Option<Binding>) -> Option<PortTopology> {
    let id = ids.port(&PortKey::Nic(nic.name.clone()))?;
    let switch = ids.switch(&nic.switch)?;
    let mut spec = forwarding::ForwardingPortSpec::new(id, switch, PortRole::Nic);
    spec.vlan = vlan_mode(nic);
    spec.mac = nic.mac;
    spec.spoofing_allowed = nic.mac_spoofing;
    spec.bound_address = bound.map(|binding| binding.mac);
    spec.binds_source = binds_source(nic) && !bound.is_some_and(|binding| binding.is_confirmed);
    spec.isolated = nic.isolated;
    spec.mtu = nic.mtu;
    spec.learned_addresses_max = nic.learned_macs_max;
    Some(PortTopology {
        spec,
        bandwidth: nic.bandwidth_max_bps.and_then(BitRate::new),
        storm_limit_fps: nic.storm_limit_fps,
        receive_coalescing: nic.offload.receive_coalescing,
    })
}

/// Returns the VLAN mode from `vlan` and `trunk` of a NIC. A trunk without a native VLAN carries
/// the switch's untagged network untagged.
fn vlan_mode(nic: &NicConfig) -> VlanMode {
    let Some(trunk) = &nic.trunk else { return VlanMode::Access(nic.vlan) };
    let mut allowed: VlanSet = trunk
        .0
        .iter()
        .flat_map(|range| range.first().get()..=range.last().get())
        .filter_map(VlanId::new)
        .collect();
    if nic.vlan.is_none() {
        allowed.insert_untagged();
    }
    VlanMode::Trunk { allowed, native: nic.vlan }
}

fn host_nic_port(
    config: &HostConfig,
    switch: &SwitchConfig,
    ids: &PlaneIds,
) -> Option<PortTopology> {
    if switch.kind != SwitchKind::Internal {
        return None;
    }
    let id = ids.port(&PortKey::HostNic(switch.name.clone()))?;
    let mut spec =
        forwarding::ForwardingPortSpec::new(id, ids.switch(&switch.name)?, PortRole::HostNic);
    spec.mtu = host_nic_mtu(config, switch);
    let receive_coalescing = switch.host_offload.receive_coalescing;
    Some(PortTopology { spec, bandwidth: None, storm_limit_fps: None, receive_coalescing })
}

/// Returns the uplink port of an external switch; `None` if the switch uses a team.
fn uplink_port(
    config: &HostConfig,
    switch: &SwitchConfig,
    ids: &PlaneIds,
    device_mtu: &dyn Fn(&PortKey) -> Option<u16>,
) -> Option<PortTopology> {
    let name = switch.uplink.as_ref()?;
    let uplink = config.uplinks.iter().find(|uplink| &uplink.name == name)?;
    let key = PortKey::Uplink(name.clone());
    Some(uplink_port_of(ids.port(&key)?, ids.switch(&switch.name)?, &[uplink], device_mtu))
}

/// Returns the port of a team. Its MTU fits all members.
fn team_port(
    config: &HostConfig,
    team: &TeamConfig,
    switch: &SwitchConfig,
    ids: &PlaneIds,
    device_mtu: &dyn Fn(&PortKey) -> Option<u16>,
) -> Option<PortTopology> {
    let members = team.members.iter();
    let members: Vec<&UplinkConfig> = members
        .filter_map(|name| config.uplinks.iter().find(|uplink| &uplink.name == name))
        .collect();
    let id = ids.port(&PortKey::Team(team.name.clone()))?;
    Some(uplink_port_of(id, ids.switch(&switch.name)?, &members, device_mtu))
}

/// Returns the members of a team, identified by their ports.
fn team_members(team: &TeamConfig, ids: &PlaneIds) -> Vec<TeamMember> {
    let ports = team.members.iter().filter_map(|name| ids.port(&PortKey::Uplink(name.clone())));
    ports.map(|port| TeamMember { id: member_id(port), port }).collect()
}

/// Returns the identifier of the team member whose device has this port.
pub(crate) fn member_id(port: PortId) -> MemberId {
    MemberId(port.0)
}

/// Returns the port of an external switch's uplink, or of the uplinks of its team. The port carries
/// all VLANs, the untagged network untagged. Its limit of learned addresses is that of a large
/// layer-2 domain.
fn uplink_port_of(
    id: PortId,
    switch: SwitchId,
    uplinks: &[&UplinkConfig],
    device_mtu: &dyn Fn(&PortKey) -> Option<u16>,
) -> PortTopology {
    let mut spec = forwarding::ForwardingPortSpec::new(id, switch, PortRole::Uplink);
    spec.mtu = smallest_mtu(uplinks, device_mtu).unwrap_or(spec.mtu);
    spec.learned_addresses_max = UPLINK_LEARNED_MAX;
    let is_joined = |uplink: &&UplinkConfig| {
        uplink_coalescing(&offload_toggles(&uplink.offload)) == OffloadReason::On
    };
    let receive_coalescing = uplinks.iter().all(is_joined);
    PortTopology { spec, bandwidth: None, storm_limit_fps: None, receive_coalescing }
}

/// Returns the smallest MTU of the uplinks; `None` if none is configured or reported by a device.
pub(crate) fn smallest_mtu(
    uplinks: &[&UplinkConfig],
    device_mtu: &dyn Fn(&PortKey) -> Option<u16>,
) -> Option<u16> {
    let mtu = |uplink: &&UplinkConfig| {
        uplink.mtu.or_else(|| device_mtu(&PortKey::Uplink(uplink.name.clone())))
    };
    let smallest = uplinks.iter().filter_map(mtu).min()?;
    // The MTU of a device may exceed the switch's range (65 535 on some).
    Some(smallest.clamp(forwarding::MTU_MIN, forwarding::MTU_MAX))
}

/// Maximum number of addresses learned behind one uplink; sized for a large layer-2 domain.
const UPLINK_LEARNED_MAX: u32 = 65_536;

#[cfg(test)]
#[path = "topology_tests.rs"]
mod tests;
