//! Several forwarders with the same tables, one per worker, that announce learned addresses to each
//! other.

use super::*;

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
                    replica.handle_announcement(tables, now, learned);
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
        replicas[0].handle_announcement(&tables, time_at(1), announcements[1]);
        replicas[1].handle_announcement(&tables, time_at(1), announcements[0]);
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
        learned_addresses_max: 5000,
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
        seen_at: time_at(1000),
        moved_from: None,
        is_first: false,
    };
    let invalid = [
        AddressSighting { port: PortId(6), ..valid },
        AddressSighting { switch: SwitchId(8), ..valid },
        AddressSighting { vlan: VlanId::new(4), ..valid },
        AddressSighting { mac: MacAddr::BROADCAST, ..valid },
        AddressSighting { mac: mac(0x0100_0000), seen_at: time_at(1), ..valid },
    ];
    for learned in invalid {
        forwarder.handle_announcement(&tables, time_at(1000), learned);
        assert!(forwarder.is_empty(), "{learned:?}");
    }
    forwarder.handle_announcement(&tables, time_at(1000), valid);
    let older = AddressSighting { port: PortId(9), seen_at: time_at(999), ..valid };
    forwarder.handle_announcement(&tables, time_at(1000), older);
    assert_eq!(sorted(&forwarder, time_at(1000)), [(mac(1), PortId(5))]);
}

#[test]
fn neighbouring_addresses_fill_the_table_to_its_capacity() {
    let uplink = ForwardingPortSpec {
        learned_addresses_max: u32::MAX,
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
