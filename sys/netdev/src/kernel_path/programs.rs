//! eBPF programs of the kernel path.
//!
//! Each port has a veth pair between its namespace and the daemon's, and four programs at `tc`
//! hooks (tc-bpf(8)), which the functions of this module return:
//!
//! ```text
//!   guest's namespace                            daemon's namespace
//!   TAP, sent by the guest ── tap_egress ──▶ veth ══▶ forward ──▶ veth of the other port
//!   TAP, as if received ◀── tap_delivery ── veth ◀═══════════════════┘
//! ```
//!
//! - [`tap_egress_program`] redirects permitted frames to the veth pair; all others continue to the
//!   TAP and the switch.
//! - [`forwarding_program`] checks again, because a guest with root in its namespace can send any
//!   frame on the veth pair. It drops frames that are not permitted.
//! - [`tap_delivery_program`] redirects to the TAP.
//! - [`drop_all_program`] drops frames that the daemon's network stack would send on the veth pair.
//!
//! A frame is permitted if it is unicast without a VLAN tag, the gate of its port is open, its
//! source address is known on this port, and its destination on another port whose gate has the
//! same group. Other functions of the switch (limits, captures, offloads that are off) close gates.
//! DHCP messages are never permitted, because the switch completes their checksums.

/// Descriptors of the maps that the programs share.
#[derive(Clone, Copy, Debug)]
pub(super) struct MapFds {
    pub(super) gates: i32,
    pub(super) addresses: i32,
    pub(super) counters: i32,
}

// Offsets in `struct __sk_buff`, linux/bpf.h.
const FRAME_BYTES: i16 = 0;
const VLAN_PRESENT: i16 = 20;
const SEGMENT_BYTES: i16 = 176;

// Numbers of helper functions in linux/bpf.h.
const MAP_LOOKUP: i32 = 1;
const MAP_DELETE: i32 = 3;
const REDIRECT: i32 = 23;
const LOAD_BYTES: i32 = 26;
const REDIRECT_PEER: i32 = 155;

/// `BPF_F_INGRESS`.
const AS_IF_RECEIVED: i32 = 1;

// Verdicts for frames that are not redirected: linux/pkt_cls.h. With `GO_ON` (unspecified),
// programs of others at the same hook run next.
const GO_ON: i32 = -1;
const DROP: i32 = 2;

// A port is identified by its slot, a number from 0 on.

// Value of a gate: group, 0 if closed; interface index of the veth end in the daemon's namespace;
// whether addresses may be learned on the port; maximum size of an IP packet in bytes.
pub(super) const GATE_BYTES: usize = 16;
const GATE_GROUP: i16 = 0;
const GATE_DEVICE: i16 = 4;
const GATE_LEARNS: i16 = 8;
const GATE_MTU: i16 = 12;

// Key of an address: group, MAC address and two bytes of padding. Value: slot of its port, whether
// it is configured, and the number of frames it sent.
pub(super) const ADDRESS_KEY_BYTES: usize = 12;
pub(super) const ADDRESS_BYTES: usize = 16;
const ADDRESS_SLOT: i16 = 0;
const ADDRESS_FIXED: i16 = 4;
const ADDRESS_SENT: i16 = 8;

// Counters of a port: frames and bytes sent by its guest, frames and bytes received by it.
pub(super) const COUNTERS_BYTES: usize = 32;
const SENT: i16 = 0;
const RECEIVED: i16 = 16;

// Stack offsets.
const SLOT: i16 = -16;
const PORTS: i16 = -8;
const KEY: i16 = -32;
const KEY_MAC: i16 = KEY + 4;
const KEY_END: i16 = KEY + 10;
/// Stack offset of a copy of the frame's bytes from the EtherType to the IPv4 protocol field.
const HEADERS: i16 = -48;
const HEADERS_BYTES: i32 = 12;
const IPV4_PROTOCOL: i16 = HEADERS + 11;
const IPV6_NEXT_HEADER: i16 = HEADERS + 8;

// Length of the Ethernet header, and minimum length of IPv4 and TCP headers.
const ETHERNET_BYTES: i32 = 14;
const HEADERS_MIN: i32 = 40;
const DESTINATION_AT: i32 = 0;
const SOURCE_AT: i32 = 6;
const ETHERTYPE_AT: i32 = 12;
const MAC_BYTES: i32 = 6;
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
const UDP: i32 = 17;
/// Offset in a frame of the UDP ports after an IPv4 header without options.
const IPV4_PORTS_AT: i32 = 34;
/// Offset in a frame of the UDP ports after an IPv6 header.
const IPV6_PORTS_AT: i32 = 54;
/// UDP ports of BOOTP and DHCP (RFC 2131), big-endian.
const DHCP_PORTS: [[u8; 2]; 2] = [[0, 67], [0, 68]];
/// UDP ports of DHCPv6 (RFC 8415), big-endian.
const DHCPV6_PORTS: [[u8; 2]; 2] = [[2, 34], [2, 35]];
/// TPIDs of VLAN tags that are in the bytes of a frame, big-endian.
const TAGS: [[u8; 2]; 5] = [[0x81, 0x00], [0x88, 0xa8], [0x91, 0x00], [0x92, 0x00], [0x93, 0x00]];

/// Returns the program for frames sent by the guest on its TAP: redirects permitted ones to the
/// port's veth pair. `device` is the interface index of the pair's end in the guest's namespace.
pub(super) fn tap_egress_program(maps: MapFds, slot: u32, device: u32) -> Vec<EbpfInstruction> {
    let mut program = Assembler::default();
    let miss = check_permitted(&mut program, maps, slot, Hook::Guest);
    redirect(&mut program, |p| p.set(Register::R1, device as i32), REDIRECT, 0);
    verdict(&mut program, miss, GO_ON)
}

/// Returns the program for frames received on the daemon's end of the port's veth pair: redirects
/// permitted ones to the namespace of the destination's port, and drops others.
pub(super) fn forwarding_program(maps: MapFds, slot: u32) -> Vec<EbpfInstruction> {
    let mut program = Assembler::default();
    let miss = check_permitted(&mut program, maps, slot, Hook::Ours);
    count(&mut program, maps, |p| p.store_value(Width::Word, SLOT, slot as i32), SENT);
    count(&mut program, maps, |p| p.store(Width::Word, SLOT, Register::R8), RECEIVED);
    redirect(&mut program, |p| p.copy(Register::R1, Register::R9), REDIRECT_PEER, 0);
    verdict(&mut program, miss, DROP)
}

/// Returns the program for frames received on the guest's end of the veth pair: redirects them to
/// the TAP with the interface index `tap`, as if the TAP had received them.
pub(super) fn tap_delivery_program(tap: u32) -> Vec<EbpfInstruction> {
    let mut program = Assembler::default();
    redirect(&mut program, |p| p.set(Register::R1, tap as i32), REDIRECT, AS_IF_RECEIVED);
    program.finish()
}

/// Returns the program for frames that the daemon's network stack sends on the veth pair: drops
/// them.
pub(super) fn drop_all_program() -> Vec<EbpfInstruction> {
    let mut program = Assembler::default();
    let drop = program.label();
    verdict(&mut program, drop, DROP)
}

/// Hook at which a program checks frames.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hook {
    /// Hook of the TAP: frames that are not permitted pass to the switch, which learns from them.
    Guest,
    /// Hook of the veth end in the daemon's namespace, at which frames are counted.
    Ours,
}

/// Appends instructions that check a frame received on the port with this slot. If it is permitted,
/// they set R8 to the slot of the destination's port and R9 to the interface index of that port's
/// veth end. Otherwise they jump to the returned label.
fn check_permitted(p: &mut Assembler, maps: MapFds, slot: u32, side: Hook) -> Label {
    use Register::{Frame, R0, R1, R6, R7, R8, R9};
    let (miss, permitted) = (p.label(), p.label());
    p.copy(R6, R1);
    p.load(Width::Word, R1, R6, VLAN_PRESENT);
    p.jump_if(R1, JumpCondition::NotEqual, 0, miss);
    load_bytes(p, ETHERTYPE_AT, HEADERS, HEADERS_BYTES, miss);
    p.load(Width::Half, R1, Frame, HEADERS);
    for tag in TAGS {
        p.jump_if(R1, JumpCondition::Equal, u16::from_ne_bytes(tag).into(), miss);
    }
    is_dhcp(p, (IPV4, IPV4_PROTOCOL, IPV4_PORTS_AT), DHCP_PORTS, miss);
    is_dhcp(p, (IPV6, IPV6_NEXT_HEADER, IPV6_PORTS_AT), DHCPV6_PORTS, miss);
    // Gate of this port.
    p.store_value(Width::Word, SLOT, slot as i32);
    look_up(p, maps.gates, SLOT, miss);
    p.load(Width::Word, R7, R0, GATE_GROUP);
    p.jump_if(R7, JumpCondition::Equal, 0, miss);
    p.load(Width::Word, R9, R0, GATE_LEARNS);
    p.load(Width::Word, R8, R0, GATE_MTU);
    check_size(p, miss);
    // Port of the source address.
    p.store(Width::Word, KEY, R7);
    p.store_value(Width::Half, KEY_END, 0);
    load_bytes(p, SOURCE_AT, KEY_MAC, MAC_BYTES, miss);
    look_up(p, maps.addresses, KEY, miss);
    p.load(Width::Word, R1, R0, ADDRESS_SLOT);
    p.jump_if(R1, JumpCondition::Equal, slot as i32, permitted);
    if side == Hook::Guest {
        // The address moved to this port, so the entry is removed, and the switch learns it.
        p.jump_if(R9, JumpCondition::Equal, 0, miss);
        p.load(Width::Word, R1, R0, ADDRESS_FIXED);
        p.jump_if(R1, JumpCondition::NotEqual, 0, miss);
        p.set_map(R1, maps.addresses);
        p.set_stack_address(Register::R2, KEY);
        p.call(MAP_DELETE);
    }
    p.jump(miss);
    p.bind(permitted);
    if side == Hook::Ours {
        // An address that sends on the path need not be learned again.
        p.set(R1, 1);
        p.atomic_add(R0, ADDRESS_SENT, R1);
    }
    // Port of the destination address.
    load_bytes(p, DESTINATION_AT, KEY_MAC, MAC_BYTES, miss);
    p.load(Width::Byte, R1, Frame, KEY_MAC);
    p.jump_if(R1, JumpCondition::AnyBit, 1, miss);
    look_up(p, maps.addresses, KEY, miss);
    p.load(Width::Word, R8, R0, ADDRESS_SLOT);
    p.jump_if(R8, JumpCondition::Equal, slot as i32, miss);
    p.store(Width::Word, SLOT, R8);
    look_up(p, maps.gates, SLOT, miss);
    p.load(Width::Word, R1, R0, GATE_GROUP);
    p.jump_if_registers(R1, JumpCondition::NotEqual, R7, miss);
    p.load(Width::Word, R9, R0, GATE_DEVICE);
    miss
}

/// Jumps to `miss` if the frame is a UDP message from or to one of these ports. The tuple contains
/// the EtherType, the stack offset of the protocol field, and the offset of the ports in the frame.
fn is_dhcp(
    p: &mut Assembler,
    (ethertype, protocol, ports_at): ([u8; 2], i16, i32),
    ports: [[u8; 2]; 2],
    miss: Label,
) {
    use Register::{Frame, R1};
    let not_dhcp = p.label();
    p.load(Width::Half, R1, Frame, HEADERS);
    p.jump_if(R1, JumpCondition::NotEqual, u16::from_ne_bytes(ethertype).into(), not_dhcp);
    p.load(Width::Byte, R1, Frame, protocol);
    p.jump_if(R1, JumpCondition::NotEqual, UDP, not_dhcp);
    load_bytes(p, ports_at, PORTS, 4, miss);
    for offset in [PORTS, PORTS + 2] {
        p.load(Width::Half, R1, Frame, offset);
        for port in ports {
            p.jump_if(R1, JumpCondition::Equal, u16::from_ne_bytes(port).into(), miss);
        }
    }
    p.bind(not_dhcp);
}

/// Jumps to `miss` if the frame, or a segment of it, exceeds the IP packet size in R8. Segments are
/// assumed to have minimal headers.
fn check_size(p: &mut Assembler, miss: Label) {
    use Register::{R1, R6, R8};
    let (not_gso, size_known) = (p.label(), p.label());
    p.load(Width::Word, R1, R6, SEGMENT_BYTES);
    p.jump_if(R1, JumpCondition::Equal, 0, not_gso);
    p.add(R1, HEADERS_MIN);
    p.jump(size_known);
    p.bind(not_gso);
    p.load(Width::Word, R1, R6, FRAME_BYTES);
    p.add(R1, -ETHERNET_BYTES);
    p.bind(size_known);
    p.jump_if_registers(R1, JumpCondition::Greater, R8, miss);
}

/// Loads the address of the value of the key on the stack to R0; jumps to `miss` if there is none.
fn look_up(p: &mut Assembler, map: i32, key: i16, miss: Label) {
    p.set_map(Register::R1, map);
    p.set_stack_address(Register::R2, key);
    p.call(MAP_LOOKUP);
    p.jump_if(Register::R0, JumpCondition::Equal, 0, miss);
}

/// Copies bytes of the frame to the stack; jumps to `miss` if the frame is too short.
fn load_bytes(p: &mut Assembler, from: i32, to: i16, len: i32, miss: Label) {
    p.copy(Register::R1, Register::R6);
    p.set(Register::R2, from);
    p.set_stack_address(Register::R3, to);
    p.set(Register::R4, len);
    p.call(LOAD_BYTES);
    p.jump_if(Register::R0, JumpCondition::NotEqual, 0, miss);
}

/// Counts the frame for the slot that `store_slot` stores on the stack.
fn count(p: &mut Assembler, maps: MapFds, store_slot: impl FnOnce(&mut Assembler), offset: i16) {
    let uncounted = p.label();
    store_slot(p);
    look_up(p, maps.counters, SLOT, uncounted);
    p.set(Register::R1, 1);
    p.atomic_add(Register::R0, offset, Register::R1);
    p.load(Width::Word, Register::R1, Register::R6, FRAME_BYTES);
    p.atomic_add(Register::R0, offset + 8, Register::R1);
    p.bind(uncounted);
}

/// Redirects the frame to the device that `set_device` loads to R1.
fn redirect(p: &mut Assembler, set_device: impl FnOnce(&mut Assembler), helper: i32, flags: i32) {
    set_device(p);
    p.set(Register::R2, flags);
    p.call(helper);
    p.exit();
}

/// Ends a program with the verdict for frames that jump to `label`.
fn verdict(p: &mut Assembler, label: Label, verdict: i32) -> Vec<EbpfInstruction> {
    p.bind(label);
    p.set(Register::R0, verdict);
    p.exit();
    std::mem::take(p).finish()
}
use suimon_bpf::instructions::{Assembler, EbpfInstruction, JumpCondition, Label, Register, Width};
