use super::*;

#[test]
fn field_offsets_match_virtio() {
    let bytes = [1, 0x81, 0x36, 0, 0xb4, 0x05, 0x22, 0, 0x10, 0, 2, 0];
    let header = VnetHeader {
        flags: VnetHeader::NEEDS_CSUM,
        gso_type: VnetHeader::GSO_TCPV4 | VnetHeader::GSO_ECN,
        hdr_len: 54,
        gso_size: 1460,
        csum_start: 34,
        csum_offset: 16,
        num_buffers: 2,
    };
    assert_eq!(VnetHeader::decode(&bytes), header);
    assert_eq!(header.encode(), bytes);
    assert_eq!(header.encode_short(), bytes[..10]);
    let short = VnetHeader::decode_short(&header.encode_short());
    assert_eq!(short, VnetHeader { num_buffers: 1, ..header });
}
