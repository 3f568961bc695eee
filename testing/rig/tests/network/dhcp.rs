//! DHCP messages between TAP ports, received as by clients that read raw frames without the
//! kernel's checksum information.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use suimon_frame::VnetHeader;
use suimon_rig::{NamespaceGuest, Rig, private_lan};

use crate::kernel_path::wait_kernel_path_used;
use crate::packet_tap::{FrameWithHeader, PacketTap};

/// Deadline of every condition. The machine may be loaded.
const LIMIT: Duration = Duration::from_secs(120);
/// Payload of each message.
const MESSAGE: [u8; 300] = [0x5a; 300];

fn send(from: &NamespaceGuest, to: &NamespaceGuest, is_ipv6: bool, ports: (u16, u16)) {
    let (own_address, other) = match is_ipv6 {
        true => (from.address_v6(), to.address_v6()),
        false => (from.address(), to.address()),
    };
    let own_address = SocketAddr::new(own_address.parse().unwrap(), ports.0);
    let other = SocketAddr::new(other.parse().unwrap(), ports.1);
    let sent_bytes =
        from.namespace.inside(|| UdpSocket::bind(own_address)?.send_to(&MESSAGE, other)).unwrap();
    assert_eq!(sent_bytes.unwrap(), MESSAGE.len());
}

/// Waits for the next datagram with these ports at a guest. Returns it as the guest's device
/// received it.
fn receive(tap: &PacketTap, is_ipv6: bool, (from, to): (u16, u16)) -> FrameWithHeader {
    let header_len = if is_ipv6 { 54 } else { 34 };
    let ports = [from.to_be_bytes(), to.to_be_bytes()].concat();
    loop {
        let datagram = tap.receive(LIMIT).expect("a datagram");
        if datagram.1.get(header_len..header_len + 4) == Some(&ports) {
            return datagram;
        }
    }
}

/// Returns the sum over a datagram and its pseudo-header: 0xffff if the checksum is correct (RFC
/// 768).
fn sum(frame: &[u8], is_ipv6: bool) -> u16 {
    let (header_len, addresses) = if is_ipv6 { (54, 22..54) } else { (34, 26..34) };
    let datagram = &frame[header_len..header_len + 8 + MESSAGE.len()];
    let words = frame[addresses].chunks(2).chain(datagram.chunks(2));
    let mut sum = 17 + datagram.len() as u32;
    for word in words {
        sum += u32::from(u16::from_be_bytes([word[0], word[1]]));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn check(keys: &str) {
    let rig = Rig::new().unwrap();
    let (daemon, guests) = private_lan(&rig, &[("a", keys), ("b", keys)]).unwrap();
    let [a, b] = &guests[..] else { panic!("{guests:?}") };
    assert!(a.namespace.reaches(&b.address()) && a.namespace.reaches(&b.address_v6()));
    if !keys.is_empty() {
        wait_kernel_path_used(&daemon, a, b);
    }
    let tap = PacketTap::open(&b.namespace, NamespaceGuest::DEVICE);
    for (is_ipv6, ports) in
        [(false, (67, 68)), (false, (68, 67)), (true, (547, 546)), (true, (546, 547))]
    {
        send(a, b, is_ipv6, ports);
        let (header, frame) = receive(&tap, is_ipv6, ports);
        assert_eq!(header.flags & VnetHeader::NEEDS_CSUM, 0, "{keys} {ports:?}: {header:?}");
        assert_eq!(sum(&frame, is_ipv6), 0xffff, "{keys} {ports:?}");
        // Other datagrams keep their partial checksum.
        send(a, b, is_ipv6, (1000, 2000));
        let (header, _) = receive(&tap, is_ipv6, (1000, 2000));
        assert_ne!(header.flags & VnetHeader::NEEDS_CSUM, 0, "{keys}: {header:?}");
    }
}

#[test]
fn dhcp_messages_arrive_with_complete_checksums() {
    check("");
}

#[test]
fn dhcp_messages_take_the_switch_also_where_the_kernel_moves_frames() {
    check("kernel_path = true");
}
