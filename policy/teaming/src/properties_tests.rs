//! Properties that hold for any team and any events.

use proptest::prelude::*;
use suimon_frame::MacAddr;

use crate::test_teams::{
    ALGORITHMS, MODES, Upstream, World, arp, frame, members, port_mac, ports, udp,
};
use crate::{Algorithm, BUCKETS, BucketLoad, MemberId, MemberLink, TeamId, TeamMode, TeamSpec};

#[derive(Clone, Debug)]
enum Event {
    Link(prop::sample::Index, MemberLink),
    Ports(u32),
    Spec(TeamSpec),
    Loads(u64),
    Pause,
}

fn spec() -> impl Strategy<Value = TeamSpec> {
    let roles = (any::<Option<prop::sample::Index>>(), any::<Option<prop::sample::Index>>());
    (0..MODES.len(), 0..ALGORITHMS.len(), 1u32..6, 1u32..4, roles).prop_filter_map(
        "contradicts itself",
        |(mode, algorithm, count, min_links, (standby, primary))| {
            let members = members(count);
            let id = |index: prop::sample::Index| members[index.index(members.len())].id;
            let is_independent = MODES[mode] == TeamMode::SwitchIndependent;
            let mut spec = TeamSpec::new(TeamId(1), MODES[mode], ALGORITHMS[algorithm], &members);
            spec.min_links = min_links;
            spec.standby = standby.map(id).filter(|_| is_independent);
            spec.primary = primary.map(id).filter(|_| is_independent);
            spec.check().is_ok().then_some(spec)
        },
    )
}

fn link() -> impl Strategy<Value = MemberLink> {
    let speed = prop::sample::select(vec![0u32, 100, 1000, 10_000, 25_000]);
    (prop::bool::weighted(0.7), speed, prop::bool::weighted(0.8), any::<bool>()).prop_map(
        |(up, speed_mbps, distributing, collecting)| MemberLink {
            up,
            speed_mbps,
            distributing,
            collecting,
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (any::<prop::sample::Index>(), link()).prop_map(|(at, link)| Event::Link(at, link)),
        1 => (0u32..12).prop_map(Event::Ports),
        1 => spec().prop_map(Event::Spec),
        1 => any::<u64>().prop_map(Event::Loads),
        1 => Just(Event::Pause),
    ]
}

/// Applies an event and returns the ports that are announced.
fn carry_out(world: &mut World, event: Event) -> Vec<u32> {
    let change = match event {
        Event::Link(member_index, link) => {
            let members = &world.team.spec().members;
            let member = members[member_index.index(members.len())].id;
            world.link(member.0, link)
        }
        Event::Ports(count) => world.team.set_ports(&ports(count)),
        Event::Spec(spec) => world.team.set_spec(spec).unwrap(),
        Event::Loads(seed) => {
            let loads: Vec<BucketLoad> = (0..BUCKETS as u64)
                .map(|bucket| BucketLoad {
                    bytes: (seed ^ bucket).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40,
                    member: world.states[bucket as usize].member(),
                })
                .collect();
            world.team.handle_loads(&loads.try_into().unwrap())
        }
        Event::Pause => {
            world.pause();
            return Vec::new();
        }
    };
    change.announcements.iter().map(|announcement| announcement.port.0).collect()
}

/// Sends frames of several kinds from several ports. Returns the members by which they leave and
/// their source addresses.
fn send_all(world: &mut World) -> Vec<Option<(MemberId, MacAddr)>> {
    let mut results = Vec::new();
    for port in 0..12 {
        for flow in 0..24 {
            results.push(world.send(port, &udp(port_mac(port), flow)));
        }
        results.push(world.send(port, &arp(port_mac(port))));
    }
    results
}

/// Asserts that frames leave only by usable members and only while the team is up.
fn assert_only_usable(world: &mut World) -> Result<(), TestCaseError> {
    let spec = world.team.spec().clone();
    let status = |world: &World, id| world.team.member_status(id).unwrap();
    let is_needed = |world: &World, id: MemberId| {
        let mut other_members = spec.members.iter().filter(|member| member.id != id);
        spec.standby != Some(id) || other_members.any(|other| !status(world, other.id).is_usable)
    };
    let active = spec.members.iter().filter(|member| status(world, member.id).is_active).count();
    let is_up = world.team.distribution().is_up();
    prop_assert_eq!(is_up, active >= spec.min_links as usize);
    for result in send_all(world) {
        prop_assert_eq!(result.is_some(), is_up);
        let Some((member, _)) = result else { continue };
        let link = status(world, member).link;
        prop_assert!(link.up && (spec.mode != TeamMode::Lacp || link.distributing));
        prop_assert!(is_needed(world, member), "the standby carries frames");
    }
    Ok(())
}

/// Asserts the documented bounds of the members' shares.
fn assert_fair(world: &World, ports: u32) -> Result<(), TestCaseError> {
    let spec = world.team.spec();
    let status = spec.members.iter().map(|member| world.team.member_status(member.id).unwrap());
    let active: Vec<_> = status.filter(|status| status.is_active).collect();
    let slowest = active.iter().map(|status| status.link.speed_mbps).filter(|speed| *speed > 0);
    let slowest = slowest.min().unwrap_or(1);
    let weight = |speed: u32| u64::from(if speed == 0 { slowest } else { speed });
    let sum: u64 = active.iter().map(|status| weight(status.link.speed_mbps)).sum();
    for status in &active {
        let weight = weight(status.link.speed_mbps);
        let (count, total) = match spec.algorithm {
            // With `Dynamic`, loads determine the shares.
            Algorithm::Dynamic => continue,
            Algorithm::HyperVPort => (status.assigned_ports, u64::from(ports)),
            _ => (status.buckets, BUCKETS as u64),
        };
        let max = (total + active.len() as u64 - 1) * weight;
        prop_assert!(u64::from(count) * sum <= max, "{} of {} in {:?}", count, total, spec);
        prop_assert!(u64::from(count) >= total * weight / sum);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn any_team_after_any_events_uses_permitted_members_in_fair_shares(
        spec in spec(),
        events in prop::collection::vec(event(), 0..25),
    ) {
        let mut world = World::of(spec, 6);
        let mut ports = 6;
        for event in events {
            if let Event::Ports(count) = event {
                ports = count;
            }
            carry_out(&mut world, event);
            assert_only_usable(&mut world)?;
            assert_fair(&world, ports)?;
        }
    }

    #[test]
    fn the_same_events_give_the_same_distribution(
        spec in spec(),
        events in prop::collection::vec(event(), 0..25),
    ) {
        let (mut first_world, mut other) = (World::of(spec.clone(), 6), World::of(spec, 6));
        for event in events {
            let (first, second) = (carry_out(&mut first_world, event.clone()), carry_out(&mut other, event));
            prop_assert_eq!(first, second);
            prop_assert_eq!(first_world.team.distribution(), other.team.distribution());
        }
    }

    #[test]
    fn a_flow_keeps_its_member_while_nothing_changes(
        spec in spec(),
        events in prop::collection::vec(event(), 0..25),
    ) {
        let mut world = World::of(spec, 6);
        for event in events {
            carry_out(&mut world, event);
        }
        let before = send_all(&mut world);
        prop_assert_eq!(&send_all(&mut world), &before);
        // The first frames of flowlets may have stayed on their previous members.
        world.pause();
        let settled = send_all(&mut world);
        world.pause();
        prop_assert_eq!(send_all(&mut world), settled);
    }

    #[test]
    fn addresses_move_only_when_announced_and_are_shown_in_one_place(
        spec in spec(),
        events in prop::collection::vec(event(), 1..25),
    ) {
        let spec = TeamSpec { mode: TeamMode::SwitchIndependent, ..spec };
        let mut world = World::of(spec, 12);
        let mut before = Upstream::default();
        for event in events {
            let is_other = |spec: &TeamSpec| spec.mode != TeamMode::SwitchIndependent;
            if matches!(&event, Event::Ports(_))
                || matches!(&event, Event::Spec(spec) if is_other(spec))
            {
                continue;
            }
            let announced = carry_out(&mut world, event);
            let mut upstream = Upstream::default();
            for _ in 0..2 {
                send_all(&mut world).into_iter().flatten().for_each(|frame| upstream.receive(frame));
                world.pause();
            }
            prop_assert!(upstream.moved.is_empty(), "{:?}", upstream.moved);
            for port in (0..12).filter(|port| !announced.contains(port)) {
                let location = |upstream: &Upstream| upstream.learned.get(&port_mac(port)).copied();
                if let (Some(before), Some(now)) = (location(&before), location(&upstream)) {
                    prop_assert_eq!(before, now, "port {} moved in silence", port);
                }
            }
            if world.team.distribution().is_up() {
                before = upstream;
            }
        }
    }

    #[test]
    fn frames_received_on_all_members_are_accepted_once_and_own_frames_never(
        spec in spec(),
        events in prop::collection::vec(event(), 0..15),
        own_port in 0u32..6,
    ) {
        let spec = TeamSpec { mode: TeamMode::SwitchIndependent, ..spec };
        let mut world = World::of(spec, 6);
        for event in events {
            if !matches!(event, Event::Spec(_) | Event::Ports(_)) {
                carry_out(&mut world, event);
            }
        }
        let members: Vec<u32> = world.team.spec().members.iter().map(|member| member.id.0).collect();
        let copies = usize::from(world.team.distribution().is_up());
        for port in 0..8 {
            let unknown_mac = MacAddr::new([2, 9, 9, 9, 9, 9]);
            prop_assert_eq!(world.copies(&members, unknown_mac, port), copies);
            prop_assert_eq!(world.copies(&members, port_mac(own_port), port), 0);
        }
    }

    #[test]
    fn all_fragments_of_a_datagram_leave_together(
        spec in spec(),
        is_ipv6 in any::<bool>(),
        protocol in prop::sample::select(vec![1u8, 2, 6, 17, 50, 58, 60]),
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 2..5),
        addresses in any::<[u8; 32]>(),
    ) {
        let mut world = World::of(spec, 6);
        let mut placements = payloads.iter().enumerate().map(|(index, payload)| {
            let fragment = fragment(is_ipv6, protocol, index as u8, &addresses, payload);
            world.send(2, &frame(&fragment))
        });
        let first = placements.next().unwrap();
        prop_assert!(placements.all(|placement| placement == first));
    }

    #[test]
    fn arbitrary_frames_get_a_member(
        spec in spec(),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        kind in prop::sample::select(vec![[0x08u8, 0x00], [0x86, 0xdd], [0x81, 0x00], [0x08, 0x06]]),
    ) {
        let mut world = World::of(spec, 6);
        let mut bytes = bytes;
        if let Some(field) = bytes.get_mut(12..14) {
            field.copy_from_slice(&kind);
        }
        prop_assert!(world.send(1, &frame(&bytes)).is_some());
    }
}

/// Returns fragment `position` of a datagram; fragments after the first have an offset.
fn fragment(
    is_ipv6: bool,
    protocol: u8,
    position: u8,
    addresses: &[u8; 32],
    payload: &[u8],
) -> Vec<u8> {
    let mut bytes = [&[0x52, 0x54, 0, 1, 2, 3][..], &port_mac(2).octets()].concat();
    if is_ipv6 {
        bytes.extend_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, 44, 64]);
        bytes.extend_from_slice(addresses);
        bytes.extend_from_slice(&[protocol, 0, 0, position << 3 | 1, 0, 0, 0, 7]);
    } else {
        bytes.extend_from_slice(&[
            0x08, 0x00, 0x45, 0, 0, 0, 0, 7, 0x20, position, 64, protocol, 0, 0,
        ]);
        bytes.extend_from_slice(&addresses[..8]);
    }
    bytes.extend_from_slice(payload);
    bytes
}
