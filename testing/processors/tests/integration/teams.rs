//! Tests of a team as uplink: which member sends a frame and which received frames are accepted, in
//! each mode with each algorithm.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::team::*;
use suimon_processor_tests::mac;
use suimon_quantity::PortId;
use suimon_teaming::{Algorithm, TeamMode};
use suimon_wait::WorkerThreads;

const FLOWS: u16 = 64;

fn bench(mode: TeamMode, algorithm: Algorithm) -> Bench {
    Bench::new(Arc::new(WorkerThreads), 1, (mode, algorithm), 4, 2)
}

fn combinations() -> impl Iterator<Item = (TeamMode, Algorithm)> {
    MODES.into_iter().flat_map(|mode| ALGORITHMS.map(|algorithm| (mode, algorithm)))
}

/// Lets the switch learn the remote station, by frames to addresses that do not exist here.
fn introduce(bench: &Bench) {
    for member in &bench.members {
        member.sender.send(&udp([BROADCAST, STRANGER], 1, 1, 0));
    }
    bench.settle();
    for guest in &bench.guests {
        assert!(guest.receiver.poll().is_some());
        while guest.receiver.poll().is_some() {}
    }
    let addresses = bench.plane.addresses(SWITCH);
    let learned = addresses.iter().find(|view| view.mac.octets() == STRANGER).unwrap();
    assert_eq!(learned.port, TEAM, "it is learned where the team is");
}

#[test]
fn flows_are_spread_over_members_and_each_keeps_its_member_and_order() {
    for (mode, algorithm) in combinations() {
        let bench = bench(mode, algorithm);
        introduce(&bench);
        for number in 0..8 {
            for flow in 0..FLOWS {
                let frame = udp([STRANGER, mac(0)], (flow / 4) as u8, flow, number);
                bench.guests[0].sender.send(&frame);
            }
        }
        let mut members = BTreeMap::<u16, usize>::new();
        let mut next = BTreeMap::<u16, u32>::new();
        for _ in 0..8 * FLOWS {
            let (member, bytes) = bench.next_out();
            let (flow, number) = flow_and_number(&bytes);
            let due = next.entry(flow).or_default();
            assert_eq!(number, *due, "{mode} {algorithm}");
            *due += 1;
            // The dynamic algorithm may move a flow after a pause, which threads of a test can
            // cause.
            let flow_member = *members.entry(flow).or_insert(member);
            assert!(flow_member == member || algorithm == Algorithm::Dynamic, "{mode} {algorithm}");
            // A source address that belongs to another member is replaced by the address of the
            // sending member.
            let is_own = source(&bytes) == mac(0);
            assert!(is_own || source(&bytes) == member_mac(member), "{mode} {algorithm}");
        }
        let used: BTreeSet<usize> = members.values().copied().collect();
        let is_single = matches!(algorithm, Algorithm::HyperVPort | Algorithm::MacAddresses);
        assert_eq!(used.len(), if is_single { 1 } else { 2 }, "{mode} {algorithm}");
        let is_apart = |flow: &u16| members[flow] != members[&(flow / 4 * 4)];
        let split_flows = (0..FLOWS).filter(is_apart).count();
        let by_ports = matches!(algorithm, Algorithm::TransportPorts | Algorithm::Dynamic);
        assert_eq!(split_flows > 0, by_ports, "{mode} {algorithm}: flows that share addresses");
        let sum = |port_of: fn(usize) -> PortId| {
            (0..2).map(|index| bench.plane.port_counters(port_of(index)).tx_frames).sum::<u64>()
        };
        let expected_frames = u64::from(8 * FLOWS);
        wait_for("the counters", || sum(member_port) == expected_frames);
        assert_eq!(bench.plane.port_counters(TEAM).tx_frames, expected_frames);
        assert_eq!(bench.plane.port_counters(TEAM).tx_bytes, 60 * expected_frames);
    }
}

#[test]
fn ports_live_on_different_members_and_different_addresses_leave_by_both() {
    for (mode, algorithm) in combinations() {
        let bench = bench(mode, algorithm);
        introduce(&bench);
        for flow in 0..FLOWS {
            let guest = flow % 4;
            bench.guests[usize::from(guest)].sender.send(&udp(
                [STRANGER, mac(guest as u8)],
                flow as u8,
                flow,
                0,
            ));
        }
        let used: BTreeSet<usize> = (0..FLOWS).map(|_| bench.next_out().0).collect();
        assert_eq!(used.len(), 2, "{mode} {algorithm}");
    }
}

#[test]
fn a_flooded_frame_leaves_once_and_guests_receive_it_unchanged() {
    for (mode, algorithm) in combinations() {
        let bench = bench(mode, algorithm);
        let frames = (0..FLOWS).map(|flow| udp([BROADCAST, mac(1)], flow as u8, flow, 0));
        for frame in frames.chain([arp(mac(1))]) {
            bench.guests[1].sender.send(&frame);
            let (member, out) = bench.next_out();
            assert!(source(&out) == mac(1) || source(&out) == member_mac(member));
            assert_eq!(out[12..], frame[12..]);
            for guest in [0, 2, 3] {
                assert_eq!(bench.next_in(guest), frame, "{mode} {algorithm}");
            }
        }
        bench.settle();
        assert!(bench.nothing_is_left(), "{mode} {algorithm}");
    }
}

#[test]
fn of_a_broadcast_that_all_members_receive_each_guest_gets_one_copy() {
    for (mode, algorithm) in combinations() {
        let bench = bench(mode, algorithm);
        let frame = arp(STRANGER);
        let is_group = mode != TeamMode::SwitchIndependent;
        // A link aggregation group delivers the frame on one member only.
        for member in &bench.members[..if is_group { 1 } else { 2 }] {
            member.sender.send(&frame);
        }
        for guest in 0..4 {
            assert_eq!(bench.next_in(guest), frame, "{mode} {algorithm}");
        }
        bench.settle();
        assert!(bench.nothing_is_left(), "{mode} {algorithm}");
    }
}

#[test]
fn a_unicast_is_taken_by_the_members_that_receive() {
    for (mode, algorithm) in combinations() {
        let bench = bench(mode, algorithm);
        let mut takers = Vec::new();
        for guest in 0..4 {
            for member in 0..2 {
                let before = bench.dropped_rx(member_port(member));
                bench.members[member].sender.send(&udp([mac(guest), STRANGER], 1, 1, 7));
                bench.settle();
                if bench.guests[usize::from(guest)].receiver.poll().is_some() {
                    takers.push((guest, member));
                    assert_eq!(bench.dropped_rx(member_port(member)), before);
                } else {
                    assert_ne!(bench.dropped_rx(member_port(member)), before);
                }
            }
        }
        let by_home = matches!(algorithm, Algorithm::HyperVPort | Algorithm::Dynamic);
        let members: BTreeSet<usize> = takers.iter().map(|(_, member)| *member).collect();
        match mode {
            TeamMode::SwitchIndependent => {
                assert_eq!(takers.len(), 4, "{algorithm}: one member for each guest");
                assert_eq!(members.len(), if by_home { 2 } else { 1 }, "{algorithm}");
                let reason = if by_home { "other_member" } else { "not_primary" };
                let dropped = (0..2).flat_map(|member| bench.dropped_rx(member_port(member)));
                let (names, counts): (BTreeSet<_>, Vec<_>) = dropped.unzip();
                assert_eq!((names, counts.iter().sum()), (BTreeSet::from([reason]), 4_u64));
            }
            _ => assert_eq!(takers.len(), 8, "{mode} {algorithm}"),
        }
        assert_eq!(bench.dropped_rx(TEAM), [], "members count what is dropped there");
        assert_eq!(bench.plane.port_counters(TEAM).rx_frames, 8);
    }
}

#[test]
fn frames_of_this_host_that_return_are_dropped_and_not_learned_from() {
    for (mode, algorithm) in combinations() {
        let mut bench = bench(mode, algorithm);
        // A guest with further addresses behind it, none of which is configured.
        let nested = [2, 0, 0, 0, 7, 7];
        bench.topology.ports[2].spec.mac = None;
        bench.plane.publish(bench.topology.clone()).unwrap();
        for source in [mac(1), nested] {
            let guest = if source == nested { 2 } else { 1 };
            bench.guests[guest].sender.send(&arp(source));
            let (_, out) = bench.next_out();
            bench.settle();
            for guest in &bench.guests {
                while guest.receiver.poll().is_some() {}
            }
            for member in &bench.members {
                member.sender.send(&out);
            }
            bench.settle();
            assert!(bench.nothing_is_left(), "{mode} {algorithm}");
            let addresses = bench.plane.addresses(SWITCH);
            let port = addresses.iter().find(|view| view.mac.octets() == source).unwrap().port;
            assert_eq!(port, PortId(guest as u32), "{mode} {algorithm}");
        }
        let dropped: Vec<_> =
            (0..2).flat_map(|index| bench.dropped_rx(member_port(index))).collect();
        assert!(dropped.iter().any(|(name, _)| *name == "reflected"), "{dropped:?}");
        assert_eq!(dropped.iter().map(|(_, frames)| frames).sum::<u64>(), 4);
    }
}
