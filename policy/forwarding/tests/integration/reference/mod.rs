//! Reference switch, written as simply as possible from the rules and independently of the
//! implementation.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use suimon_forwarding::{DropReason, ForwardingPortSpec, PortRole, VlanMode};
use suimon_frame::{Frame, MacAddr, VlanId};
use suimon_quantity::{PortId, SwitchId, Time};

/// Copy of a frame at an egress port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Delivery {
    /// Port that gets the copy.
    pub(crate) port: PortId,
    /// Tag of the copy, as TCI.
    pub(crate) tci: Option<u16>,
}

/// Result of forwarding a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Sent to one port.
    Sent(BTreeSet<Delivery>),
    /// Flooded to all these ports.
    Flooded(BTreeSet<Delivery>),
    /// Dropped for this reason.
    Dropped(DropReason),
}

type Address = (SwitchId, Option<VlanId>, MacAddr);

/// Last sighting of an address.
#[derive(Clone, Debug)]
struct Sighting {
    port: PortId,
    last: Time,
}

/// Reference implementation of the switch.
pub(crate) struct Reference {
    ports: BTreeMap<PortId, ForwardingPortSpec>,
    seen: BTreeMap<Address, Sighting>,
    ageing: Duration,
    /// Address of the last frame whose entry may or may not have expired.
    doubtful: Option<Address>,
}

impl Reference {
    pub(crate) fn new(ageing: Duration) -> Self {
        Self { ports: BTreeMap::new(), seen: BTreeMap::new(), ageing, doubtful: None }
    }

    /// Replaces the port configuration. Deletes the learned addresses that are no longer valid,
    /// because the port was removed, does not carry the VLAN, or is not permitted to use the
    /// address.
    pub(crate) fn change(&mut self, ports: Vec<ForwardingPortSpec>) {
        self.ports = ports.into_iter().map(|port| (port.id, port)).collect();
        let sightings = std::mem::take(&mut self.seen);
        self.seen = sightings
            .into_iter()
            .filter(|((switch, vlan, mac), sighting)| {
                self.ports.get(&sighting.port).is_some_and(|port| {
                    carries(port, *vlan) && !self.is_bound_elsewhere(port, *vlan, *mac)
                }) && self.owner(*switch, *vlan, *mac).is_none()
            })
            .collect();
    }

    /// Returns the permitted results for a frame: one, or two while the destination's entry is
    /// between its ageing and its latest expiry.
    pub(crate) fn outcome(&mut self, ingress: PortId, now: Time, frame: &Frame) -> Vec<Outcome> {
        self.doubtful = None;
        match self.decide(ingress, now, frame) {
            Ok(outcomes) => outcomes,
            Err(reason) => vec![Outcome::Dropped(reason)],
        }
    }

    /// Records which of two permitted results the real switch had.
    pub(crate) fn settle(&mut self, expected: &[Outcome], actual: &Outcome) {
        if expected.len() == 2 && *actual == expected[1] {
            if let Some(address) = self.doubtful {
                self.seen.remove(&address);
            }
        }
    }

    fn decide(
        &mut self,
        ingress: PortId,
        now: Time,
        frame: &Frame,
    ) -> Result<Vec<Outcome>, DropReason> {
        let bytes = frame.bytes();
        if bytes.len() < 14 {
            return Err(DropReason::Malformed);
        }
        let destination = MacAddr::new(bytes[0..6].try_into().unwrap());
        let source = MacAddr::new(bytes[6..12].try_into().unwrap());
        let port = self.ports[&ingress].clone();
        let vlan = vlan_of(&port, frame)?;
        if source.is_multicast() {
            return Err(DropReason::GroupSource);
        }
        if source == MacAddr::default() {
            return Err(DropReason::ZeroSource);
        }
        if port.mac.is_some() && !port.spoofing_allowed && port.mac != Some(source) {
            return Err(DropReason::SpoofedSource);
        }
        if let [1, 0x80, 0xc2, 0, 0, 0..=15] = destination.octets() {
            return Err(DropReason::LinkLocal);
        }
        match self.owner(port.switch, vlan, source) {
            None if self.is_bound_elsewhere(&port, vlan, source) => {
                return Err(DropReason::SpoofedSource);
            }
            None => self.learn(&port, vlan, source, now),
            Some(owner) if owner.id == ingress => {}
            Some(owner) if !owner.spoofing_allowed => return Err(DropReason::SpoofedSource),
            Some(_) => {}
        }
        let flooded = |unknown: bool| self.flood(&port, vlan, frame, unknown);
        if destination.is_multicast() {
            return Ok(vec![flooded(false)]);
        }
        if let Some(owner) = self.owner(port.switch, vlan, destination) {
            return Ok(vec![unicast(&port, owner, vlan, frame)]);
        }
        let address = (port.switch, vlan, destination);
        let Some(sighting) = self.seen.get(&address) else {
            return Ok(vec![flooded(true)]);
        };
        let sent = unicast(&port, &self.ports[&sighting.port], vlan, frame);
        // Entries are renewed up to a quarter of the ageing late; 50 ms allow for the resolution of
        // ticks.
        let slack = Duration::from_millis(50);
        let age = now.since(sighting.last);
        let outcomes = if age <= self.ageing {
            vec![sent]
        } else if age > self.ageing + self.ageing / 4 + slack {
            vec![flooded(true)]
        } else {
            vec![sent, flooded(true)]
        };
        if outcomes.len() == 2 {
            self.doubtful = Some(address);
        }
        Ok(outcomes)
    }

    fn learn(&mut self, port: &ForwardingPortSpec, vlan: Option<VlanId>, mac: MacAddr, now: Time) {
        let address = (port.switch, vlan, mac);
        let count = self.seen.values().filter(|sighting| sighting.port == port.id).count();
        let has_room = count < port.learned_addresses_max as usize;
        match self.seen.get_mut(&address) {
            Some(sighting) if sighting.port == port.id => sighting.last = now,
            _ if !has_room => {}
            Some(sighting) => *sighting = Sighting { port: port.id, last: now },
            None => {
                self.seen.insert(address, Sighting { port: port.id, last: now });
            }
        }
    }

    fn owner(
        &self,
        switch: SwitchId,
        vlan: Option<VlanId>,
        mac: MacAddr,
    ) -> Option<&ForwardingPortSpec> {
        self.ports
            .values()
            .find(|port| port.switch == switch && port.mac == Some(mac) && carries(port, vlan))
    }

    fn is_bound_elsewhere(
        &self,
        port: &ForwardingPortSpec,
        vlan: Option<VlanId>,
        mac: MacAddr,
    ) -> bool {
        let is_other = |other: &&ForwardingPortSpec| {
            other.id != port.id && other.switch == port.switch && carries(other, vlan)
        };
        let mut other_ports = self.ports.values().filter(is_other);
        port.role == PortRole::Nic && other_ports.any(|other| other.bound_address == Some(mac))
    }

    fn flood(
        &self,
        from: &ForwardingPortSpec,
        vlan: Option<VlanId>,
        frame: &Frame,
        unknown: bool,
    ) -> Outcome {
        let members = self.ports.values().filter(|port| {
            port.switch == from.switch
                && port.id != from.id
                && carries(port, vlan)
                && !(port.isolated && from.isolated)
                && !(unknown && port.mac.is_some() && !port.spoofing_allowed)
                && fits(port, frame)
                && !shows_inner_tag(port, vlan, frame)
        });
        Outcome::Flooded(members.map(|port| delivery(port, vlan, frame)).collect())
    }
}

fn unicast(
    from: &ForwardingPortSpec,
    to: &ForwardingPortSpec,
    vlan: Option<VlanId>,
    frame: &Frame,
) -> Outcome {
    if from.id == to.id {
        Outcome::Dropped(DropReason::SameEgress)
    } else if from.isolated && to.isolated {
        Outcome::Dropped(DropReason::Isolated)
    } else if shows_inner_tag(to, vlan, frame) {
        Outcome::Dropped(DropReason::NestedTag)
    } else if !fits(to, frame) {
        Outcome::Dropped(DropReason::TooLong)
    } else {
        Outcome::Sent(BTreeSet::from([delivery(to, vlan, frame)]))
    }
}

fn delivery(port: &ForwardingPortSpec, vlan: Option<VlanId>, frame: &Frame) -> Delivery {
    let priority = frame.meta.tag.map_or(0, |tag| tag.tci() & 0xf000);
    let tci = match &port.vlan {
        VlanMode::Access(_) => None,
        VlanMode::Trunk { native, .. } if *native == vlan => None,
        VlanMode::Trunk { .. } => vlan.map(|vlan| priority | vlan.get()),
    };
    Delivery { port: port.id, tci }
}

fn fits(port: &ForwardingPortSpec, frame: &Frame) -> bool {
    let bytes = match frame.meta.gso {
        // The tests' large frames have 66 bytes of headers.
        Some(gso) => frame.len().min(66 + usize::from(gso.segment_bytes)),
        None => frame.len(),
    };
    bytes <= usize::from(port.mtu) + 14
}

pub(crate) fn carries(port: &ForwardingPortSpec, vlan: Option<VlanId>) -> bool {
    match &port.vlan {
        VlanMode::Access(access_vlan) => *access_vlan == vlan,
        VlanMode::Trunk { allowed, native: None } => allowed.contains(vlan),
        VlanMode::Trunk { allowed, native } => {
            *native == vlan || (vlan.is_some() && allowed.contains(vlan))
        }
    }
}

/// Returns true if the bytes, which do not contain the tag of the metadata, begin with a tag.
fn begins_with_tag(frame: &Frame) -> bool {
    matches!(frame.bytes()[12..14], [0x81 | 0x91..=0x93, 0] | [0x88, 0xa8])
}

/// Returns true if another switch connected to the port would read the VLAN from an inner tag.
fn shows_inner_tag(port: &ForwardingPortSpec, vlan: Option<VlanId>, frame: &Frame) -> bool {
    let is_guest = matches!(port.vlan, VlanMode::Access(_)) && port.role == PortRole::Nic;
    begins_with_tag(frame) && delivery(port, vlan, frame).tci.is_none() && !is_guest
}

fn vlan_of(port: &ForwardingPortSpec, frame: &Frame) -> Result<Option<VlanId>, DropReason> {
    let tag_vlan = frame.meta.tag.map(|tag| tag.tci() & 0xfff).filter(|vid| *vid != 0);
    match (&port.vlan, tag_vlan) {
        (VlanMode::Access(_), None) if begins_with_tag(frame) => Err(DropReason::TaggedOnAccess),
        (VlanMode::Trunk { .. }, None) if begins_with_tag(frame) => Err(DropReason::NestedTag),
        (VlanMode::Access(access_vlan), None) => Ok(*access_vlan),
        (VlanMode::Access(_), Some(_)) => Err(DropReason::TaggedOnAccess),
        (VlanMode::Trunk { native: Some(native), .. }, None) => Ok(Some(*native)),
        (VlanMode::Trunk { allowed, native: None }, None) => {
            if allowed.contains(None) {
                Ok(None)
            } else {
                Err(DropReason::UntaggedOnTrunk)
            }
        }
        (VlanMode::Trunk { .. }, Some(vid)) => {
            let vlan = VlanId::new(vid).ok_or(DropReason::VlanNotAllowed)?;
            if carries(port, Some(vlan)) { Ok(Some(vlan)) } else { Err(DropReason::VlanNotAllowed) }
        }
    }
}

/// Returns an address that two ports have on a common VLAN, or `None`.
pub(crate) fn shared_address(ports: &[ForwardingPortSpec]) -> Option<MacAddr> {
    let vlans = [None, VlanId::new(1), VlanId::new(2), VlanId::new(3), VlanId::new(4094)];
    let pairs = ports.iter().flat_map(|a| ports.iter().map(move |b| (a, b)));
    let both = |a: &ForwardingPortSpec, b: &ForwardingPortSpec| {
        vlans.iter().any(|v| carries(a, *v) && carries(b, *v))
    };
    let sharing = pairs.filter(|(a, b)| a.id < b.id && a.switch == b.switch && both(a, b));
    let sharing: Vec<_> = sharing.collect();
    let fixed = sharing.iter().find_map(|(a, b)| a.mac.filter(|mac| b.mac == Some(*mac)));
    fixed.or_else(|| {
        sharing
            .iter()
            .find_map(|(a, b)| a.bound_address.filter(|mac| b.bound_address == Some(*mac)))
    })
}
