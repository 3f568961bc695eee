//! Which frames reach a control socket, as a program that the kernel runs (classic BPF,
//! the kernel's `networking/filter`).

use crate::raw_socket::Instruction;
use suimon_frame::{MacAddr, ethertype};

const TYPE_AT: u32 = 12;
const SUBTYPE_AT: u32 = 14;
/// LACP and Marker (IEEE 802.3-2022, Table 57A-3).
const LACP: u32 = 1;
const MARKER: u32 = 2;
/// The PDU of either has 110 octets (IEEE 802.1AX-2014, 6.4.2.3 and 6.5.3.3), a frame
/// without a tag 1514.
const BYTES_MIN: u32 = 14 + 110;
const BYTES_MAX: u32 = 1514;
/// Where the lengths of a LACPDU's TLVs are, and what they are (6.4.2.3).
const LACP_LENGTHS: [(u32, u32); 3] = [(17, 20), (37, 20), (57, 16)];
/// The same of a Marker PDU (6.5.3.3).
const MARKER_LENGTHS: [(u32, u32); 1] = [(17, 16)];
/// All of a frame is kept, so that its true length is known.
const KEEP_ALL: u32 = u32::MAX;

/// The type the kernel gives a frame for a group. One with a VLAN tag of a network that
/// no device here is in has another, though its tag is gone from the bytes already: it
/// would look like an untagged one.
const TYPE_OF_PACKET: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32;

const LOAD: u32 = libc::BPF_LD | libc::BPF_ABS;

/// Which of the LACPDUs and Marker PDUs for the group of slow protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Those as long as they have to be, as are their parts.
    Whole,
    /// The others, of which nothing can be read.
    Spoiled,
}

/// Passes LACPDUs and Marker PDUs for the group of slow protocols.
pub(crate) fn slow_protocols(kept: Kept) -> Vec<Instruction> {
    let [a, b, c, d, e, f] = MacAddr::SLOW_PROTOCOLS.octets();
    let (keep, refuse) = (verdict(KEEP_ALL), verdict(0));
    let (whole, spoiled) = match kept {
        Kept::Whole => (keep, refuse),
        Kept::Spoiled => (refuse, keep),
    };
    let checks = [
        (libc::BPF_W, 0, u32::from_be_bytes([a, b, c, d])),
        (libc::BPF_H, 4, u32::from(u16::from_be_bytes([e, f]))),
        (libc::BPF_H, TYPE_AT, u32::from(ethertype::SLOW)),
        (libc::BPF_W, TYPE_OF_PACKET, u32::from(libc::PACKET_MULTICAST)),
    ];
    let mut program = Vec::new();
    for (width, at, value) in checks {
        // Where the frame ends before, the kernel refuses it.
        program.push(instruction(LOAD | width, 0, 0, at));
        program.push(jump(libc::BPF_JEQ, value, 1, 0));
        program.push(refuse);
    }
    program.push(instruction(LOAD | libc::BPF_B, 0, 0, SUBTYPE_AT));
    program.push(jump(libc::BPF_JEQ, LACP, 2, 0));
    program.push(jump(libc::BPF_JEQ, MARKER, 1, 0));
    program.push(refuse);
    // From here on every load is within the frame.
    program.push(instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_LEN, 0, 0, 0));
    program.push(jump(libc::BPF_JGE, BYTES_MIN, 1, 0));
    program.push(spoiled);
    program.push(jump(libc::BPF_JGT, BYTES_MAX, 0, 1));
    program.push(spoiled);
    let [of_lacp, of_marker] = [&LACP_LENGTHS[..], &MARKER_LENGTHS].map(|lengths| {
        let check = |(at, length): &(u32, u32)| {
            let load = instruction(LOAD | libc::BPF_B, 0, 0, *at);
            [load, jump(libc::BPF_JEQ, *length, 1, 0), spoiled]
        };
        lengths.iter().flat_map(check).chain([whole]).collect::<Vec<_>>()
    });
    program.push(instruction(LOAD | libc::BPF_B, 0, 0, SUBTYPE_AT));
    program.push(jump(libc::BPF_JEQ, LACP, 0, of_lacp.len() as u8));
    program.extend(of_lacp.into_iter().chain(of_marker));
    program
}

/// Leaves out so many instructions if what was loaded compares to `value`, or does not.
fn jump(compare: u32, value: u32, if_so: u8, if_not: u8) -> Instruction {
    instruction(libc::BPF_JMP | compare | libc::BPF_K, if_so, if_not, value)
}

/// Keeps so many bytes of the frame; 0 refuses it.
fn verdict(bytes: u32) -> Instruction {
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, bytes)
}

fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> Instruction {
    Instruction { code: code as u16, jt, jf, k }
}
