//! Teams, frames and a model of an upstream switch for tests.

use std::collections::BTreeMap;

use suimon_frame::{Frame, MacAddr};
use suimon_quantity::{PortId, Time};

use crate::{
    Acceptance, Algorithm, BUCKETS, FlowletState, IncomingFrame, MemberChoice, MemberId,
    MemberLink, MemberSpec, Team, TeamChange, TeamId, TeamMode, TeamPort, TeamSpec,
};

pub(crate) const MODES: [TeamMode; 3] =
    [TeamMode::Static, TeamMode::Lacp, TeamMode::SwitchIndependent];
pub(crate) const ALGORITHMS: [Algorithm; 5] = [
    Algorithm::HyperVPort,
    Algorithm::TransportPorts,
    Algorithm::IpAddresses,
    Algorithm::MacAddresses,
    Algorithm::Dynamic,
];
pub(crate) const UP: MemberLink =
    MemberLink { up: true, speed_mbps: 10_000, distributing: true, collecting: true };
pub(crate) const DOWN: MemberLink =
    MemberLink { up: false, speed_mbps: 0, distributing: false, collecting: false };

/// Returns `count` members with identifiers 0, 1, 2, …
pub(crate) fn members(count: u32) -> Vec<MemberSpec> {
    (0..count)
        .map(|id| MemberSpec {
            id: MemberId(id),
            mac: MacAddr::new([0x00, 0x1b, 0x21, 0, 0, id as u8]),
        })
        .collect()
}

/// Returns the configured address of a switch port.
pub(crate) fn port_mac(port: u32) -> MacAddr {
    let [_, _, c, d] = port.to_be_bytes();
    MacAddr::new([0x52, 0x54, 0, 0x12, c, d])
}

pub(crate) fn ports(count: u32) -> Vec<TeamPort> {
    (0..count).map(|id| TeamPort { id: PortId(id), mac: Some(port_mac(id)) }).collect()
}

/// Returns a UDP/IPv4 frame of this flow.
pub(crate) fn udp(source: MacAddr, flow: u32) -> Frame {
    let mut bytes = vec![0; 1000];
    bytes[0..6].copy_from_slice(&[0x52, 0x54, 0, 0x99, 0, flow as u8]);
    bytes[6..12].copy_from_slice(&source.octets());
    bytes[12..16].copy_from_slice(&[0x08, 0x00, 0x45, 0]);
    bytes[23] = 17;
    bytes[26..30].copy_from_slice(&source.octets()[2..]);
    bytes[30..34].copy_from_slice(&(0x0a00_0000 + flow / 4).to_be_bytes());
    bytes[34..38].copy_from_slice(&(0x1000_0000 + flow).to_be_bytes());
    frame(&bytes)
}

/// Returns a broadcast ARP request.
pub(crate) fn arp(source: MacAddr) -> Frame {
    let mut bytes = vec![0; 60];
    bytes[0..6].fill(0xff);
    bytes[6..12].copy_from_slice(&source.octets());
    bytes[12..14].copy_from_slice(&[0x08, 0x06]);
    frame(&bytes)
}

pub(crate) fn frame(bytes: &[u8]) -> Frame {
    let mut frame = Frame::new(0);
    frame.set_bytes(bytes);
    frame
}

/// Team together with the state that a data plane keeps for it: flowlet states and a clock.
pub(crate) struct World {
    pub(crate) team: Team,
    pub(crate) states: Vec<FlowletState>,
    pub(crate) now: Time,
}

impl World {
    /// Creates a team with these members, all up, and these ports.
    pub(crate) fn new(mode: TeamMode, algorithm: Algorithm, members: u32, ports: u32) -> Self {
        Self::of(TeamSpec::new(TeamId(1), mode, algorithm, &self::members(members)), ports)
    }

    pub(crate) fn of(spec: TeamSpec, ports: u32) -> Self {
        let members = spec.members.clone();
        let team = Team::new(spec).unwrap();
        let states = vec![FlowletState::default(); BUCKETS];
        let mut world = Self { team, states, now: Time::from_ns(5_000_000_000) };
        let _ = world.team.set_ports(&self::ports(ports));
        for member in members {
            let _ = world.link(member.id.0, UP);
        }
        world
    }

    pub(crate) fn link(&mut self, member: u32, link: MemberLink) -> TeamChange {
        self.team.handle_member_link(MemberId(member), link).unwrap()
    }

    /// Advances the clock until all flowlets have ended.
    pub(crate) fn pause(&mut self) {
        self.now = self.now + core::time::Duration::from_secs(20);
    }

    /// Returns the member by which a frame from this port leaves, and its source address on the
    /// link; `None` if the team is down.
    pub(crate) fn send(&mut self, port: u32, frame: &Frame) -> Option<(MemberId, MacAddr)> {
        let distribution = self.team.distribution();
        let key = distribution.key(frame, distribution.ingress_context(PortId(port)));
        let MemberChoice { member, source } = match distribution.bucket(&key) {
            None => distribution.choose(&key)?,
            Some(bucket) => {
                let state = &mut self.states[bucket.index()];
                let bytes = frame.len() as u32;
                let (choice, next) = distribution.choose_flowlet(&key, *state, self.now, bytes)?;
                *state = next;
                choice
            }
        };
        let member = distribution.member(member).unwrap();
        Some((member, source.unwrap_or(frame.source())))
    }

    /// Returns the number of copies that a port gets of a frame from this source that arrives on
    /// all of these members.
    pub(crate) fn copies(&self, arrives_on: &[u32], source: MacAddr, port: u32) -> usize {
        let distribution = self.team.distribution();
        let incoming = IncomingFrame { source, is_source_seen_locally: false };
        let slots = arrives_on.iter().filter_map(|id| distribution.slot(MemberId(*id)));
        slots
            .filter(|slot| distribution.check_incoming(*slot, &incoming) == Acceptance::Accept)
            .filter(|slot| distribution.forwards_to_port(*slot, PortId(port)))
            .count()
    }
}

/// Upstream switch on which each member has its own port. It learns addresses independently of
/// VLANs.
#[derive(Default)]
pub(crate) struct Upstream {
    pub(crate) learned: BTreeMap<MacAddr, MemberId>,
    /// Addresses that were learned on one port after another.
    pub(crate) moved: Vec<MacAddr>,
}

impl Upstream {
    pub(crate) fn receive(&mut self, (member, source): (MemberId, MacAddr)) {
        if self.learned.insert(source, member).is_some_and(|before| before != member) {
            self.moved.push(source);
        }
    }
}
