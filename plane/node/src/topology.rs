//! Desired state as the switching plane's tables.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use suimon_contract::{HostConfig, Name, NicConfig, SwitchConfig, SwitchKind};
use suimon_forwarding::{self as forwarding, PortRole, VlanMode, VlanSet};
use suimon_frame::{Offloads, VlanId};
use suimon_offload::{Capability, PortKind, Reason, Side, effective};
use suimon_ports::OffloadSwitches;
use suimon_quantity::{BitRate, PortId, SwitchId};
use suimon_switch::{PortTopology, Topology};

use crate::PortKey;
use crate::wanted::{WantedPorts, host_nic_mtu, offload_switches};

/// The identifiers in use. An identifier is never given out twice while the
/// daemon runs, not even after a change that was rolled back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ids {
    switches: BTreeMap<Name, SwitchId>,
    ports: BTreeMap<PortKey, PortId>,
    switches_given: u32,
    ports_given: u32,
}

impl Ids {
    /// The identifier of a port, if it has one.
    pub(crate) fn port(&self, key: &PortKey) -> Option<PortId> {
        self.ports.get(key).copied()
    }

    /// The identifier of a switch, if it has one.
    pub(crate) fn switch(&self, name: &Name) -> Option<SwitchId> {
        self.switches.get(name).copied()
    }

    /// Gives an identifier to everything that has none yet.
    pub(crate) fn assign(&mut self, config: &HostConfig, wanted: &WantedPorts) {
        for switch in &config.switches {
            if !self.switches.contains_key(&switch.name) {
                self.switches.insert(switch.name.clone(), SwitchId(self.switches_given));
                self.switches_given = self.switches_given.wrapping_add(1);
            }
        }
        for key in wanted.keys() {
            if !self.ports.contains_key(key) {
                self.ports.insert(key.clone(), PortId(self.ports_given));
                self.ports_given = self.ports_given.wrapping_add(1);
            }
        }
    }

    /// Forgets what is no longer there.
    pub(crate) fn release(&mut self, config: &HostConfig, wanted: &WantedPorts) {
        let switches: BTreeSet<&Name> = config.switches.iter().map(|s| &s.name).collect();
        self.switches.retain(|name, _| switches.contains(name));
        self.ports.retain(|key, _| wanted.contains_key(key));
    }
}

/// The tables for `config`. `device_mtu` says what MTU an open device has, for
/// uplinks that keep their own. Ports without an identifier are left out.
pub(crate) fn topology(
    config: &HostConfig,
    ids: &Ids,
    device_mtu: &dyn Fn(&PortKey) -> Option<u16>,
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
    for nic in &config.nics {
        ports.extend(nic_port(nic, ids));
    }
    for switch in &config.switches {
        ports.extend(host_nic_port(config, switch, ids));
        ports.extend(uplink_port(config, switch, ids, device_mtu));
    }
    Topology { switches, ports, teams: Vec::new() }
}

fn nic_port(nic: &NicConfig, ids: &Ids) -> Option<PortTopology> {
    let id = ids.port(&PortKey::Nic(nic.name.clone()))?;
    let switch = ids.switch(&nic.switch)?;
    let mut spec = forwarding::PortSpec::new(id, switch, PortRole::Nic);
    spec.vlan = vlan_mode(nic);
    spec.mac = nic.mac;
    spec.spoofing_allowed = nic.mac_spoofing;
    spec.isolated = nic.isolated;
    spec.mtu = nic.mtu;
    spec.learned_max = nic.learned_max;
    Some(PortTopology {
        spec,
        bandwidth: nic.bandwidth_max_bps.and_then(BitRate::new),
        storm_limit_fps: nic.storm_limit_fps,
        receive_coalescing: nic.offload.receive_coalescing,
    })
}

/// `vlan` and `trunk` of a NIC. A trunk without a native VLAN carries the
/// switch's untagged network untagged.
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

fn host_nic_port(config: &HostConfig, switch: &SwitchConfig, ids: &Ids) -> Option<PortTopology> {
    if switch.kind != SwitchKind::Internal {
        return None;
    }
    let id = ids.port(&PortKey::HostNic(switch.name.clone()))?;
    let mut spec = forwarding::PortSpec::new(id, ids.switch(&switch.name)?, PortRole::HostNic);
    spec.mtu = host_nic_mtu(config, switch);
    let receive_coalescing = switch.host_offload.receive_coalescing;
    Some(PortTopology { spec, bandwidth: None, storm_limit_fps: None, receive_coalescing })
}

/// The uplink of an external switch carries every VLAN, the untagged network
/// untagged, and may learn as many addresses as the switch can hold.
fn uplink_port(
    config: &HostConfig,
    switch: &SwitchConfig,
    ids: &Ids,
    device_mtu: &dyn Fn(&PortKey) -> Option<u16>,
) -> Option<PortTopology> {
    let name = switch.uplink.as_ref()?;
    let uplink = config.uplinks.iter().find(|uplink| &uplink.name == name)?;
    let key = PortKey::Uplink(name.clone());
    let mut spec =
        forwarding::PortSpec::new(ids.port(&key)?, ids.switch(&switch.name)?, PortRole::Uplink);
    let mtu = uplink.mtu.or_else(|| device_mtu(&key)).unwrap_or(spec.mtu);
    // A device may have an MTU beyond the switch's own range (65 535 on some).
    spec.mtu = mtu.clamp(forwarding::MTU_MIN, forwarding::MTU_MAX);
    spec.learned_max = UPLINK_LEARNED_MAX;
    let receive_coalescing = hands_over_joined(&offload_switches(&uplink.offload));
    Some(PortTopology { spec, bandwidth: None, storm_limit_fps: None, receive_coalescing })
}

/// Whether what an uplink received may go on joined. Both kinds of uplink carry large
/// TCP frames, so the switches alone decide.
fn hands_over_joined(switches: &OffloadSwitches) -> bool {
    let received = effective(Offloads::TCP, switches, PortKind::Uplink, Side::Ingress);
    received.reason(Capability::ReceiveCoalescing) == Some(Reason::On)
}

/// Addresses learned behind one uplink at most: a large layer-2 domain.
const UPLINK_LEARNED_MAX: u32 = 65_536;
