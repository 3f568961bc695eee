//! Every combination of mode and algorithm: member of outgoing frames, admission, and effect of a
//! failure.

use std::collections::{BTreeMap, BTreeSet};

use suimon_frame::MacAddr;

use crate::test_teams::{ALGORITHMS, DOWN, MODES, UP, World, arp, frame, members, port_mac, udp};
use crate::{
    Acceptance, Algorithm, IncomingDropReason, IncomingFrame, MemberId, MemberLink, TeamId,
    TeamMode, TeamSpec,
};

use Algorithm::{Dynamic, HyperVPort, IpAddresses, MacAddresses, TransportPorts};
use TeamMode::{Lacp, Static, SwitchIndependent};

const STRANGER: MacAddr = MacAddr::new([2, 9, 9, 9, 9, 9]);

/// Frame properties by which the outgoing frames of one port are distributed over members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Apart {
    /// None: one member carries all frames of the port.
    Nothing,
    Flows,
    Addresses,
    Macs,
}

/// Members that accept received frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    All,
    Primary,
    Homes,
}

/// Row: mode, algorithm, distribution of one port's frames, whether source addresses are replaced,
/// whether ARP is bound to one member, receiving members.
type Row = (TeamMode, Algorithm, Apart, bool, bool, Takes);

const ROWS: [Row; 15] = [
    (Static, HyperVPort, Apart::Nothing, false, true, Takes::All),
    (Static, TransportPorts, Apart::Flows, false, false, Takes::All),
    (Static, IpAddresses, Apart::Addresses, false, false, Takes::All),
    (Static, MacAddresses, Apart::Macs, false, false, Takes::All),
    (Static, Dynamic, Apart::Flows, false, false, Takes::All),
    (Lacp, HyperVPort, Apart::Nothing, false, true, Takes::All),
    (Lacp, TransportPorts, Apart::Flows, false, false, Takes::All),
    (Lacp, IpAddresses, Apart::Addresses, false, false, Takes::All),
    (Lacp, MacAddresses, Apart::Macs, false, false, Takes::All),
    (Lacp, Dynamic, Apart::Flows, false, false, Takes::All),
    (SwitchIndependent, HyperVPort, Apart::Nothing, false, true, Takes::Homes),
    (SwitchIndependent, TransportPorts, Apart::Flows, true, true, Takes::Primary),
    (SwitchIndependent, IpAddresses, Apart::Addresses, true, true, Takes::Primary),
    (SwitchIndependent, MacAddresses, Apart::Macs, true, true, Takes::Primary),
    (SwitchIndependent, Dynamic, Apart::Flows, true, true, Takes::Homes),
];

#[test]
fn the_table_has_every_combination_once() {
    let actual: Vec<_> = ROWS.iter().map(|row| (row.0, row.1)).collect();
    let expected: Vec<_> =
        MODES.iter().flat_map(|mode| ALGORITHMS.map(|algorithm| (*mode, algorithm))).collect();
    assert_eq!(actual, expected);
}

#[test]
fn outgoing_frames_are_distributed_by_the_algorithm() {
    for (mode, algorithm, separation, ..) in ROWS {
        let mut world = World::new(mode, algorithm, 4, 8);
        let mut counts = BTreeMap::<MemberId, u32>::new();
        // Groups of 4 flows share their addresses; flows that differ by 256 share a MAC address.
        for flow in 0..4096 {
            let (member, _) = world.send(0, &udp(port_mac(0), flow)).unwrap();
            *counts.entry(member).or_default() += 1;
            let same_addresses = world.send(0, &udp(port_mac(0), flow ^ 1)).unwrap().0;
            let same_macs = world.send(0, &udp(port_mac(0), (flow + 256) % 4096)).unwrap().0;
            match separation {
                Apart::Addresses => assert_eq!(member, same_addresses),
                Apart::Macs => assert_eq!(member, same_macs),
                Apart::Nothing | Apart::Flows => {}
            }
        }
        let (min, max) = (counts.values().min().unwrap(), counts.values().max().unwrap());
        match separation {
            Apart::Nothing => assert_eq!(counts.len(), 1, "{mode} {algorithm}"),
            Apart::Flows => assert!(counts.len() == 4 && *min > 900 && *max < 1150),
            Apart::Addresses => assert!(counts.len() == 4 && *min > 850 && *max < 1200),
            Apart::Macs => assert!(counts.len() == 4 && *min > 600 && *max < 1500),
        }
        // Over all ports every member is used, for every algorithm.
        let used_members: BTreeSet<MemberId> =
            (0..8).filter_map(|port| Some(world.send(port, &udp(port_mac(port), 1))?.0)).collect();
        assert!(used_members.len() >= 2 && (algorithm != HyperVPort || used_members.len() == 4));
    }
}

#[test]
fn source_addresses_are_replaced_only_where_defined() {
    for (mode, algorithm, _, replaces, arp_is_bound, receivers) in ROWS {
        let mut world = World::new(mode, algorithm, 4, 4);
        let anchor = |world: &World, port: u32| match receivers {
            Takes::Homes => world.team.assigned_member(suimon_quantity::PortId(port)).unwrap(),
            _ => MemberId(0),
        };
        let own_macs: BTreeMap<MemberId, MacAddr> =
            members(4).iter().map(|spec| (spec.id, spec.mac)).collect();
        let mut arps = BTreeSet::new();
        for port in 0..4 {
            for flow in 0..64 {
                let (member, source) = world.send(port, &udp(port_mac(port), flow)).unwrap();
                let is_replaced = replaces && member != anchor(&world, port);
                let expected = if is_replaced { own_macs[&member] } else { port_mac(port) };
                assert_eq!(source, expected, "{mode} {algorithm}");
            }
            let (member, source) = world.send(port, &arp(port_mac(port))).unwrap();
            assert_eq!(source, port_mac(port));
            if replaces {
                assert_eq!(member, anchor(&world, port));
            }
            // Many stations are behind one port, as with a nested host.
            arps.extend(
                (0..32)
                    .filter_map(|station| Some(world.send(0, &arp(port_mac(1000 + station)))?.0)),
            );
        }
        assert_eq!(arps.len() == 1, arp_is_bound, "{mode} {algorithm}");
    }
}

#[test]
fn received_frames_are_accepted_on_the_receiving_members() {
    for (mode, algorithm, .., receivers) in ROWS {
        let world = World::new(mode, algorithm, 4, 8);
        for port in 0..8 {
            let assigned = world.team.assigned_member(suimon_quantity::PortId(port));
            for member in 0..4 {
                let expected = match receivers {
                    Takes::All => true,
                    Takes::Primary => member == 0,
                    Takes::Homes => assigned == Some(MemberId(member)),
                };
                let copies = world.copies(&[member], STRANGER, port);
                assert_eq!(copies, usize::from(expected), "{mode} {algorithm} {member} {port}");
                assert_eq!(world.copies(&[member], port_mac(3), port), 0);
                assert_eq!(world.copies(&[member], members(4)[2].mac, port), 0);
            }
        }
    }
}

#[test]
fn traffic_moves_only_off_a_failed_member() {
    for (mode, algorithm, ..) in ROWS {
        for failing in [0, 3] {
            let mut world = World::new(mode, algorithm, 4, 8);
            let send_all = |world: &mut World| -> Vec<MemberId> {
                world.pause();
                let flows = (0..8).flat_map(|port| (0..200).map(move |flow| (port, flow)));
                flows
                    .map(|(port, flow)| world.send(port, &udp(port_mac(port), flow)).unwrap().0)
                    .collect()
            };
            let before = send_all(&mut world);
            let _ = world.link(failing, DOWN);
            let between = send_all(&mut world);
            for (before, between) in before.iter().zip(&between) {
                assert_ne!(*between, MemberId(failing));
                assert!(before == between || *before == MemberId(failing), "{mode} {algorithm}");
            }
            let _ = world.link(failing, UP);
            for (between, after) in between.iter().zip(&send_all(&mut world)) {
                assert!(between == after || *after == MemberId(failing), "{mode} {algorithm}");
            }
        }
    }
}

#[test]
fn every_drop_reason_is_reported() {
    let mut spec = TeamSpec::new(TeamId(1), SwitchIndependent, TransportPorts, &members(3));
    spec.standby = Some(MemberId(2));
    let mut world = World::of(spec, 2);
    let drop = |world: &World, member, source| {
        let distribution = world.team.distribution();
        let slot = distribution.slot(MemberId(member)).unwrap();
        match distribution.check_incoming(slot, &IncomingFrame::from_frame(&arp(source), false)) {
            Acceptance::Accept => None,
            Acceptance::Drop(reason) => Some(reason),
        }
    };
    assert_eq!(drop(&world, 0, STRANGER), None);
    assert_eq!(drop(&world, 0, port_mac(1)), Some(IncomingDropReason::Reflected));
    assert_eq!(drop(&world, 1, STRANGER), Some(IncomingDropReason::NotPrimary));
    assert_eq!(drop(&world, 2, STRANGER), Some(IncomingDropReason::Standby));
    let _ = world.link(1, DOWN);
    assert_eq!(drop(&world, 1, STRANGER), Some(IncomingDropReason::NotCollecting));
    assert_eq!(drop(&world, 2, STRANGER), Some(IncomingDropReason::NotPrimary));
    let _ = world.link(0, DOWN);
    assert_eq!(drop(&world, 2, STRANGER), None);
    let _ = world.link(2, DOWN);
    assert_eq!(drop(&world, 2, STRANGER), Some(IncomingDropReason::TeamDown));
    assert!(world.send(0, &arp(port_mac(0))).is_none());
    for reason in [
        IncomingDropReason::TeamDown,
        IncomingDropReason::AssignedToOtherMember,
        IncomingDropReason::NotPrimary,
    ] {
        assert_eq!(serde_json::to_string(&reason).unwrap(), format!("\"{reason}\""));
    }
}

#[test]
fn with_lacp_a_member_that_collects_takes_frames_before_it_distributes() {
    let mut world = World::new(Lacp, TransportPorts, 2, 1);
    let _ = world.link(1, MemberLink { distributing: false, ..UP });
    assert_eq!(world.copies(&[1], STRANGER, 0), 1);
    let _ = world.link(1, MemberLink { collecting: false, ..UP });
    assert_eq!(world.copies(&[1], STRANGER, 0), 0);
}

#[test]
fn frames_without_headers_leave_somewhere() {
    for (mode, algorithm, ..) in ROWS {
        let mut world = World::new(mode, algorithm, 4, 1);
        for bytes in [&[][..], &[0; 5], &[0xff; 14], &[0x45; 40]] {
            assert!(world.send(0, &frame(bytes)).is_some());
        }
    }
}
