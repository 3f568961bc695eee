//! Tests of source addresses: reports for binding, exclusive addresses, and moves between ports.

use suimon_forwarding::ForwardingPortSpec;
use suimon_frame::MacAddr;
use suimon_quantity::PortId;
use suimon_switch::SwitchNotice;

use crate::bench::{Bench, frame, mac, wait_for};

/// Waits for the next report and returns it.
fn report(bench: &Bench) -> SwitchNotice {
    let mut report = None;
    wait_for("a report", || {
        report = bench.plane.poll_notice();
        report.is_some()
    });
    report.unwrap()
}

/// Changes the specification of a port and publishes the topology.
fn change(bench: &mut Bench, port: usize, change: impl FnOnce(&mut ForwardingPortSpec)) {
    change(&mut bench.topology.ports[port].spec);
    bench.plane.publish(bench.topology.clone()).unwrap();
}

#[test]
fn the_first_source_is_reported_and_once_it_is_bound_other_ports_cannot_use_it() {
    let mut bench = Bench::new(1, 3);
    change(&mut bench, 0, |port| port.binds_source = true);
    bench.guests[0].sender.send(&frame(0, 0xff, 0));
    let reported = report(&bench);
    let expected = MacAddr::new(mac(0));
    assert!(
        matches!(reported, SwitchNotice::NewSource { port: PortId(0), mac } if mac == expected),
        "{reported:?}"
    );
    change(&mut bench, 0, |port| {
        (port.bound_address, port.binds_source) = (Some(expected), false);
    });
    // Port 1 sends with the address of port 0.
    bench.guests[1].sender.send(&frame(0, 0xff, 1));
    let reported = report(&bench);
    assert!(
        matches!(reported, SwitchNotice::SpoofedSource { port: PortId(1), mac } if mac == expected),
        "{reported:?}"
    );
    assert_eq!(bench.plane.port_counters(PortId(1)).rx_dropped, [("spoofed_source", 1)]);
    let before = bench.plane.port_counters(PortId(0)).tx_frames;
    bench.guests[2].sender.send(&frame(2, 0, 2));
    wait_for("the frame", || bench.plane.port_counters(PortId(0)).tx_frames == before + 1);

    // After the binding has ended, the next source address is reported at once.
    change(&mut bench, 0, |port| {
        (port.bound_address, port.binds_source) = (None, true);
    });
    bench.guests[0].sender.send(&frame(0, 0xff, 3));
    let reported = report(&bench);
    assert!(matches!(reported, SwitchNotice::NewSource { port: PortId(0), .. }), "{reported:?}");
}

#[test]
fn moves_of_an_address_are_counted_and_reported_once_per_port_in_10_s() {
    let bench = Bench::new(1, 2);
    let send = |port: usize, number| {
        bench.guests[port].sender.send(&frame(7, 0xff, number));
        let expected_frames = u64::from(number) + 1;
        let received = |port| bench.plane.port_counters(PortId(port)).rx_frames;
        wait_for("the frame", || received(0) + received(1) == expected_frames);
    };
    for number in 0..6 {
        send(number as usize % 2, number);
    }
    // The address moves twice to port 0 and three times to port 1; only the first move to each port
    // is reported.
    for expected in [(0, 1), (1, 0)] {
        let reported = report(&bench);
        let SwitchNotice::AddressMoved { mac, from, to, move_count: 1 } = reported else {
            panic!("{reported:?}");
        };
        assert_eq!((mac.octets()[5], (from.0, to.0)), (7, expected));
    }
    assert!(bench.plane.poll_notice().is_none());
}
