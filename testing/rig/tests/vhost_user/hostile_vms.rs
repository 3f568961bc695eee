//! Hostile VMs and front-ends with a real daemon: each violation stops only the sender's NIC and is
//! reported, and a stream between two other guests never stops.

use crate::bench;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::bench::rig::{Driver, GUEST_BASE, NEXT, Piece, Vm, event};
use crate::bench::{BYTES, CSUM, FrontEnd, MERGEABLE, VERSION_1};
use suimon_rig::{Daemon, NamespaceGuest, Rig, iperf, wait_until};

/// Deadline of every condition. The machine may be loaded.
const LIMIT: Duration = Duration::from_secs(120);

const HOST_TSO4: u64 = 1 << 11;

/// Front-end with running rings, whose transmit ring the test manipulates.
struct Hostile<'a> {
    front_end: FrontEnd,
    tx: Driver<'a>,
    kick: OwnedFd,
    _rx: Driver<'a>,
}

impl<'a> Hostile<'a> {
    fn start(socket: &str, vm: &'a Vm) -> Self {
        let mut front_end = FrontEnd::connect(socket.as_ref());
        let rx = Driver::placed(vm, 16, 0, GUEST_BASE);
        let tx = Driver::placed(vm, 16, 0, GUEST_BASE + 0x2000);
        let kick = event();
        front_end.negotiate(VERSION_1 | MERGEABLE | CSUM | HOST_TSO4);
        assert!(front_end.share_memory(vm, BYTES));
        front_end.start_ring(0, &rx, &event(), &event());
        front_end.start_ring(1, &tx, &kick, &event());
        Self { front_end, tx, kick, _rx: rx }
    }

    fn kick(&self) {
        rustix::io::write(&self.kick, &1_u64.to_ne_bytes()).unwrap();
    }

    /// Makes a chain of these buffers available, in these descriptor slots.
    fn offer(&mut self, slots: &[u16], pieces: &[Piece]) {
        self.tx.lay_out(slots, false, 0, pieces);
        self.tx.offer(slots[0]);
        self.kick();
    }
}

type Attack = fn(&mut Hostile<'_>, &Vm);

/// Returns violations by a guest or its front-end, each with a part of the event's text.
fn attacks() -> Vec<(&'static str, Attack)> {
    vec![
        ("available index", |hostile, _| {
            hostile.tx.available.idx().store(u16::to_le(1000));
            hostile.kick();
        }),
        ("has more than 16 descriptors", |hostile, _| {
            let addr = hostile.tx.area(0);
            // The second descriptor refers to the first one.
            hostile.tx.lay_out(&[0, 1], false, NEXT, &[Piece { addr, len: 12 }; 2]);
            hostile.tx.offer(0);
            hostile.kick();
        }),
        ("are outside the VM's memory", |hostile, _| {
            hostile.offer(&[0], &[Piece { addr: 1 << 46, len: 100 }]);
        }),
        ("names descriptor 999", |hostile, _| {
            hostile.tx.offer(999);
            hostile.kick();
        }),
        ("has more than", |hostile, _| {
            let addr = GUEST_BASE;
            hostile.offer(&[0, 1, 2], &[Piece { addr, len: 40_000 }; 3]);
        }),
        ("a device-writable buffer in a device-readable chain", |hostile, _| {
            let addr = hostile.tx.area(0);
            hostile.tx.lay_out(&[0], false, bench::rig::WRITE, &[Piece { addr, len: 100 }]);
            hostile.tx.offer(0);
            hostile.kick();
        }),
        ("truncated the file of the VM's memory", |hostile, vm| {
            vm.file.set_len(0).unwrap();
            hostile.kick();
        }),
    ]
}

/// Returns the texts of events about violations by the NIC so far.
fn violations(daemon: &Daemon) -> Vec<String> {
    let events = daemon.json(&["event", "list"]).unwrap();
    let of_vm = events.as_array().unwrap().iter().filter(|event| event["subject"] == "nic/vm");
    of_vm
        .filter(|event| event["id"] == 3007)
        .map(|event| event["text"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// Starts a daemon with two namespace guests and a stream between them, and calls `body` with the
/// daemon, the socket of a VM's NIC, and the stream. Asserts that the stream continues.
fn beside_a_stream(body: impl FnOnce(&Daemon, &str, &mut iperf::Client<'_>)) {
    let rig = Rig::new().unwrap();
    let (a, b) =
        (NamespaceGuest::new(&rig, "a", 1).unwrap(), NamespaceGuest::new(&rig, "b", 2).unwrap());
    let socket = rig.path("vm.sock");
    let host = format!(
        "[[switch]]\nname = \"lan\"\nkind = \"private\"\n{}{}[[nic]]\nname = \"vm\"\n\
         switch = \"lan\"\nbackend = \"vhost-user\"\nsocket = \"{socket}\"\n",
        a.nic_toml("lan", ""),
        b.nic_toml("lan", "")
    );
    let mut daemon = Daemon::start(&rig, &host).unwrap();
    a.bring_up().unwrap();
    b.bring_up().unwrap();
    let _server = iperf::serve(&rig, &b.namespace).unwrap();
    let mut stream =
        iperf::Client::begin(&rig, &a.namespace, &b.address(), 1, &iperf::BESIDE).unwrap();
    body(&daemon, &socket, &mut stream);
    stream.wait_flow("the others' stream").unwrap();
    let report = stream.end().unwrap();
    println!("others: {} bit/s", report.bits_per_second);
    daemon.process().check_running().unwrap();
}

#[test]
fn a_guest_that_breaks_its_ring_stops_its_own_nic_only() {
    beside_a_stream(|daemon, socket, stream| {
        for (expected, attack) in attacks() {
            let before = violations(daemon).len();
            let vm = Vm::with_regions(vec![BYTES]);
            let mut hostile = Hostile::start(socket, &vm);
            attack(&mut hostile, &vm);
            wait_until(&format!("event: {expected}"), LIMIT, || {
                let texts = violations(daemon);
                Ok(texts.len() > before
                    && texts[before..].iter().any(|text| text.contains(expected)))
            })
            .unwrap_or_else(|error| panic!("{error:#}: {:?}", violations(daemon)));
            let status = daemon.json(&["nic", "show", "vm"]).unwrap();
            assert_eq!(status["condition"]["health"], "down", "{status}");
            assert!(status["condition"]["reason"].as_str().unwrap().contains(expected), "{status}");
            // The connection stays open, so a restarted guest is served.
            assert_eq!(hostile.front_end.get_number(17), 1);
            stream.wait_flow(expected).unwrap();
            drop(hostile);
            wait_until("the disconnected front-end", LIMIT, || {
                Ok(daemon.json(&["nic", "show", "vm"])?["condition"]["reason"]
                    .as_str()
                    .is_some_and(|reason| reason.contains("disconnected")))
            })
            .unwrap();
        }
    });
}

/// A frame with an invalid header is dropped without any other effect.
#[test]
fn frames_with_invalid_headers_are_dropped_and_counted() {
    beside_a_stream(|daemon, socket, stream| {
        let vm = Vm::with_regions(vec![BYTES]);
        let mut hostile = Hostile::start(socket, &vm);
        // flags, gso_type, hdr_len, gso_size, csum_start, csum_offset
        let lies: [(u8, u8, u16, u16, u16, u16); 8] = [
            (1, 0, 0, 0, 60_000, 16),
            (1, 0, 0, 0, 34, 60_000),
            (1, 0, 0, 0, 99, 0),
            (1, 1, 54, 0, 34, 16),
            (1, 1, 60_000, 0, 34, 16),
            (0, 1, 54, 1000, 34, 16),
            (1, 77, 54, 1000, 34, 16),
            (1, 4, 54, 1000, 34, 16),
        ];
        for (index, (flags, gso, hdr_len, gso_size, start, offset)) in lies.into_iter().enumerate()
        {
            let mut bytes = vec![flags, gso];
            for field in [hdr_len, gso_size, start, offset, 0] {
                bytes.extend(field.to_le_bytes());
            }
            bytes.extend([0xff; 6]);
            bytes.extend([0x52, 0x54, 0, 9, 9, index as u8, 8, 0]);
            bytes.resize(12 + 100, 0x45);
            hostile.tx.add(&[112], false, false, &bytes).unwrap();
            hostile.kick();
            wait_until("the frame's used buffer", LIMIT, || Ok(!hostile.tx.reap().is_empty()))
                .unwrap();
        }
        stream.wait_flow("the others' stream beside invalid headers").unwrap();
        let mut counters = serde_json::Value::Null;
        wait_until("the counter of dropped frames", LIMIT, || {
            counters = daemon.json(&["nic", "show", "vm"])?["counters"].clone();
            let dropped = counters["rx_dropped"].as_array().cloned().unwrap_or_default();
            let malformed = dropped.iter().find(|counter| counter["reason"] == "malformed");
            Ok(malformed.is_some_and(|counter| counter["frames"] == 8))
        })
        .unwrap_or_else(|error| panic!("{error:#}: {counters}"));
        assert_eq!(counters["rx_frames"], 0, "{counters}");
        let status = daemon.json(&["nic", "show", "vm"]).unwrap();
        assert_eq!(status["condition"]["health"], "up", "{status}");
        assert!(violations(daemon).is_empty());
    });
}

fn a_flood_of_messages_is_slowed_and_then_ended() {
    beside_a_stream(|daemon, socket, stream| {
        let front_end = FrontEnd::connect(socket.as_ref());
        let message = FrontEnd::message(3, 1, &[]);
        let many = message.repeat(500);
        front_end.stream.set_write_timeout(Some(LIMIT)).unwrap();
        let mut flood = &front_end.stream;
        // Until the daemon closes the connection.
        while flood.write_all(&many).is_ok() {
            stream.check_running().unwrap();
        }
        stream.wait_flow("the others' stream after a flood").unwrap();
        wait_until("the event", LIMIT, || {
            Ok(violations(daemon).iter().any(|text| text.contains("messages a second for")))
        })
        .unwrap();
        // Successive connections that send invalid data.
        for _ in 0..50 {
            let stranger = FrontEnd::connect(socket.as_ref());
            stranger.send_raw(&[0xee; 64], &[]);
        }
        let vm = Vm::with_regions(vec![BYTES]);
        let mut proper = Hostile::start(socket, &vm);
        assert!(proper.front_end.share_memory(&vm, BYTES));
    });
}

mod full {
    #[test]
    fn a_flood_of_messages_is_slowed_and_then_ended() {
        super::a_flood_of_messages_is_slowed_and_then_ended();
    }
}
