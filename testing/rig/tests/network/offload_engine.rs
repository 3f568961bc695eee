//! What software does for ports that lack an offload, beside what the kernel does:
//! segmentation of TCP and UDP, byte for byte, and receive coalescing.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use suimon_frame::VnetHeader;
use suimon_rig::{Daemon, Namespace, NamespaceGuest, Rig, iperf, private_lan, wait_until};

use crate::frame_oracle::naive_sum;
use crate::frame_sample::Sample;
use crate::packet_tap::{Headed, PacketTap, set_udp_segment};
use crate::streams::{PATIENCE, sample, tcp_stream, wait_closed};

/// A NIC that is given neither large frames nor partial checksums.
const PLAIN: &str = "[nic.offload]\nsegmentation = false\nrx_checksum = false";
/// An EtherType for experiments (RFC 9542, section 2.3.4).
const MARKER_TYPE: [u8; 2] = [0x88, 0xb5];
const PORT: u16 = 7007;

/// A way that frames take from one device to another.
struct Way {
    from: PacketTap,
    to: PacketTap,
    macs: [[u8; 6]; 2],
}

impl Way {
    /// Through the switch, to a NIC without offloads.
    fn through_the_switch(sender: &NamespaceGuest, receiver: &NamespaceGuest) -> Self {
        assert!(sender.namespace.reaches(&receiver.address()));
        Self {
            from: PacketTap::open(&sender.namespace, NamespaceGuest::DEVICE),
            to: PacketTap::open(&receiver.namespace, NamespaceGuest::DEVICE),
            macs: [mac(receiver), mac(sender)],
        }
    }

    /// Through a device that leaves everything to the kernel.
    fn through_the_kernel(namespace: &Namespace, macs: [[u8; 6]; 2]) -> Self {
        namespace.run(&arguments("ip link add near type veth peer name far")).unwrap();
        for device in ["near", "far"] {
            namespace
                .run(&arguments(&format!("ip link set {device} addrgenmode none up")))
                .unwrap();
        }
        // Before the kernel has handled the carrier, a device drops what it is to send.
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

    /// What becomes of one frame.
    fn carry(&self, (header, bytes): &Headed) -> Vec<Vec<u8>> {
        self.from.send(header, bytes);
        self.arrived()
    }

    /// What has arrived from the sender since the last time, until a marker, which
    /// goes the same way.
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

    /// What has left the sender since the last time, until nothing more leaves.
    fn left(&self) -> Vec<Headed> {
        let frames = std::iter::from_fn(|| self.from.receive(Duration::from_millis(50)));
        frames.filter(|(_, bytes)| self.is_ours(bytes)).collect()
    }

    /// Whether a frame is IP from the sender to the receiver.
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

/// Large frames with all that segmentation has to look at.
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

/// The sample's frame between these two.
fn headed(sample: &Sample, macs: [[u8; 6]; 2]) -> Headed {
    let mut bytes = sample.bytes();
    bytes[..12].copy_from_slice(&macs.concat());
    let header = sample.header();
    let transport_bytes = if sample.is_udp { 8 } else { 20 + 4 * sample.tcp_option_words as u16 };
    (VnetHeader { hdr_len: header.csum_start + transport_bytes, ..header }, bytes)
}

/// Keeps this thread, and those that it starts, on the CPU that it runs on. The kernel delivers
/// frames of a veth by the CPU that sent them, in their order: a marker that another CPU sends may
/// arrive before them.
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
    let through_switch = Way::through_the_switch(&guests[0], &guests[1]);
    let namespace = Namespace::new(&rig, "kernel").unwrap();
    let kernels = Way::through_the_kernel(&namespace, through_switch.macs);
    let compare = |description: &str, sample: &Sample, frame: &Headed| {
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
        let mut frame = headed(sample, through_switch.macs);
        compare(description, sample, &frame);
        if !sample.is_ipv6 {
            // The same where fragmentation is allowed.
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

/// Sends `bytes` as datagrams of 1200 bytes, 36 at a time.
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
            assert!(buffer[..len] == *datagram, "a datagram arrived as something else");
        }
    }
}

#[test]
fn streams_of_a_real_stack_become_the_kernels_segments_byte_for_byte() {
    stay_on_this_cpu();
    let rig = Rig::new().unwrap();
    let (_daemon, guests) = private_lan(&rig, &[("a", ""), ("b", PLAIN)]).unwrap();
    let [a, b] = guests.as_slice() else { panic!() };
    let through_switch = Way::through_the_switch(a, b);
    let namespace = Namespace::new(&rig, "kernel").unwrap();
    let kernels = Way::through_the_kernel(&namespace, through_switch.macs);
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

/// Segments joined on their way to a NIC while a stream ran for a second.
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
fn segments_reach_a_guest_joined_as_long_as_it_wants_them_so() {
    let rig = Rig::new().unwrap();
    let (daemon, guests) = private_lan(&rig, &[("a", ""), ("b", "")]).unwrap();
    let [a, b] = guests.as_slice() else { panic!() };
    let _server = iperf::serve(&rig, &b.namespace).unwrap();
    // The sender sends what the wire would carry, checksums complete.
    a.namespace.ethtool(NamespaceGuest::DEVICE, &arguments("tx off tso off gso off")).unwrap();
    for address in [b.address(), b.address_v6()] {
        let [segments, units] = joined(&daemon, a, b, &address);
        assert!(units > 0 && segments >= 2 * units, "{segments} segments into {units}");
        daemon.ok(&["nic", "set", "b", "--offload-receive-coalescing=false"]).unwrap();
        assert_eq!(joined(&daemon, a, b, &address), [0, 0], "switched off");
        daemon.ok(&["nic", "set", "b", "--offload-receive-coalescing=true"]).unwrap();
    }
}
