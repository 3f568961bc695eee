use core::time::Duration;

use suimon_frame::MacAddr;

use super::super::test_bench::{Bench, TEN_GIGABIT, end, port, spec};
use super::super::{
    Activity, ChurnSide, Counters, LacpReason, LagClass, MuxState, PeriodicState, PortState,
    Selected, Timer,
};
use super::*;

#[test]
fn a_link_is_used_two_seconds_after_the_first_frame_of_its_partner() {
    let mut bench = Bench::new(spec(), 1);
    let start = bench.now;
    bench.run_ms(1_500);
    // Figure 6-19: the first LACPDU is sent with the periodic timer and requests fast transmission.
    let sent = bench.sent(1);
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].0, start + Duration::from_secs(1));
    assert!(sent[0].1.actor.state.has(PortState::EXPIRED));
    bench.receive(1, end(0x99, 4));
    let received_at = bench.now;
    assert_eq!(bench.state(1).reason, LacpReason::AggregateWait);
    bench.receive_for(3, &[(1, end(0x99, 4))]);
    let used = (received_at + Duration::from_secs(2), 1, true, LacpReason::InUse);
    let last = bench.sent(1).last().unwrap().1;
    assert_eq!(bench.uses(), [used]);
    let state = bench.state(1);
    assert_eq!(state.receive, ReceiveState::Current);
    assert_eq!(state.mux, MuxState::CollectingDistributing);
    assert_eq!(state.periodic, PeriodicState::FastPeriodic);
    assert_eq!(state.selected, Selected::Selected);
    let names: Vec<_> = state.actor.state.names().collect();
    let expected = [
        "activity",
        "short-timeout",
        "aggregation",
        "synchronization",
        "collecting",
        "distributing",
    ];
    assert_eq!(names, expected);
    // The LACPDU carries the current Actor state, and the Partner's end as received.
    assert_eq!(last.actor, state.actor);
    assert_eq!(last.partner, end(0x99, 4));
    assert_eq!(bench.lacp.team_state().members_in_use, 1);
    assert_eq!(bench.lacp.team_state().bandwidth_mbps, 10_000);
}

#[test]
fn a_passive_member_is_silent_until_it_receives_a_frame() {
    let mut bench = Bench::new(spec(), 1);
    bench.set_spec(|spec| spec.activity = Activity::Passive);
    bench.actions.clear();
    bench.run_ms(100_000);
    let mut passive = end(0x99, 4);
    passive.state = PortState::AGGREGATION.or(PortState::SYNCHRONIZATION);
    bench.receive_for(5, &[(1, passive)]);
    assert_eq!(bench.sent(1), []);
    assert!(!bench.state(1).is_distributing, "6.4.9: nobody maintains the link");
    bench.receive_for(5, &[(1, end(0x99, 4))]);
    assert!(!bench.sent(1).is_empty());
    assert!(bench.state(1).is_distributing);
}

#[test]
fn a_silent_partner_is_given_up_after_its_timeout_and_then_defaulted() {
    for (timer, seconds) in [(Timer::Fast, 3), (Timer::Slow, 90)] {
        let mut bench = Bench::new(spec(), 1);
        bench.set_spec(|spec| spec.timer = timer);
        bench.receive_for(4, &[(1, end(0x99, 4))]);
        let last = bench.state(1).last_pdu.unwrap();
        bench.uses();
        bench.run_ms(200_000);
        let expired_at = last + Duration::from_secs(seconds);
        assert_eq!(bench.uses(), [(expired_at, 1, false, LacpReason::PartnerSilent)]);
        assert_eq!(bench.reasons(), [LacpReason::NoPartner]);
        assert_eq!(bench.state(1).receive, ReceiveState::Defaulted);
        assert!(bench.state(1).actor.state.has(PortState::DEFAULTED));
    }
}

#[test]
fn a_partner_out_of_sync_stops_traffic_at_once_and_starts_it_again_without_a_wait() {
    let mut bench = Bench::new(spec(), 1);
    bench.receive_for(4, &[(1, end(0x99, 4))]);
    bench.uses();
    let mut out = end(0x99, 4);
    out.state.set(PortState::SYNCHRONIZATION, false);
    bench.receive(1, out);
    let stopped = bench.now;
    bench.run_ms(700);
    bench.receive(1, end(0x99, 4));
    let uses = bench.uses();
    assert_eq!(uses[0], (stopped, 1, false, LacpReason::PartnerNotInSync));
    assert_eq!(uses[1..], [(bench.now, 1, true, LacpReason::InUse)]);
}

#[test]
fn a_broken_link_stops_traffic_at_once_and_the_same_partner_has_not_to_wait() {
    let mut bench = Bench::new(spec(), 2);
    let ends = [(1, end(0x99, 4)), (2, end(0x99, 5))];
    bench.receive_for(4, &ends);
    bench.uses();
    bench.link(1, None);
    assert_eq!(bench.uses(), [(bench.now, 1, false, LacpReason::LinkDown)]);
    bench.receive_for(10, &ends[1..]);
    bench.link(1, Some(TEN_GIGABIT));
    bench.run_ms(30);
    bench.receive(1, end(0x99, 4));
    assert_eq!(bench.uses(), [(bench.now, 1, true, LacpReason::InUse)]);
}

#[test]
fn a_forged_partner_detaches_its_member_is_counted_and_the_real_one_comes_back() {
    let mut bench = Bench::new(spec(), 2);
    let ends = [(1, end(0x99, 4)), (2, end(0x99, 5))];
    bench.receive_for(4, &ends);
    bench.uses();
    bench.receive(1, end(0x66, 1));
    assert_eq!(bench.uses(), [(bench.now, 1, false, LacpReason::OtherGroup)]);
    assert_eq!(bench.state(1).counters.partner_changes, 1);
    assert!(bench.state(2).is_distributing, "the other member is not touched");
    bench.receive(1, end(0x99, 4));
    let recovered_at = bench.now + Duration::from_secs(2);
    bench.receive_for(4, &ends);
    assert_eq!(bench.uses(), [(recovered_at, 1, true, LacpReason::InUse)]);
    // A Partner that alternates between two identities is counted once per change.
    assert_eq!(bench.state(1).counters.partner_changes, 1);
}

#[test]
fn a_flood_without_changes_costs_three_replies_a_second_and_no_poll() {
    let mut bench = Bench::new(spec(), 1);
    bench.receive_for(4, &[(1, end(0x99, 4))]);
    bench.actions.clear();
    let start = bench.now;
    for number in 0..20_000u32 {
        // Each contains wrong information about the local end, so each requires a reply.
        let mut pdu = Lacpdu {
            version: 1,
            actor: end(number as u8, number as u16),
            partner: end(1, number as u16),
            collector_max_delay: 0,
        };
        pdu.actor.state = PortState::from_octet((number >> 3) as u8);
        bench.receive_pdu(1, &pdu);
        bench.run_for(Duration::from_micros(100));
    }
    let sent = bench.sent(1);
    assert!(sent.len() <= 9, "2 s: {}", sent.len());
    for four in sent.windows(4) {
        assert!(four[3].0.since(four[0].0) > Duration::from_secs(1));
    }
    assert!(bench.now.since(start) >= Duration::from_secs(2));
    // A LACPDU that only repeats known information does not change the time of the next poll.
    bench.receive_for(4, &[(1, end(0x99, 4))]);
    let frame = |bench: &Bench| {
        let partner = bench.state(1).actor;
        let pdu = Lacpdu { version: 1, actor: end(0x99, 4), partner, collector_max_delay: 0 };
        pdu.to_frame(MacAddr::new([2, 0, 0, 9, 9, 9]))
    };
    let (before, frame) = (bench.lacp.next_deadline(), frame(&bench));
    for _ in 0..1000 {
        bench.lacp.handle_frame(MemberId(1), frame.bytes(), bench.now).unwrap();
        assert_eq!(bench.lacp.next_deadline(), before);
    }
}

#[test]
fn markers_are_answered_three_times_a_second_if_there_is_a_link() {
    let mut bench = Bench::new(spec(), 1);
    let marker = |transaction| Marker {
        kind: MarkerKind::Information,
        requester_port: 5,
        requester_system: MacAddr::new([2, 0, 0, 0, 0, 0x99]),
        transaction,
    };
    let receive = |bench: &mut Bench, marker: Marker| {
        let frame = marker.to_frame(MacAddr::new([2, 0, 0, 9, 9, 9]));
        bench.lacp.handle_frame(MemberId(1), frame.bytes(), bench.now).unwrap()
    };
    bench.actions.clear();
    for transaction in 0..5 {
        let is_answered = transaction < 3;
        assert_eq!(receive(&mut bench, marker(transaction)), ReceivedPdu::Marker { is_answered });
    }
    bench.poll();
    let answers = |bench: &Bench| {
        let sent = bench.actions.iter().filter_map(|(_, action)| match action {
            LacpAction::Send { frame, .. } => match parse(frame.bytes()) {
                Ok(SlowPdu::Marker(marker)) => Some(marker),
                _ => None,
            },
            _ => None,
        });
        sent.collect::<Vec<_>>()
    };
    let expected = [0, 1, 2].map(|number| Marker { kind: MarkerKind::Response, ..marker(number) });
    assert_eq!(answers(&bench), expected);
    bench.run_ms(1_001);
    assert_eq!(receive(&mut bench, marker(9)), ReceivedPdu::Marker { is_answered: true });
    let response = Marker { kind: MarkerKind::Response, ..marker(9) };
    assert_eq!(receive(&mut bench, response), ReceivedPdu::MarkerResponse);
    bench.link(1, None);
    assert_eq!(receive(&mut bench, marker(10)), ReceivedPdu::Marker { is_answered: false });
    bench.run_ms(5_000);
    assert_eq!(answers(&bench).len(), 3, "what was not sent before the link broke is not sent");
    let counters = bench.state(1).counters;
    assert_eq!((counters.markers_rx, counters.markers_unanswered), (7, 3));
    assert_eq!((counters.marker_responses_tx, counters.marker_responses_rx), (3, 1));
}

#[test]
fn timer_and_activity_change_live_and_no_traffic_stops() {
    let mut bench = Bench::new(spec(), 1);
    bench.receive_for(4, &[(1, end(0x99, 4))]);
    bench.uses();
    bench.set_spec(|spec| spec.timer = Timer::Slow);
    assert!(!bench.sent(1).last().unwrap().1.actor.state.has(PortState::TIMEOUT), "NTT");
    // The Partner now sends every 30 s.
    bench.run_ms(29_000);
    bench.receive(1, end(0x99, 4));
    bench.set_spec(|spec| spec.timer = Timer::Fast);
    bench.run_ms(900);
    bench.receive_for(3, &[(1, end(0x99, 4))]);
    bench.set_spec(|spec| spec.activity = Activity::Passive);
    bench.receive_for(3, &[(1, end(0x99, 4))]);
    assert!(!bench.sent(1).last().unwrap().1.actor.state.has(PortState::ACTIVITY));
    assert_eq!(bench.uses(), []);
}

#[test]
fn another_system_or_key_leaves_the_group_and_joins_again() {
    let changes: [fn(&mut LacpSpec); 3] = [
        |spec| spec.system_priority = 1,
        |spec| spec.admin_key = 2,
        |spec| spec.system = MacAddr::new([2, 0, 0, 0, 0, 0x51]),
    ];
    for change in changes {
        let mut bench = Bench::new(spec(), 1);
        bench.receive_for(4, &[(1, end(0x99, 4))]);
        bench.uses();
        bench.set_spec(change);
        let sent = bench.sent(1).last().unwrap().1.actor;
        assert_eq!(sent, bench.state(1).actor);
        assert!(!sent.state.has(PortState::SYNCHRONIZATION));
        let stopped = bench.now;
        bench.receive_for(4, &[(1, end(0x99, 4))]);
        let rejoined_at = stopped + Duration::from_secs(2);
        let uses = bench.uses();
        assert_eq!(
            uses,
            [
                (stopped, 1, false, LacpReason::AggregateWait),
                (rejoined_at, 1, true, LacpReason::InUse)
            ]
        );
    }
}

#[test]
fn a_port_whose_cable_was_moved_forgets_its_partner() {
    let mut bench = Bench::new(spec(), 2);
    bench.receive_for(4, &[(1, end(0x99, 4))]);
    bench.link(1, None);
    assert_eq!(bench.state(1).partner.port, 4, "6.4.12: it is remembered");
    bench.receive(2, end(0x99, 4));
    assert_eq!(bench.state(1).partner.port, 0, "6.4.8, port_moved");
    assert_eq!(bench.state(1).receive, ReceiveState::PortDisabled);
    assert_eq!(bench.state(1).selected, Selected::Unselected);
    assert_eq!(bench.state(2).partner.port, 4);
}

#[test]
fn a_removed_member_notifies_its_partner() {
    let mut bench = Bench::new(spec(), 2);
    bench.receive_for(4, &[(1, end(0x99, 4)), (2, end(0x99, 5))]);
    bench.run_ms(1_100);
    bench.actions.clear();
    bench.lacp.remove_member(MemberId(1), bench.now).unwrap();
    bench.poll();
    let sent = bench.sent(1);
    assert_eq!(sent.len(), 1);
    let state = sent[0].1.actor.state;
    assert!(!state.has(PortState::SYNCHRONIZATION) && !state.has(PortState::DISTRIBUTING));
    assert_eq!(bench.lacp.members().collect::<Vec<_>>(), [MemberId(2)]);
    assert_eq!(bench.lacp.member_state(MemberId(1)), None);
    let result = bench.lacp.remove_member(MemberId(1), bench.now);
    assert_eq!(result, Err(LacpSpecError::UnknownMember(MemberId(1))));
    // A member without a link, or without a Partner, sends no final LACPDU.
    bench.link(2, None);
    bench.actions.clear();
    bench.lacp.remove_member(MemberId(2), bench.now).unwrap();
    bench.poll();
    assert_eq!(bench.actions, []);
}

/// Figures 6-23 and 6-24: churn is reported once, and again when it ends.
#[test]
fn churn_of_a_minute_is_reported_once_and_again_when_it_ends() {
    let mut bench = Bench::new(spec(), 1);
    let start = bench.now;
    let mut out = end(0x99, 4);
    out.state.set(PortState::SYNCHRONIZATION, false);
    bench.receive_for(70, &[(1, out)]);
    bench.receive(1, end(0x99, 4));
    let churn: Vec<_> = bench
        .actions
        .iter()
        .filter(|(_, action)| matches!(action, LacpAction::ReportChurn { .. }))
        .copied()
        .collect();
    let churn_action = |is_churning| LacpAction::ReportChurn {
        member: MemberId(1),
        side: ChurnSide::Partner,
        is_churning,
    };
    let after = start + Duration::from_secs(60);
    assert_eq!(churn, [(after, churn_action(true)), (bench.now, churn_action(false))]);
}

#[test]
fn malformed_or_foreign_frames_are_counted_and_change_nothing() {
    let mut bench = Bench::new(spec(), 1);
    bench.receive_for(4, &[(1, end(0x99, 4))]);
    let valid =
        Lacpdu { version: 1, actor: end(0x66, 1), partner: end(1, 1), collector_max_delay: 0 };
    let valid = *valid.to_frame(MacAddr::new([2, 0, 0, 9, 9, 9])).bytes();
    let (before, deadline) = (bench.state(1), bench.lacp.next_deadline());
    let mut receive = |bytes: &[u8]| bench.lacp.handle_frame(MemberId(1), bytes, bench.now);
    assert!(matches!(receive(&valid[..60]), Err(PduError::Truncated { .. })));
    assert!(matches!(receive(&[&valid[..], &[0; 1400]].concat()), Err(PduError::Oversize { .. })));
    let changed = |index: usize, octet| {
        let mut bytes = valid;
        bytes[index] = octet;
        bytes
    };
    assert!(matches!(receive(&changed(17, 9)), Err(PduError::TlvLength { .. })));
    assert_eq!(receive(&changed(14, 11)), Err(PduError::Subtype { found: 11 }));
    assert_eq!(receive(&changed(14, 3)), Ok(ReceivedPdu::Other { subtype: 3 }));
    assert!(matches!(receive(&changed(0, 0)), Err(PduError::Destination { .. })));
    assert!(matches!(receive(&changed(12, 0)), Err(PduError::EtherType { .. })));
    let result = bench.lacp.handle_frame(MemberId(9), &valid, bench.now);
    assert_eq!(result, Ok(ReceivedPdu::NotAMember));
    let counters = Counters { illegal_rx: 4, unknown_rx: 3, ..before.counters };
    assert_eq!(bench.state(1), MemberState { counters, ..before });
    assert_eq!(bench.lacp.next_deadline(), deadline);
}

#[test]
fn invalid_specifications_are_refused_and_change_nothing() {
    let group = MacAddr::BROADCAST;
    let error_with = |change: fn(&mut LacpSpec)| {
        let mut spec = spec();
        change(&mut spec);
        Lacp::new(spec).map(drop)
    };
    let not_a_station = LacpSpecError::NotAStationAddress { field: "system", mac: group };
    assert_eq!(error_with(|spec| spec.system = MacAddr::BROADCAST), Err(not_a_station));
    assert_eq!(error_with(|spec| spec.admin_key = 0), Err(LacpSpecError::AdminKey(0)));
    assert_eq!(error_with(|spec| spec.admin_key = 2048), Err(LacpSpecError::AdminKey(2048)));
    assert_eq!(error_with(|spec| spec.admin_key = 2047), Ok(()));
    assert_eq!(error_with(|spec| spec.max_active = 0), Err(LacpSpecError::MaxActive(0)));
    assert_eq!(error_with(|spec| spec.max_active = 33), Err(LacpSpecError::MaxActive(33)));
    let mut bench = Bench::new(spec(), 32);
    let now = bench.now;
    let before = bench.lacp.clone();
    let mut add = |member, spec| bench.lacp.add_member(MemberId(member), spec, now);
    assert_eq!(add(33, port(33)), Err(LacpSpecError::TooManyMembers));
    assert_eq!(add(5, port(5)), Err(LacpSpecError::DuplicateMember(MemberId(5))));
    assert_eq!(add(40, port(0)), Err(LacpSpecError::PortZero(MemberId(40))));
    let duplicate =
        LacpSpecError::DuplicatePort { member: MemberId(40), port: 3, other: MemberId(3) };
    assert_eq!(add(40, port(3)), Err(duplicate));
    let no_station = LacpPortSpec { mac: group, ..port(40) };
    let field = "member address";
    assert_eq!(add(40, no_station), Err(LacpSpecError::NotAStationAddress { field, mac: group }));
    let unknown = Err(LacpSpecError::UnknownMember(MemberId(40)));
    assert_eq!(bench.lacp.set_member(MemberId(40), port(40), now), unknown);
    assert_eq!(bench.lacp.handle_link(MemberId(40), None, now), unknown);
    assert_eq!(bench.lacp.set_member(MemberId(4), port(3), now).map_err(|_| ()), Err(()));
    let invalid = LacpSpec { max_active: 0, ..spec() };
    assert_eq!(bench.lacp.set_spec(invalid, now), Err(LacpSpecError::MaxActive(0)));
    assert_eq!(bench.lacp, before);
}

/// Recorded actions can be deserialized, and states can be serialized to JSON.
#[test]
fn actions_are_read_back_and_states_are_written() {
    let mut bench = Bench::new(spec(), 1);
    bench.receive_for(4, &[(1, end(0x99, 4))]);
    assert!(bench.actions.len() > 3);
    for (_, action) in &bench.actions {
        let json = serde_json::to_string(action).unwrap();
        assert_eq!(serde_json::from_str::<LacpAction>(&json).unwrap(), *action, "{json}");
    }
    let json = serde_json::to_value(bench.state(1)).unwrap();
    assert_eq!(json["mux"], "collecting-distributing");
    assert_eq!(json["group"]["class"], serde_json::to_value(LagClass::Aggregate).unwrap());
}
