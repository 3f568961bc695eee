//! Tests of frames that AF_XDP uplinks pass, on one end of a veth pair; the other end is in a
//! namespace, with packet sockets.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use suimon_frame::{Checksum, Frame, FrameBatch, Sum, VlanId, VlanTag, VnetHeader};
use suimon_ports::{
    ControlSocket, DeviceNotice, DeviceStatus, FrameSink, FrameSource, OffloadToggles, PortDevice,
    PortDeviceSpec, TransmitResult, UplinkDriver, UplinkSpec, XdpHook, XdpState,
};
use suimon_quantity::PortId;

use crate::NetDevices;
use crate::control_socket::DeviceControlSocket;
use crate::packet_queue::{PacketSink, PacketSource};
use crate::testing::*;

pub(super) struct Bench {
    pub(super) device: Option<Box<dyn PortDevice>>,
    pub(super) source: Box<dyn FrameSource>,
    pub(super) sink: Box<dyn FrameSink>,
    pub(super) notices: Receiver<(PortId, DeviceNotice)>,
    pub(super) far_source: PacketSource,
    pub(super) far_sink: PacketSink,
    pub(super) spec: UplinkSpec,
    pub(super) devices: NetDevices,
    pub(super) shelf: Arc<TestQueueHost>,
    pub(super) cable: TestCable,
}

pub(super) fn spec(near: &str, mtu: Option<u16>) -> UplinkSpec {
    UplinkSpec { mtu, ..uplink_spec(near, UplinkDriver::AfXdp) }
}

impl Bench {
    pub(super) fn new(mtu: Option<u16>) -> Self {
        Self::on(TestCable::new(), mtu)
    }

    pub(super) fn on(cable: TestCable, mtu: Option<u16>) -> Self {
        if let Some(mtu) = mtu {
            cable.peer.run(&format!("ip link set far0 mtu {mtu}"));
        }
        let devices = NetDevices::new().unwrap();
        let shelf = Arc::new(TestQueueHost::default());
        let (observer, notices) = Notices::new();
        let spec = spec(&cable.near, mtu);
        devices.probe_uplink(&spec).unwrap();
        let device = devices.open_uplink(PortId(1), &spec, shelf.clone(), observer).unwrap();
        expect_notice(&notices, |notice| *notice == DeviceNotice::LinkUp);
        let (far_source, far_sink) = cable.far_queues();
        let (source, sink) = (shelf.source(1, 0), shelf.sink(1, 0));
        let mut bench = Self {
            device: Some(device),
            source,
            sink,
            notices,
            far_source,
            far_sink,
            spec,
            devices,
            shelf,
            cable,
        };
        bench.wait_for_far_carrier();
        bench
    }

    /// Waits until the far end, which follows the near one with a delay, has a carrier.
    pub(super) fn wait_for_far_carrier(&mut self) {
        let limit = Instant::now() + LIMIT;
        while !self.cable.peer.run("ip link show far0").contains("state UP") {
            assert!(Instant::now() < limit, "no carrier");
        }
    }

    pub(super) fn status(&self) -> DeviceStatus {
        self.device.as_ref().unwrap().status()
    }

    pub(super) fn state(&self) -> XdpState {
        self.status().xdp.unwrap()
    }

    pub(super) fn send(&mut self, frame: &Frame) {
        assert_eq!(self.sink.transmit(frame).unwrap(), TransmitResult::Accepted);
        self.sink.flush().unwrap();
    }

    /// Sends a frame in both directions and compares every byte.
    pub(super) fn exchange(&mut self, frame: &Frame) {
        self.send(frame);
        let received = receive_where(&mut self.far_source, is_ours)
            .expect("the far end has not received the frame");
        assert_eq!((received.bytes(), received.meta.tag), (frame.bytes(), frame.meta.tag));
        self.far_sink.transmit(frame).unwrap();
        let received = receive_where(self.source.as_mut(), is_ours)
            .expect("the near end has not received the frame");
        assert_eq!((received.bytes(), received.meta.tag), (frame.bytes(), frame.meta.tag));
        assert_eq!((received.meta.checksum, received.meta.gso), (Checksum::Unknown, None));
    }
}

/// Returns a frame in which every byte depends on its position.
pub(super) fn patterned(len: usize) -> Frame {
    let mut frame = plain_frame(len);
    let body = frame.bytes_mut().iter_mut().enumerate().skip(14);
    body.for_each(|(index, byte)| *byte = (index * 7 + index / 256) as u8 ^ len as u8);
    frame
}

pub(super) fn lengths_up_to(max: usize) -> Vec<usize> {
    let mut lengths: Vec<usize> = vec![14, 15, 60, 64, 65, 128, 511, 1000, max - 1, max];
    // Lengths around the capacity of one chunk, in both directions.
    for edge in [1792, 2024, 2048, 3840, 4072, 4096, 2 * 3840, 2 * 4072, 8192] {
        lengths.extend([edge - 1, edge, edge + 1]);
    }
    lengths.retain(|len| *len <= max);
    lengths
}

#[test]
fn frames_of_all_lengths_pass_both_ways_in_chunks_that_fit_the_mtu() {
    for (mtu, chunk_bytes, multi_buffer) in
        [(1500, 2048, false), (3500, 4096, false), (9000, 4096, true)]
    {
        let mut bench = Bench::new(Some(mtu));
        let lost_frames = 0;
        let hook = XdpHook::Driver;
        let state = XdpState {
            hook,
            zero_copy: false,
            multi_buffer,
            chunk_bytes,
            dropped_frames: lost_frames,
        };
        assert_eq!(bench.state(), state, "{mtu}");
        for len in lengths_up_to(usize::from(mtu) + 14) {
            bench.exchange(&patterned(len));
        }
        assert_eq!((bench.source.malformed_frames(), bench.sink.discarded_frames()), (0, 0));
        assert_eq!(bench.state(), state, "nothing was lost");
    }
}

#[test]
fn tags_pass_both_ways_in_the_bytes() {
    for mtu in [1500, 9000] {
        let mut bench = Bench::new(Some(mtu));
        let tag = VlanTag::from_tci(0xa000 | 77);
        for tag in [tag, VlanTag::for_vlan(VlanId::new(4094).unwrap())] {
            for len in [60, 1514, usize::from(mtu) + 14] {
                let mut frame = patterned(len);
                frame.meta.tag = Some(tag);
                bench.exchange(&frame);
            }
        }
    }
}

#[test]
fn many_frames_pass_in_batches_of_mixed_lengths() {
    let mut bench = Bench::new(Some(9000));
    let lengths: Vec<usize> = (0..4000).map(|index| 14 + index * 37 % 9001).collect();
    let (mut batch, mut forwarded) = (FrameBatch::new(), Vec::new());
    // 80 rounds through rings of 2048 entries, with up to three entries per frame.
    for chunk in lengths.chunks(50) {
        for len in chunk {
            assert_eq!(bench.sink.transmit(&patterned(*len)).unwrap(), TransmitResult::Accepted);
        }
        bench.sink.flush().unwrap();
        let before = forwarded.len();
        let limit = Instant::now() + LIMIT;
        while forwarded.len() < before + chunk.len() && Instant::now() < limit {
            wait_readable(&bench.far_source, 50);
            batch.clear();
            bench.far_source.receive(&mut batch).unwrap();
            for frame in batch.frames().iter().filter(|frame| is_ours(frame)) {
                assert_eq!(frame.bytes(), patterned(frame.len()).bytes());
                forwarded.push(frame.len());
            }
        }
    }
    assert_eq!(forwarded, lengths);
    for len in &lengths[..600] {
        bench.far_sink.transmit(&patterned(*len)).unwrap();
    }
    let mut received = Vec::new();
    let limit = Instant::now() + LIMIT;
    while received.len() < 600 && Instant::now() < limit {
        wait_readable(bench.source.as_ref(), 50);
        batch.clear();
        bench.source.receive(&mut batch).unwrap();
        for frame in batch.frames().iter().filter(|frame| is_ours(frame)) {
            assert_eq!(frame.bytes(), patterned(frame.len()).bytes());
            received.push(frame.len());
        }
    }
    assert_eq!(received, lengths[..600]);
}

#[test]
fn a_full_ring_loses_frames_only_while_it_is_full() {
    let mut bench = Bench::new(None);
    // Until the ring is full. A veth whose CPU is busy may have lost frames before.
    let limit = Instant::now() + LIMIT;
    while bench.state().dropped_frames == 0 {
        assert!(Instant::now() < limit, "the ring does not become full: {:?}", bench.state());
        for _ in 0..200 {
            bench.far_sink.transmit(&patterned(100)).unwrap();
        }
    }
    let mut batch = FrameBatch::new();
    let mut received = 0;
    while wait_readable(bench.source.as_ref(), 200) {
        batch.clear();
        bench.source.receive(&mut batch).unwrap();
        received += batch.frames().iter().filter(|frame| is_ours(frame)).count();
    }
    // At most 256 frames that the veth still held may have arrived in entries freed since.
    assert!((2000..=2048 + 256).contains(&received), "{received}");
    let lost = bench.state().dropped_frames;
    for len in [100, 1000, 1514] {
        bench.exchange(&patterned(len));
    }
    assert_eq!(bench.state().dropped_frames, lost);
}

/// The test requests no flush, so that no frame leaves before the chunks are used up.
#[test]
fn more_frames_than_chunks_are_sent() {
    let mut bench = Bench::new(None);
    for index in 0..3000_u32 {
        assert_eq!(
            bench.sink.transmit(&patterned(100)).unwrap(),
            TransmitResult::Accepted,
            "{index}"
        );
        let drained = &mut FrameBatch::new();
        if index % 512 == 511 {
            while bench.far_source.receive(drained).unwrap() > 0 {
                drained.clear();
            }
        }
    }
    bench.sink.flush().unwrap();
    assert!(receive_where(&mut bench.far_source, is_ours).is_some());
}

#[test]
fn frames_of_the_link_go_to_the_kernel_and_not_to_the_switch() {
    let mut bench = Bench::new(None);
    let mut control = DeviceControlSocket::open(&bench.cable.near).unwrap();
    let of_type = |destination: [u8; 6], ethertype: [u8; 2]| {
        let mut frame = patterned(124);
        let header = [&destination[..], &mac(2).octets(), &ethertype, &[1]].concat();
        frame.bytes_mut()[..15].copy_from_slice(&header);
        frame
    };
    let slow = of_type([1, 0x80, 0xc2, 0, 0, 2], [0x88, 0x09]);
    let lldp = of_type([1, 0x80, 0xc2, 0, 0, 0x0e], [0x88, 0xcc]);
    let last = of_type([2, 0, 0, 0, 0, 1], [0x08, 0x06]);
    for frame in [&slow, &lldp, &last] {
        bench.far_sink.transmit(frame).unwrap();
    }
    let received = receive_where(bench.source.as_mut(), is_ours).unwrap();
    assert_eq!(received.bytes(), last.bytes());
    // The kernel may deliver it shortly after the switch received the last frame.
    let (mut frames, limit) = (Vec::new(), Instant::now() + LIMIT);
    while frames.is_empty() && Instant::now() < limit {
        control.receive(&mut |frame| frames.push(frame.bytes.to_vec())).unwrap();
    }
    assert_eq!(frames, [slow.bytes()]);
}

/// Returns a UDP/IPv4 frame with a partial checksum and `payload` bytes of payload.
fn datagram(payload: usize) -> Frame {
    let mut bytes = patterned(42 + payload).bytes().to_vec();
    bytes[12..24].copy_from_slice(&[0x08, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17]);
    bytes[16..18].copy_from_slice(&(28 + payload as u16).to_be_bytes());
    bytes[24..34].copy_from_slice(&[0, 0, 10, 9, 9, 1, 10, 9, 9, 2]);
    bytes[38..40].copy_from_slice(&(8 + payload as u16).to_be_bytes());
    let header = VnetHeader {
        flags: VnetHeader::NEEDS_CSUM,
        csum_start: 34,
        csum_offset: 6,
        ..VnetHeader::default()
    };
    bytes[40..42].copy_from_slice(&pseudo(payload).word().to_be_bytes());
    let mut frame = Frame::new(0);
    frame.set_bytes(&bytes);
    frame.validate_ingress(&header, crate::offload::ALL).unwrap();
    frame
}

fn pseudo(payload: usize) -> Sum {
    Sum::pseudo_ipv4([10, 9, 9, 1], [10, 9, 9, 2], 17, 8 + payload as u16)
}

#[test]
fn checksums_are_left_to_the_kernel_and_large_frames_are_not() {
    for mtu in [1500, 9000] {
        let mut bench = Bench::new(Some(mtu));
        let offloads = bench.sink.offloads();
        assert_eq!(offloads.without_segmentation(), offloads);
        assert!(offloads.checksum, "Linux 6.8 and later");
        // The sending kernel then completes the checksums, instead of the receiver.
        run(&format!("ethtool -K {} tx off", bench.cable.near));
        for payload in [0, 1, 13, 1472, usize::from(mtu) - 28] {
            for tag in [None, Some(VlanTag::for_vlan(VlanId::new(5).unwrap()))] {
                let mut frame = datagram(payload);
                frame.meta.tag = tag;
                bench.send(&frame);
                let received = receive_where(&mut bench.far_source, is_ours).expect("the datagram");
                assert_eq!((received.len(), received.meta.tag), (frame.len(), tag));
                assert!(
                    !matches!(received.meta.checksum, Checksum::Partial { .. }),
                    "{received:?}"
                );
                let sum = pseudo(payload).concat(Sum::from_bytes(&received.bytes()[34..])).word();
                assert_eq!(sum, 0xffff, "{payload} {tag:?}");
                assert_eq!(received.bytes()[..40], frame.bytes()[..40]);
                assert_eq!(received.bytes()[42..], frame.bytes()[42..]);
            }
        }
        let offload = OffloadToggles { tx_checksum: false, ..OffloadToggles::default() };
        let spec = UplinkSpec { offload, ..bench.spec.clone() };
        assert!(bench.device.as_mut().unwrap().apply_spec(&PortDeviceSpec::Uplink(spec)).unwrap());
        assert!(!bench.sink.offloads().checksum);
        assert!(
            bench.status().egress_offloads.checksum && !bench.status().ingress_offloads.checksum
        );
    }
}
