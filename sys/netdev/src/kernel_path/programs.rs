//! The programs that move frames past the switch.
//!
//! Four for each port, at the hooks of `tc` (tc-bpf(8)); `way` is a pair of veth between
//! the port's namespace and ours:
//!
//! ```text
//!   guest's namespace                 ours
//!   TAP, sent by the guest ── leave ──▶ way ══▶ cross ──▶ way of the other port
//!   TAP, as if received ◀── arrive ── way ◀════════════════┘
//! ```
//!
//! *leave* takes the way for frames that may take it; all others go on into the TAP and
//! to the switch. *cross* decides again, because a guest that is root in its namespace
//! can put anything on the way: what may not pass is dropped. *arrive* hands over to the
//! TAP. *shut* drops what our own stack would send on the way.
//!
//! A frame may pass if it has one receiver and no VLAN tag, the gate of its port is open,
//! its source address is known on this port, and its destination on another port whose
//! gate leads to the same group. Whatever else the switch does with frames (limits,
//! captures, offloads that are switched off) closes gates. DHCP messages never pass: the switch
//! completes their checksums.

use crate::bpf::instructions::{Assembler, If, Instruction, Label, Register, Width};

/// Descriptors of the maps.
#[derive(Clone, Copy, Debug)]
pub(super) struct MapFds {
    pub(super) gates: i32,
    pub(super) addresses: i32,
    pub(super) counters: i32,
}

// `struct __sk_buff`, linux/bpf.h.
const FRAME_BYTES: i16 = 0;
const VLAN_PRESENT: i16 = 20;
const SEGMENT_BYTES: i16 = 176;

// Functions, by their numbers in linux/bpf.h.
const MAP_LOOKUP: i32 = 1;
const MAP_DELETE: i32 = 3;
const REDIRECT: i32 = 23;
const LOAD_BYTES: i32 = 26;
const REDIRECT_PEER: i32 = 155;

/// `BPF_F_INGRESS`.
const AS_IF_RECEIVED: i32 = 1;

// What a program says of a frame that it does not redirect: linux/pkt_cls.h. Others may
// have programs at a guest's hook too, which come next.
const GO_ON: i32 = -1;
const DROP: i32 = 2;

// A port is known here by its slot, a number from 0 on.

// A gate: the group it leads to, 0 if it is closed; the way's device in our namespace;
// whether addresses may be learned here; the largest IP packet.
pub(super) const GATE_BYTES: usize = 16;
const GATE_GROUP: i16 = 0;
const GATE_DEVICE: i16 = 4;
const GATE_LEARNS: i16 = 8;
const GATE_MTU: i16 = 12;

// The key of an address is group, address and two bytes of nothing; the value its port's
// slot, whether it is configured, and the frames it sent.
pub(super) const ADDRESS_KEY_BYTES: usize = 12;
pub(super) const ADDRESS_BYTES: usize = 16;
const ADDRESS_SLOT: i16 = 0;
const ADDRESS_FIXED: i16 = 4;
const ADDRESS_SENT: i16 = 8;

// Counters of a port: frames and bytes its guest sent, frames and bytes it received.
pub(super) const COUNTERS_BYTES: usize = 32;
const SENT: i16 = 0;
const RECEIVED: i16 = 16;

// The stack.
const SLOT: i16 = -16;
const PORTS: i16 = -8;
const KEY: i16 = -32;
const KEY_MAC: i16 = KEY + 4;
const KEY_END: i16 = KEY + 10;
/// The frame's bytes from its ethertype up to IPv4's protocol.
const HEADERS: i16 = -48;
const HEADERS_BYTES: i32 = 12;
const IPV4_PROTOCOL: i16 = HEADERS + 11;
const IPV6_NEXT_HEADER: i16 = HEADERS + 8;

// Ethernet's header, and the least of IPv4's and TCP's.
const ETHERNET_BYTES: i32 = 14;
const HEADERS_MIN: i32 = 40;
const DESTINATION_AT: i32 = 0;
const SOURCE_AT: i32 = 6;
const ETHERTYPE_AT: i32 = 12;
const MAC_BYTES: i32 = 6;
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
const UDP: i32 = 17;
/// Where UDP's ports are behind IPv4's header without options, and behind IPv6's.
const IPV4_PORTS_AT: i32 = 34;
const IPV6_PORTS_AT: i32 = 54;
/// Ports of BOOTP and DHCP (RFC 2131), and of DHCPv6 (RFC 8415).
const DHCP_PORTS: [[u8; 2]; 2] = [[0, 67], [0, 68]];
const DHCPV6_PORTS: [[u8; 2]; 2] = [[2, 34], [2, 35]];
/// IEEE 802.1Q tags that lie in the frame itself.
const TAGS: [[u8; 2]; 2] = [[0x81, 0x00], [0x88, 0xa8]];

/// Sent frames of the TAP: may this one take the way, whose end here is `way`?
pub(super) fn leave(maps: MapFds, slot: u32, way: u32) -> Vec<Instruction> {
    let mut program = Assembler::default();
    let miss = decide(&mut program, maps, slot, Side::Guest);
    redirect(&mut program, |p| p.set(Register::R1, way as i32), REDIRECT, 0);
    verdict(&mut program, miss, GO_ON)
}

/// Frames that come over the way of this port: on to the other port's, or nowhere.
pub(super) fn cross(maps: MapFds, slot: u32) -> Vec<Instruction> {
    let mut program = Assembler::default();
    let miss = decide(&mut program, maps, slot, Side::Ours);
    count(&mut program, maps, |p| p.store_value(Width::Word, SLOT, slot as i32), SENT);
    count(&mut program, maps, |p| p.store(Width::Word, SLOT, Register::R8), RECEIVED);
    redirect(&mut program, |p| p.copy(Register::R1, Register::R9), REDIRECT_PEER, 0);
    verdict(&mut program, miss, DROP)
}

/// Frames that come out of the way in the guest's namespace: into its TAP.
pub(super) fn arrive(tap: u32) -> Vec<Instruction> {
    let mut program = Assembler::default();
    redirect(&mut program, |p| p.set(Register::R1, tap as i32), REDIRECT, AS_IF_RECEIVED);
    program.finish()
}

/// What our own network stack sends on the way.
pub(super) fn shut() -> Vec<Instruction> {
    let mut program = Assembler::default();
    let drop = program.label();
    verdict(&mut program, drop, DROP)
}

/// Where a program decides.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// On the TAP: what may not pass goes to the switch, which learns from it.
    Guest,
    /// On the way's end in our namespace, where what is counted is believed.
    Ours,
}

/// Goes on with the next instruction if the frame may pass, with the other's slot in R8
/// and its way's device in R9, and otherwise to the label that is returned.
fn decide(p: &mut Assembler, maps: MapFds, slot: u32, side: Side) -> Label {
    use Register::{Frame, R0, R1, R6, R7, R8, R9};
    let (miss, known) = (p.label(), p.label());
    p.copy(R6, R1);
    p.load(Width::Word, R1, R6, VLAN_PRESENT);
    p.jump_if(R1, If::NotEqual, 0, miss);
    load_bytes(p, ETHERTYPE_AT, HEADERS, HEADERS_BYTES, miss);
    p.load(Width::Half, R1, Frame, HEADERS);
    for tag in TAGS {
        p.jump_if(R1, If::Equal, u16::from_ne_bytes(tag).into(), miss);
    }
    is_dhcp(p, (IPV4, IPV4_PROTOCOL, IPV4_PORTS_AT), DHCP_PORTS, miss);
    is_dhcp(p, (IPV6, IPV6_NEXT_HEADER, IPV6_PORTS_AT), DHCPV6_PORTS, miss);
    // The gate of this port.
    p.store_value(Width::Word, SLOT, slot as i32);
    look_up(p, maps.gates, SLOT, miss);
    p.load(Width::Word, R7, R0, GATE_GROUP);
    p.jump_if(R7, If::Equal, 0, miss);
    p.load(Width::Word, R9, R0, GATE_LEARNS);
    p.load(Width::Word, R8, R0, GATE_MTU);
    fits(p, miss);
    // Where the source is.
    p.store(Width::Word, KEY, R7);
    p.store_value(Width::Half, KEY_END, 0);
    load_bytes(p, SOURCE_AT, KEY_MAC, MAC_BYTES, miss);
    look_up(p, maps.addresses, KEY, miss);
    p.load(Width::Word, R1, R0, ADDRESS_SLOT);
    p.jump_if(R1, If::Equal, slot as i32, known);
    if side == Side::Guest {
        // It has moved here, so it is no longer there. The switch learns it now.
        p.jump_if(R9, If::Equal, 0, miss);
        p.load(Width::Word, R1, R0, ADDRESS_FIXED);
        p.jump_if(R1, If::NotEqual, 0, miss);
        p.map(R1, maps.addresses);
        p.address(Register::R2, KEY);
        p.call(MAP_DELETE);
    }
    p.jump(miss);
    p.place(known);
    if side == Side::Ours {
        // Who is heard of here need not be learned again.
        p.set(R1, 1);
        p.add_to(R0, ADDRESS_SENT, R1);
    }
    // Where the destination is.
    load_bytes(p, DESTINATION_AT, KEY_MAC, MAC_BYTES, miss);
    p.load(Width::Byte, R1, Frame, KEY_MAC);
    p.jump_if(R1, If::AnyBit, 1, miss);
    look_up(p, maps.addresses, KEY, miss);
    p.load(Width::Word, R8, R0, ADDRESS_SLOT);
    p.jump_if(R8, If::Equal, slot as i32, miss);
    p.store(Width::Word, SLOT, R8);
    look_up(p, maps.gates, SLOT, miss);
    p.load(Width::Word, R1, R0, GATE_GROUP);
    p.jump_if_registers(R1, If::NotEqual, R7, miss);
    p.load(Width::Word, R9, R0, GATE_DEVICE);
    miss
}

/// Jumps to `miss` if the frame is a message from or to one of these ports. Of the network: its ethertype,
/// where its next protocol is on the stack, and where the ports are in the frame.
fn is_dhcp(
    p: &mut Assembler,
    (ethertype, protocol, ports_at): ([u8; 2], i16, i32),
    ports: [[u8; 2]; 2],
    miss: Label,
) {
    use Register::{Frame, R1};
    let other = p.label();
    p.load(Width::Half, R1, Frame, HEADERS);
    p.jump_if(R1, If::NotEqual, u16::from_ne_bytes(ethertype).into(), other);
    p.load(Width::Byte, R1, Frame, protocol);
    p.jump_if(R1, If::NotEqual, UDP, other);
    load_bytes(p, ports_at, PORTS, 4, miss);
    for at in [PORTS, PORTS + 2] {
        p.load(Width::Half, R1, Frame, at);
        for port in ports {
            p.jump_if(R1, If::Equal, u16::from_ne_bytes(port).into(), miss);
        }
    }
    p.place(other);
}

/// Whether the frame, or what it will be cut into, is no larger than R8 says.
fn fits(p: &mut Assembler, miss: Label) {
    use Register::{R1, R6, R8};
    let (whole, known) = (p.label(), p.label());
    p.load(Width::Word, R1, R6, SEGMENT_BYTES);
    p.jump_if(R1, If::Equal, 0, whole);
    p.add(R1, HEADERS_MIN);
    p.jump(known);
    p.place(whole);
    p.load(Width::Word, R1, R6, FRAME_BYTES);
    p.add(R1, -ETHERNET_BYTES);
    p.place(known);
    p.jump_if_registers(R1, If::Greater, R8, miss);
}

/// The value of the key on the stack, in R0.
fn look_up(p: &mut Assembler, map: i32, key: i16, miss: Label) {
    p.map(Register::R1, map);
    p.address(Register::R2, key);
    p.call(MAP_LOOKUP);
    p.jump_if(Register::R0, If::Equal, 0, miss);
}

/// Bytes of the frame to the stack.
fn load_bytes(p: &mut Assembler, from: i32, to: i16, len: i32, miss: Label) {
    p.copy(Register::R1, Register::R6);
    p.set(Register::R2, from);
    p.address(Register::R3, to);
    p.set(Register::R4, len);
    p.call(LOAD_BYTES);
    p.jump_if(Register::R0, If::NotEqual, 0, miss);
}

/// Counts the frame for the slot that `store_slot` leaves on the stack.
fn count(p: &mut Assembler, maps: MapFds, store_slot: impl FnOnce(&mut Assembler), at: i16) {
    let uncounted = p.label();
    store_slot(p);
    look_up(p, maps.counters, SLOT, uncounted);
    p.set(Register::R1, 1);
    p.add_to(Register::R0, at, Register::R1);
    p.load(Width::Word, Register::R1, Register::R6, FRAME_BYTES);
    p.add_to(Register::R0, at + 8, Register::R1);
    p.place(uncounted);
}

/// Sends the frame to the device that `set_device` leaves in R1.
fn redirect(p: &mut Assembler, set_device: impl FnOnce(&mut Assembler), how: i32, flags: i32) {
    set_device(p);
    p.set(Register::R2, flags);
    p.call(how);
    p.exit();
}

/// Ends a program with what becomes of the frames that jump to `label`.
fn verdict(p: &mut Assembler, label: Label, verdict: i32) -> Vec<Instruction> {
    p.place(label);
    p.set(Register::R0, verdict);
    p.exit();
    std::mem::take(p).finish()
}
