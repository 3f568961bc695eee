//! Tests of teams that change while frames flow: members fail, join and leave, distributions are
//! replaced, and queues move between workers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::team::*;
use suimon_frame::VnetHeader;
use suimon_ports::QueueHost;
use suimon_processor_tests::{TestClockRuntime, mac};
use suimon_quantity::{Direction, PortId, Time, WorkerId};
use suimon_switch::{CaptureBufferLimits, TeamMember, TopologyError};
use suimon_teaming::{Algorithm, MemberId, TeamMode};
use suimon_wait::WorkerThreads;

fn bench(mode: TeamMode, algorithm: Algorithm) -> Bench {
    Bench::new(Arc::new(WorkerThreads), 1, (mode, algorithm), 4, 2)
}

fn combinations() -> impl Iterator<Item = (TeamMode, Algorithm)> {
    MODES.into_iter().flat_map(|mode| ALGORITHMS.map(|algorithm| (mode, algorithm)))
}

/// Sends a frame of each of 64 flows, and returns the number of frames per member.
fn round(bench: &Bench, number: u32) -> [usize; 2] {
    for flow in 0..64 {
        let guest = usize::from(flow % 4);
        let macs = [BROADCAST, mac(guest as u8)];
        bench.guests[guest].sender.send(&udp(macs, flow as u8, flow, number));
    }
    bench.settle();
    for guest in &bench.guests {
        while guest.receiver.poll().is_some() {}
    }
    [0, 1].map(|member: usize| {
        let frames = std::iter::from_fn(|| bench.members[member].receiver.poll());
        frames.filter(|bytes| flow_and_number(bytes).1 == number).count()
    })
}

#[test]
fn after_a_failure_everything_leaves_by_the_other_member() {
    for (mode, algorithm) in combinations() {
        let mut bench = bench(mode, algorithm);
        let [first, second] = round(&bench, 1);
        assert!(first > 0 && second > 0 && first + second == 64, "{mode} {algorithm}");
        bench.link(0, DOWN);
        assert_eq!(round(&bench, 2), [0, 64], "{mode} {algorithm}");
        bench.members[0].sender.send(&arp(STRANGER));
        bench.settle();
        assert_eq!(bench.dropped_rx(member_port(0)), [("not_collecting", 1)]);
        bench.link(1, DOWN);
        assert_eq!(round(&bench, 3), [0, 0], "{mode} {algorithm}");
        assert_eq!(bench.dropped_tx(TEAM), [("team_down", 64)], "{mode} {algorithm}");
        bench.members[1].sender.send(&arp(STRANGER));
        bench.settle();
        assert_eq!(bench.dropped_rx(member_port(1)), [("team_down", 1)]);
        bench.link(0, UP);
        assert_eq!(round(&bench, 4), [64, 0], "{mode} {algorithm}");
        bench.link(1, UP);
        assert_eq!(round(&bench, 5).iter().sum::<usize>(), 64, "{mode} {algorithm}");
    }
}

const FRAMES: u32 = 20_000;

/// Deadline for the next frame.
const DEADLINE: Duration = Duration::from_secs(120);
/// Minimum number of changes made while frames flow.
const CHANGES: usize = 5;

/// Sends numbered frames of eight flows from a guest: at least [`FRAMES`], and until [`CHANGES`]
/// changes have been made. Limits the number of frames in flight to what a switch can hold without
/// dropping. Returns the number of frames sent.
fn send_all(bench: &Bench, guest: usize, received: &AtomicU32, changes: &AtomicUsize) -> u32 {
    let mut sent_count = 0;
    while sent_count < FRAMES || changes.load(Ordering::Relaxed) < CHANGES {
        let number = sent_count;
        wait_for("room", || number - received.load(Ordering::Relaxed) < 256);
        let flow = guest as u16 * 8 + (number % 8) as u16;
        bench.guests[guest].sender.send(&udp([STRANGER, mac(guest as u8)], 9, flow, number));
        sent_count += 1;
    }
    sent_count
}

#[test]
fn nothing_is_lost_or_reordered_while_distributions_change_and_queues_move() {
    for (mode, algorithm) in combinations() {
        let runtime = Arc::new(WorkerThreads);
        let mut bench = Bench::new(runtime, 2, (mode, algorithm), 2, 2);
        bench.members[0].sender.send(&udp([BROADCAST, STRANGER], 1, 1, 0));
        bench.members[1].sender.send(&udp([BROADCAST, STRANGER], 1, 1, 0));
        bench.settle();
        for guest in 0..2 {
            let id = queue(PortId(guest), Direction::Ingress);
            bench.plane.move_queue(id, WorkerId(guest as u16)).unwrap();
        }
        let mut team = bench.team.clone();
        let received = [AtomicU32::new(0), AtomicU32::new(0)];
        let sent_counts = [AtomicU32::new(u32::MAX), AtomicU32::new(u32::MAX)];
        let (has_ended, changes) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for guest in 0..2 {
                let (bench, received, sent_count) = (&bench, &received[guest], &sent_counts[guest]);
                let changes = &changes;
                scope.spawn(move || {
                    let count = send_all(bench, guest, received, changes);
                    sent_count.store(count, Ordering::Relaxed);
                });
            }
            let (plane, stop, change_count) = (&bench.plane, &has_ended, &changes);
            scope.spawn(move || {
                let mut changes = 0;
                while !stop.load(Ordering::Relaxed) {
                    let link = if changes % 2 == 0 { DOWN } else { UP };
                    let change = team.handle_member_link(MemberId(1), link).unwrap();
                    plane.set_distribution(TEAM, &change.distribution.unwrap()).unwrap();
                    let member = queue(member_port(changes % 2), Direction::Egress);
                    plane.move_queue(member, WorkerId((changes / 2 % 2) as u16)).unwrap();
                    changes += 1;
                    change_count.store(changes, Ordering::Relaxed);
                }
            });
            let mut last = BTreeMap::new();
            let load = |counts: &[AtomicU32; 2]| {
                counts.each_ref().map(|count| count.load(Ordering::Relaxed))
            };
            let mut came_at = Instant::now();
            while load(&received) != load(&sent_counts) {
                let Some((member, bytes)) = bench.poll_out() else {
                    assert!(came_at.elapsed() < DEADLINE, "no frame after {:?}", load(&received));
                    suimon_processor_tests::sleep_briefly();
                    continue;
                };
                came_at = Instant::now();
                let (flow, number) = flow_and_number(&bytes);
                let before = last.insert((member, flow), number);
                assert!(before < Some(number), "{mode} {algorithm}: out of order");
                received[usize::from(flow / 8)].fetch_add(1, Ordering::Relaxed);
            }
            has_ended.store(true, Ordering::Relaxed);
        });
        bench.settle();
        assert!(bench.members.iter().all(|member| member.receiver.poll().is_none()));
        bench.link(0, UP);
    }
}

#[test]
fn a_flow_moves_to_a_less_loaded_member_only_after_a_pause() {
    let clock = Arc::new(AtomicU64::new(5_000_000_000));
    let read = Arc::clone(&clock);
    let runtime =
        Arc::new(TestClockRuntime::new(move || Time::from_ns(read.load(Ordering::SeqCst))));
    for mode in MODES {
        let mut bench = Bench::new(runtime.clone(), 2, (mode, Algorithm::Dynamic), 2, 2);
        let other = queue(member_port(0), Direction::Egress);
        let send = |bench: &Bench, flow: u16, number: u32| {
            let guest = usize::from(flow % 2);
            let mut bytes = udp([BROADCAST, mac(guest as u8)], 9, flow, number);
            bytes.resize(1400, 0);
            bench.guests[guest].sender.send(&bytes);
            let (member, out) = bench.next_out();
            assert_eq!(flow_and_number(&out), (flow, number));
            member
        };
        let before: Vec<usize> = (0..64).map(|flow| send(&bench, flow, 0)).collect();
        let busy: Vec<u16> = (0..64).filter(|flow| before[usize::from(*flow)] == 0).collect();
        assert!(busy.len() > 8, "{mode}");
        let loads = bench.plane.take_bucket_loads(TEAM).unwrap();
        let bytes: u64 = loads.iter().map(|load| load.bytes).sum();
        assert_eq!(bytes, 64 * 1400, "{mode}: all were counted");
        // Five megabytes on the first member, from two workers.
        for number in 1..=3600 {
            let flow = busy[number as usize % busy.len()];
            assert_eq!(send(&bench, flow, number), 0, "{mode}");
            if number % 600 == 0 {
                let target = WorkerId((number / 600 % 2) as u16);
                bench.plane.move_queue(other, target).unwrap();
            }
        }
        let loads = bench.plane.take_bucket_loads(TEAM).unwrap();
        assert_eq!(loads.iter().map(|load| load.bytes).sum::<u64>(), 3600 * 1400, "{mode}");
        let change = bench.team.handle_loads(&loads);
        assert!(change.distribution.is_some(), "{mode}: one member has everything");
        bench.distribute(change.distribution.as_ref());
        for flow in &busy {
            assert_eq!(send(&bench, *flow, 4000), 0, "{mode}: no time has passed");
        }
        clock.fetch_add(1_000_000_000, Ordering::SeqCst);
        let after = busy.iter().filter(|flow| send(&bench, **flow, 5000) == 1).count();
        assert!(after > busy.len() / 4 && after < busy.len(), "{mode}: {after} moved");
    }
}

#[test]
fn all_segments_of_a_large_frame_leave_by_one_member() {
    for (mode, algorithm) in combinations() {
        let bench = bench(mode, algorithm);
        let mut bytes = udp([BROADCAST, mac(0)], 1, 1, 0);
        bytes.truncate(34);
        bytes[16..18].copy_from_slice(&(40 + 1000_u16).to_be_bytes());
        bytes[23] = 6;
        bytes.extend([0, 80, 0, 81, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
        bytes.resize(54 + 1000, 7);
        let header = VnetHeader {
            flags: VnetHeader::NEEDS_CSUM,
            gso_type: VnetHeader::GSO_TCPV4,
            hdr_len: 54,
            gso_size: 100,
            csum_start: 34,
            csum_offset: 16,
            num_buffers: 1,
        };
        bench.guests[0].sender.send_with(&header, &bytes);
        let members: Vec<usize> = (0..10).map(|_| bench.next_out().0).collect();
        assert!(members.iter().all(|member| *member == members[0]), "{mode} {algorithm}");
    }
}

#[test]
fn the_team_counts_frames_of_members_only_while_they_belong_to_it() {
    let mut bench = bench(TeamMode::Static, Algorithm::TransportPorts);
    let spec = bench.team.spec().clone();
    let members: Vec<TeamMember> = bench.topology.teams[0].members.clone();
    let carried = |bench: &Bench| {
        let team = bench.plane.port_counters(TEAM);
        (team.tx_frames, team.rx_frames)
    };
    assert_eq!(round(&bench, 1).iter().sum::<usize>(), 64);
    assert_eq!(carried(&bench), (64, 0));
    // The second member leaves; frames that it receives afterwards do not count for the team.
    let mut single_member = spec.clone();
    single_member.members.truncate(1);
    let set = |bench: &mut Bench, spec, members: &[TeamMember]| {
        let change = bench.team.set_spec(spec).unwrap();
        bench.topology.teams[0].members = members.to_vec();
        bench.topology.teams[0].distribution = change.distribution.unwrap();
        bench.plane.publish(bench.topology.clone()).unwrap();
    };
    set(&mut bench, single_member, &members[..1]);
    assert_eq!(round(&bench, 2), [64, 0]);
    bench.members[1].sender.send(&arp(STRANGER));
    bench.settle();
    assert!(bench.nothing_is_left(), "a frame of a removed member was delivered");
    assert_eq!(carried(&bench), (128, 0));
    // The member joins again, in a different order.
    let members: Vec<TeamMember> = members.into_iter().rev().collect();
    set(&mut bench, spec, &members);
    let change = bench.team.handle_member_link(MemberId(1), UP).unwrap();
    bench.distribute(change.distribution.as_ref());
    let [first, second] = round(&bench, 3);
    assert!(first > 0 && second > 0 && first + second == 64);
    bench.members[1].sender.send(&arp(STRANGER));
    bench.settle();
    assert_eq!(carried(&bench), (192, 1));
    bench.plane.detach_port(member_port(1));
    assert_eq!(carried(&bench), (192, 1), "what gone queues carried counts");
}

#[test]
fn a_member_without_a_queue_and_a_team_without_members_lose_frames_that_are_counted() {
    for (mode, algorithm) in combinations() {
        let mut bench = bench(mode, algorithm);
        let [first, second] = round(&bench, 1);
        bench.plane.detach(queue(member_port(1), Direction::Egress));
        if algorithm == Algorithm::Dynamic {
            // Flows may move in the pause.
            assert!(round(&bench, 2)[0] < 64);
        } else {
            assert_eq!(round(&bench, 2), [first, 0], "{mode} {algorithm}");
            let lost = [("egress_down", second as u64)];
            assert_eq!(bench.dropped_tx(member_port(1)), lost, "{mode} {algorithm}");
        }
        bench.topology.teams[0].members.clear();
        bench.plane.publish(bench.topology.clone()).unwrap();
        assert_eq!(round(&bench, 3), [0, 0]);
        assert_eq!(bench.dropped_tx(TEAM), [("egress_down", 64)], "{mode} {algorithm}");
        let unknown_member = TeamMember { id: MemberId(7), port: member_port(0) };
        bench.topology.teams[0].members.push(unknown_member);
        bench.plane.publish(bench.topology.clone()).unwrap();
        bench.members[0].sender.send(&arp(STRANGER));
        bench.settle();
        assert!(bench.nothing_is_left());
        assert_eq!(bench.dropped_rx(member_port(0)), [("not_collecting", 1)]);
    }
}

#[test]
fn a_capture_of_a_member_sees_all_frames_and_one_of_the_team_the_accepted_ones() {
    let bench = bench(TeamMode::SwitchIndependent, Algorithm::TransportPorts);
    let options = CaptureBufferLimits::default();
    let team = bench.plane.start_capture(TEAM, options);
    let members = [0, 1].map(|member| bench.plane.start_capture(member_port(member), options));
    for member in &bench.members {
        member.sender.send(&arp(STRANGER));
    }
    bench.guests[0].sender.send(&arp(mac(0)));
    let (member, _) = bench.next_out();
    bench.settle();
    let directions = |capture: &suimon_switch::CaptureReader| {
        let mut directions = Vec::new();
        capture.read(Duration::from_millis(1), 10, |frame| directions.push(frame.direction));
        directions.sort_by_key(|direction| *direction == Direction::Egress);
        directions
    };
    let both_directions = [Direction::Ingress, Direction::Egress];
    assert_eq!(directions(&team), both_directions);
    assert_eq!(directions(&members[member]), both_directions);
    assert_eq!(directions(&members[1 - member]), [Direction::Ingress]);
}

#[test]
fn a_contradictory_topology_is_rejected_and_nothing_changes() {
    let bench = bench(TeamMode::Static, Algorithm::TransportPorts);
    let refuse = |change: &dyn Fn(&mut suimon_switch::Topology)| {
        let mut topology = bench.topology.clone();
        change(&mut topology);
        bench.plane.publish(topology).unwrap_err().to_string()
    };
    let texts = [
        refuse(&|topology| topology.teams[0].port = PortId(0)),
        refuse(&|topology| topology.teams[0].port = PortId(55)),
        refuse(&|topology| topology.teams.push(topology.teams[0].clone())),
        refuse(&|topology| topology.teams[0].members[1].port = member_port(0)),
        refuse(&|topology| topology.teams[0].members[1].id = MemberId(0)),
        refuse(&|topology| topology.teams[0].members[1].port = PortId(3)),
    ];
    for (text, part) in texts.iter().zip([
        "port 0 is a team and not an uplink",
        "port 55 is a team and not an uplink",
        "port 100 is listed as a team twice",
        "port 200 is a team's member and used elsewhere",
        "port 201 is a team's member and used elsewhere",
        "port 3 is a team's member and used elsewhere",
    ]) {
        assert!(text.starts_with(part), "{text}");
    }
    let distribution = bench.team.distribution();
    let result = bench.plane.set_distribution(PortId(0), distribution);
    assert!(matches!(result, Err(TopologyError::NoSuchTeam(PortId(0)))));
    assert!(bench.plane.take_bucket_loads(PortId(0)).is_none());
    assert_eq!(round(&bench, 1).iter().sum::<usize>(), 64);
}
