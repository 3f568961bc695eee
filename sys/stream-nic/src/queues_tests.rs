use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use proptest::prelude::*;
use suimon_frame::{MacAddr, VlanId, VlanTag};
use suimon_ports::FaultKind;

use super::*;
use crate::serving::new_eventfd;

/// Creates both queues of a connection, and QEMU's end of it.
fn connection() -> (StreamSource, StreamSink, UnixStream, Arc<Session>) {
    let (local, peer) = UnixStream::pair().unwrap();
    peer.set_nonblocking(true).unwrap();
    let wake = Arc::new(new_eventfd().unwrap());
    let session = Arc::new(Session::new(local.into(), wake, None));
    let source = StreamSource::new(Arc::clone(&session));
    (source, StreamSink::new(Arc::clone(&session)), peer, session)
}

fn framed(bytes: &[u8]) -> Vec<u8> {
    let mut framed = u32::try_from(bytes.len()).unwrap().to_be_bytes().to_vec();
    framed.extend_from_slice(bytes);
    framed
}

/// Creates a frame of `bytes` bytes with a number in it.
fn numbered(number: u32, bytes: usize) -> Vec<u8> {
    let mut frame = vec![0x55; bytes];
    frame[..12].copy_from_slice(&[2; 12]);
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame[14..18].copy_from_slice(&number.to_be_bytes());
    frame
}

fn filled(bytes: &[u8]) -> Frame {
    let mut frame = Frame::new(0);
    frame.set_bytes(bytes);
    frame.validate_ingress_plain().unwrap();
    frame
}

#[test]
fn frames_of_the_guest_arrive_with_their_tags_and_short_ones_are_counted() {
    let (mut source, _sink, mut qemu, _) = connection();
    let mut tagged = vec![2; 12];
    tagged.extend_from_slice(&[0x81, 0, 0, 30, 8, 0]);
    tagged.resize(100, 9);
    for bytes in [&tagged[..], &[1; 13], &[3; 60], &vec![4; 66_000]] {
        // The last frame is longer than the switch permits.
        qemu.set_nonblocking(false).unwrap();
        qemu.write_all(&framed(bytes)).unwrap();
    }
    qemu.write_all(&100_u32.to_be_bytes()).unwrap();
    let mut batch = FrameBatch::new();
    while source.receive(&mut batch).unwrap() > 0 {}
    assert_eq!(batch.len(), 2);
    let [first, second] = batch.frames() else { panic!("{}", batch.len()) };
    assert_eq!(first.meta.tag.and_then(VlanTag::vlan).map(VlanId::get), Some(30));
    assert_eq!((first.len(), second.len()), (96, 60));
    assert_eq!((source.malformed_frames(), source.arm()), (2, ArmResult::Armed));
    qemu.write_all(&[5; 100]).unwrap();
    batch.clear();
    assert_eq!(source.receive(&mut batch).unwrap(), 1, "the completed frame is not received");
}

#[test]
fn a_source_does_not_sleep_on_frames_that_it_has_read() {
    let (mut source, _sink, mut qemu, _) = connection();
    for number in 0..100 {
        qemu.write_all(&framed(&numbered(number, 60))).unwrap();
    }
    let mut batch = FrameBatch::new();
    assert_eq!(source.receive(&mut batch).unwrap(), BATCH_FRAMES_MAX);
    assert_eq!(source.arm(), ArmResult::Pending);
    let mut count = batch.len();
    while count < 100 {
        batch.clear();
        count += source.receive(&mut batch).unwrap();
    }
    assert_eq!(source.arm(), ArmResult::Armed);
}

#[test]
fn a_length_that_no_frame_has_ends_the_connection_behind_good_frames() {
    for (length, text) in [(0_u32, "length 0 "), (69_633, "69633"), (u32::MAX, "4294967295")] {
        let (mut source, _sink, mut qemu, session) = connection();
        qemu.write_all(&framed(&[1; 60])).unwrap();
        qemu.write_all(&length.to_be_bytes()).unwrap();
        let mut batch = FrameBatch::new();
        let fault = source.receive(&mut batch).unwrap_err();
        assert_eq!((batch.len(), fault.kind), (1, FaultKind::ProtocolViolation));
        assert!(fault.detail.contains(text), "{fault}");
        assert!(session.end_reason().is_some_and(SessionEnd::is_violation));
    }
}

#[test]
fn a_disconnected_peer_ends_both_queues() {
    let (mut source, mut sink, mut qemu, session) = connection();
    qemu.write_all(&framed(&[1; 60])).unwrap();
    drop(qemu);
    let mut batch = FrameBatch::new();
    let fault = source.receive(&mut batch).unwrap_err();
    assert_eq!((batch.len(), fault.kind), (1, FaultKind::Disconnected));
    assert_eq!(session.end_reason(), Some(&SessionEnd::PeerClosed));
    assert_eq!(sink.transmit(&filled(&[1; 60])).unwrap(), TransmitResult::Accepted);
    assert_eq!(sink.flush().unwrap_err().kind, FaultKind::Disconnected);
}

#[test]
fn frames_to_the_guest_are_as_long_as_on_a_wire_and_have_their_tags() {
    let (_, mut sink, mut qemu, _) = connection();
    let mut frame = filled(&[2; 40]);
    assert_eq!(sink.transmit(&frame).unwrap(), TransmitResult::Accepted);
    frame.meta.tag = VlanId::new(30).map(VlanTag::for_vlan);
    frame.set_bytes(&[3; 100]);
    frame.meta.tag = VlanId::new(30).map(VlanTag::for_vlan);
    assert_eq!(sink.transmit(&frame).unwrap(), TransmitResult::Accepted);
    sink.flush().unwrap();
    let mut bytes = vec![0; 1000];
    let count = qemu.read(&mut bytes).unwrap();
    bytes.truncate(count);
    let (first, second) = bytes.split_at(64);
    assert_eq!(first, framed(&[&[2; 40][..], &[0; 20]].concat()));
    let tagged = [&[3; 12][..], &[0x81, 0, 0, 30], &[3; 88]].concat();
    assert_eq!(second, framed(&tagged));
    assert_eq!(frame.source(), MacAddr::new([3; 6]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// At any reading speed, QEMU receives complete frames in order, and exactly the accepted ones.
    #[test]
    fn accepted_frames_arrive_complete_and_in_order(
        steps in prop::collection::vec((1_usize..60, 18_usize..9000, 0_usize..80_000), 1..60),
    ) {
        let (_, mut sink, mut qemu, session) = connection();
        let (mut number, mut accepted, mut read) = (0, Vec::new(), Vec::new());
        let mut buffer = vec![0; 80_000];
        for (frames, bytes, reads) in steps {
            for _ in 0..frames {
                number += 1;
                if sink.transmit(&filled(&numbered(number, bytes))).unwrap() == TransmitResult::Accepted {
                    accepted.push((number, bytes));
                }
            }
            sink.flush().unwrap();
            if let Ok(count) = qemu.read(&mut buffer[..reads.max(1)]) {
                read.extend_from_slice(&buffer[..count]);
            }
        }
        loop {
            // The NIC's task does this when there is room again.
            session.send_pending().unwrap();
            match qemu.read(&mut buffer) {
                Ok(count) => read.extend_from_slice(&buffer[..count]),
                Err(_) => break,
            }
        }
        prop_assert!(!session.has_pending_data());
        let expected = accepted.iter().map(|(number, bytes)| {
            let mut frame = numbered(*number, *bytes);
            frame.resize(frame.len().max(WIRE_BYTES_MIN), 0);
            framed(&frame)
        });
        prop_assert!(read == expected.collect::<Vec<_>>().concat());
    }
}

/// As on a kernel that cannot refuse descriptors.
#[test]
fn a_descriptor_ends_the_connection() {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    use std::os::fd::AsFd;
    use suimon_socket_runtime::{DescriptorGuard, SocketRuntime, ThreadHooks};
    let runtime = SocketRuntime::new("nic", 1, ThreadHooks::default()).unwrap();
    let (local, qemu) = UnixStream::pair().unwrap();
    let guard = DescriptorGuard::new(local.as_fd(), &runtime).unwrap();
    let wake = Arc::new(new_eventfd().unwrap());
    let session = Arc::new(Session::new(local.into(), wake, Some(guard)));
    let mut source = StreamSource::new(Arc::clone(&session));
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let attached = [qemu.as_fd()];
    assert!(control.push(SendAncillaryMessage::ScmRights(&attached)));
    let bytes = [std::io::IoSlice::new(b"\0\0\0\x01x")];
    sendmsg(&qemu, &bytes, &mut control, SendFlags::NOSIGNAL).unwrap();
    let fault = source.receive(&mut FrameBatch::new()).unwrap_err();
    assert_eq!(fault.kind, suimon_ports::FaultKind::ProtocolViolation);
    assert!(fault.detail.contains("attached a descriptor"), "{}", fault.detail);
    assert!(session.end_reason().is_some_and(SessionEnd::is_violation));
}
