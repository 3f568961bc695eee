//! Control sockets of a team's members with an independent switch.

use std::thread;
use std::time::{Duration, Instant};

use suimon_netdev::NetDevices;
use suimon_ports::{ControlFrame, ControlSocket, MemberDevices};
use suimon_rig::ovs::{Lacp, OvsBonds};
use suimon_rig::{Namespace, Rig, enter_namespace};
use suimon_teaming::lacp::{Lacpdu, SlowPdu, parse_exact};

const LIMIT: Duration = Duration::from_secs(90);

/// Waits for the next LACPDU, and asserts that the socket returns no other frame before it.
fn next_lacpdu(socket: &mut dyn ControlSocket) -> Lacpdu {
    let limit = Instant::now() + LIMIT;
    let mut received = Vec::new();
    while received.is_empty() {
        assert!(Instant::now() < limit, "no LACPDU within {LIMIT:?}");
        let take = &mut |frame: ControlFrame<'_>| received.push(parse_exact(frame.bytes).unwrap());
        socket.receive(take).unwrap();
        thread::sleep(Duration::from_millis(10));
    }
    match received.pop() {
        Some(SlowPdu::Lacp(lacpdu)) => lacpdu,
        other => panic!("{other:?}"),
    }
}

/// An active bond sends LACPDUs on each link and processes received ones.
#[test]
fn lacpdus_are_exchanged_with_open_vswitch_in_both_directions() {
    let rig = Rig::new().unwrap();
    let far = Namespace::new(&rig, "far").unwrap();
    let mut switch = OvsBonds::start(&rig).unwrap();
    let (ends, _) = switch.add(&rig, &far, Lacp::Active).unwrap();
    let exchange = thread::spawn({
        let far = far.name().to_owned();
        move || {
            enter_namespace(&far).unwrap();
            let devices = NetDevices::new().unwrap();
            let mut sockets = ends.map(|end| devices.open_control(&end).unwrap());
            let [first, second] = &mut sockets;
            let [on_first, on_second] =
                [first, second].map(|socket| next_lacpdu(socket.as_mut()).actor);
            assert_eq!((on_first.system, on_first.key), (on_second.system, on_second.key));
            assert_ne!(on_first.port, on_second.port);
            // The bond reports the system ID that it has received.
            let system = suimon_frame::MacAddr::new([2, 0, 0, 0, 0, 0x17]);
            let actor = suimon_teaming::lacp::PortInfo { system, ..on_first };
            let pdu = Lacpdu { version: 1, actor, partner: on_first, collector_max_delay: 0 };
            let limit = Instant::now() + LIMIT;
            loop {
                assert!(Instant::now() < limit, "the bond has not processed the LACPDU");
                sockets[0].send(pdu.to_frame(system).bytes()).unwrap();
                if next_lacpdu(sockets[0].as_mut()).partner.system == system {
                    break;
                }
            }
        }
    });
    exchange.join().unwrap();
}
