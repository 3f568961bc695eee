use super::*;
use crate::test_teams::{DOWN, MODES, UP, World, members, port_mac, ports, udp};
use crate::{MemberFault, TeamEvent, TeamId};

const INDEPENDENT: TeamMode = TeamMode::SwitchIndependent;

fn announced(change: &TeamChange) -> Vec<(u32, u32)> {
    change
        .announcements
        .iter()
        .map(|announcement| (announcement.port.0, announcement.member.0))
        .collect()
}

fn spec(algorithm: Algorithm, count: u32) -> TeamSpec {
    TeamSpec::new(TeamId(1), INDEPENDENT, algorithm, &members(count))
}

#[test]
fn a_team_starts_down_and_reports_the_event_that_brings_it_up() {
    let mut spec = spec(Algorithm::TransportPorts, 3);
    spec.min_links = 2;
    let mut team = Team::new(spec).unwrap();
    assert!(!team.distribution().is_up());
    let change = team.set_ports(&ports(2));
    assert!(change.announcements.is_empty() && change.events.is_empty());

    let change = team.handle_member_link(MemberId(1), UP).unwrap();
    let usable = TeamEvent::MemberUsable { member: MemberId(1) };
    let primary = TeamEvent::PrimaryChanged { from: None, to: MemberId(1) };
    assert_eq!(change.events, [usable, primary]);
    assert!(!team.distribution().is_up() && change.announcements.is_empty());

    let change = team.handle_member_link(MemberId(0), UP).unwrap();
    let usable = TeamEvent::MemberUsable { member: MemberId(0) };
    assert_eq!(change.events, [usable, TeamEvent::Up { usable: 2, min_links: 2 }]);
    assert!(team.distribution().is_up());
    assert_eq!(announced(&change), [(0, 1), (1, 1)]);

    let change = team.handle_member_link(MemberId(1), DOWN).unwrap();
    let failed = TeamEvent::MemberFailed { member: MemberId(1), fault: MemberFault::LinkDown };
    let primary = TeamEvent::PrimaryChanged { from: Some(MemberId(1)), to: MemberId(0) };
    assert_eq!(change.events, [failed, primary, TeamEvent::Down { usable: 1, min_links: 2 }]);
    assert!(!team.distribution().is_up() && change.announcements.is_empty());
}

#[test]
fn repeated_inputs_change_nothing() {
    for mode in MODES {
        let mut world = World::new(mode, Algorithm::Dynamic, 3, 5);
        let before = Arc::clone(world.team.distribution());
        let spec = world.team.spec().clone();
        for change in [
            world.link(1, UP),
            world.team.set_ports(&ports(5)),
            world.team.set_spec(spec).unwrap(),
            world.team.handle_loads(&[BucketLoad::default(); BUCKETS]),
        ] {
            assert!(change.distribution.is_none());
            assert!(change.announcements.is_empty() && change.events.is_empty());
        }
        assert!(Arc::ptr_eq(&before, world.team.distribution()));
    }
}

#[test]
fn a_failed_primary_is_replaced_and_restored_and_each_time_all_ports_are_announced() {
    let mut spec = spec(Algorithm::IpAddresses, 3);
    spec.primary = Some(MemberId(2));
    let mut world = World::of(spec, 2);
    assert!(world.team.member_status(MemberId(2)).unwrap().is_primary);

    let change = world.link(2, DOWN);
    let failed = TeamEvent::MemberFailed { member: MemberId(2), fault: MemberFault::LinkDown };
    let changed = TeamEvent::PrimaryChanged { from: Some(MemberId(2)), to: MemberId(0) };
    assert_eq!(change.events, [failed, changed]);
    assert_eq!(announced(&change), [(0, 0), (1, 0)]);

    let change = world.link(2, UP);
    let usable = TeamEvent::MemberUsable { member: MemberId(2) };
    let restored = TeamEvent::PrimaryRestored { from: MemberId(0), to: MemberId(2) };
    assert_eq!(change.events, [usable, restored]);
    assert_eq!(announced(&change), [(0, 2), (1, 2)]);

    // The failure of another member moves no address.
    assert!(world.link(1, DOWN).announcements.is_empty());
}

#[test]
fn without_a_configured_primary_the_one_that_took_over_stays() {
    let mut world = World::new(INDEPENDENT, Algorithm::MacAddresses, 3, 1);
    assert_eq!(announced(&world.link(0, DOWN)), [(0, 1)]);
    let change = world.link(0, UP);
    assert_eq!(change.events, [TeamEvent::MemberUsable { member: MemberId(0) }]);
    assert!(change.announcements.is_empty() && change.distribution.is_some());
}

#[test]
fn only_ports_assigned_to_another_member_are_announced() {
    let mut world = World::new(INDEPENDENT, Algorithm::HyperVPort, 3, 9);
    let member_of = |world: &World, port| world.team.assigned_member(PortId(port)).unwrap().0;
    let before: Vec<u32> = (0..9).map(|port| member_of(&world, port)).collect();
    assert_eq!(
        (0..3).map(|id| before.iter().filter(|member| **member == id).count()).max(),
        Some(3)
    );

    let change = world.link(1, DOWN);
    let moved: Vec<(u32, u32)> = (0..9)
        .filter(|port| before[*port as usize] == 1)
        .map(|p| (p, member_of(&world, p)))
        .collect();
    assert_eq!(moved.len(), 3);
    assert_eq!(announced(&change), moved);

    let change = world.link(1, UP);
    assert_eq!(change.announcements.len(), 3);
    assert!(announced(&change).iter().all(|(_, member)| *member == 1));
}

#[test]
fn a_new_port_and_a_new_address_are_announced() {
    let mut world = World::new(INDEPENDENT, Algorithm::TransportPorts, 2, 1);
    assert_eq!(announced(&world.team.set_ports(&ports(2))), [(1, 0)]);
    let mut changed = ports(2);
    changed[0].mac = Some(port_mac(77));
    assert_eq!(announced(&world.team.set_ports(&changed)), [(0, 0)]);
    assert!(world.team.set_ports(&[]).announcements.is_empty());
}

#[test]
fn ports_with_the_same_address_share_a_member() {
    let mut world = World::new(INDEPENDENT, Algorithm::HyperVPort, 4, 0);
    let mut shared = ports(8);
    for port in &mut shared {
        port.mac = Some(port_mac(port.id.0 / 2));
    }
    let _ = world.team.set_ports(&shared);
    for pair in 0..4 {
        assert_eq!(
            world.team.assigned_member(PortId(2 * pair)),
            world.team.assigned_member(PortId(2 * pair + 1))
        );
    }
    assert!((0..4).all(|id| world.team.member_status(MemberId(id)).unwrap().assigned_ports == 1));
}

#[test]
fn the_standby_takes_over_for_any_member_and_goes_back() {
    let mut spec = spec(Algorithm::TransportPorts, 3);
    spec.standby = Some(MemberId(0));
    spec.min_links = 2;
    let mut world = World::of(spec, 1);
    let status = |world: &World| world.team.member_status(MemberId(0)).unwrap();
    assert!(status(&world).is_usable && !status(&world).is_active && status(&world).buckets == 0);

    let change = world.link(2, DOWN);
    let taken_over = TeamEvent::StandbyTookOver { standby: MemberId(0), failed: MemberId(2) };
    assert!(change.events.contains(&taken_over), "{:?}", change.events);
    assert!(status(&world).is_active && status(&world).buckets == 512);
    assert!(world.team.distribution().is_up());

    let change = world.link(2, UP);
    let released = TeamEvent::StandbyReleased { standby: MemberId(0) };
    assert!(change.events.contains(&released), "{:?}", change.events);
    assert!(!status(&world).is_active);
    assert!(!world.link(0, DOWN).events.contains(&released));

    // The standby also becomes primary and does not keep the role afterwards.
    let _ = world.link(0, UP);
    let _ = world.link(1, DOWN);
    let _ = world.link(2, DOWN);
    assert!(status(&world).is_primary && !world.team.distribution().is_up());
    let _ = world.link(1, UP);
    let change = world.link(2, UP);
    assert!(!status(&world).is_primary, "{:?}", change.events);
}

#[test]
fn lacp_decides_which_members_are_usable_in_its_mode_only() {
    let waiting = MemberLink { distributing: false, ..UP };
    for mode in MODES {
        let mut world = World::new(mode, Algorithm::TransportPorts, 2, 1);
        let change = world.link(1, waiting);
        let fault = MemberFault::NotDistributing;
        let failed = TeamEvent::MemberFailed { member: MemberId(1), fault };
        let is_lacp = mode == TeamMode::Lacp;
        assert_eq!(change.events, if is_lacp { vec![failed] } else { vec![] });
        let status = world.team.member_status(MemberId(1)).unwrap();
        assert_eq!(status.buckets, if is_lacp { 0 } else { 512 });
    }
}

#[test]
fn members_come_and_go_live_and_others_keep_their_flows() {
    let mut world = World::new(INDEPENDENT, Algorithm::TransportPorts, 2, 1);
    let before = world.team.distribution().buckets;
    let mut wider = world.team.spec().clone();
    wider.members = members(3);
    let change = world.team.set_spec(wider.clone()).unwrap();
    assert_eq!(world.team.distribution().buckets, before);
    assert!(change.events.is_empty() && change.announcements.is_empty());
    let _ = world.link(2, UP);
    let after = world.team.distribution().buckets;
    let new = world.team.distribution().slot(MemberId(2)).unwrap();
    let moved = || before.iter().zip(&after).filter(|(before, after)| before != after);
    assert_eq!(moved().count(), 341);
    assert!(moved().all(|(_, after)| *after == new));

    wider.members.remove(1);
    let _ = world.team.set_spec(wider).unwrap();
    assert_eq!(world.team.member_status(MemberId(1)), None);
    assert!(world.team.handle_member_link(MemberId(1), UP).is_err());
    let counts = [0, 2].map(|id| world.team.member_status(MemberId(id)).unwrap().buckets);
    assert_eq!(counts, [512, 512]);
}

#[test]
fn mode_and_algorithm_change_live_and_addresses_are_announced_where_they_are_then() {
    let mut world = World::new(TeamMode::Static, Algorithm::TransportPorts, 2, 4);
    let mut change_to = |mode, algorithm| {
        let spec = TeamSpec { mode, algorithm, ..world.team.spec().clone() };
        announced(&world.team.set_spec(spec).unwrap())
    };
    assert_eq!(change_to(INDEPENDENT, Algorithm::TransportPorts), [(0, 0), (1, 0), (2, 0), (3, 0)]);
    assert_eq!(change_to(INDEPENDENT, Algorithm::Dynamic), [(2, 1), (3, 1)]);
    assert_eq!(change_to(INDEPENDENT, Algorithm::HyperVPort), []);
    assert_eq!(change_to(INDEPENDENT, Algorithm::MacAddresses), [(2, 0), (3, 0)]);
    assert_eq!(change_to(TeamMode::Lacp, Algorithm::MacAddresses), []);
}

#[test]
fn refused_inputs_change_nothing() {
    let mut world = World::new(INDEPENDENT, Algorithm::Dynamic, 2, 1);
    let before = Arc::clone(world.team.distribution());
    let valid = world.team.spec().clone();
    let error = world.team.set_spec(TeamSpec { min_links: 9, ..valid.clone() }).unwrap_err();
    assert_eq!(error, TeamSpecError::MinLinks { min_links: 9, max: 2 });
    let error = world.team.set_spec(TeamSpec { id: TeamId(2), ..valid.clone() }).unwrap_err();
    assert_eq!(error, TeamSpecError::WrongTeam { team: TeamId(1), named_team: TeamId(2) });
    let error = world.team.handle_member_link(MemberId(7), DOWN).unwrap_err();
    assert_eq!(error.to_string(), "member 7 is not in the team; its members are 0, 1");
    assert_eq!(*world.team.spec(), valid);
    assert!(Arc::ptr_eq(&before, world.team.distribution()));
    assert!(Team::new(TeamSpec { min_links: 0, ..valid }).is_err());
}

#[test]
fn unequal_speeds_are_weighed_and_unknown_ones_count_as_the_slowest() {
    let mut world = World::new(TeamMode::Static, Algorithm::TransportPorts, 3, 10);
    let speed = |speed_mbps| MemberLink { speed_mbps, ..UP };
    let _ = world.link(0, speed(40_000));
    let _ = world.link(2, speed(0));
    let buckets = [0, 1, 2].map(|id| world.team.member_status(MemberId(id)).unwrap().buckets);
    assert_eq!(buckets, [683, 170, 171]);
    let unknown = [0, 1, 2].map(|id| {
        let _ = world.link(id, speed(0));
        id
    });
    let buckets = unknown.map(|id| world.team.member_status(MemberId(id)).unwrap().buckets);
    assert_eq!(buckets.iter().max().unwrap() - buckets.iter().min().unwrap(), 1);
}

/// Returns loads in which the buckets of member 0 carry all traffic.
fn one_sided(world: &World) -> [BucketLoad; BUCKETS] {
    let distribution = world.team.distribution();
    let busy = distribution.slot(MemberId(0)).unwrap();
    distribution.buckets.map(|slot| BucketLoad {
        bytes: if slot == busy { 1_000_000 } else { 0 },
        member: Some(slot),
    })
}

#[test]
fn loads_move_buckets_and_unrelated_changes_do_not_move_them_back() {
    let mut world = World::new(TeamMode::Static, Algorithm::Dynamic, 3, 2);
    let loads = one_sided(&world);
    let change = world.team.handle_loads(&loads);
    assert!(change.distribution.is_some() && change.events.is_empty());
    let counts =
        |world: &World| [0, 1, 2].map(|id| world.team.member_status(MemberId(id)).unwrap().buckets);
    let evened = counts(&world);
    assert!(evened[0] < 300 && evened[0] + evened[1] + evened[2] == 1024, "{evened:?}");

    let before = world.team.distribution().buckets;
    let _ = world.team.set_ports(&ports(5));
    assert_eq!(world.team.distribution().buckets, before);
    let lost = world.team.distribution().slot(MemberId(2)).unwrap();
    let _ = world.link(2, DOWN);
    let after = world.team.distribution().buckets;
    assert!(before.iter().zip(&after).all(|(before, after)| before == after || *before == lost));
    // A returning member has no measured load and gets its share by count.
    let _ = world.link(2, UP);
    assert!(counts(&world)[2].abs_diff(341) < 60, "{:?}", counts(&world));
}

#[test]
fn other_algorithms_ignore_loads() {
    let mut world = World::new(TeamMode::Static, Algorithm::TransportPorts, 3, 2);
    let loads = one_sided(&world);
    assert!(world.team.handle_loads(&loads).distribution.is_none());
}

#[test]
fn a_member_that_failed_has_lost_its_flowlets_when_it_returns() {
    let mut world = World::new(TeamMode::Static, Algorithm::Dynamic, 3, 1);
    let frames: Vec<_> = (0..200).map(|flow| udp(port_mac(0), flow)).collect();
    for frame in &frames {
        world.send(0, frame);
    }
    let _ = world.link(1, DOWN);
    let _ = world.link(1, UP);
    let distribution = Arc::clone(world.team.distribution());
    let failed = distribution.slot(MemberId(1)).unwrap();
    let mut moved = 0;
    for frame in &frames {
        let key = distribution.key(frame, distribution.ingress_context(PortId(0)));
        let before = world.states[distribution.bucket(&key).unwrap().index()].member();
        let assigned = distribution.choose(&key).unwrap().member;
        if before == Some(failed) {
            moved += usize::from(assigned != failed);
            let member = distribution.slot(world.send(0, frame).unwrap().0);
            assert_eq!(member, Some(assigned));
        }
    }
    assert!(moved > 0);
}
