use proptest::prelude::*;
use suimon_frame::{
    Checksum, Frame, Gso, GsoKind, Offloads, VnetHeader, complete_checksum, segment,
};

use super::*;

fn offloads() -> impl Strategy<Value = Offloads> {
    any::<[bool; 5]>().prop_map(|[checksum, tcp4, tcp6, ecn, udp]| Offloads {
        checksum,
        tcp4_segmentation: tcp4,
        tcp6_segmentation: tcp6,
        tcp_ecn_segmentation: ecn,
        udp_segmentation: udp,
    })
}

/// Returns a frame with Ethernet, IPv4 and TCP headers and payload.
fn tcp_frame(payload_bytes: usize) -> Frame {
    let mut bytes = vec![0; 54 + payload_bytes];
    bytes[12..14].copy_from_slice(&[0x08, 0x00]);
    bytes[14] = 0x45;
    bytes[16..18].copy_from_slice(&(40 + payload_bytes as u16).to_be_bytes());
    bytes[23] = 6;
    bytes[46] = 0x50;
    let mut frame = Frame::new(0);
    frame.set_bytes(&bytes);
    frame
}

fn accepts(egress: Offloads, frame: &Frame) -> bool {
    match (frame.meta.gso, frame.meta.checksum) {
        (Some(gso), _) => egress.accepts(gso),
        (None, Checksum::Partial { .. }) => egress.checksum,
        (None, _) => true,
    }
}

#[test]
fn a_plain_frame_passes_everywhere() {
    let plain = FrameMeta::default();
    assert_eq!(egress_step(&plain, Offloads::NONE), EgressStep::AsIs);
    let verified = FrameMeta { checksum: Checksum::Verified, ..plain };
    assert_eq!(egress_step(&verified, Offloads::NONE), EgressStep::AsIs);
}

#[test]
fn a_large_udp_frame_is_segmented_for_an_egress_that_takes_tcp_only() {
    let gso = Gso { kind: GsoKind::Udp, segment_bytes: 1000, ecn: false };
    let checksum = Checksum::Partial { start: 34, offset: 6 };
    let meta = FrameMeta { checksum, gso: Some(gso), ..FrameMeta::default() };
    assert_eq!(
        egress_step(&meta, Offloads::TCP),
        EgressStep::Segment { keeps_partial_checksum: true }
    );
    assert_eq!(
        egress_step(&meta, Offloads::NONE),
        EgressStep::Segment { keeps_partial_checksum: false }
    );
}

#[test]
fn a_large_frame_leaves_in_the_form_of_its_ingress() {
    let gso = Gso { kind: GsoKind::Tcp4, segment_bytes: 1000, ecn: false };
    let checksum = Checksum::Partial { start: 34, offset: 16 };
    let step = |egress_form| {
        let large = FrameMeta { checksum, gso: Some(gso), egress_form, ..FrameMeta::default() };
        egress_step(&large, Offloads::TCP)
    };
    assert_eq!(step(EgressForm::Any), EgressStep::AsIs);
    assert_eq!(step(EgressForm::Segmented), EgressStep::Segment { keeps_partial_checksum: true });
    assert_eq!(step(EgressForm::Complete), EgressStep::Segment { keeps_partial_checksum: false });
}

#[test]
fn a_partial_checksum_leaves_in_the_form_of_its_ingress() {
    let checksum = Checksum::Partial { start: 34, offset: 16 };
    let step = |egress_form, checksum| {
        let small = FrameMeta { checksum, egress_form, ..FrameMeta::default() };
        egress_step(&small, Offloads::TCP)
    };
    assert_eq!(step(EgressForm::Any, checksum), EgressStep::AsIs);
    assert_eq!(step(EgressForm::Segmented, checksum), EgressStep::AsIs);
    assert_eq!(step(EgressForm::Complete, checksum), EgressStep::CompleteChecksum);
    // After completion for one egress, the next one gets the frame unchanged.
    assert_eq!(step(EgressForm::Complete, Checksum::Verified), EgressStep::AsIs);
}

proptest! {
    /// Whichever offloads the egress lacks, the returned step produces frames that it accepts.
    #[test]
    fn steps_produce_frames_that_the_egress_accepts(
        egress in offloads(),
        payload_bytes in 0usize..5000,
        gso_size in prop::option::of(1u16..3000),
        ecn in any::<bool>(),
    ) {
        let mut frame = tcp_frame(payload_bytes);
        let ecn_bit = if ecn { VnetHeader::GSO_ECN } else { 0 };
        let header = VnetHeader {
            flags: VnetHeader::NEEDS_CSUM,
            gso_type: gso_size.map_or(0, |_| VnetHeader::GSO_TCPV4 | ecn_bit),
            gso_size: gso_size.unwrap_or(0),
            csum_start: 34,
            csum_offset: 16,
            ..VnetHeader::default()
        };
        frame.validate_ingress(&header, Offloads::TCP).unwrap();
        match egress_step(&frame.meta, egress) {
            EgressStep::AsIs => prop_assert!(accepts(egress, &frame)),
            EgressStep::CompleteChecksum => {
                prop_assert!(!accepts(egress, &frame));
                complete_checksum(&mut frame);
                prop_assert!(accepts(egress, &frame));
            }
            EgressStep::Segment { keeps_partial_checksum } => {
                prop_assert!(!accepts(egress, &frame));
                let mut segments = segment(&mut frame, keeps_partial_checksum).unwrap();
                while let Some(piece) = segments.next_segment() {
                    prop_assert!(accepts(egress, piece));
                }
            }
        }
    }
}
