use suimon_frame::{BATCH_FRAMES_MAX, Frame, VlanTag};

use super::*;
use crate::{
    DropReason, FloodKind, FloodMember, ForwardingPortSpec, PortRole, SwitchSpec, TagRule, Verdict,
    VlanMode, VlanSet,
};

const SWITCH: SwitchId = SwitchId(3);

fn mac(n: u32) -> MacAddr {
    let [a, b, c, d] = n.to_be_bytes();
    MacAddr::new([0x02, 0, a, b, c, d])
}

fn time_at(seconds: u64) -> Time {
    Time::from_ns(seconds * 1_000_000_000)
}

fn port(id: u32) -> ForwardingPortSpec {
    ForwardingPortSpec::new(PortId(id), SWITCH, PortRole::Nic)
}

fn tables(ports: &[ForwardingPortSpec]) -> Tables {
    Tables::build(&[SwitchSpec::new(SWITCH)], ports).unwrap()
}

/// Forwards one frame of 60 bytes from port `from`, and returns its verdict.
fn send(
    forwarder: &mut Forwarder,
    tables: &Tables,
    now: Time,
    from: u32,
    source: MacAddr,
    destination: MacAddr,
) -> Verdict {
    let mut bytes = [0u8; 60];
    bytes[..6].copy_from_slice(&destination.octets());
    bytes[6..12].copy_from_slice(&source.octets());
    let mut frames = [Frame::new(0)];
    frames[0].fill(&bytes);
    let mut verdicts = [Verdict::default(); BATCH_FRAMES_MAX];
    let ingress = tables.slot(PortId(from)).unwrap();
    forwarder.decide(tables, now, ingress, &mut frames, &mut verdicts);
    verdicts[0]
}

fn send_broadcast(
    forwarder: &mut Forwarder,
    tables: &Tables,
    now: Time,
    from: u32,
    source: MacAddr,
) {
    send(forwarder, tables, now, from, source, MacAddr::BROADCAST);
}

/// Returns the port that gets a frame to `destination` from port 9; `None` if it is flooded.
fn location_of(
    forwarder: &mut Forwarder,
    tables: &Tables,
    now: Time,
    destination: MacAddr,
) -> Option<PortId> {
    match send(forwarder, tables, now, 9, mac(999), destination) {
        Verdict::Unicast { egress } => tables.port_id(egress),
        Verdict::Flood { kind: FloodKind::UnknownUnicast, .. } => None,
        other => panic!("{other:?}"),
    }
}

fn sorted(forwarder: &Forwarder, now: Time) -> Vec<(MacAddr, PortId)> {
    let mut entries: Vec<_> = forwarder.entries(now).map(|entry| (entry.mac, entry.port)).collect();
    entries.sort();
    entries
}

#[test]
fn a_table_change_keeps_the_addresses_of_other_ports() {
    let mut forwarder = Forwarder::new(64);
    let before = tables(&[port(5), port(7), port(9)]);
    send_broadcast(&mut forwarder, &before, time_at(1), 5, mac(5));
    send_broadcast(&mut forwarder, &before, time_at(1), 7, mac(7));
    // Slots change: a trunk sorts first, and port 5 is removed.
    let uplink = ForwardingPortSpec::new(PortId(50), SWITCH, PortRole::Uplink);
    let after = tables(&[uplink, port(1), port(7), port(9)]);
    assert_ne!(before.slot(PortId(7)), after.slot(PortId(7)));
    assert_eq!(location_of(&mut forwarder, &after, time_at(2), mac(7)), Some(PortId(7)));
    assert_eq!(location_of(&mut forwarder, &after, time_at(2), mac(5)), None);
}

#[test]
fn a_port_that_changes_its_switch_loses_its_addresses() {
    let other = SwitchId(1);
    let switches = [SwitchSpec::new(SWITCH), SwitchSpec::new(other)];
    let mut forwarder = Forwarder::new(64);
    let before = tables(&[port(5), port(9)]);
    send_broadcast(&mut forwarder, &before, time_at(1), 5, mac(5));
    let moved = ForwardingPortSpec { switch: other, ..port(5) };
    let after = Tables::build(&switches, &[moved, port(9)]).unwrap();
    forwarder.handle_tables(&after);
    assert!(forwarder.is_empty());
    let in_vlan = ForwardingPortSpec { vlan: VlanMode::Access(VlanId::new(8)), ..port(5) };
    send_broadcast(&mut forwarder, &before, time_at(1), 5, mac(5));
    forwarder.handle_tables(&tables(&[in_vlan, port(9)]));
    assert!(forwarder.is_empty());
}

#[test]
fn a_new_switch_keeps_the_addresses_of_others() {
    let specs =
        |ids: &[u32]| ids.iter().map(|id| SwitchSpec::new(SwitchId(*id))).collect::<Vec<_>>();
    let mut forwarder = Forwarder::new(64);
    let before = Tables::build(&specs(&[3]), &[port(5), port(9)]).unwrap();
    send_broadcast(&mut forwarder, &before, time_at(1), 5, mac(5));
    let after = Tables::build(&specs(&[1, 2, 3]), &[port(5), port(9)]).unwrap();
    assert_eq!(location_of(&mut forwarder, &after, time_at(1), mac(5)), Some(PortId(5)));
    assert!(forwarder.entries(time_at(1)).all(|entry| entry.switch == SWITCH));
}

/// Two guests that may use any source address send from one address, alternately.
#[test]
fn an_address_that_alternates_between_ports_is_announced_a_bounded_number_of_times() {
    let mut forwarder = Forwarder::new(64);
    let limited = |id| ForwardingPortSpec { learned_max: 100, ..port(id) };
    let uplink = ForwardingPortSpec::new(PortId(50), SWITCH, PortRole::Uplink);
    let other = tables(&[uplink, limited(5), limited(7), port(9)]);
    let tables = tables(&[limited(5), limited(7), port(9)]);
    let mut announced = 0;
    const SECONDS: u64 = 10;
    for ms in 0..SECONDS * 1000 {
        let now = Time::from_ns(ms * 1_000_000);
        for from in [5, 7, 5, 7] {
            send_broadcast(&mut forwarder, &tables, now, from, mac(1));
            announced += std::iter::from_fn(|| forwarder.poll_announcement()).count();
        }
        // Changed tables do not reset the limit.
        forwarder.handle_tables(&other);
    }
    assert!((400..=2 * (100 + 240 * SECONDS as usize)).contains(&announced), "{announced}");
    // A moved guest is found at once after a pause.
    let later = time_at(60);
    send_broadcast(&mut forwarder, &tables, later, 5, mac(1));
    send_broadcast(&mut forwarder, &tables, later, 7, mac(1));
    assert_eq!(location_of(&mut forwarder, &tables, later, mac(1)), Some(PortId(7)));
}

#[test]
fn all_addresses_of_a_port_may_move_at_once() {
    let mut forwarder = Forwarder::new(4096);
    let tables = tables(&[port(5), port(7), port(9)]);
    for from in [5, 7] {
        for address in 0..1000 {
            send_broadcast(&mut forwarder, &tables, time_at(1), from, mac(address));
        }
    }
    let moved = forwarder.entries(time_at(1)).filter(|entry| entry.port == PortId(7)).count();
    assert_eq!(moved, 1000);
}

#[test]
fn equal_tables_cost_nothing() {
    let mut forwarder = Forwarder::new(1 << 17);
    let equal_tables = tables(&[port(5), port(9)]);
    send_broadcast(&mut forwarder, &equal_tables, time_at(1), 5, mac(1));
    // Of the ports, too, only those properties count on which learned addresses depend.
    let isolated = ForwardingPortSpec { isolated: true, ..port(5) };
    for equivalent in [&[port(5), port(9)], &[isolated, port(9)]] {
        assert!(!forwarder.handle_tables(&tables(equivalent)), "the addresses are not checked");
    }
    assert!(forwarder.handle_tables(&tables(&[port(5), port(7), port(9)])));
    assert_eq!(forwarder.len(), 1);
}

#[test]
fn a_configured_address_replaces_the_learned_one() {
    let mut forwarder = Forwarder::new(64);
    let before = tables(&[port(5), port(7), port(9)]);
    send_broadcast(&mut forwarder, &before, time_at(1), 5, mac(7));
    let configured = ForwardingPortSpec { mac: Some(mac(7)), ..port(7) };
    let between = tables(&[port(5), configured, port(9)]);
    assert_eq!(location_of(&mut forwarder, &between, time_at(1), mac(7)), Some(PortId(7)));
    assert_eq!(location_of(&mut forwarder, &before, time_at(1), mac(7)), None);
}

#[test]
fn a_lower_bound_applies_to_learned_addresses() {
    let mut forwarder = Forwarder::new(64);
    let before = tables(&[port(5), port(9)]);
    for n in 0..10 {
        send_broadcast(&mut forwarder, &before, time_at(1), 5, mac(n));
    }
    forwarder.handle_tables(&tables(&[ForwardingPortSpec { learned_max: 3, ..port(5) }, port(9)]));
    assert_eq!(forwarder.len(), 3);
}

#[test]
fn a_station_that_moves_within_a_batch_is_followed_at_once() {
    let tables = tables(&[port(5), port(9)]);
    let mut forwarder = Forwarder::new(64);
    send_broadcast(&mut forwarder, &tables, time_at(1), 5, mac(5));
    let mut frames = [Frame::new(0), Frame::new(1), Frame::new(2)];
    let broadcast = MacAddr::BROADCAST;
    let flows = [(mac(9), mac(5)), (mac(5), broadcast), (mac(9), mac(5))];
    for (frame, (source, destination)) in frames.iter_mut().zip(flows) {
        frame.fill(&[0; 60]);
        frame.bytes_mut()[..6].copy_from_slice(&destination.octets());
        frame.bytes_mut()[6..12].copy_from_slice(&source.octets());
    }
    let mut verdicts = [Verdict::default(); BATCH_FRAMES_MAX];
    let ingress = tables.slot(PortId(9)).unwrap();
    forwarder.decide(&tables, time_at(1), ingress, &mut frames, &mut verdicts);
    let egress = tables.slot(PortId(5)).unwrap();
    let flood = Verdict::Flood { vlan: None, kind: FloodKind::Group };
    let expected = [Verdict::Unicast { egress }, flood, Verdict::Drop(DropReason::SameEgress)];
    assert_eq!(verdicts[..3], expected);
}

#[test]
fn a_slot_of_other_tables_is_no_port() {
    let many = tables(&[port(1), port(2), port(9)]);
    let limited = tables(&[port(9)]);
    let mut frames = [Frame::new(0)];
    let mut verdicts = [Verdict::default(); BATCH_FRAMES_MAX];
    let slot = many.slot(PortId(9)).unwrap();
    Forwarder::new(4).decide(&limited, time_at(0), slot, &mut frames, &mut verdicts);
    assert_eq!(verdicts[0], Verdict::Drop(DropReason::PortGone));
    assert_eq!(limited.flood(slot, None, FloodKind::Group).count(), 0);
    let member = FloodMember { slot, rule: TagRule::Untagged };
    assert_eq!(limited.check_copy(member, &frames[0]), Err(DropReason::PortGone));
}

#[test]
fn an_address_ages_from_its_last_frame() {
    let mut forwarder = Forwarder::new(64);
    let tables = tables(&[port(5), port(9)]);
    // One frame per minute keeps the entry.
    for minute in 0..20 {
        send_broadcast(&mut forwarder, &tables, time_at(minute * 60), 5, mac(5));
    }
    let last = 19 * 60;
    assert_eq!(location_of(&mut forwarder, &tables, time_at(last + 300), mac(5)), Some(PortId(5)));
    assert_eq!(location_of(&mut forwarder, &tables, time_at(last + 376), mac(5)), None);
    assert_eq!(sorted(&forwarder, time_at(last + 376)), [(mac(999), PortId(9))]);
}

#[test]
fn ageing_frees_entries_and_then_needs_no_deadline() {
    let mut forwarder = Forwarder::new(20_000);
    let uplink = ForwardingPortSpec {
        learned_max: 10_000,
        ..ForwardingPortSpec::new(PortId(5), SWITCH, PortRole::Uplink)
    };
    let tables = tables(&[uplink, port(9)]);
    assert_eq!(forwarder.next_deadline(), None);
    for n in 0..12_000 {
        send_broadcast(&mut forwarder, &tables, time_at(10), 5, mac(n));
    }
    assert_eq!(forwarder.len(), 10_000);
    let mut calls = 0;
    let mut last = time_at(10);
    while let Some(deadline) = forwarder.next_deadline() {
        assert!(deadline > last, "the deadline is in the past");
        last = deadline;
        forwarder.sweep_expired(deadline);
        calls += 1;
    }
    // The time consists of the ageing, the permitted delay of renewals (a quarter of it), and one
    // sweep.
    assert!(last <= time_at(10 + 300 + 75 + 76), "{last}");
    assert!(calls < 100, "{calls} calls");
    send_broadcast(&mut forwarder, &tables, last, 5, mac(1));
    assert_eq!(forwarder.len(), 1);
}

#[test]
fn a_full_port_learns_no_new_or_moved_addresses() {
    let mut forwarder = Forwarder::new(64);
    let tables = tables(&[ForwardingPortSpec { learned_max: 2, ..port(5) }, port(7), port(9)]);
    send_broadcast(&mut forwarder, &tables, time_at(1), 7, mac(7));
    for n in [1, 2, 3, 7] {
        send_broadcast(&mut forwarder, &tables, time_at(1), 5, mac(n));
    }
    assert_eq!(
        sorted(&forwarder, time_at(1)),
        [(mac(1), PortId(5)), (mac(2), PortId(5)), (mac(7), PortId(7))]
    );
    // A removed address frees capacity for another.
    send_broadcast(&mut forwarder, &tables, time_at(2), 7, mac(1));
    send_broadcast(&mut forwarder, &tables, time_at(2), 5, mac(3));
    assert_eq!(location_of(&mut forwarder, &tables, time_at(2), mac(1)), Some(PortId(7)));
    assert_eq!(location_of(&mut forwarder, &tables, time_at(2), mac(3)), Some(PortId(5)));
}

#[test]
fn a_configured_address_cannot_be_hijacked() {
    let owner = ForwardingPortSpec { mac: Some(mac(5)), ..port(5) };
    let shared = ForwardingPortSpec { mac: Some(mac(7)), spoofing_allowed: true, ..port(7) };
    let free = ForwardingPortSpec { mac: Some(mac(8)), spoofing_allowed: true, ..port(8) };
    let tables = tables(&[owner, shared, free, port(9)]);
    let mut forwarder = Forwarder::new(64);
    let spoofed = Verdict::Drop(DropReason::SpoofedSource);
    for from in [8, 9] {
        let broadcast = MacAddr::BROADCAST;
        assert_eq!(send(&mut forwarder, &tables, time_at(1), from, mac(5), broadcast), spoofed);
        // Its owner may use other addresses, so others may use its address.
        let verdict = send(&mut forwarder, &tables, time_at(1), from, mac(7), broadcast);
        assert!(matches!(verdict, Verdict::Flood { .. }), "{verdict:?}");
    }
    assert!(forwarder.is_empty());
    assert_eq!(location_of(&mut forwarder, &tables, time_at(1), mac(5)), Some(PortId(5)));
    assert_eq!(location_of(&mut forwarder, &tables, time_at(1), mac(7)), Some(PortId(7)));
    // An announcement of another worker does not change it either.
    let announcement = AddressSighting {
        switch: SWITCH,
        vlan: None,
        mac: mac(5),
        port: PortId(9),
        seen: time_at(1),
        moved_from: None,
        is_first: false,
    };
    forwarder.handle_learned(&tables, time_at(1), announcement);
    assert_eq!(location_of(&mut forwarder, &tables, time_at(1), mac(5)), Some(PortId(5)));
}

#[test]
fn a_bound_address_is_refused_from_other_nics_and_follows_its_station_to_an_uplink() {
    let unbound =
        [port(5), port(6), port(9), ForwardingPortSpec::new(PortId(7), SWITCH, PortRole::Uplink)];
    let mut bound = unbound.clone();
    bound[0].bound = Some(mac(5));
    let (unbound, tables) = (tables(&unbound), tables(&bound));
    let mut forwarder = Forwarder::new(64);
    // Another NIC has sent from the address before it was bound.
    send_broadcast(&mut forwarder, &unbound, time_at(1), 6, mac(5));
    assert_eq!(location_of(&mut forwarder, &unbound, time_at(1), mac(5)), Some(PortId(6)));
    assert_eq!(location_of(&mut forwarder, &tables, time_at(1), mac(5)), None, "that is forgotten");
    let spoofed = Verdict::Drop(DropReason::SpoofedSource);
    let broadcast = MacAddr::BROADCAST;
    assert_eq!(
        send(&mut forwarder, &tables, time_at(1), 6, mac(5), broadcast),
        spoofed,
        "not learned yet"
    );
    send_broadcast(&mut forwarder, &tables, time_at(1), 5, mac(5));
    send_broadcast(&mut forwarder, &tables, time_at(1), 5, mac(50));
    assert_eq!(send(&mut forwarder, &tables, time_at(1), 6, mac(5), broadcast), spoofed);
    assert_eq!(location_of(&mut forwarder, &tables, time_at(1), mac(5)), Some(PortId(5)));
    assert_eq!(location_of(&mut forwarder, &tables, time_at(1), mac(50)), Some(PortId(5)));
    // An announcement of another worker does not change it either.
    let announcement = AddressSighting {
        switch: SWITCH,
        vlan: None,
        mac: mac(5),
        port: PortId(6),
        seen: time_at(2),
        moved_from: None,
        is_first: false,
    };
    forwarder.handle_learned(&tables, time_at(2), announcement);
    assert_eq!(location_of(&mut forwarder, &tables, time_at(2), mac(5)), Some(PortId(5)));
    send_broadcast(&mut forwarder, &tables, time_at(3), 7, mac(5));
    assert_eq!(location_of(&mut forwarder, &tables, time_at(3), mac(5)), Some(PortId(7)));
    // The entry has expired.
    assert_eq!(send(&mut forwarder, &tables, time_at(1000), 6, mac(5), broadcast), spoofed);
}

#[test]
fn a_move_is_reported_with_the_port_of_the_previous_sighting() {
    let tables = tables(&[port(5), port(6), port(9)]);
    let mut forwarder = Forwarder::new(64);
    let mut report = |from, seconds| {
        send_broadcast(&mut forwarder, &tables, time_at(seconds), from, mac(1));
        let learned = forwarder.poll_announcement().unwrap();
        assert!(forwarder.poll_announcement().is_none());
        (learned.port, learned.moved_from, learned.is_first)
    };
    assert_eq!(report(5, 1), (PortId(5), None, true));
    assert_eq!(report(6, 2), (PortId(6), Some(PortId(5)), false));
    assert_eq!(report(5, 3), (PortId(5), Some(PortId(6)), false));
    // A sighting due for another announcement is neither a move nor the first.
    assert_eq!(report(5, 200), (PortId(5), None, false));
}

#[test]
fn a_port_that_begins_to_bind_reports_its_next_source_as_the_first() {
    let ports = [port(5), port(6)];
    let mut binding = ports.clone();
    binding[0].binds_source = true;
    let (before, binding) = (tables(&ports), tables(&binding));
    let mut forwarder = Forwarder::new(64);
    let mut is_first = |tables: &Tables, from| {
        send_broadcast(&mut forwarder, tables, time_at(1), from, mac(from));
        forwarder.poll_announcement().map(|learned| learned.is_first)
    };
    assert_eq!((is_first(&before, 5), is_first(&before, 6)), (Some(true), Some(true)));
    assert_eq!((is_first(&before, 5), is_first(&before, 6)), (None, None));
    assert_eq!((is_first(&binding, 5), is_first(&binding, 6)), (Some(true), None));
    assert_eq!(is_first(&binding, 5), None);
}

#[test]
fn unknown_unicast_is_not_flooded_to_restricted_ports() {
    let owner = ForwardingPortSpec { mac: Some(mac(5)), ..port(5) };
    let free = ForwardingPortSpec { mac: Some(mac(8)), spoofing_allowed: true, ..port(8) };
    let tables = tables(&[owner, free, port(9), port(10)]);
    let from = tables.slot(PortId(9)).unwrap();
    let members = |kind| -> Vec<_> {
        tables.flood(from, None, kind).filter_map(|m| tables.port_id(m.slot)).collect()
    };
    assert_eq!(members(FloodKind::UnknownUnicast), [PortId(8), PortId(10)]);
    assert_eq!(members(FloodKind::Group), [PortId(5), PortId(8), PortId(10)]);
}

#[test]
fn a_unicast_carries_the_tag_of_its_egress_and_keeps_its_priority() {
    let vlan = VlanId::new(20).unwrap();
    let trunk = |id, native| ForwardingPortSpec {
        vlan: VlanMode::Trunk { allowed: VlanSet::all(), native },
        mac: Some(mac(id)),
        ..port(id)
    };
    let access =
        ForwardingPortSpec { vlan: VlanMode::Access(Some(vlan)), mac: Some(mac(3)), ..port(3) };
    let tables = tables(&[trunk(1, None), trunk(2, Some(vlan)), access]);
    let cases = [
        (1, Some(0xb014), 2, None),
        (1, Some(0xb014), 3, None),
        (2, Some(0x5000), 1, Some(0x5014)),
        (2, None, 1, Some(0x0014)),
        (3, Some(0x7000), 1, Some(0x7014)),
    ];
    for (from, tag, to, expected) in cases {
        let mut frame = Frame::new(0);
        frame.fill(&[0; 60]);
        frame.bytes_mut()[..6].copy_from_slice(&mac(to).octets());
        frame.bytes_mut()[6..12].copy_from_slice(&mac(from).octets());
        frame.meta.tag = tag.map(VlanTag::from_tci);
        let mut frames = [frame];
        let mut verdicts = [Verdict::default(); BATCH_FRAMES_MAX];
        let ingress = tables.slot(PortId(from)).unwrap();
        Forwarder::new(4).decide(&tables, time_at(0), ingress, &mut frames, &mut verdicts);
        let egress = tables.slot(PortId(to)).unwrap();
        assert_eq!(verdicts[0], Verdict::Unicast { egress }, "{from} to {to}");
        assert_eq!(frames[0].meta.tag.map(VlanTag::tci), expected, "{from} to {to}");
    }
}

#[test]
fn replicas_agree_once_announcements_are_delivered() {
    let tables = tables(&[port(5), port(7), port(9)]);
    let mut replicas = [Forwarder::new(256), Forwarder::new(256), Forwarder::new(256)];
    // The same addresses seen on different ports by different workers, some at the same time.
    for step in 0..200u64 {
        let replica = (step * 7 % 3) as usize;
        let from = [5, 7, 9][(step * 5 % 3) as usize];
        let now = Time::from_ns(step / 2 * 40_000_000);
        send_broadcast(&mut replicas[replica], &tables, now, from, mac((step % 40) as u32));
        if step % 11 == 0 {
            spread(&mut replicas, &tables, now);
        }
    }
    let end = time_at(4);
    spread(&mut replicas, &tables, end);
    let first = sorted(&replicas[0], end);
    assert_eq!(first.len(), 40);
    assert_eq!(first, sorted(&replicas[1], end));
    assert_eq!(first, sorted(&replicas[2], end));
}

fn spread(replicas: &mut [Forwarder], tables: &Tables, now: Time) {
    for from in 0..replicas.len() {
        while let Some(learned) = replicas[from].poll_announcement() {
            for (to, replica) in replicas.iter_mut().enumerate() {
                if to != from {
                    replica.handle_learned(tables, now, learned);
                }
            }
        }
    }
    assert!(
        replicas.iter_mut().all(|replica| replica.poll_announcement().is_none()),
        "news of news"
    );
}

#[test]
fn two_sightings_in_one_instant_end_on_the_same_port() {
    let tables = tables(&[port(5), port(7), port(9)]);
    for order in [[5, 7], [7, 5]] {
        let mut replicas = [Forwarder::new(64), Forwarder::new(64)];
        for (replica, from) in replicas.iter_mut().zip(order) {
            send_broadcast(replica, &tables, time_at(1), from, mac(1));
        }
        let announcements = replicas.each_mut().map(|replica| replica.poll_announcement().unwrap());
        replicas[0].handle_learned(&tables, time_at(1), announcements[1]);
        replicas[1].handle_learned(&tables, time_at(1), announcements[0]);
        for replica in &replicas {
            assert_eq!(sorted(replica, time_at(1)), [(mac(1), PortId(7))]);
        }
    }
}

#[test]
fn one_address_on_two_switches_is_two_addresses() {
    let other = SwitchId(4);
    let on_other = |id| ForwardingPortSpec { switch: other, ..port(id) };
    let switches = [SwitchSpec::new(SWITCH), SwitchSpec::new(other)];
    let tables = Tables::build(&switches, &[port(5), port(9), on_other(6), on_other(8)]).unwrap();
    // A capacity so small that both are in the same bucket.
    let mut forwarder = Forwarder::new(2);
    for from in [5, 6] {
        send_broadcast(&mut forwarder, &tables, time_at(1), from, mac(1));
    }
    assert_eq!(sorted(&forwarder, time_at(1)), [(mac(1), PortId(5)), (mac(1), PortId(6))]);
    for (from, to) in [(9, 5), (8, 6)] {
        let egress = tables.slot(PortId(to)).unwrap();
        let verdict = send(&mut forwarder, &tables, time_at(1), from, mac(2), mac(1));
        assert_eq!(verdict, Verdict::Unicast { egress });
    }
}

#[test]
fn an_address_in_use_is_announced_again_before_other_replicas_remove_it() {
    let tables = tables(&[port(5), port(9)]);
    let mut replicas = [Forwarder::new(64), Forwarder::new(64)];
    let mut announced = 0;
    for second in 0..3000 {
        send_broadcast(&mut replicas[0], &tables, time_at(second), 5, mac(5));
        announced += usize::from(!replicas[0].announcements.is_empty());
        spread(&mut replicas, &tables, time_at(second));
        replicas[1].sweep_expired(time_at(second));
        assert_eq!(sorted(&replicas[1], time_at(second)), [(mac(5), PortId(5))]);
    }
    assert!((39..=41).contains(&announced), "{announced}");
}

#[test]
fn announcements_beyond_the_queue_are_made_later() {
    let uplink = ForwardingPortSpec {
        learned_max: 5000,
        ..ForwardingPortSpec::new(PortId(5), SWITCH, PortRole::Uplink)
    };
    let tables = tables(&[uplink, port(9)]);
    let mut forwarder = Forwarder::new(4096);
    let mut reported = std::collections::BTreeSet::new();
    for round in 0..4 {
        for n in 0..3000 {
            send_broadcast(&mut forwarder, &tables, time_at(round), 5, mac(n));
        }
        assert!(
            forwarder.announcements.len() <= ANNOUNCEMENTS_MAX
                && forwarder.announcements.capacity() < 2 * ANNOUNCEMENTS_MAX
        );
        while let Some(learned) = forwarder.poll_announcement() {
            assert!(reported.insert(learned.mac), "announced twice");
        }
    }
    assert_eq!(reported.len(), 3000);
}

#[test]
fn invalid_or_outdated_learned_addresses_change_nothing() {
    let tables = tables(&[port(5), port(9)]);
    let mut forwarder = Forwarder::new(64);
    let valid = AddressSighting {
        switch: SWITCH,
        vlan: None,
        mac: mac(1),
        port: PortId(5),
        seen: time_at(1000),
        moved_from: None,
        is_first: false,
    };
    let invalid = [
        AddressSighting { port: PortId(6), ..valid },
        AddressSighting { switch: SwitchId(8), ..valid },
        AddressSighting { vlan: VlanId::new(4), ..valid },
        AddressSighting { mac: MacAddr::BROADCAST, ..valid },
        AddressSighting { mac: mac(0x0100_0000), seen: time_at(1), ..valid },
    ];
    for learned in invalid {
        forwarder.handle_learned(&tables, time_at(1000), learned);
        assert!(forwarder.is_empty(), "{learned:?}");
    }
    forwarder.handle_learned(&tables, time_at(1000), valid);
    let older = AddressSighting { port: PortId(9), seen: time_at(999), ..valid };
    forwarder.handle_learned(&tables, time_at(1000), older);
    assert_eq!(sorted(&forwarder, time_at(1000)), [(mac(1), PortId(5))]);
}

#[test]
fn neighbouring_addresses_fill_the_table_to_its_capacity() {
    let uplink = ForwardingPortSpec {
        learned_max: u32::MAX,
        ..ForwardingPortSpec::new(PortId(5), SWITCH, PortRole::Uplink)
    };
    let tables = tables(&[uplink, port(9)]);
    for capacity in [0, 1, 64, 1024, 8192] {
        let mut forwarder = Forwarder::new(capacity as usize);
        for n in 0..capacity + 100 {
            send_broadcast(&mut forwarder, &tables, time_at(1), 5, mac(n));
        }
        assert_eq!(forwarder.len(), capacity as usize);
        assert_eq!(forwarder.entries(time_at(1)).count(), capacity as usize);
        for n in 0..capacity {
            assert_eq!(
                send(&mut forwarder, &tables, time_at(1), 9, mac(999_999), mac(n)),
                Verdict::Unicast { egress: tables.slot(PortId(5)).unwrap() }
            );
        }
    }
}
