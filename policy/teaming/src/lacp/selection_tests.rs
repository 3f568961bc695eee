use core::time::Duration;

use suimon_frame::MacAddr;

use super::super::test_bench::{Bench, TEN_GIGABIT, end, port, spec};
use super::super::{LacpAction, LacpPortSpec, Link, PortInfo, PortState, ReceiveState};
use super::*;
use crate::MemberId;

const GIGABIT: Link = Link { speed_mbps: 1_000, full_duplex: true };

fn lone(system: u8, port: u16) -> PortInfo {
    let end = end(system, port);
    PortInfo { state: end.state.with(PortState::AGGREGATION, false), ..end }
}

fn in_use(bench: &Bench) -> Vec<u32> {
    let used = bench.lacp.members().filter(|member| {
        bench.lacp.member_state(*member).is_some_and(|state| state.is_distributing)
    });
    used.map(|member| member.0).collect()
}

/// 6.4.14.1 e, 6.3.6: ports with one LAG ID share an Aggregator, others do not.
#[test]
fn only_links_of_one_partner_system_and_key_are_used_together() {
    type Row = (&'static str, fn(&mut PortInfo));
    let rows: [Row; 3] = [
        ("another System", |end| end.system = MacAddr::new([2, 0, 0, 0, 0, 0x9a])),
        ("another System priority", |end| end.system_priority = 0x8001),
        ("another key", |end| end.key = 8),
    ];
    for (name, change) in rows {
        let mut bench = Bench::new(spec(), 3);
        let mut other = end(0x99, 6);
        change(&mut other);
        bench.receive_for(4, &[(1, end(0x99, 4)), (2, end(0x99, 5)), (3, other)]);
        assert_eq!(in_use(&bench), [1, 2], "{name}");
        assert_eq!(bench.state(3).reason, LacpReason::OtherGroup, "{name}");
        assert_eq!(bench.state(3).selected, Selected::Standby, "{name}");
        assert!(!bench.state(3).actor.state.has(PortState::SYNCHRONIZATION), "{name}");
    }
}

/// 6.3.5: links of different speeds have different keys unless mixed speeds are configured.
#[test]
fn speeds_aggregate_only_with_their_like_unless_they_may_mix() {
    for (mixed, expected) in [(false, vec![1, 2]), (true, vec![1, 2, 3])] {
        let mut bench = Bench::new(LacpSpec { mixed_speeds_allowed: mixed, ..spec() }, 3);
        bench.link(3, Some(GIGABIT));
        let ends = [(1, end(0x99, 4)), (2, end(0x99, 5)), (3, end(0x99, 6))];
        bench.receive_for(4, &ends);
        assert_eq!(in_use(&bench), expected);
        let keys = [1, 2, 3].map(|member| bench.state(member).actor.key);
        assert_eq!(keys, if mixed { [32, 32, 32] } else { [39, 39, 36] });
    }
}

/// 6.4.15: ports that wait for one Aggregator attach together.
#[test]
fn ports_attach_together_when_the_last_one_has_waited() {
    let mut bench = Bench::new(spec(), 2);
    bench.receive(1, end(0x99, 4));
    bench.run_ms(1_500);
    bench.receive(2, end(0x99, 5));
    let last = bench.now + Duration::from_secs(2);
    bench.receive_for(4, &[(1, end(0x99, 4)), (2, end(0x99, 5))]);
    let uses: Vec<_> = bench.uses().iter().map(|(time, member, ..)| (*time, *member)).collect();
    assert_eq!(uses, [(last, 1), (last, 2)]);
}

#[test]
fn a_tie_never_moves_traffic_and_more_bandwidth_does() {
    let mut bench = Bench::new(spec(), 5);
    bench.receive_for(4, &[(1, end(0x99, 4)), (2, end(0x99, 5))]);
    // A lower System with as many links: no change.
    let mut ends = vec![(1, end(0x99, 4)), (2, end(0x99, 5)), (3, end(0x11, 1)), (4, end(0x11, 2))];
    bench.receive_for(100, &ends);
    assert_eq!(in_use(&bench), [1, 2]);
    bench.uses();
    // One more link: all change at once, because the wait time of the others has expired.
    ends.push((5, end(0x11, 3)));
    bench.receive(5, end(0x11, 3));
    let moved = bench.now;
    bench.receive_for(4, &ends);
    let uses: Vec<_> =
        bench.uses().iter().map(|(time, member, is_used, _)| (*time, *member, *is_used)).collect();
    assert_eq!(uses[..2], [(moved, 1, false), (moved, 2, false)]);
    assert_eq!(uses.len(), 5);
    assert_eq!(in_use(&bench), [3, 4, 5]);
    assert_eq!(bench.lacp.team_state().members_in_use, 3);
}

#[test]
fn the_other_switch_takes_over_without_a_wait_when_the_last_link_breaks() {
    let mut bench = Bench::new(spec(), 2);
    bench.receive_for(4, &[(1, end(0x99, 4)), (2, end(0x11, 5))]);
    let used = in_use(&bench);
    assert_eq!(used, [1], "who was there first");
    bench.uses();
    bench.link(1, None);
    assert_eq!(
        bench.uses(),
        [(bench.now, 1, false, LacpReason::LinkDown), (bench.now, 2, true, LacpReason::InUse)]
    );
    // The return of the first link makes the groups equal.
    bench.link(1, Some(TEN_GIGABIT));
    bench.receive_for(10, &[(1, end(0x99, 4)), (2, end(0x11, 5))]);
    assert_eq!(bench.uses(), []);
}

#[test]
fn a_group_whose_partner_never_gets_in_sync_is_replaced() {
    let mut out = end(0x99, 4);
    out.state.set(PortState::SYNCHRONIZATION, false);
    // Change to an equal group of a lower System after 3 s.
    let mut bench = Bench::new(spec(), 2);
    bench.receive(1, out);
    bench.receive_for(6, &[(1, out), (2, end(0x11, 5))]);
    assert_eq!(in_use(&bench), [2]);
    // Change to a lesser group after 60 s (6.4.17).
    let mut bench = Bench::new(spec(), 3);
    let ends = [(1, out), (2, PortInfo { port: 5, ..out }), (3, end(0xaa, 1))];
    bench.receive_for(50, &ends);
    assert!(in_use(&bench).is_empty());
    bench.receive_for(20, &ends);
    assert_eq!(in_use(&bench), [3]);
}

/// 6.4.14.1 h: an individual link does not share its Aggregator.
#[test]
fn of_individual_links_one_is_used_if_that_is_allowed() {
    let rows: [(&str, Option<PortInfo>, LacpReason); 2] = [
        ("without Aggregation", Some(lone(0x99, 4)), LacpReason::PartnerIndividual),
        ("without LACP", None, LacpReason::NoPartner),
    ];
    for (name, partner, reason) in rows {
        for allowed in [false, true] {
            let mut bench = Bench::new(LacpSpec { individual_allowed: allowed, ..spec() }, 2);
            let ends: Vec<_> = partner
                .into_iter()
                .flat_map(|end| [(1, end), (2, PortInfo { port: 5, ..end })])
                .collect();
            bench.receive_for(10, &ends);
            if allowed {
                assert_eq!(in_use(&bench), [1], "{name}");
                assert_eq!(bench.reasons(), [LacpReason::InUse, LacpReason::OtherGroup], "{name}");
                bench.uses();
                bench.link(1, None);
                assert_eq!(in_use(&bench), [2], "{name}: at once");
            } else {
                assert_eq!(bench.reasons(), [reason, reason], "{name}");
            }
        }
    }
}

#[test]
fn an_aggregate_goes_before_any_individual_link() {
    let mut bench = Bench::new(LacpSpec { individual_allowed: true, ..spec() }, 3);
    bench.link(3, Some(GIGABIT));
    bench.receive_for(8, &[(1, lone(0x99, 4))]);
    assert_eq!(in_use(&bench), [1]);
    let group = bench.lacp.team_state().group.map(|lag| (lag.class, lag.individual));
    assert_eq!(group, Some((LagClass::Individual, Some(MemberId(1)))));
    bench.receive_for(4, &[(1, lone(0x99, 4)), (3, end(0x99, 6))]);
    assert_eq!(in_use(&bench), [3]);
    assert_eq!(bench.state(2).receive, ReceiveState::Defaulted);
}

/// 6.4.8, LACP_Enabled; 6.7.3: a half duplex link is individual and has no LACP.
#[test]
fn a_half_duplex_link_speaks_no_lacp_and_is_at_most_used_alone() {
    let half = Link { full_duplex: false, ..TEN_GIGABIT };
    let mut bench = Bench::new(spec(), 2);
    let ends = [(1, end(0x99, 4)), (2, end(0x99, 5))];
    bench.receive_for(4, &ends);
    bench.uses();
    bench.link(1, Some(half));
    assert_eq!(bench.uses(), [(bench.now, 1, false, LacpReason::HalfDuplex)]);
    bench.receive_for(4, &ends);
    assert_eq!(bench.sent(1), []);
    assert_eq!(bench.state(1).receive, ReceiveState::LacpDisabled);
    assert_eq!(in_use(&bench), [2]);
    bench.set_spec(|spec| spec.individual_allowed = true);
    bench.link(2, None);
    bench.run_ms(3_000);
    assert_eq!(in_use(&bench), [1]);
    bench.link(1, Some(TEN_GIGABIT));
    bench.receive_for(4, &ends);
    assert_eq!(bench.state(1).receive, ReceiveState::Current);
    assert_eq!(in_use(&bench), [1]);
    assert!(!bench.sent(1).is_empty());
}

/// 6.4.14.1 g: a link from the System to itself is not aggregated, and is reported.
#[test]
fn a_looped_link_is_never_used_and_is_reported() {
    for from in [1, 2] {
        let mut bench = Bench::new(LacpSpec { individual_allowed: true, ..spec() }, 2);
        let looped = |bench: &Bench| {
            let (actor, partner) = (bench.state(from).actor, bench.state(1).actor);
            super::super::Lacpdu { version: 1, actor, partner, collector_max_delay: 0 }
        };
        for _ in 0..20 {
            let pdu = looped(&bench);
            bench.receive_pdu(1, &pdu);
            bench.run_ms(500);
            assert!(!bench.state(1).is_distributing);
        }
        assert_eq!(bench.state(1).reason, LacpReason::Loopback);
        assert_eq!(bench.state(1).looped_port, Some(from));
        assert_eq!(bench.state(1).counters.loopbacks, 20);
        let loopbacks_of = |bench: &Bench| {
            let loopbacks = bench.actions.iter().filter_map(|(_, action)| match action {
                LacpAction::ReportLoopback { member: MemberId(1), port } => Some(*port),
                _ => None,
            });
            loopbacks.collect::<Vec<_>>()
        };
        assert_eq!(loopbacks_of(&bench), [Some(from)]);
        bench.receive_for(4, &[(1, end(0x99, 4))]);
        assert_eq!(loopbacks_of(&bench), [Some(from), None]);
        assert_eq!(in_use(&bench), [1]);
    }
}

/// 6.7.1: the System with the lower Identifier selects the links.
#[test]
fn the_lower_system_s_port_identifiers_choose_among_more_links_than_may_be_used() {
    // The local port priorities prefer 3, then 2; the Partner's 1, then 2.
    for (system_priority, expected) in [(1, [2, 3]), (0xffff, [1, 2])] {
        let limited = LacpSpec { max_active: 2, system_priority, ..spec() };
        let mut bench = Bench::new(limited, 3);
        for number in 1..=3 {
            let spec = LacpPortSpec { priority: 10 - number, ..port(number) };
            bench.lacp.set_member(MemberId(number.into()), spec, bench.now).unwrap();
        }
        let ends: Vec<_> = (1..=3).map(|number| (number, end(0x99, number))).collect();
        bench.receive_for(4, &ends);
        assert_eq!(in_use(&bench), expected);
        let standby = 6 - expected[0] as u16 - expected[1] as u16;
        assert_eq!(bench.state(standby).reason, LacpReason::Standby);
        assert_eq!(bench.state(standby).mux, MuxState::Waiting);
    }
}

#[test]
fn a_standby_takes_over_at_once_and_is_replaced_only_by_a_ready_link() {
    let mut bench = Bench::new(LacpSpec { max_active: 1, ..spec() }, 2);
    let ends = [(1, end(0x99, 4)), (2, end(0x99, 5))];
    bench.receive_for(4, &ends);
    assert_eq!(in_use(&bench), [1]);
    bench.uses();
    bench.link(1, None);
    assert_eq!(
        bench.uses(),
        [(bench.now, 1, false, LacpReason::LinkDown), (bench.now, 2, true, LacpReason::InUse)]
    );
    bench.link(1, Some(TEN_GIGABIT));
    bench.receive(1, ends[0].1);
    let ready = bench.now + Duration::from_secs(2);
    assert_eq!(bench.state(1).reason, LacpReason::Standby);
    bench.receive_for(4, &ends);
    assert_eq!(
        bench.uses(),
        [(ready, 2, false, LacpReason::Standby), (ready, 1, true, LacpReason::InUse)]
    );
    // A silent Partner is replaced too.
    bench.receive_for(5, &ends[1..]);
    assert_eq!(in_use(&bench), [2]);
}

#[test]
fn the_limit_changes_live_and_moves_no_link_that_may_stay() {
    let mut bench = Bench::new(spec(), 4);
    let ends: Vec<_> = (1..=4).map(|number| (number, end(0x99, number))).collect();
    bench.receive_for(4, &ends);
    bench.uses();
    bench.set_spec(|spec| spec.max_active = 2);
    let standby = |member| (bench.now, member, false, LacpReason::Standby);
    let expected = [standby(3), standby(4)];
    assert_eq!(bench.uses(), expected);
    bench.receive_for(4, &ends);
    bench.uses();
    bench.set_spec(|spec| spec.max_active = 3);
    assert_eq!(bench.uses(), [(bench.now, 3, true, LacpReason::InUse)]);
}

#[test]
fn a_link_refused_by_the_partner_is_replaced_by_another() {
    let mut bench = Bench::new(LacpSpec { max_active: 1, ..spec() }, 2);
    let mut out = end(0x99, 4);
    out.state.set(PortState::SYNCHRONIZATION, false);
    bench.receive_for(50, &[(1, out), (2, end(0x99, 5))]);
    assert!(in_use(&bench).is_empty());
    bench.receive_for(15, &[(1, out), (2, end(0x99, 5))]);
    assert_eq!(in_use(&bench), [2]);
}

/// The Partner of each of two groups uses one link of two. This moves no traffic, even if one
/// Partner has kept its other link out of sync for longer.
#[test]
fn a_partner_with_a_limit_of_its_own_loses_no_traffic_to_an_equal_one() {
    let mut bench = Bench::new(spec(), 4);
    let out = |system, port| {
        let end = end(system, port);
        PortInfo { state: end.state.with(PortState::SYNCHRONIZATION, false), ..end }
    };
    bench.receive_for(20, &[(1, end(0x99, 1)), (2, out(0x99, 2))]);
    let mut ends = vec![(1, end(0x99, 1)), (2, out(0x99, 2)), (3, end(0x11, 1)), (4, end(0x11, 2))];
    bench.receive_for(5, &ends);
    ends[3].1 = out(0x11, 2);
    bench.uses();
    bench.receive_for(100, &ends);
    assert_eq!(bench.uses(), []);
    assert_eq!(in_use(&bench), [1]);
}
