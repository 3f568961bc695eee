//! Selection of the frames of an AF_XDP uplink that the host receives instead of the switch.
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

use suimon_bpf::instructions::{Assembler, JumpCondition, Label, Register, Width};
use suimon_frame::MacAddr;

const ETHERTYPE_AT: i16 = 12;
const ETHERNET_BYTES: i32 = 14;
/// EtherTypes of frames that the host always receives.
const LINK_LOCAL_TYPES: [u16; 2] = [0x8809, 0x88cc];

const ARP: u16 = 0x0806;
/// Offset in a frame of the target address of an ARP packet for IPv4. The packet ends with this
/// field.
const ARP_TARGET_AT: i16 = 38;

const IPV6: u16 = 0x86dd;
const NEXT_HEADER_AT: i16 = 20;
const ICMPV6: i32 = 58;
const ICMPV6_TYPE_AT: i16 = 54;
const NEIGHBOUR_SOLICITATION: i32 = 135;
const SOLICITED_AT: i16 = 62;

/// MAC address of a device and IP addresses of the host on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostAddresses {
    pub(super) mac: MacAddr,
    pub(super) ips: Vec<IpAddr>,
}

/// Registers that the instructions of [`emit_filter`] use.
pub(super) struct Registers {
    /// Address of the frame's first byte.
    pub(super) start: Register,
    /// Address after the frame's last byte.
    pub(super) end: Register,
    /// Scratch registers, for the EtherType and for compared fields.
    pub(super) scratch: [Register; 2],
}

/// Appends instructions that jump to `host_frame` if the host receives the frame, and otherwise
/// continue with the next instruction.
pub(super) fn emit_filter(
    p: &mut Assembler,
    registers: &Registers,
    host: &HostAddresses,
    host_frame: Label,
) {
    let other_types = p.label();
    let Registers { start, scratch: [ethertype, scratch], .. } = *registers;
    check_length(p, registers, ETHERNET_BYTES, host_frame);
    p.load(Width::Half, ethertype, start, ETHERTYPE_AT);
    for link_local_type in LINK_LOCAL_TYPES {
        p.jump_if(ethertype, JumpCondition::Equal, on_wire(link_local_type), host_frame);
    }
    if !host.ips.is_empty() {
        check_bytes(p, registers, 0, &host.mac.octets(), host_frame);
        let (v4, v6) = by_version(&host.ips);
        let after_arp = p.label();
        p.jump_if(ethertype, JumpCondition::NotEqual, on_wire(ARP), after_arp);
        check_length(p, registers, i32::from(ARP_TARGET_AT) + 4, other_types);
        v4.iter().for_each(|ip| check_bytes(p, registers, ARP_TARGET_AT, &ip.octets(), host_frame));
        p.jump(other_types);
        p.bind(after_arp);
        p.jump_if(ethertype, JumpCondition::NotEqual, on_wire(IPV6), other_types);
        check_length(p, registers, i32::from(SOLICITED_AT) + 16, other_types);
        p.load(Width::Byte, scratch, start, NEXT_HEADER_AT);
        p.jump_if(scratch, JumpCondition::NotEqual, ICMPV6, other_types);
        p.load(Width::Byte, scratch, start, ICMPV6_TYPE_AT);
        p.jump_if(scratch, JumpCondition::NotEqual, NEIGHBOUR_SOLICITATION, other_types);
        v6.iter().for_each(|ip| check_bytes(p, registers, SOLICITED_AT, &ip.octets(), host_frame));
    }
    p.bind(other_types);
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

/// Appends a jump to `otherwise` if the frame is shorter than `bytes` bytes.
fn check_length(p: &mut Assembler, registers: &Registers, bytes: i32, otherwise: Label) {
    let scratch = registers.scratch[1];
    p.copy(scratch, registers.start);
    p.add(scratch, bytes);
    p.jump_if_registers(scratch, JumpCondition::Greater, registers.end, otherwise);
}

/// Appends a jump to `matched` if the frame contains `bytes` at the offset `start`.
fn check_bytes(p: &mut Assembler, registers: &Registers, start: i16, bytes: &[u8], matched: Label) {
    let differs = p.label();
    for (pair, offset) in bytes.chunks_exact(2).zip((start..).step_by(2)) {
        let pair = pair.iter().fold(0, |word, byte| word << 8 | u16::from(*byte));
        p.load(Width::Half, registers.scratch[1], registers.start, offset);
        p.jump_if(registers.scratch[1], JumpCondition::NotEqual, on_wire(pair), differs);
    }
    p.jump(matched);
    p.bind(differs);
}

/// Returns the value that a two-byte load returns for a big-endian field with this value.
fn on_wire(value: u16) -> i32 {
    i32::from(value.to_be())
}
