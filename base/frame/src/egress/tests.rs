use super::*;
use crate::{FrameMeta, VlanId};

fn frame(meta: FrameMeta) -> Frame {
    let bytes: Vec<u8> = (0..60).collect();
    let mut frame = Frame::new(3);
    frame.set_bytes(&bytes);
    frame.meta = meta;
    frame
}

#[test]
fn an_untagged_frame_is_its_bytes() {
    let frame = frame(FrameMeta::default());
    let wire = frame.wire_format();
    assert_eq!(wire.before_tag, frame.bytes());
    assert_eq!((wire.tag, wire.after_tag, wire.wire_len()), (None, &[][..], 60));
    assert_eq!(wire.header, VnetHeader { num_buffers: 1, ..VnetHeader::default() });
}

#[test]
fn a_tag_follows_the_addresses_and_shifts_offsets() {
    let frame = frame(FrameMeta {
        checksum: Checksum::Partial { start: 34, offset: 16 },
        tag: VlanId::new(100).map(VlanTag::for_vlan),
        gso: None,
        ..FrameMeta::default()
    });
    let wire = frame.wire_format();
    assert_eq!(wire.before_tag, &frame.bytes()[..12]);
    assert_eq!(wire.tag, Some([0x81, 0, 0, 100]));
    assert_eq!(wire.after_tag, &frame.bytes()[12..]);
    assert_eq!(wire.wire_len(), 64);
    assert_eq!((wire.header.csum_start, wire.header.csum_offset), (38, 16));
}

#[test]
fn verified_checksum_sets_data_valid_unless_disabled() {
    let frame = frame(FrameMeta { checksum: Checksum::Verified, ..FrameMeta::default() });
    let header = frame.wire_format().header;
    assert_eq!(header.flags, VnetHeader::DATA_VALID);
    assert_eq!(header.without_data_valid().flags, 0);
    let partial = VnetHeader { flags: VnetHeader::NEEDS_CSUM, ..header };
    assert_eq!(partial.without_data_valid(), partial);
}

#[test]
fn plain_words_equal_the_encoded_header() {
    for checksum in [
        Checksum::Unknown,
        Checksum::Verified,
        Checksum::Partial { start: 34, offset: 16 },
        Checksum::Partial { start: u16::MAX, offset: u16::MAX },
    ] {
        let plain = frame(FrameMeta { checksum, ..FrameMeta::default() });
        assert_eq!(plain.plain_vnet_header_words(), Some(plain.wire_format().header.words()));
    }
    let tagged =
        frame(FrameMeta { tag: VlanId::new(1).map(VlanTag::for_vlan), ..FrameMeta::default() });
    assert_eq!(tagged.plain_vnet_header_words(), None);
}
