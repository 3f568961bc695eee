//! Construction of the forwarding tables and validation of their input.

use core::time::Duration;
use std::collections::BTreeMap;

use suimon_frame::MacAddr;
use suimon_quantity::{PortId, SwitchId};
use thiserror::Error;

use crate::addresses::duration_to_ticks;
use crate::configured_addresses::ConfiguredAddresses;
use crate::hash;
use crate::key::AddressKey;
use crate::spec::{AGEING_MAX, AGEING_MIN, MTU_MAX, MTU_MIN};
use crate::tables::{Ageing, NO_TRUNK, NO_VLAN, Port, Switch};
use crate::vlan_set::number;
use crate::{ForwardingPortSpec, PortRole, PortSlot, SwitchSpec, Tables, VlanMode, VlanSet};

/// Length of an untagged Ethernet header in bytes.
const ETHERNET_HEADER_BYTES: u16 = 14;

/// Reason for which [`Tables::build`] failed. Nothing was changed; correct the named switch or port
/// and build again.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TablesError {
    /// Two switches have the same identifier.
    #[error("switch {} is listed twice; list each switch once", .0.0)]
    DuplicateSwitch(SwitchId),
    /// Two ports have the same identifier.
    #[error("port {} is listed twice; list each port once", .0.0)]
    DuplicatePort(PortId),
    /// A port refers to a switch that does not exist.
    #[error(
        "port {} is on switch {}, which does not exist; name an existing switch", .port.0, .switch.0)]
    UnknownSwitch {
        /// Port with the invalid reference.
        port: PortId,
        /// Switch that the port refers to.
        switch: SwitchId,
    },
    /// There are more switches or ports than tables can hold.
    #[error("{count} {kind} exceed the limit of {max} per host; remove some")]
    TooManyObjects {
        /// Kind of the objects: `switches` or `ports`.
        kind: &'static str,
        /// Number of objects in the configuration.
        count: usize,
        /// Maximum number of objects of this kind.
        max: usize,
    },
    /// The ageing is outside [`AGEING_MIN`] to [`AGEING_MAX`].
    #[error(
        "switch {}: an ageing time of {ageing:?} is outside of {AGEING_MIN:?} to {AGEING_MAX:?}", .switch.0)]
    Ageing {
        /// Switch with the invalid ageing.
        switch: SwitchId,
        /// Configured value of the ageing.
        ageing: Duration,
    },
    /// The MTU is outside [`MTU_MIN`] to [`MTU_MAX`].
    #[error("port {}: an MTU of {mtu} bytes is outside of {MTU_MIN} to {MTU_MAX}", .port.0)]
    Mtu {
        /// Port with the invalid MTU.
        port: PortId,
        /// Configured MTU in bytes.
        mtu: u16,
    },
    /// A configured or bound address is not a station address: it is a group address or zero.
    #[error("port {}: {mac} is a group address or zero; set a unicast address", .port.0)]
    NotAStationAddress {
        /// Port with the invalid address.
        port: PortId,
        /// Configured or bound address.
        mac: MacAddr,
    },
    /// An uplink has a configured address. Port security would block every station behind it.
    #[error("port {} is an uplink and cannot have a MAC address; remove `mac`", .port.0)]
    UplinkAddress {
        /// Uplink with an invalid configured address.
        port: PortId,
    },
    /// The port named in `reached_by_uplink` is not an uplink of the same switch.
    #[error(
        "port {} is reached by port {}, which is not an uplink of its switch; name an uplink of \
         the switch", .port.0, .reached_by_uplink.0)]
    InvalidReachedByUplink {
        /// Port with the invalid reference.
        port: PortId,
        /// Port named in `reached_by_uplink`.
        reached_by_uplink: PortId,
    },
    /// Two ports have the same configured or bound address on a common VLAN of a switch.
    #[error(
        "ports {} and {} both have the MAC address {mac} in a common VLAN; change one of them", .port.0, .other.0)]
    DuplicateAddress {
        /// Port with the higher identifier.
        port: PortId,
        /// Port with the lower identifier.
        other: PortId,
        /// Address of both ports.
        mac: MacAddr,
    },
}

impl Tables {
    /// Builds the tables of all switches and ports of the host. `switches` and `ports` may be in
    /// any order.
    ///
    /// # Errors
    ///
    /// The first invalid or contradictory switch or port, see [`TablesError`].
    pub fn build(
        switches: &[SwitchSpec],
        ports: &[ForwardingPortSpec],
    ) -> Result<Self, TablesError> {
        let switch_specs = checked_switches(switches)?;
        let port_specs = checked_ports(&switch_specs, ports)?;
        let reached_by = reached_by(ports)?;
        let mut tables = Self {
            ports: Box::default(),
            switches: switch_specs.iter().map(|spec| empty_switch(spec)).collect(),
            trunk_vlans: Box::default(),
            by_id: Box::default(),
            configured_addresses: ConfiguredAddresses::default(),
            bound_addresses: ConfiguredAddresses::default(),
            fingerprint: 0,
        };
        add_ports(&mut tables, &port_specs);
        let fixed = owners(&port_specs, |spec| spec.mac);
        let bound = owners(&port_specs, |spec| spec.bound_address);
        reject_shared_addresses(&tables, &fixed)?;
        reject_shared_addresses(&tables, &bound)?;
        tables.configured_addresses = address_table(&tables, &fixed, &reached_by);
        tables.bound_addresses = address_table(&tables, &bound, &BTreeMap::new());
        tables.fingerprint = fingerprint(&tables, &bound);
        Ok(tables)
    }
}

/// Validates the switches and returns them in ascending order of identifiers.
///
/// # Errors
///
/// Too many switches, a duplicate identifier, or an invalid ageing.
fn checked_switches(specs: &[SwitchSpec]) -> Result<Vec<&SwitchSpec>, TablesError> {
    let max = usize::from(u16::MAX);
    if specs.len() > max {
        return Err(TablesError::TooManyObjects { kind: "switches", count: specs.len(), max });
    }
    let mut sorted: Vec<_> = specs.iter().collect();
    sorted.sort_by_key(|spec| spec.id);
    if let Some(id) = first_duplicate(sorted.iter().map(|spec| spec.id)) {
        return Err(TablesError::DuplicateSwitch(id));
    }
    for spec in &sorted {
        if spec.ageing < AGEING_MIN || spec.ageing > AGEING_MAX {
            return Err(TablesError::Ageing { switch: spec.id, ageing: spec.ageing });
        }
    }
    Ok(sorted)
}

/// Configuration of a port with the index of its switch in the tables.
struct PortOfSwitch<'a> {
    switch: u16,
    spec: &'a ForwardingPortSpec,
}

/// Validates the ports and returns them in the order of their slots: by switch, trunks before
/// access ports, access ports by VLAN.
fn checked_ports<'a>(
    switches: &[&SwitchSpec],
    specs: &'a [ForwardingPortSpec],
) -> Result<Vec<PortOfSwitch<'a>>, TablesError> {
    let max = usize::from(u16::MAX);
    if specs.len() > max {
        return Err(TablesError::TooManyObjects { kind: "ports", count: specs.len(), max });
    }
    let mut ids: Vec<_> = specs.iter().map(|spec| spec.id).collect();
    ids.sort_unstable();
    if let Some(id) = first_duplicate(ids.into_iter()) {
        return Err(TablesError::DuplicatePort(id));
    }
    let mut switch_ports = Vec::with_capacity(specs.len());
    for spec in specs {
        let index = switches.binary_search_by_key(&spec.switch, |switch| switch.id);
        let unknown = TablesError::UnknownSwitch { port: spec.id, switch: spec.switch };
        let Some(switch) = index.ok().and_then(|index| u16::try_from(index).ok()) else {
            return Err(unknown);
        };
        check_port(spec)?;
        switch_ports.push(PortOfSwitch { switch, spec });
    }
    switch_ports.sort_by_key(|port| {
        let vlan = match port.spec.vlan {
            VlanMode::Trunk { .. } => None,
            VlanMode::Access(vlan) => Some(number(vlan)),
        };
        (port.switch, vlan, port.spec.id)
    });
    Ok(switch_ports)
}

fn check_port(spec: &ForwardingPortSpec) -> Result<(), TablesError> {
    if spec.mtu < MTU_MIN || spec.mtu > MTU_MAX {
        return Err(TablesError::Mtu { port: spec.id, mtu: spec.mtu });
    }
    if spec.mac.is_some() && spec.role == PortRole::Uplink {
        return Err(TablesError::UplinkAddress { port: spec.id });
    }
    let mut addresses = spec.mac.into_iter().chain(spec.bound_address);
    match addresses.find(|mac| !mac.is_station()) {
        Some(mac) => Err(TablesError::NotAStationAddress { port: spec.id, mac }),
        None => Ok(()),
    }
}

/// Returns the uplink by port for each port whose configured address is reached by an uplink
/// (`reached_by_uplink`).
///
/// # Errors
///
/// [`TablesError::InvalidReachedByUplink`]: the named port is not an uplink of the same switch.
fn reached_by(specs: &[ForwardingPortSpec]) -> Result<BTreeMap<PortId, PortId>, TablesError> {
    let mut reached = BTreeMap::new();
    for spec in specs {
        let (Some(uplink), Some(_)) = (spec.reached_by_uplink, spec.mac) else { continue };
        let is_way = |other: &&ForwardingPortSpec| {
            other.id == uplink && other.switch == spec.switch && other.role == PortRole::Uplink
        };
        if !specs.iter().any(|other| is_way(&other)) {
            return Err(TablesError::InvalidReachedByUplink {
                port: spec.id,
                reached_by_uplink: uplink,
            });
        }
        reached.insert(spec.id, uplink);
    }
    Ok(reached)
}

fn first_duplicate<T: PartialEq + Copy>(ascending: impl Iterator<Item = T>) -> Option<T> {
    let mut previous = None;
    for item in ascending {
        if previous == Some(item) {
            return Some(item);
        }
        previous = Some(item);
    }
    None
}

fn empty_switch(spec: &SwitchSpec) -> Switch {
    let ageing = duration_to_ticks(spec.ageing);
    let refresh = (ageing / 4).max(1);
    Switch {
        id: spec.id,
        salt: hash::salt(spec.id),
        // An entry is up to `refresh` older than the last frame; one tick more, because both ends
        // of the interval are rounded down.
        ageing: Ageing {
            refresh_ticks: refresh,
            expiry_ticks: ageing.saturating_add(refresh).saturating_add(1),
        },
        first_trunk_slot: 0,
        first_access_slot: 0,
        end_slot: 0,
        has_trunk_address: false,
        has_trunk_bound_address: false,
    }
}

fn add_ports(tables: &mut Tables, switch_ports: &[PortOfSwitch<'_>]) {
    let mut ports = Vec::with_capacity(switch_ports.len());
    let mut trunks = Vec::new();
    let mut by_id = Vec::with_capacity(switch_ports.len());
    for (slot, PortOfSwitch { switch, spec }) in (0..=u16::MAX).zip(switch_ports) {
        let (trunk, untagged) = match &spec.vlan {
            VlanMode::Access(vlan) => (NO_TRUNK, number(*vlan)),
            VlanMode::Trunk { allowed, native } => {
                let mut carried = allowed.clone();
                let mut untagged = if carried.contains(None) { 0 } else { NO_VLAN };
                if let Some(native) = native {
                    carried.remove_untagged();
                    carried.insert(*native);
                    untagged = native.get();
                }
                trunks.push(*carried.words());
                // There are at most as many trunks as ports, whose number fits a u16.
                (u32::try_from(trunks.len() - 1).unwrap_or(NO_TRUNK), untagged)
            }
        };
        if let Some(range) = tables.switches.get_mut(usize::from(*switch)) {
            if range.end_slot == 0 {
                (range.first_trunk_slot, range.first_access_slot) = (slot, slot);
            }
            range.end_slot = slot + 1;
            if trunk != NO_TRUNK {
                range.first_access_slot = slot + 1;
                range.has_trunk_address |= spec.mac.is_some();
                range.has_trunk_bound_address |= spec.bound_address.is_some();
            }
        }
        by_id.push((spec.id, PortSlot(slot)));
        ports.push(Port {
            mac: spec.mac.map_or(0, MacAddr::to_u64),
            id: spec.id,
            trunk_index: trunk,
            learned_addresses_max: spec.learned_addresses_max,
            untagged_vlan: untagged,
            switch_index: *switch,
            frame_bytes_max: spec.mtu.saturating_add(ETHERNET_HEADER_BYTES),
            restricts_source: spec.mac.is_some() && !spec.spoofing_allowed,
            is_nic: spec.role == PortRole::Nic,
            isolated: spec.isolated,
            binds_source: spec.binds_source,
        });
    }
    by_id.sort_unstable();
    tables.ports = ports.into();
    tables.trunk_vlans = trunks.into();
    tables.by_id = by_id.into();
}

/// Slot of a port and its configured or bound address.
type Owner = (PortSlot, MacAddr);

/// Returns slot and address of each port for which `address` returns `Some`, in ascending order of
/// slots.
fn owners(
    switch_ports: &[PortOfSwitch<'_>],
    address: impl Fn(&ForwardingPortSpec) -> Option<MacAddr>,
) -> Vec<Owner> {
    let slots = (0..=u16::MAX).map(PortSlot).zip(switch_ports);
    slots.filter_map(|(slot, switch_port)| Some((slot, address(switch_port.spec)?))).collect()
}

/// Rejects tables in which two ports of a switch have the same address on a common VLAN.
///
/// # Errors
///
/// [`TablesError::DuplicateAddress`] for the first such pair.
fn reject_shared_addresses(tables: &Tables, owners: &[Owner]) -> Result<(), TablesError> {
    let port = |(slot, mac): &Owner| Some((*mac, tables.port(*slot)?));
    let mut owners: Vec<(MacAddr, &Port)> = owners.iter().filter_map(port).collect();
    owners.sort_by_key(|(mac, port)| (port.switch_index, *mac, port.id));
    for group in owners.chunk_by(|a, b| (a.1.switch_index, a.0) == (b.1.switch_index, b.0)) {
        if group.len() < 2 {
            continue;
        }
        let mut used = VlanSet::empty();
        for (index, (mac, port)) in group.iter().enumerate() {
            let carried = carried_vlans(tables, port);
            if used.intersects(&carried) {
                let other = group
                    .iter()
                    .take(index)
                    .find(|(_, other)| self::carried_vlans(tables, other).intersects(&carried))
                    .map_or(port.id, |(_, other)| other.id);
                return Err(TablesError::DuplicateAddress { port: port.id, other, mac: *mac });
            }
            used.extend(&carried);
        }
    }
    Ok(())
}

fn carried_vlans(tables: &Tables, port: &Port) -> VlanSet {
    let mut set = VlanSet::empty();
    for vlan in 0..4095 {
        if tables.carries_number(port, vlan) {
            set.set_number(vlan, true);
        }
    }
    set
}

/// Builds the lookup table of configured or bound addresses. An address reached by an uplink
/// (`reached_by`, uplink by port) is stored with the slot of that uplink.
fn address_table(
    tables: &Tables,
    owners: &[Owner],
    reached_by: &BTreeMap<PortId, PortId>,
) -> ConfiguredAddresses {
    let mut addresses = ConfiguredAddresses::with_capacity_for(owners.len());
    for (slot, mac) in owners {
        let Some(port) = tables.port(*slot) else { continue };
        let Some(switch) = tables.switch(port.switch_index) else { continue };
        let slot =
            reached_by.get(&port.id).and_then(|uplink| tables.slot(*uplink)).unwrap_or(*slot);
        if port.trunk_index == NO_TRUNK {
            let key =
                AddressKey::new(switch.salt, port.switch_index, port.untagged_vlan, mac.to_u64());
            addresses.insert_access(&key, slot);
        } else {
            let key = AddressKey::new(switch.salt, port.switch_index, 0, mac.to_u64());
            addresses.insert_trunk(&key, switch.salt, slot);
        }
    }
    addresses
}

/// Returns a hash of all properties of the tables that determine which learned addresses stay
/// valid.
fn fingerprint(tables: &Tables, bound: &[Owner]) -> u64 {
    let fold = |sum: u64, word: u64| hash::mix(word, sum.rotate_left(23));
    let mut sum = fold(tables.switches.len() as u64, tables.ports.len() as u64);
    for switch in &tables.switches {
        sum = fold(sum, u64::from(switch.id.0));
        sum = fold(
            sum,
            u64::from(switch.ageing.refresh_ticks) << 32 | u64::from(switch.ageing.expiry_ticks),
        );
    }
    for port in &tables.ports {
        sum = fold(sum, u64::from(port.id.0) << 32 | u64::from(port.trunk_index));
        sum = fold(sum, u64::from(port.switch_index) << 32 | u64::from(port.untagged_vlan));
        sum = fold(sum, u64::from(port.learned_addresses_max) << 1 | u64::from(port.binds_source));
        sum = fold(sum, port.mac);
    }
    for (slot, mac) in bound {
        sum = fold(sum, u64::from(slot.0) << 48 | mac.to_u64());
    }
    tables.trunk_vlans.iter().flatten().fold(sum, |sum, word| fold(sum, *word))
}

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;
