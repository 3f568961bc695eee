//! Offloads performed in software for ports that lack them, compared with the kernel's:
//! segmentation of TCP and UDP, byte for byte, and receive coalescing.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use suimon_frame::VnetHeader;
use suimon_rig::{Daemon, Namespace, NamespaceGuest, Rig, iperf, private_lan, wait_until};

use crate::frame_oracle::naive_sum;
use crate::frame_sample::Sample;
use crate::packet_tap::{FrameWithHeader, PacketTap, set_udp_segment};
use crate::streams::{PATIENCE, sample, tcp_stream, wait_closed};

/// Configuration of a NIC that receives neither large frames nor partial checksums.
const PLAIN: &str = "[nic.offload]\nsegmentation = false\nrx_checksum = false";
/// EtherType for local experiments (RFC 9542, section 2.3.4).
const MARKER_TYPE: [u8; 2] = [0x88, 0xb5];
const PORT: u16 = 7007;

/// Path of frames from one device to another.
struct FramePath {
    from: PacketTap,
    to: PacketTap,
    macs: [[u8; 6]; 2],
}

impl FramePath {
    /// Creates a path through the switch to a NIC without offloads.
    fn through_the_switch(sender: &NamespaceGuest, receiver: &NamespaceGuest) -> Self {
        assert!(sender.namespace.reaches(&receiver.address()));
        Self {
            from: PacketTap::open(&sender.namespace, NamespaceGuest::DEVICE),
            to: PacketTap::open(&receiver.namespace, NamespaceGuest::DEVICE),
            macs: [mac(receiver), mac(sender)],
        }
    }

    /// Creates a path through a veth pair without offloads, for which the kernel performs all of
    /// them.
    fn through_the_kernel(namespace: &Namespace, macs: [[u8; 6]; 2]) -> Self {
        namespace.run(&arguments("ip link add near type veth peer name far")).unwrap();
        for device in ["near", "far"] {
            namespace
                .run(&arguments(&format!("ip link set {device} addrgenmode none up")))
                .unwrap();
        }
        // Until the kernel has processed the carrier change, a device drops frames to be sent.
        for device in ["near", "far"] {
            let show_link = || namespace.run(&["ip", "link", "show", device]);
            wait_until("the carrier", PATIENCE, || Ok(show_link()?.contains("state UP"))).unwrap();
        }
        let switches = "tx off tso off gso off tx-udp-segmentation off";
        namespace.ethtool("near", &arguments(switches)).unwrap();
        namespace.ethtool("far", &["gro", "off"]).unwrap();
        let [from, to] = ["near", "far"].map(|device| PacketTap::open(namespace, device));
        Self { from, to, macs }
    }

    /// Sends a frame and returns the frames that arrive.
    fn carry(&self, (header, bytes): &FrameWithHeader) -> Vec<Vec<u8>> {
        self.from.send(header, bytes);
        self.arrived()
    }

    /// Returns the frames that have arrived from the sender since the last call. Sends a marker
    /// frame on the same path to detect the end.
    fn arrived(&self) -> Vec<Vec<u8>> {
        let mut marker = [&self.macs.concat()[..], &MARKER_TYPE].concat();
        marker.resize(60, 0);
        self.from.send(&VnetHeader::default(), &marker);
        let mut frames = Vec::new();
        loop {
            let (header, bytes) = self.to.receive(PATIENCE).expect("the marker");
            if bytes == marker {
                return frames;
            }
            if self.is_ours(&bytes) {
                assert_eq!((header.gso_type, header.flags & VnetHeader::NEEDS_CSUM), (0, 0));
                frames.push(bytes);
            }
        }
    }

    /// Returns the frames that have left the sender since the last call, until none leaves for 50
    /// ms.
    fn left(&self) -> Vec<FrameWithHeader> {
        let frames = std::iter::from_fn(|| self.from.receive(Duration::from_millis(50)));
        frames.filter(|(_, bytes)| self.is_ours(bytes)).collect()
    }

    /// Returns true if a frame is IP from the sender to the receiver.
    fn is_ours(&self, bytes: &[u8]) -> bool {
        let is_ip = matches!(bytes[12..14], [0x08, 0x00] | [0x86, 0xdd]);
        bytes[..12] == self.macs.concat() && is_ip
    }
}

fn arguments(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

fn mac(guest: &NamespaceGuest) -> [u8; 6] {
    let mut octets = [0; 6];
    for (octet, text) in octets.iter_mut().zip(guest.mac().unwrap().split(':')) {
        *octet = u8::from_str_radix(text, 16).unwrap();
    }
    octets
}

/// Returns large frames with all headers, options and flags that segmentation must handle.
fn samples() -> Vec<(&'static str, Sample)> {
    let tcp = |segment_bytes: u16, payload_bytes: usize| Sample {
        segment_bytes: Some(segment_bytes),
        payload: (0..payload_bytes).map(|index| (index * index / 7) as u8).collect(),
        ..Sample::default()
    };
    let v6 = |sample: Sample| Sample { is_ipv6: true, ..sample };
    let udp = |sample: Sample| Sample { is_udp: true, ..sample };
    vec![
        ("as long as it gets", Sample { identification: 0xfff0, ..tcp(1448, 65_400) }),
        ("all flags", Sample { tcp_flags: 0xd9, ..tcp(1448, 5 * 1448 + 321) }),
        ("FIN and PSH", Sample { tcp_flags: 0x19, ..tcp(536, 9 * 536) }),
        ("CWR", Sample { tcp_flags: 0x90, ..tcp(1000, 3001) }),
        ("odd segments", Sample { sequence: u32::MAX - 2000, ..tcp(1001, 12_345) }),
        ("small segments", tcp(88, 20 * 88 + 1)),
        ("no TCP options", Sample { tcp_option_words: 0, ..tcp(1460, 14_600) }),
        ("all TCP options", Sample { tcp_option_words: 10, ..tcp(1420, 9000) }),
        ("IPv4 options", Sample { option_words: 3, ..tcp(1400, 9000) }),
        ("IPv6", v6(Sample { tcp_flags: 0xd9, ..tcp(1428, 65_000) })),
        ("IPv6 extension", v6(Sample { extensions: vec![(60, 1)], ..tcp(1400, 9999) })),
        ("UDP", udp(Sample { identification: 0xfffe, ..tcp(1200, 30 * 1200 + 77) })),
        ("UDP, equal segments", udp(tcp(1472, 20 * 1472))),
        ("UDP, odd segments", udp(tcp(333, 7777))),
        ("UDP, IPv6", v6(udp(tcp(1452, 43_210)))),
    ]
}

/// Returns the sample's frame with the MAC addresses `macs` (destination, source), and its
/// virtio-net header.
fn frame_with_header(sample: &Sample, macs: [[u8; 6]; 2]) -> FrameWithHeader {
    let mut bytes = sample.bytes();
    bytes[..12].copy_from_slice(&macs.concat());
    let header = sample.header();
    let transport_bytes = if sample.is_udp { 8 } else { 20 + 4 * sample.tcp_option_words as u16 };
    (VnetHeader { hdr_len: header.csum_start + transport_bytes, ..header }, bytes)
}

/// Pins this thread, and threads that it starts, to its current CPU. The kernel keeps the order of
/// frames on a veth only per sending CPU: a marker that another CPU sends could overtake frames.
fn stay_on_this_cpu() {
    let mut cpus = CpuSet::new();
    cpus.set(sched_getcpu());
    sched_setaffinity(None, &cpus).unwrap();
}

#[test]
fn large_frames_become_the_kernels_segments_byte_for_byte() {
    stay_on_this_cpu();
    let rig = Rig::new().unwrap();
    let (daemon, guests) = private_lan(&rig, &[("a", ""), ("b", PLAIN)]).unwrap();
    let through_switch = FramePath::through_the_switch(&guests[0], &guests[1]);
    let namespace = Namespace::new(&rig, "kernel").unwrap();
    let kernels = FramePath::through_the_kernel(&namespace, through_switch.macs);
    let compare = |description: &str, sample: &Sample, frame: &FrameWithHeader| {
        let expected = kernels.carry(frame);
        let step = usize::from(sample.segment_bytes.unwrap());
        assert_eq!(
            expected.len(),
            sample.payload.len().div_ceil(step),
            "{description}: the kernel's"
        );
        let segments = through_switch.carry(frame);
        assert_eq!(segments.len(), expected.len(), "{description}");
        for (nth, (segment, expected)) in segments.iter().zip(&expected).enumerate() {
            assert_eq!(segment, expected, "{description}, segment {nth}");
        }
    };
    let samples = samples();
    for (description, sample) in &samples {
        let mut frame = frame_with_header(sample, through_switch.macs);
        compare(description, sample, &frame);
        if !sample.is_ipv6 {
            // The result is the same if fragmentation is permitted.
            let (header_end, bytes) = (34 + 4 * sample.option_words, &mut frame.1);
            bytes[20] = 0;
            bytes[24..26].fill(0);
            let checksum = !naive_sum(&bytes[14..header_end]);
            bytes[24..26].copy_from_slice(&checksum.to_be_bytes());
            compare(description, sample, &frame);
        }
    }
    let status = daemon.json(&["nic", "show", "b"]).unwrap();
    assert!(counter(&status, "software_segmented") >= samples.len() as u64, "{status}");
}

/// Sends `bytes` as UDP datagrams of 1200 bytes, 36 per system call.
fn udp_stream(from: &NamespaceGuest, to: &NamespaceGuest, address: SocketAddr, bytes: &[u8]) {
    let receiver = to.namespace.inside(|| UdpSocket::bind(address).unwrap()).unwrap();
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    let sender = from.namespace.inside(|| {
        let any_address = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        UdpSocket::bind(any_address).unwrap()
    });
    let sender = sender.unwrap();
    set_udp_segment(&sender, 1200);
    let mut buffer = [0; 2000];
    for burst in bytes.chunks(36 * 1200) {
        sender.send_to(burst, address).unwrap();
        for datagram in burst.chunks(1200) {
            let len = receiver.recv(&mut buffer).unwrap();
            assert!(buffer[..len] == *datagram, "a received datagram differs");
        }
    }
}

#[test]
fn streams_of_a_real_stack_become_the_kernels_segments_byte_for_byte() {
    stay_on_this_cpu();
    let rig = Rig::new().unwrap();
    let (_daemon, guests) = private_lan(&rig, &[("a", ""), ("b", PLAIN)]).unwrap();
    let [a, b] = guests.as_slice() else { panic!() };
    let through_switch = FramePath::through_the_switch(a, b);
    let namespace = Namespace::new(&rig, "kernel").unwrap();
    let kernels = FramePath::through_the_kernel(&namespace, through_switch.macs);
    let bytes = sample(1_500_000);
    for address in [b.address(), b.address_v6()] {
        let address = SocketAddr::new(address.parse().unwrap(), PORT);
        for protocol in ["TCP", "UDP"] {
            through_switch.left();
            through_switch.arrived();
            match protocol {
                "TCP" => tcp_stream(&a.namespace, &b.namespace, address, &bytes, protocol),
                _ => udp_stream(a, b, address, &bytes),
            }
            wait_closed([&a.namespace, &b.namespace], PORT);
            let sent_frames = through_switch.left();
            let received_frames = through_switch.arrived();
            let large = sent_frames.iter().filter(|(header, _)| header.gso_type != 0).count();
            assert!(
                large >= 10,
                "{protocol} to {address}: {large} large frames of {}",
                sent_frames.len()
            );
            let expected: Vec<_> =
                sent_frames.iter().flat_map(|frame| kernels.carry(frame)).collect();
            assert_eq!(received_frames.len(), expected.len(), "{protocol} to {address}");
            for (nth, (received_frame, expected)) in
                received_frames.iter().zip(&expected).enumerate()
            {
                assert_eq!(received_frame, expected, "{protocol} to {address}, frame {nth}");
            }
        }
    }
    assert_eq!(b.namespace.checksum_errors().unwrap(), 0);
}

fn counter(status: &serde_json::Value, key: &str) -> u64 {
    status["counters"][key].as_u64().unwrap_or_else(|| panic!("no counter {key} in {status}"))
}

/// Sends a TCP stream for one second. Returns the number of segments coalesced on the way to the
/// NIC, and of the resulting frames.
fn joined(daemon: &Daemon, from: &NamespaceGuest, to: &NamespaceGuest, address: &str) -> [u64; 2] {
    let read = || {
        let status = daemon.json(&["nic", "show", &to.nic]).unwrap();
        ["software_coalesced_segments", "software_coalesced_units"].map(|key| counter(&status, key))
    };
    let before = read();
    let report = iperf::measure(&from.namespace, address, 1, &[]).unwrap();
    assert!(report.bits_per_second > 0.0, "{report:?}");
    let after = read();
    assert_eq!(to.namespace.checksum_errors().unwrap(), 0);
    [after[0] - before[0], after[1] - before[1]]
}

#[test]
fn segments_reach_a_guest_coalesced_while_that_is_enabled() {
    let rig = Rig::new().unwrap();
    let (daemon, guests) = private_lan(&rig, &[("a", ""), ("b", "")]).unwrap();
    let [a, b] = guests.as_slice() else { panic!() };
    let _server = iperf::serve(&rig, &b.namespace).unwrap();
    // The sender sends frames as on a wire, with complete checksums.
    a.namespace.ethtool(NamespaceGuest::DEVICE, &arguments("tx off tso off gso off")).unwrap();
    for address in [b.address(), b.address_v6()] {
        let [segments, units] = joined(&daemon, a, b, &address);
        assert!(units > 0 && segments >= 2 * units, "{segments} segments into {units}");
        daemon.ok(&["nic", "set", "b", "--offload-receive-coalescing=false"]).unwrap();
        assert_eq!(joined(&daemon, a, b, &address), [0, 0], "switched off");
        daemon.ok(&["nic", "set", "b", "--offload-receive-coalescing=true"]).unwrap();
    }
}
