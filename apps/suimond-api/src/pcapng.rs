//! Writer of pcapng (draft-ietf-opsawg-pcapng-03): one section, one interface.
//!
//! Blocks are little-endian. Each consists of type, length, body padded to four bytes, and length
//! again (section 3.1).

/// Section Header Block, section 4.1.
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Interface Description Block, section 4.2.
const INTERFACE_DESCRIPTION: u32 = 1;
/// Enhanced Packet Block, section 4.3.
const ENHANCED_PACKET: u32 = 6;
/// Interface Statistics Block, section 4.6.
const INTERFACE_STATISTICS: u32 = 5;
/// Link type of Ethernet (LINKTYPE_ETHERNET).
const LINKTYPE_ETHERNET: u16 = 1;
/// Section length if unknown (section 4.1).
const LENGTH_UNKNOWN: u64 = u64::MAX;

/// Option codes (section 3.5 and those of each block).
mod option {
    pub(super) const END: u16 = 0;
    pub(super) const SHB_USERAPPL: u16 = 4;
    pub(super) const IF_NAME: u16 = 2;
    pub(super) const IF_TSRESOL: u16 = 9;
    pub(super) const EPB_FLAGS: u16 = 2;
    pub(super) const ISB_IFRECV: u16 = 4;
    pub(super) const ISB_IFDROP: u16 = 5;
}

/// Direction of a frame, relative to the interface (`epb_flags`, bits 0 and 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketDirection {
    /// The interface received the frame.
    Inbound = 1,
    /// The interface sent the frame.
    Outbound = 2,
}

/// Captured frame, possibly truncated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet<'f> {
    /// Time in nanoseconds since 1970-01-01 UTC.
    pub(crate) time_unix_ns: u64,
    /// Direction of the frame.
    pub(crate) direction: PacketDirection,
    /// Length on the wire in bytes.
    pub(crate) original_len: u32,
    /// Captured bytes from the start of the frame.
    pub(crate) bytes: &'f [u8],
}

/// Appends the section header and the description of the interface. `snaplen` 0 means no limit.
pub(crate) fn write_start(out: &mut Vec<u8>, application: &str, interface: &str, snaplen: u32) {
    block(out, SECTION_HEADER, |out| {
        out.extend(BYTE_ORDER_MAGIC.to_le_bytes());
        out.extend(1_u16.to_le_bytes());
        out.extend(0_u16.to_le_bytes());
        out.extend(LENGTH_UNKNOWN.to_le_bytes());
        option(out, option::SHB_USERAPPL, application.as_bytes());
        option(out, option::END, &[]);
    });
    block(out, INTERFACE_DESCRIPTION, |out| {
        out.extend(LINKTYPE_ETHERNET.to_le_bytes());
        out.extend(0_u16.to_le_bytes());
        out.extend(snaplen.to_le_bytes());
        option(out, option::IF_NAME, interface.as_bytes());
        // Nanoseconds: 10 to the power of -9.
        option(out, option::IF_TSRESOL, &[9]);
        option(out, option::END, &[]);
    });
}

/// Appends a frame as an Enhanced Packet Block.
pub(crate) fn write_packet(out: &mut Vec<u8>, packet: &Packet<'_>) {
    block(out, ENHANCED_PACKET, |out| {
        out.extend(0_u32.to_le_bytes());
        timestamp(out, packet.time_unix_ns);
        out.extend(length(packet.bytes.len()).to_le_bytes());
        out.extend(packet.original_len.to_le_bytes());
        out.extend(packet.bytes);
        pad(out, packet.bytes.len());
        option(out, option::EPB_FLAGS, &(packet.direction as u32).to_le_bytes());
        option(out, option::END, &[]);
    });
}

/// Appends the statistics that end a capture. `received` includes the frames missed by the capture.
pub(crate) fn write_statistics(out: &mut Vec<u8>, time_unix_ns: u64, received: u64, missed: u64) {
    block(out, INTERFACE_STATISTICS, |out| {
        out.extend(0_u32.to_le_bytes());
        timestamp(out, time_unix_ns);
        option(out, option::ISB_IFRECV, &received.to_le_bytes());
        option(out, option::ISB_IFDROP, &missed.to_le_bytes());
        option(out, option::END, &[]);
    });
}

fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    body(out);
    let total = length(out.len() - start + 4).to_le_bytes();
    out[start + 4..start + 8].copy_from_slice(&total);
    out.extend(total);
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    out.extend(code.to_le_bytes());
    out.extend(u16::try_from(value.len()).unwrap_or(u16::MAX).to_le_bytes());
    out.extend(value);
    pad(out, value.len());
}

/// Appends a timestamp. Its upper 32 bits precede the lower ones (section 4.3).
fn timestamp(out: &mut Vec<u8>, time_unix_ns: u64) {
    let [a, b, c, d, e, f, g, h] = time_unix_ns.to_le_bytes();
    out.extend([e, f, g, h, a, b, c, d]);
}

fn pad(out: &mut Vec<u8>, len: usize) {
    out.extend(std::iter::repeat_n(0, len.next_multiple_of(4) - len));
}

/// Converts a length to 32 bits. Frames and texts are far smaller than 4 GiB.
fn length(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns types and bodies of the blocks, after checking both lengths.
    fn blocks(mut bytes: &[u8]) -> Vec<(u32, &[u8])> {
        let mut blocks = Vec::new();
        while !bytes.is_empty() {
            let word =
                |offset: usize| u32::from_le_bytes(bytes[offset..offset + 4].try_into().unwrap());
            let total = word(4) as usize;
            assert_eq!(total % 4, 0);
            assert_eq!(word(total - 4) as usize, total);
            blocks.push((word(0), &bytes[8..total - 4]));
            bytes = &bytes[total..];
        }
        blocks
    }

    #[test]
    fn a_capture_is_a_section_with_whole_blocks() {
        let mut out = Vec::new();
        write_start(&mut out, "suimond 0", "nic/web", 128);
        for len in 0..6 {
            let packet = Packet {
                time_unix_ns: 0x0102_0304_0506_0708,
                direction: PacketDirection::Outbound,
                original_len: 99,
                bytes: &[7; 6][..len],
            };
            write_packet(&mut out, &packet);
        }
        write_statistics(&mut out, 1, 10, 4);
        let blocks = blocks(&out);
        let kinds: Vec<u32> = blocks.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [SECTION_HEADER, 1, 6, 6, 6, 6, 6, 6, 5]);
        let (_, packet) = blocks[4];
        assert_eq!(packet[4..8], 0x0102_0304_u32.to_le_bytes());
        assert_eq!(packet[8..12], 0x0506_0708_u32.to_le_bytes());
        assert_eq!(packet[12..16], 2_u32.to_le_bytes());
        assert_eq!(packet[16..20], 99_u32.to_le_bytes());
        assert_eq!(packet[20..24], [7, 7, 0, 0]);
        assert_eq!(packet[24..32], [2, 0, 4, 0, 2, 0, 0, 0]);
    }
}
