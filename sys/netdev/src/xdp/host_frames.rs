//! Selection of the frames of an AF_XDP uplink that are passed to the host.
//!
//! LACPDUs and Marker PDUs (EtherType 0x8809) are for the control sockets of teams, and LLDP
//! (0x88cc) for an LLDP agent of the host. Both are link-local, and no switch forwards them (IEEE
//! 802.1Q-2022, Table 8-1).
//!
//! If the host has addresses on the device, the host also receives frames to the device's MAC
//! address, ARP requests for these addresses (RFC 826), and neighbour solicitations for them (RFC
//! 4861, section 4.3). Frames with a VLAN tag are passed to the switch, because the addresses are
//! those of the untagged device.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use suimon_bpf::instructions::{Assembler, If, Label, Register, Width};
use suimon_frame::MacAddr;

const ETHERTYPE_AT: i16 = 12;
const ETHERNET_BYTES: i32 = 14;
/// EtherTypes that are always passed to the host.
const LINK_LOCAL_TYPES: [u16; 2] = [0x8809, 0x88cc];

const ARP: u16 = 0x0806;
/// Offset of the target address of an ARP packet for IPv4, which ends with this field.
const ARP_TARGET_AT: i16 = 38;

const IPV6: u16 = 0x86dd;
const NEXT_HEADER_AT: i16 = 20;
const ICMPV6: i32 = 58;
const ICMPV6_TYPE_AT: i16 = 54;
const NEIGHBOUR_SOLICITATION: i32 = 135;
const SOLICITED_AT: i16 = 62;

/// Addresses of the host on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostAddresses {
    pub(super) mac: MacAddr,
    pub(super) ips: Vec<IpAddr>,
}

/// Registers used by the selection.
pub(super) struct Registers {
    /// Address of the frame's first byte.
    pub(super) start: Register,
    /// Address behind the frame's last byte.
    pub(super) end: Register,
    /// Scratch registers for the EtherType and for compared fields.
    pub(super) scratch: [Register; 2],
}

/// Appends instructions that jump to `kept` for frames that the host receives, and continue with
/// the next instruction for other frames.
pub(super) fn emit_filter(p: &mut Assembler, of: &Registers, host: &HostAddresses, kept: Label) {
    let others = p.label();
    let Registers { start, scratch: [ethertype, scratch], .. } = *of;
    check_length(p, of, ETHERNET_BYTES, kept);
    p.load(Width::Half, ethertype, start, ETHERTYPE_AT);
    for one in LINK_LOCAL_TYPES {
        p.jump_if(ethertype, If::Equal, on_wire(one), kept);
    }
    if !host.ips.is_empty() {
        check_bytes(p, of, 0, &host.mac.octets(), kept);
        let (v4, v6) = by_version(&host.ips);
        let after_arp = p.label();
        p.jump_if(ethertype, If::NotEqual, on_wire(ARP), after_arp);
        check_length(p, of, i32::from(ARP_TARGET_AT) + 4, others);
        v4.iter().for_each(|ip| check_bytes(p, of, ARP_TARGET_AT, &ip.octets(), kept));
        p.jump(others);
        p.bind(after_arp);
        p.jump_if(ethertype, If::NotEqual, on_wire(IPV6), others);
        check_length(p, of, i32::from(SOLICITED_AT) + 16, others);
        p.load(Width::Byte, scratch, start, NEXT_HEADER_AT);
        p.jump_if(scratch, If::NotEqual, ICMPV6, others);
        p.load(Width::Byte, scratch, start, ICMPV6_TYPE_AT);
        p.jump_if(scratch, If::NotEqual, NEIGHBOUR_SOLICITATION, others);
        v6.iter().for_each(|ip| check_bytes(p, of, SOLICITED_AT, &ip.octets(), kept));
    }
    p.bind(others);
}

fn by_version(ips: &[IpAddr]) -> (Vec<Ipv4Addr>, Vec<Ipv6Addr>) {
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    for ip in ips {
        match ip {
            IpAddr::V4(ip) => v4.push(*ip),
            IpAddr::V6(ip) => v6.push(*ip),
        }
    }
    (v4, v6)
}

/// Jumps to `otherwise` if the frame is shorter than `bytes`.
fn check_length(p: &mut Assembler, of: &Registers, bytes: i32, otherwise: Label) {
    let scratch = of.scratch[1];
    p.copy(scratch, of.start);
    p.add(scratch, bytes);
    p.jump_if_registers(scratch, If::Greater, of.end, otherwise);
}

/// Jumps to `then` if the frame contains these bytes at this offset.
fn check_bytes(p: &mut Assembler, of: &Registers, at: i16, bytes: &[u8], then: Label) {
    let differs = p.label();
    for (pair, at) in bytes.chunks_exact(2).zip((at..).step_by(2)) {
        let pair = pair.iter().fold(0, |word, byte| word << 8 | u16::from(*byte));
        p.load(Width::Half, of.scratch[1], of.start, at);
        p.jump_if(of.scratch[1], If::NotEqual, on_wire(pair), differs);
    }
    p.jump(then);
    p.bind(differs);
}

/// Returns the result of a two-byte load of a field with this value.
fn on_wire(value: u16) -> i32 {
    i32::from(value.to_be())
}
