//! Addresses that upstream switches see in switch-independent mode, and frames that they reflect.

use suimon_frame::MacAddr;
use suimon_quantity::PortId;

use crate::test_teams::{ALGORITHMS, DOWN, UP, Upstream, World, arp, port_mac, udp};
use crate::{Acceptance, Algorithm, IncomingDropReason, IncomingFrame, MemberId, TeamMode};

const INDEPENDENT: TeamMode = TeamMode::SwitchIndependent;
const PORTS: u32 = 8;

/// Sends frames of several kinds and flowlets from every port.
fn send_frames(world: &mut World, upstream: &mut Upstream) {
    for flow in 0..200 {
        for port in 0..PORTS {
            for frame in [udp(port_mac(port), flow), arp(port_mac(port))] {
                upstream.receive(world.send(port, &frame).unwrap());
            }
        }
        if flow % 50 == 0 {
            world.pause();
        }
    }
}

#[test]
fn one_source_is_never_shown_on_two_switch_ports_while_nothing_changes() {
    for algorithm in ALGORITHMS {
        let mut world = World::new(INDEPENDENT, algorithm, 3, PORTS);
        let mut upstream = Upstream::default();
        send_frames(&mut world, &mut upstream);
        assert_eq!(upstream.moved, [], "{algorithm}");
        // Each port is seen with its own address, on the member by which it receives.
        for port in 0..PORTS {
            let member = upstream.learned[&port_mac(port)];
            assert_eq!(world.copies(&[member.0], MacAddr::new([2; 6]), port), 1, "{algorithm}");
        }
    }
}

#[test]
fn even_an_uplinks_address_that_a_port_has_too_is_shown_in_one_place() {
    for algorithm in ALGORITHMS {
        let mut world = World::new(INDEPENDENT, algorithm, 3, PORTS);
        // A host NIC has the address of the uplink that it replaced.
        let mut ports = crate::test_teams::ports(PORTS);
        let members = world.team.spec().members.clone();
        ports[4].mac = Some(members[1].mac);
        let _ = world.team.set_ports(&ports);
        let mut upstream = Upstream::default();
        send_frames(&mut world, &mut upstream);
        for flow in 0..200 {
            for frame in [udp(members[1].mac, flow), arp(members[1].mac)] {
                upstream.receive(world.send(4, &frame).unwrap());
            }
        }
        assert_eq!(upstream.moved, [], "{algorithm}");
    }
}

#[test]
fn after_a_failure_and_a_return_only_announced_addresses_have_moved() {
    for algorithm in ALGORITHMS {
        for failing in 0..3 {
            let mut world = World::new(INDEPENDENT, algorithm, 3, PORTS);
            let mut upstream = Upstream::default();
            send_frames(&mut world, &mut upstream);
            for link in [DOWN, UP] {
                let before = upstream.learned.clone();
                let change = world.link(failing, link);
                // Announcements alone are sufficient for the switches to learn the new locations.
                for announcement in &change.announcements {
                    upstream.learned.insert(port_mac(announcement.port.0), announcement.member);
                }
                upstream.moved.clear();
                send_frames(&mut world, &mut upstream);
                assert_eq!(upstream.moved, [], "{algorithm} {failing}");
                for port in 0..PORTS {
                    let mac = port_mac(port);
                    let is_told =
                        change.announcements.iter().any(|announcement| announcement.port.0 == port);
                    assert_eq!(upstream.learned[&mac] != before[&mac], is_told, "{algorithm}");
                }
            }
        }
    }
}

#[test]
fn a_group_frame_from_outside_reaches_each_port_once() {
    let outside_mac = MacAddr::new([2, 9, 9, 9, 9, 9]);
    for algorithm in ALGORITHMS {
        let mut world = World::new(INDEPENDENT, algorithm, 4, PORTS);
        for change in [None, Some((0, DOWN)), Some((2, DOWN)), Some((0, UP))] {
            if let Some((member, link)) = change {
                let _ = world.link(member, link);
            }
            for port in 0..PORTS + 3 {
                assert_eq!(world.copies(&[0, 1, 2, 3], outside_mac, port), 1, "{algorithm} {port}");
            }
        }
    }
}

#[test]
fn frames_returned_by_the_switch_reach_no_port() {
    for algorithm in ALGORITHMS {
        let mut world = World::new(INDEPENDENT, algorithm, 4, PORTS);
        for flow in 0..100 {
            for port in 0..PORTS {
                for frame in [udp(port_mac(port), flow), arp(port_mac(port))] {
                    let (member, source) = world.send(port, &frame).unwrap();
                    let other_members: Vec<u32> = (0..4).filter(|id| *id != member.0).collect();
                    for receiver in 0..PORTS {
                        assert_eq!(
                            world.copies(&other_members, source, receiver),
                            0,
                            "{algorithm}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn an_address_learned_here_is_not_taken_back_either() {
    let world = World::new(INDEPENDENT, Algorithm::HyperVPort, 2, 2);
    let distribution = world.team.distribution();
    let nested = MacAddr::new([2, 7, 7, 7, 7, 7]);
    for (is_received_here, expected) in
        [(true, Acceptance::Drop(IncomingDropReason::Reflected)), (false, Acceptance::Accept)]
    {
        let incoming = IncomingFrame { source: nested, is_source_seen_locally: is_received_here };
        let slot = distribution.slot(MemberId(1)).unwrap();
        assert_eq!(distribution.check_incoming(slot, &incoming), expected);
    }
    // Frames of a port unknown to the team leave and arrive on the primary.
    assert!(distribution.forwards_to_port(distribution.slot(MemberId(0)).unwrap(), PortId(99)));
    assert!(!distribution.forwards_to_port(distribution.slot(MemberId(1)).unwrap(), PortId(99)));
}
