//! Tests of control sockets on one end of a veth pair, in a separate namespace.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use suimon_frame::{Announcement, VNET_HEADER_SHORT_BYTES, VlanId, VlanTag};
use suimon_ports::DeviceErrorKind;

use super::*;
use crate::namespace::Namespace;
use crate::packet_socket::{PacketSocket, ReceivedFrame, StrippedTag};
use crate::testing::{LIMIT, TestNetns};

/// Test environment with a veth pair `near0` and `far0`.
struct Bench {
    netns: TestNetns,
    namespace: Namespace,
}

impl Bench {
    fn new() -> Self {
        let netns = TestNetns::new();
        let namespace = Namespace::open(Some(netns.name())).unwrap();
        let bench = Self { netns, namespace };
        bench.plug();
        bench
    }

    fn plug(&self) {
        self.netns.run("ip link add near0 type veth peer name far0");
        for end in ["near0", "far0"] {
            self.netns.run(&format!("ip link set {end} up addrgenmode none"));
        }
        self.wait_for_carrier();
    }

    /// Waits until both ends accept frames from their hosts. An end does so some time after the
    /// other end came up, and `ip` reports it as up only then.
    fn wait_for_carrier(&self) {
        let limit = Instant::now() + LIMIT;
        for end in ["near0", "far0"] {
            while !self.netns.run(&format!("ip link show {end}")).contains("state UP") {
                assert!(Instant::now() < limit, "{end} has no carrier");
            }
        }
    }

    fn control(&self) -> DeviceControlSocket {
        self.namespace.run(|| DeviceControlSocket::open("near0")).unwrap()
    }

    /// Sends these frames from the far end.
    fn send(&self, frames: &[Vec<u8>]) {
        let result = self.namespace.run(|| {
            let index = Link::new("far0")?.index()?;
            let socket = RawSocket::new().unwrap();
            frames.iter().for_each(|frame| socket.send(index, 0, frame).unwrap());
            Ok(())
        });
        result.unwrap();
    }

    /// Opens a packet socket at the far end.
    fn far(&self) -> PacketSocket {
        let open = || Ok(PacketSocket::open(Link::new("far0")?.index()?).unwrap());
        self.namespace.run(open).unwrap()
    }
}

fn slow_frame(subtype: u8, mark: u8) -> Vec<u8> {
    let mut frame = MacAddr::SLOW_PROTOCOLS.octets().to_vec();
    frame.extend([2, 0, 0, 0, 0, 7, 0x88, 0x09, subtype]);
    frame.extend((0..109).map(|index| mark.wrapping_add(index)));
    frame
}

fn with_tag(mut frame: Vec<u8>, tci: u16) -> Vec<u8> {
    let [high, low] = tci.to_be_bytes();
    frame.splice(12..12, [0x81, 0x00, high, low]);
    frame
}

fn wait_readable(socket: &DeviceControlSocket) -> bool {
    let limit = Timespec::try_from(LIMIT).unwrap();
    poll(&mut [PollFd::new(&socket.wake_fd(), PollFlags::IN)], Some(&limit)).unwrap() > 0
}

/// Receives valid frames until one equals `last`. Returns all of them.
fn receive_until(socket: &mut DeviceControlSocket, last: &[u8]) -> Vec<Vec<u8>> {
    let mut frames: Vec<Vec<u8>> = Vec::new();
    while frames.last().is_none_or(|frame| frame != last) {
        assert!(wait_readable(socket), "{last:02x?} within {LIMIT:?} after {frames:02x?}");
        let handle = &mut |frame: ControlFrame<'_>| {
            assert_eq!(frame.wire_bytes, frame.bytes.len());
            frames.push(frame.bytes.to_vec());
        };
        socket.receive(handle).unwrap();
    }
    frames
}

/// Waits until `count` PDUs have arrived at the socket of valid PDUs, and as many other frames as
/// one turn takes. The kernel may deliver frames on another CPU after they were sent.
fn wait_for_pdus(socket: &DeviceControlSocket, count: u32) {
    let limit = Instant::now() + LIMIT;
    let mut arrived = [0, 0];
    while arrived[0] < count || arrived[1] < CONTROL_FRAMES_PER_CALL_MAX as u32 {
        assert!(Instant::now() < limit, "{arrived:?} frames have arrived");
        for (arrived, socket) in arrived.iter_mut().zip(socket.receivers.all()) {
            // `struct tpacket_stats`; reading resets it.
            let statistics = socket.option(libc::SOL_PACKET, libc::PACKET_STATISTICS);
            let [a, b, c, d, _, _, _, _] = statistics.unwrap();
            *arrived += u32::from_ne_bytes([a, b, c, d]);
        }
    }
}

fn receive_none(socket: &mut DeviceControlSocket) -> Result<NextReceive, ControlError> {
    socket.receive(&mut |frame| panic!("{frame:02x?}"))
}

#[test]
fn only_lacpdus_and_markers_arrive_byte_for_byte() {
    let bench = Bench::new();
    let mut near = bench.control();
    let with_destination = |octets: [u8; 6]| {
        let mut frame = slow_frame(1, 9);
        frame[..6].copy_from_slice(&octets);
        frame
    };
    let of_type = |high, low| {
        let mut frame = slow_frame(1, 9);
        frame[12..14].copy_from_slice(&[high, low]);
        frame
    };
    let (lacp, marker, last) = (slow_frame(1, 1), slow_frame(2, 2), slow_frame(1, 3));
    let short = slow_frame(1, 4)[..15].to_vec();
    bench.send(&[
        lacp.clone(),
        slow_frame(3, 9),
        slow_frame(0, 9),
        slow_frame(10, 9),
        marker.clone(),
        with_destination([0x01, 0x80, 0xc2, 0, 0, 0]),
        with_destination([0x01, 0x80, 0xc2, 0, 0, 0x03]),
        with_destination([0xff; 6]),
        with_destination([2, 0, 0, 0, 0, 8]),
        of_type(0x08, 0x06),
        of_type(0x88, 0x0a),
        slow_frame(1, 9)[..14].to_vec(),
        // Tagged for a VLAN that is not configured here.
        with_tag(slow_frame(1, 9), 5),
        short.clone(),
        last.clone(),
    ]);
    let expected = [lacp, marker, short, last.clone()];
    assert_eq!(receive_until(&mut near, &last), expected);
    assert_eq!(receive_none(&mut near), Ok(NextReceive::WhenReadable));
    assert_eq!(near.dropped_frames(), 0);
}

#[test]
fn of_a_long_frame_the_beginning_is_given_and_the_true_length() {
    let bench = Bench::new();
    for end in ["near0", "far0"] {
        bench.netns.run(&format!("ip link set {end} mtu 9000"));
    }
    let mut near = bench.control();
    for len in [CONTROL_FRAME_BYTES_MAX, CONTROL_FRAME_BYTES_MAX + 1, 5000] {
        let mut frame = slow_frame(1, 5);
        frame.resize(len, 0xee);
        bench.send(std::slice::from_ref(&frame));
        assert!(wait_readable(&near));
        let mut count = 0;
        let handle = &mut |got: ControlFrame<'_>| {
            count += 1;
            assert_eq!(got.wire_bytes, len);
            assert_eq!(got.bytes, &frame[..len.min(CONTROL_FRAME_BYTES_MAX)]);
        };
        near.receive(handle).unwrap();
        assert_eq!(count, 1, "{len}");
    }
}

#[test]
fn frames_of_any_protocol_are_sent_unchanged_and_not_received_by_their_sender() {
    let bench = Bench::new();
    let far = bench.far();
    let mut near = bench.control();
    let mac = MacAddr::new([2, 0, 0, 0, 0, 7]);
    let tag = VlanTag::for_vlan(VlanId::new(77).unwrap());
    let arp = Announcement::gratuitous_arp(mac, "10.1.2.3".parse().unwrap(), Some(tag));
    let plain = [slow_frame(1, 1), Announcement::reverse_arp(mac, None).bytes().to_vec()];
    let next = || {
        let (mut header, mut buffer) = ([0; VNET_HEADER_SHORT_BYTES], [0; 2048]);
        let limit = Instant::now() + LIMIT;
        let received = loop {
            match far.receive(&mut header, &mut buffer) {
                Ok(received) => break received,
                Err(error) => {
                    // The socket starts with the error of the time before it was bound.
                    assert!(Instant::now() < limit, "{error}");
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        };
        let ReceivedFrame { len, tag, .. } = received;
        (buffer[..len - VNET_HEADER_SHORT_BYTES].to_vec(), tag)
    };
    for frame in &plain {
        near.send(frame).unwrap();
        assert_eq!(next(), (frame.clone(), None));
    }
    near.send(arp.bytes()).unwrap();
    // The far end's kernel removed the tag.
    let mut untagged = arp.bytes().to_vec();
    untagged.drain(12..16);
    let tpid = libc::ETH_P_8021Q as u16;
    assert_eq!(next(), (untagged, Some(StrippedTag { tci: 77, tpid })));
    assert_eq!(receive_none(&mut near), Ok(NextReceive::WhenReadable));
}

#[test]
fn invalid_lengths_of_frames_are_refused() {
    let bench = Bench::new();
    let mut near = bench.control();
    for bytes in [0, 1, 13, 1514 + 200] {
        let error = near.send(&vec![0x88; bytes]).unwrap_err();
        assert_eq!(error, ControlError::InvalidLength { device: "near0".to_owned(), bytes });
        let text = error.to_string();
        assert!(text.contains("near0") && text.contains("at least 14 bytes"), "{text}");
    }
    near.send(&slow_frame(1, 1)).unwrap();
}

#[test]
fn a_flood_gives_few_frames_a_turn_and_the_rest_is_lost_and_counted() {
    const FLOOD: usize = 4000;
    let bench = Bench::new();
    let mut near = bench.control();
    let frames: Vec<_> = (0..FLOOD).map(|index| slow_frame(1, index as u8)).collect();
    bench.send(&frames);
    // The kernel may deliver some frames later on another CPU.
    let (mut received, mut first) = (Vec::new(), None);
    let limit = Instant::now() + LIMIT;
    loop {
        let before = received.len();
        let after = near.receive(&mut |frame| received.push(frame.bytes.to_vec())).unwrap();
        match after {
            NextReceive::AfterPause => {
                assert_eq!(received.len() - before, CONTROL_FRAMES_PER_CALL_MAX);
            }
            NextReceive::WhenReadable => {
                first.get_or_insert(received.len());
                let (count, lost) = (received.len(), near.dropped_frames());
                if count as u64 + lost == FLOOD as u64 {
                    break;
                }
                assert!(Instant::now() < limit, "{count} received and {lost} lost");
            }
        }
    }
    // The frames are the first sent; the kernel had no space for the others.
    let first = first.unwrap_or_default();
    assert_eq!(received[..first], frames[..first]);
    assert!((8..200).contains(&received.len()), "{}", received.len());
    assert_eq!(near.dropped_frames(), (FLOOD - received.len()) as u64);
    assert_eq!(near.dropped_frames(), (FLOOD - received.len()) as u64, "the counter is cumulative");
    let last = slow_frame(2, 1);
    bench.send(std::slice::from_ref(&last));
    assert_eq!(receive_until(&mut near, &last).len(), 1);
}

/// Returns a LACPDU and a Marker PDU with valid lengths of the TLVs (IEEE 802.1AX-2014, 6.4.2.3 and
/// 6.5.3.3) and of the frame.
fn well_formed_pdus() -> [Vec<u8>; 2] {
    let pdu_with = |subtype, lengths: &[(usize, u8)]| {
        let mut frame = slow_frame(subtype, 1);
        lengths.iter().for_each(|(index, length)| frame[*index] = *length);
        frame
    };
    [pdu_with(1, &[(17, 20), (37, 20), (57, 16)]), pdu_with(2, &[(17, 16)])]
}

#[test]
fn a_flood_of_other_frames_does_not_displace_pdus() {
    let bench = Bench::new();
    for end in ["near0", "far0"] {
        bench.netns.run(&format!("ip link set {end} mtu 9000"));
    }
    let [lacpdu, marker] = well_formed_pdus();
    let spoiled = |frame: &[u8], index: usize| {
        let mut frame = frame.to_vec();
        frame[index] ^= 1;
        frame
    };
    let mut long_frame = lacpdu.clone();
    long_frame.resize(1515, 0);
    let kinds = [
        lacpdu[..15].to_vec(),
        lacpdu[..123].to_vec(),
        long_frame,
        spoiled(&lacpdu, 17),
        spoiled(&lacpdu, 37),
        spoiled(&lacpdu, 57),
        marker[..123].to_vec(),
        spoiled(&marker, 17),
    ];
    for kind in &kinds {
        let mut near = bench.control();
        bench.send(&vec![kind.clone(); 500]);
        bench.send(&[lacpdu.clone(), marker.clone()]);
        wait_for_pdus(&near, 2);
        let mut frames = Vec::new();
        near.receive(&mut |frame| frames.push(frame.bytes.to_vec())).unwrap();
        assert_eq!(frames[..2], [lacpdu.clone(), marker.clone()]);
        // Malformed PDUs are received with the remainder of a turn's budget.
        assert_eq!(frames.len(), CONTROL_FRAMES_PER_CALL_MAX);
        assert!(frames[2..].iter().all(|frame| frame == kind));
    }
}

#[test]
fn a_downed_device_is_no_end() {
    let bench = Bench::new();
    let mut near = bench.control();
    bench.netns.run("ip link set near0 down");
    assert!(wait_readable(&near), "the error does not wake a waiter");
    assert_eq!(receive_none(&mut near), Ok(NextReceive::WhenReadable));
    let expected = ControlError::DeviceDown { device: "near0".to_owned() };
    assert_eq!(near.send(&slow_frame(1, 1)), Err(expected));
    bench.netns.run("ip link set near0 up");
    let frame = slow_frame(1, 2);
    near.send(&frame).unwrap();
    bench.wait_for_carrier();
    bench.send(std::slice::from_ref(&frame));
    assert_eq!(receive_until(&mut near, &frame).len(), 1);
}

#[test]
fn a_missing_device_is_reported_until_its_successor_is_opened() {
    let bench = Bench::new();
    let mut near = bench.control();
    let missing_error = ControlError::DeviceMissing { device: "near0".to_owned() };
    for is_down_before in [false, true] {
        if is_down_before {
            bench.netns.run("ip link set near0 down");
            assert_eq!(receive_none(&mut near), Ok(NextReceive::WhenReadable));
        }
        bench.netns.run("ip link delete near0");
        assert_eq!(receive_none(&mut near), Err(missing_error.clone()));
        assert_eq!(near.send(&slow_frame(1, 1)), Err(missing_error.clone()));
        let reopened = bench.namespace.run(|| near.reopen());
        assert_eq!(reopened.unwrap_err().kind, DeviceErrorKind::Missing);
        bench.plug();
        // A new device of the same name does not restore the socket.
        assert_eq!(receive_none(&mut near), Err(missing_error.clone()));
        assert_eq!(near.send(&slow_frame(1, 1)), Err(missing_error.clone()));
        bench.namespace.run(|| near.reopen()).unwrap();
        let frame = slow_frame(1, 3);
        near.send(&frame).unwrap();
        bench.send(std::slice::from_ref(&frame));
        assert_eq!(receive_until(&mut near, &frame).len(), 1);
    }
    assert!(missing_error.to_string().contains("reopen"), "{missing_error}");
}

#[test]
fn a_device_that_moves_to_another_namespace_is_missing() {
    let bench = Bench::new();
    let mut near = bench.control();
    let other_netns = TestNetns::new();
    bench.netns.run(&format!("ip link set near0 netns {}", other_netns.name()));
    let missing_error = ControlError::DeviceMissing { device: "near0".to_owned() };
    assert_eq!(receive_none(&mut near), Err(missing_error.clone()));
    assert_eq!(near.send(&slow_frame(1, 1)), Err(missing_error));
}

#[test]
fn the_device_listens_to_the_group_while_the_socket_lives() {
    let bench = Bench::new();
    let listens = || bench.netns.run("ip maddress show dev near0").contains("01:80:c2:00:00:02");
    assert!(!listens());
    let near = bench.control();
    assert!(listens());
    drop(near);
    assert!(!listens());
}

#[test]
fn devices_that_cannot_be_are_refused_with_the_reason() {
    let bench = Bench::new();
    for (device, kind, part) in [
        ("near1", DeviceErrorKind::Missing, "existing devices: near0"),
        ("lo", DeviceErrorKind::Unsupported, "not an Ethernet device"),
        ("no such", DeviceErrorKind::Unsupported, "not a valid name"),
    ] {
        let error = bench.namespace.run(|| DeviceControlSocket::open(device)).err().unwrap();
        assert_eq!((error.kind, error.field), (kind, "device"), "{error}");
        assert!(error.detail.contains(part), "{error}");
    }
}
