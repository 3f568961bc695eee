//! Full ports, and configured and bound addresses.

use super::*;

#[test]
fn a_full_port_learns_no_new_or_moved_addresses() {
    let mut forwarder = Forwarder::new(64);
    let tables =
        tables(&[ForwardingPortSpec { learned_addresses_max: 2, ..port(5) }, port(7), port(9)]);
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
        seen_at: time_at(1),
        moved_from: None,
        is_first: false,
    };
    forwarder.handle_announcement(&tables, time_at(1), announcement);
    assert_eq!(location_of(&mut forwarder, &tables, time_at(1), mac(5)), Some(PortId(5)));
}

#[test]
fn a_bound_address_is_refused_from_other_nics_and_follows_its_station_to_an_uplink() {
    let unbound =
        [port(5), port(6), port(9), ForwardingPortSpec::new(PortId(7), SWITCH, PortRole::Uplink)];
    let mut bound = unbound.clone();
    bound[0].bound_address = Some(mac(5));
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
        seen_at: time_at(2),
        moved_from: None,
        is_first: false,
    };
    forwarder.handle_announcement(&tables, time_at(2), announcement);
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
