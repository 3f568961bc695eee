use suimon_frame::{BATCH_FRAMES_MAX, Frame, VlanTag};

use super::*;
use crate::{
    DropReason, FloodKind, FloodMember, ForwardingPortSpec, PortRole, SwitchSpec, TagRule, Verdict,
    VlanMode, VlanSet,
};

#[path = "forwarder_tests/guarded_addresses.rs"]
mod guarded_addresses;

#[path = "forwarder_tests/replicas.rs"]
mod replicas;

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
    frames[0].set_bytes(&bytes);
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
    let limited = |id| ForwardingPortSpec { learned_addresses_max: 100, ..port(id) };
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
    forwarder.handle_tables(&tables(&[
        ForwardingPortSpec { learned_addresses_max: 3, ..port(5) },
        port(9),
    ]));
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
        frame.set_bytes(&[0; 60]);
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
    assert_eq!(limited.flood_members(slot, None, FloodKind::Group).count(), 0);
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
        learned_addresses_max: 10_000,
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
fn unknown_unicast_is_not_flooded_to_restricted_ports() {
    let owner = ForwardingPortSpec { mac: Some(mac(5)), ..port(5) };
    let free = ForwardingPortSpec { mac: Some(mac(8)), spoofing_allowed: true, ..port(8) };
    let tables = tables(&[owner, free, port(9), port(10)]);
    let from = tables.slot(PortId(9)).unwrap();
    let members = |kind| -> Vec<_> {
        tables.flood_members(from, None, kind).filter_map(|m| tables.port_id(m.slot)).collect()
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
        frame.set_bytes(&[0; 60]);
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
