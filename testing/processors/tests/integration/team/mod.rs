//! A switch with guests and a team of members, on real threads.

#![allow(dead_code, reason = "each test takes what it needs")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use suimon_forwarding::{ForwardingPortSpec, PortRole, SwitchSpec};
use suimon_frame::MacAddr;
use suimon_ports::{QueueHost, WorkerRuntime};
use suimon_processor_tests::{Receiver, Sender, mac};
use suimon_quantity::{Direction, PortId, QueueId, SwitchId};
use suimon_switch::{DataPlane, PortTopology, TeamMember, TeamTopology, Topology};
use suimon_teaming::{
    Algorithm, Distribution, MemberId, MemberLink, MemberSpec, Team, TeamId, TeamMode, TeamPort,
    TeamSpec,
};

pub(crate) const SWITCH: SwitchId = SwitchId(1);
/// Port of the switch to which the team is attached.
pub(crate) const TEAM: PortId = PortId(100);
/// Port of the first member.
const MEMBERS: u32 = 200;
pub(crate) const BROADCAST: [u8; 6] = [0xff; 6];
/// MAC address of a remote station.
pub(crate) const STRANGER: [u8; 6] = [2, 9, 9, 9, 9, 9];

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

/// The far end of a port.
pub(crate) struct Far {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
}

pub(crate) struct Bench {
    pub(crate) plane: DataPlane,
    pub(crate) team: Team,
    pub(crate) topology: Topology,
    pub(crate) guests: Vec<Far>,
    pub(crate) members: Vec<Far>,
}

pub(crate) fn member_port(member: usize) -> PortId {
    PortId(MEMBERS + member as u32)
}

pub(crate) fn member_mac(member: usize) -> [u8; 6] {
    [0, 0x1b, 0x21, 0, 0, member as u8]
}

pub(crate) fn queue(port: PortId, direction: Direction) -> QueueId {
    QueueId { port, direction, index: 0 }
}

fn port(id: PortId, role: PortRole, mac: Option<[u8; 6]>) -> PortTopology {
    PortTopology {
        spec: ForwardingPortSpec {
            mac: mac.map(MacAddr::new),
            ..ForwardingPortSpec::new(id, SWITCH, role)
        },
        bandwidth: None,
        storm_limit_fps: None,
        receive_coalescing: true,
    }
}

impl Bench {
    /// Starts a plane in which all guests have configured addresses and all members are up.
    pub(crate) fn new(
        runtime: Arc<dyn WorkerRuntime>,
        processors: usize,
        (mode, algorithm): (TeamMode, Algorithm),
        guests: u8,
        members: usize,
    ) -> Self {
        let cpus = runtime.allowed_cpus();
        assert!(cpus.len() >= processors, "this test needs {processors} CPUs");
        let plane = DataPlane::start(&cpus[..processors], runtime).unwrap();
        // With a clock that stands still, a worker with a polling time would never sleep.
        plane.set_polling_time(Duration::ZERO);
        let spec = |member| MemberSpec {
            id: MemberId(member as u32),
            mac: MacAddr::new(member_mac(member)),
        };
        let specs: Vec<_> = (0..members).map(spec).collect();
        let mut team = Team::new(TeamSpec::new(TeamId(1), mode, algorithm, &specs)).unwrap();
        let guest = |id: u8| TeamPort { id: PortId(id.into()), mac: Some(MacAddr::new(mac(id))) };
        let _ = team.set_ports(&(0..guests).map(guest).collect::<Vec<_>>());
        for member in 0..members {
            let _ = team.handle_member_link(MemberId(member as u32), UP).unwrap();
        }
        let nic = |id: u8| port(PortId(id.into()), PortRole::Nic, Some(mac(id)));
        let uplink = port(TEAM, PortRole::Uplink, None);
        let team_member =
            |member| TeamMember { id: MemberId(member as u32), port: member_port(member) };
        let topology = Topology {
            switches: vec![SwitchSpec::new(SWITCH)],
            ports: (0..guests).map(nic).chain([uplink]).collect(),
            teams: vec![TeamTopology {
                port: TEAM,
                members: (0..members).map(team_member).collect(),
                distribution: Arc::clone(team.distribution()),
            }],
        };
        plane.publish(topology.clone()).unwrap();
        let guests = (0..guests).map(|id| attach(&plane, PortId(id.into()))).collect();
        let members = (0..members).map(|member| attach(&plane, member_port(member))).collect();
        Self { plane, team, topology, guests, members }
    }

    /// Reports a link change of a member to the team, and publishes the resulting distribution.
    pub(crate) fn link(&mut self, member: usize, link: MemberLink) {
        let change = self.team.handle_member_link(MemberId(member as u32), link).unwrap();
        self.distribute(change.distribution.as_ref());
    }

    pub(crate) fn distribute(&mut self, distribution: Option<&Arc<Distribution>>) {
        let Some(distribution) = distribution else { return };
        self.plane.set_distribution(TEAM, distribution).unwrap();
        self.topology.teams[0].distribution = Arc::clone(distribution);
    }

    /// Waits for the next frame on any member, and returns it with the index of the member.
    pub(crate) fn next_out(&self) -> (usize, Vec<u8>) {
        let mut next = None;
        wait_for("a frame at a member", || {
            next = self.poll_out();
            next.is_some()
        });
        next.unwrap()
    }

    /// Returns a frame that was sent on a member, if there is one, with the index of the member.
    pub(crate) fn poll_out(&self) -> Option<(usize, Vec<u8>)> {
        let mut members = self.members.iter().enumerate();
        members.find_map(|(index, far)| Some((index, far.receiver.poll()?)))
    }

    /// Waits for the next frame of a guest and returns it.
    pub(crate) fn next_in(&self, guest: usize) -> Vec<u8> {
        let mut next = None;
        wait_for("a frame at a guest", || {
            next = self.guests[guest].receiver.poll();
            next.is_some()
        });
        next.unwrap()
    }

    /// Waits until the plane has processed all frames sent before.
    pub(crate) fn settle(&self) {
        let handled = || self.plane.workers().iter().map(|worker| worker.frames).sum::<u64>();
        let sent_count =
            self.guests.iter().chain(&self.members).map(|far| far.sender.sent()).sum::<u64>();
        wait_for("all frames to be processed", || handled() >= sent_count);
        // Workers apply a new topology between two batches.
        self.plane.publish(self.topology.clone()).unwrap();
    }

    pub(crate) fn dropped_rx(&self, port: PortId) -> Vec<(&'static str, u64)> {
        self.plane.port_counters(port).rx_dropped
    }

    pub(crate) fn dropped_tx(&self, port: PortId) -> Vec<(&'static str, u64)> {
        self.plane.port_counters(port).tx_dropped
    }

    pub(crate) fn nothing_is_left(&self) -> bool {
        self.guests.iter().chain(&self.members).all(|far| far.receiver.poll().is_none())
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.plane.stop();
    }
}

pub(crate) fn attach(plane: &DataPlane, port: PortId) -> Far {
    let (sender, source) = Sender::pair();
    let (receiver, sink) = Receiver::pair();
    plane.attach_source(queue(port, Direction::Ingress), source);
    plane.attach_sink(queue(port, Direction::Egress), sink);
    Far { sender, receiver }
}

/// Returns a UDP/IPv4 packet with these addresses, destination port and number.
pub(crate) fn udp(macs: [[u8; 6]; 2], host: u8, port: u16, number: u32) -> Vec<u8> {
    let mut bytes = macs.concat();
    bytes.extend([0x08, 0x00, 0x45, 0, 0, 46, 0, 1, 0x40, 0, 64, 17, 0, 0]);
    bytes.extend([10, 0, 0, macs[1][5], 10, 0, 1, host]);
    bytes.extend([0x10, 0x10]);
    bytes.extend(port.to_be_bytes());
    bytes.extend([0, 26, 0, 0]);
    bytes.extend(number.to_be_bytes());
    bytes.resize(60, 0);
    bytes
}

/// Returns a broadcast ARP request.
pub(crate) fn arp(source: [u8; 6]) -> Vec<u8> {
    let mut bytes = [BROADCAST, source].concat();
    bytes.extend([0x08, 0x06]);
    bytes.resize(60, 0);
    bytes
}

pub(crate) fn source(bytes: &[u8]) -> [u8; 6] {
    *bytes[6..].first_chunk().unwrap()
}

/// Returns the destination port and the number of a packet from [`udp`].
pub(crate) fn flow_and_number(bytes: &[u8]) -> (u16, u32) {
    let port = u16::from_be_bytes(*bytes[36..].first_chunk().unwrap());
    (port, u32::from_be_bytes(*bytes[42..].first_chunk().unwrap()))
}

pub(crate) fn wait_for(description: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_secs(120), "waited in vain for {description}");
        suimon_processor_tests::sleep_briefly();
    }
}
