use super::*;
use crate::disk_properties::DiskDescription;

fn disk() -> DiskProperties {
    let properties = DiskDescription {
        bytes: u64::MAX,
        sector_bytes: 512,
        is_read_only: false,
        serial: String::new(),
    };
    DiskProperties::new(&properties)
}

fn validated(
    kind: u32,
    sector: u64,
    readable: u64,
    writable: u64,
    segment: [u8; 16],
) -> RequestAction {
    let features = RingFeatures(u64::MAX);
    validate(
        &disk(),
        features,
        Header { kind, sector },
        &RequestBytes { readable, writable, segment },
    )
}

fn segment(sector: u64, sectors: u32, flags: u32) -> [u8; 16] {
    let word = u128::from(sector) | u128::from(sectors) << 64 | u128::from(flags) << 96;
    word.to_le_bytes()
}

#[test]
fn no_number_passes_the_end_of_numbers() {
    let last = u64::MAX / 512;
    for sector in [last, last + 1, u64::MAX] {
        for kind in [VIRTIO_BLK_T_IN, VIRTIO_BLK_T_OUT] {
            assert_eq!(
                validated(kind, sector, 512, 512, [0; 16]),
                RequestAction::Complete(STATUS_IO_ERROR)
            );
            assert_eq!(
                validated(kind, 1, u64::MAX, u64::MAX, [0; 16]),
                RequestAction::Complete(STATUS_IO_ERROR)
            );
        }
        for kind in [VIRTIO_BLK_T_DISCARD, VIRTIO_BLK_T_WRITE_ZEROES] {
            let segment = segment(sector, 1, 0);
            assert_eq!(
                validated(kind, 0, 16, 0, segment),
                RequestAction::Complete(STATUS_IO_ERROR)
            );
        }
    }
    let range = ByteRange::new((last - 1) * 512, 512);
    let expected = range.map(|range| RequestAction::Submit(DiskOp::Read, range));
    assert_eq!(Some(validated(VIRTIO_BLK_T_IN, last - 1, 0, 512, [0; 16])), expected);
}

#[test]
fn a_longer_payload_than_any_driver_sends_is_refused() {
    for (kind, op) in
        [(VIRTIO_BLK_T_IN, DiskOp::Read), (VIRTIO_BLK_T_OUT, DiskOp::Write { is_durable: false })]
    {
        let range = ByteRange::new(0, TRANSFER_BYTES_MAX).unwrap();
        let largest = validated(kind, 0, TRANSFER_BYTES_MAX, TRANSFER_BYTES_MAX, [0; 16]);
        assert!(matches!(largest, RequestAction::Submit(operation, actual) if actual == range
                && core::mem::discriminant(&operation) == core::mem::discriminant(&op)));
        // 1024 buffers of 4 GiB.
        for bytes in [TRANSFER_BYTES_MAX + 512, 1 << 42] {
            assert_eq!(
                validated(kind, 0, bytes, bytes, [0; 16]),
                RequestAction::Complete(STATUS_IO_ERROR)
            );
        }
    }
}

#[test]
fn more_sectors_than_are_offered_are_refused() {
    let largest = validated(VIRTIO_BLK_T_DISCARD, 0, 16, 0, segment(1, RANGE_SECTORS_MAX, 0));
    let range = ByteRange::new(512, u64::from(RANGE_SECTORS_MAX) * 512);
    assert_eq!(Some(largest), range.map(|range| RequestAction::Submit(DiskOp::Discard, range)));
    for sectors in [RANGE_SECTORS_MAX + 1, u32::MAX] {
        let excess = validated(VIRTIO_BLK_T_DISCARD, 0, 16, 0, segment(1, sectors, 0));
        assert_eq!(excess, RequestAction::Complete(STATUS_IO_ERROR));
    }
}

#[test]
fn unknown_flags_and_further_segments_are_not_supported() {
    let cases = [
        (VIRTIO_BLK_T_DISCARD, 1, 16),
        (VIRTIO_BLK_T_DISCARD, 0, 32),
        (VIRTIO_BLK_T_WRITE_ZEROES, 2, 16),
        (VIRTIO_BLK_T_WRITE_ZEROES, 1 << 31, 16),
    ];
    for (kind, flags, bytes) in cases {
        let actual = validated(kind, 0, bytes, 0, segment(0, 1, flags));
        assert_eq!(actual, RequestAction::Complete(STATUS_UNSUPPORTED), "{kind} {flags} {bytes}");
    }
    for bytes in [0, 8, 15, 17] {
        let actual = validated(VIRTIO_BLK_T_DISCARD, 0, bytes, 0, segment(0, 1, 0));
        assert_eq!(actual, RequestAction::Complete(STATUS_IO_ERROR), "{bytes}");
    }
}
