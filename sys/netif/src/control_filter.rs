//! Socket filters of the sockets for link aggregation control: classic BPF programs that select
//! LACPDUs and Marker PDUs (the kernel's `networking/filter`).

use crate::raw_socket::ClassicBpfInstruction;
use suimon_frame::{MacAddr, ethertype};

const TYPE_AT: u32 = 12;
const SUBTYPE_AT: u32 = 14;
/// Slow protocol subtype of LACP (IEEE 802.3-2022, Table 57A-3).
const LACP: u32 = 1;
/// Slow protocol subtype of Marker.
const MARKER: u32 = 2;
/// Minimum length in bytes of an untagged frame of either protocol, whose PDU has 110 octets (IEEE
/// 802.1AX-2014, 6.4.2.3 and 6.5.3.3).
const BYTES_MIN: u32 = 14 + 110;
/// Maximum length in bytes of an untagged frame.
const BYTES_MAX: u32 = 1514;
/// Offset and value of the length fields of a LACPDU's TLVs (6.4.2.3).
const LACP_LENGTHS: [(u32, u32); 3] = [(17, 20), (37, 20), (57, 16)];
/// Offset and value of the length field of a Marker PDU's TLV (6.5.3.3).
const MARKER_LENGTHS: [(u32, u32); 1] = [(17, 16)];
/// Return value of a filter that accepts a frame without truncating it, so that its length is
/// reported.
const WHOLE_FRAME: u32 = u32::MAX;

/// Offset that loads the kernel's packet type of the frame. The filters accept type multicast only.
/// A frame whose VLAN tag no device of this host is configured for has another type; the tag is
/// already removed from its bytes, so that it would look untagged.
const PACKET_TYPE: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32;

const LOAD: u32 = libc::BPF_LD | libc::BPF_ABS;

/// Class of LACPDUs and Marker PDUs that a filter passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlPduClass {
    /// PDUs whose length and TLV lengths are valid.
    WellFormed,
    /// PDUs with an invalid length or TLV length.
    Malformed,
}

/// Returns a filter that accepts the LACPDUs and Marker PDUs of a class, with the slow protocols
/// group address as destination.
pub fn slow_protocols_filter(class: ControlPduClass) -> Vec<ClassicBpfInstruction> {
    let [a, b, c, d, e, f] = MacAddr::SLOW_PROTOCOLS.octets();
    let (keep, refuse) = (verdict(WHOLE_FRAME), verdict(0));
    let (well_formed, spoiled) = match class {
        ControlPduClass::WellFormed => (keep, refuse),
        ControlPduClass::Malformed => (refuse, keep),
    };
    let checks = [
        (libc::BPF_W, 0, u32::from_be_bytes([a, b, c, d])),
        (libc::BPF_H, 4, u32::from(u16::from_be_bytes([e, f]))),
        (libc::BPF_H, TYPE_AT, u32::from(ethertype::SLOW)),
        (libc::BPF_W, PACKET_TYPE, u32::from(libc::PACKET_MULTICAST)),
    ];
    let mut program = Vec::new();
    for (width, offset, value) in checks {
        // The kernel rejects a frame that ends before the loaded field.
        program.push(instruction(LOAD | width, 0, 0, offset));
        program.push(jump(libc::BPF_JEQ, value, 1, 0));
        program.push(refuse);
    }
    program.push(instruction(LOAD | libc::BPF_B, 0, 0, SUBTYPE_AT));
    program.push(jump(libc::BPF_JEQ, LACP, 2, 0));
    program.push(jump(libc::BPF_JEQ, MARKER, 1, 0));
    program.push(refuse);
    // All following loads are within the frame.
    program.push(instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_LEN, 0, 0, 0));
    program.push(jump(libc::BPF_JGE, BYTES_MIN, 1, 0));
    program.push(spoiled);
    program.push(jump(libc::BPF_JGT, BYTES_MAX, 0, 1));
    program.push(spoiled);
    let [of_lacp, of_marker] = [&LACP_LENGTHS[..], &MARKER_LENGTHS].map(|lengths| {
        let check = |(offset, length): &(u32, u32)| {
            let load = instruction(LOAD | libc::BPF_B, 0, 0, *offset);
            [load, jump(libc::BPF_JEQ, *length, 1, 0), spoiled]
        };
        lengths.iter().flat_map(check).chain([well_formed]).collect::<Vec<_>>()
    });
    program.push(instruction(LOAD | libc::BPF_B, 0, 0, SUBTYPE_AT));
    program.push(jump(libc::BPF_JEQ, LACP, 0, of_lacp.len() as u8));
    program.extend(of_lacp.into_iter().chain(of_marker));
    program
}

/// Encodes a comparison of the loaded value with `value`: skips `if_so` instructions if it is true,
/// otherwise `if_not`.
fn jump(compare: u32, value: u32, if_so: u8, if_not: u8) -> ClassicBpfInstruction {
    instruction(libc::BPF_JMP | compare | libc::BPF_K, if_so, if_not, value)
}

/// Encodes the end of the filter: accepts the first `bytes` bytes of the frame; 0 rejects it.
fn verdict(bytes: u32) -> ClassicBpfInstruction {
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, bytes)
}

fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> ClassicBpfInstruction {
    ClassicBpfInstruction { code: code as u16, jt, jf, k }
}
