//! Which frames reach a control socket, as a program that the kernel runs (classic BPF,
//! the kernel's `networking/filter`).

use crate::raw_socket::Instruction;
use suimon_frame::{MacAddr, ethertype};

/// LACP and Marker (IEEE 802.3-2022, Table 57A-3).
const SUBTYPES: [u8; 2] = [1, 2];
const SUBTYPE_AT: u32 = 14;
const TYPE_AT: u32 = 12;
/// All of a frame is kept, so that its true length is known.
const KEEP_ALL: u32 = u32::MAX;

/// The type the kernel gives a frame for a group. One with a VLAN tag of a network that
/// no device here is in has another, though its tag is gone from the bytes already: it
/// would look like an untagged one.
const TYPE_OF_PACKET: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32;

const LOAD: u32 = libc::BPF_LD | libc::BPF_ABS;

/// Passes LACPDUs and Marker PDUs for the group of slow protocols.
pub(crate) fn slow_protocols() -> Vec<Instruction> {
    let [a, b, c, d, e, f] = MacAddr::SLOW_PROTOCOLS.octets();
    let checks = [
        (libc::BPF_W, 0, u32::from_be_bytes([a, b, c, d])),
        (libc::BPF_H, 4, u32::from(u16::from_be_bytes([e, f]))),
        (libc::BPF_H, TYPE_AT, u32::from(ethertype::SLOW)),
        (libc::BPF_W, TYPE_OF_PACKET, u32::from(libc::PACKET_MULTICAST)),
    ];
    let refuse = instruction(libc::BPF_RET | libc::BPF_K, 0, 0, 0);
    let mut program = Vec::new();
    for (width, at, value) in checks {
        // Where the frame ends before, the kernel refuses it.
        program.push(instruction(LOAD | width, 0, 0, at));
        program.push(jump_if(value, 1, 0));
        program.push(refuse);
    }
    program.push(instruction(LOAD | libc::BPF_B, 0, 0, SUBTYPE_AT));
    let [first, second] = SUBTYPES.map(u32::from);
    program.push(jump_if(first, 2, 0));
    program.push(jump_if(second, 1, 0));
    program.push(refuse);
    program.push(instruction(libc::BPF_RET | libc::BPF_K, 0, 0, KEEP_ALL));
    program
}

/// Leaves out so many instructions if what was loaded is `value`, or is not.
fn jump_if(value: u32, equal: u8, different: u8) -> Instruction {
    instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, equal, different, value)
}

fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> Instruction {
    Instruction { code: code as u16, jt, jf, k }
}
