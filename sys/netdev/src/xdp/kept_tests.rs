//! Tests which frames reach the switch, with the program running in the kernel.

use std::net::IpAddr;
use std::time::Instant;

use suimon_frame::{Frame, FrameBatch, MacAddr, VlanId, VlanTag};
use suimon_ports::{FrameSink, PortDeviceSpec, UplinkSpec};

use super::tests::Bench;
use crate::testing::{LIMIT, is_ours, mac, plain_frame, wait_readable};

const HOST_V4: [u8; 4] = [192, 0, 2, 7];
const OTHER_V4: [u8; 4] = [192, 0, 2, 8];
const HOST_V6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xaa, 0xbb, 7];
/// IPv6 address with the same solicited-node multicast group as the host's.
const OTHER_V6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0xaa, 0xbb, 7];
const BROADCAST: MacAddr = MacAddr::new([0xff; 6]);
const SOLICITED: MacAddr = MacAddr::new([0x33, 0x33, 0xff, 0xaa, 0xbb, 7]);

/// Returns a frame to `to`. `payload` begins with the EtherType.
fn frame(to: MacAddr, payload: &[u8]) -> Frame {
    let mut frame = plain_frame(100);
    let bytes = frame.bytes_mut();
    bytes[..6].copy_from_slice(&to.octets());
    bytes[12..12 + payload.len()].copy_from_slice(payload);
    frame
}

fn arp(target: [u8; 4]) -> Frame {
    let mut payload = vec![0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 1];
    payload.extend([2, 0, 0, 0, 0, 2, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0]);
    payload.extend(target);
    frame(BROADCAST, &payload)
}

fn icmpv6(kind: u8, target: [u8; 16]) -> Frame {
    let mut payload = vec![0x86, 0xdd, 0x60, 0, 0, 0, 0, 32, 58, 255];
    payload.extend([0xfd; 32]);
    payload.extend([kind, 0, 0, 0, 0, 0, 0, 0]);
    payload.extend(target);
    frame(SOLICITED, &payload)
}

fn short(mut frame: Frame, bytes: usize) -> Frame {
    let cut = frame.bytes_mut()[..bytes].to_vec();
    frame.set_bytes(&cut);
    frame
}

impl Bench {
    /// Sends a frame from the far end, and another one after it. Returns true if the switch
    /// receives the first one before the second.
    fn reaches_the_switch(&mut self, frame: &Frame) -> bool {
        let last = plain_frame(99);
        self.far_sink.transmit(frame).unwrap();
        self.far_sink.transmit(&last).unwrap();
        let limit = Instant::now() + LIMIT;
        let (mut batch, mut received) = (FrameBatch::new(), Vec::new());
        while received.last().is_none_or(|bytes| bytes != last.bytes()) {
            assert!(Instant::now() < limit, "the last frame did not arrive");
            wait_readable(self.source.as_ref(), 50);
            batch.clear();
            self.source.receive(&mut batch).unwrap();
            let own_frames = batch.frames().iter().filter(|frame| is_ours(frame));
            received.extend(own_frames.map(|frame| frame.bytes().to_vec()));
        }
        received.iter().any(|bytes| bytes == frame.bytes())
    }

    fn add_host_addresses(&mut self, ips: &[IpAddr]) {
        let spec = UplinkSpec { host_addresses: ips.to_vec(), ..self.spec.clone() };
        assert!(self.device.as_mut().unwrap().apply_spec(&PortDeviceSpec::Uplink(spec)).unwrap());
    }
}

#[test]
fn the_host_gets_frames_to_its_addresses_and_the_switch_all_others() {
    let mut bench = Bench::new(None);
    let own_mac = bench.status().mac.unwrap();
    let mut tagged = arp(HOST_V4);
    tagged.meta.tag = Some(VlanTag::for_vlan(VlanId::new(7).unwrap()));
    let of_the_host = [
        frame(own_mac, &[0x88, 0xb5]),
        frame(own_mac, &[0x08, 0x00]),
        arp(HOST_V4),
        icmpv6(135, HOST_V6),
    ];
    let of_the_switch = [
        frame(mac(1), &[0x08, 0x00]),
        frame(BROADCAST, &[0x08, 0x00]),
        arp(OTHER_V4),
        icmpv6(135, OTHER_V6),
        icmpv6(136, HOST_V6),
        tagged,
        // Frames that end within the field that is compared.
        short(arp(HOST_V4), 41),
        short(icmpv6(135, HOST_V6), 77),
    ];
    let all_ips = [HOST_V4.into(), HOST_V6.into(), IpAddr::from([192, 0, 2, 9])];
    for ips in [&[][..], &all_ips, &all_ips[1..2], &[]] {
        bench.add_host_addresses(ips);
        for (index, frame) in of_the_switch.iter().enumerate() {
            assert!(bench.reaches_the_switch(frame), "{ips:?}: {index}");
        }
        let to_host =
            [!ips.is_empty(), !ips.is_empty(), ips.contains(&all_ips[0]), !ips.is_empty()];
        for (index, (frame, to_host)) in of_the_host.iter().zip(to_host).enumerate() {
            assert_eq!(bench.reaches_the_switch(frame), !to_host, "{ips:?}: {index}");
        }
    }
}

#[test]
fn as_many_addresses_as_a_host_may_have_are_accepted_by_the_kernel() {
    let mut bench = Bench::new(Some(9000));
    let ip_addrs: Vec<IpAddr> = (0..16).map(|n| [0xfd00, 0, 0, 0, 0, 0, 0, n].into()).collect();
    bench.add_host_addresses(&ip_addrs);
    let mut last = [0; 16];
    (last[0], last[15]) = (0xfd, 15);
    assert!(!bench.reaches_the_switch(&icmpv6(135, last)));
    last[15] = 16;
    assert!(bench.reaches_the_switch(&icmpv6(135, last)));
}
