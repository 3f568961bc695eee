//! Decoding and validation of block device requests (virtio 1.3, section 5.2.6). Accesses neither
//! rings nor guest memory.

use suimon_image::ByteRange;
use suimon_ports::{DiskOp, DiskOutcome};
use virtio_bindings::virtio_blk::{
    VIRTIO_BLK_F_CONFIG_WCE, VIRTIO_BLK_F_DISCARD, VIRTIO_BLK_F_FLUSH, VIRTIO_BLK_F_WRITE_ZEROES,
    VIRTIO_BLK_S_IOERR, VIRTIO_BLK_S_OK, VIRTIO_BLK_S_UNSUPP, VIRTIO_BLK_T_DISCARD,
    VIRTIO_BLK_T_FLUSH, VIRTIO_BLK_T_GET_ID, VIRTIO_BLK_T_IN, VIRTIO_BLK_T_OUT,
    VIRTIO_BLK_T_WRITE_ZEROES, VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP,
};

use crate::disk_properties::{DiskProperties, RANGE_SECTORS_MAX, SECTOR_BYTES};
use crate::features::RingFeatures;

/// Size in bytes of the request header (`type`, `reserved`, `sector`).
pub(crate) const HEADER_BYTES: usize = 16;
/// Size in bytes of a segment of a discard or write-zeroes request.
pub(crate) const SEGMENT_BYTES: usize = 16;

/// Value of `status` for success: `VIRTIO_BLK_S_OK`.
pub(crate) const STATUS_OK: u8 = VIRTIO_BLK_S_OK as u8;
/// Value of `status` for an error of the device or of the driver: `VIRTIO_BLK_S_IOERR`.
pub(crate) const STATUS_IO_ERROR: u8 = VIRTIO_BLK_S_IOERR as u8;
/// Value of `status` for a request that is not supported: `VIRTIO_BLK_S_UNSUPP`.
pub(crate) const STATUS_UNSUPPORTED: u8 = VIRTIO_BLK_S_UNSUPP as u8;

/// Header of a request: type, and first sector of 512 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    kind: u32,
    sector: u64,
}

impl Header {
    #[inline]
    pub(crate) fn decode(bytes: &[u8; HEADER_BYTES]) -> Self {
        let word = u128::from_le_bytes(*bytes);
        Self { kind: word as u32, sector: (word >> 64) as u64 }
    }
}

/// Range and flags of a discard or write-zeroes request (`virtio_blk_discard_write_zeroes`).
#[derive(Clone, Copy, Debug)]
struct Segment {
    sector: u64,
    sectors: u32,
    flags: u32,
}

impl Segment {
    fn decode(bytes: &[u8; SEGMENT_BYTES]) -> Self {
        let word = u128::from_le_bytes(*bytes);
        Self { sector: word as u64, sectors: (word >> 64) as u32, flags: (word >> 96) as u32 }
    }
}

/// Lengths of a request's buffers in bytes, without header and status, and the first bytes of its
/// data.
pub(crate) struct RequestBytes {
    /// Number of device-readable bytes after the header.
    pub(crate) readable: u64,
    /// Number of device-writable bytes before the status.
    pub(crate) writable: u64,
    /// First device-readable bytes after the header; zeros if there are fewer.
    pub(crate) segment: [u8; SEGMENT_BYTES],
}

/// How a valid or invalid request is processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestAction {
    /// Submit this operation on this range to the disk.
    Submit(DiskOp, ByteRange),
    /// Complete the request at once with this status.
    Complete(u8),
    /// Complete the request with the disk's serial number.
    Identify,
}

/// Returns true if the type of request has a range as data, which [`validate`] requires in
/// [`RequestBytes::segment`].
pub(crate) fn has_segment(header: Header) -> bool {
    matches!(header.kind, VIRTIO_BLK_T_DISCARD | VIRTIO_BLK_T_WRITE_ZEROES)
}

/// Validates a request and returns how it is processed.
#[inline(always)]
pub(crate) fn validate(
    disk: &DiskProperties,
    features: RingFeatures,
    header: Header,
    parts: &RequestBytes,
) -> RequestAction {
    match header.kind {
        VIRTIO_BLK_T_IN => payload(disk, header.sector, parts.writable, DiskOp::Read),
        VIRTIO_BLK_T_OUT if disk.is_read_only() => RequestAction::Complete(STATUS_IO_ERROR),
        VIRTIO_BLK_T_OUT => {
            let op = DiskOp::Write { is_durable: writes_through(disk, features) };
            payload(disk, header.sector, parts.readable, op)
        }
        VIRTIO_BLK_T_FLUSH => match ByteRange::new(0, 0) {
            Some(empty_range) => RequestAction::Submit(DiskOp::Flush, empty_range),
            None => RequestAction::Complete(STATUS_IO_ERROR),
        },
        VIRTIO_BLK_T_GET_ID => RequestAction::Identify,
        VIRTIO_BLK_T_DISCARD if features.has(VIRTIO_BLK_F_DISCARD) => {
            check_segment(disk, parts, 0, |_| DiskOp::Discard)
        }
        VIRTIO_BLK_T_WRITE_ZEROES if features.has(VIRTIO_BLK_F_WRITE_ZEROES) => {
            check_segment(disk, parts, VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP, |segment| {
                DiskOp::WriteZeroes {
                    may_unmap: segment.flags & VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP != 0,
                    is_durable: writes_through(disk, features),
                    only_if_fast: false,
                }
            })
        }
        _ => RequestAction::Complete(STATUS_UNSUPPORTED),
    }
}

/// Validates a request on one range of sectors, and returns the operation that `op` creates for it.
/// `flags` are the permitted flags of the range. The device offers one range per request
/// (`max_discard_seg`, `max_write_zeroes_seg`).
fn check_segment(
    disk: &DiskProperties,
    parts: &RequestBytes,
    flags: u32,
    op: impl FnOnce(Segment) -> DiskOp,
) -> RequestAction {
    if parts.readable == 0 || parts.readable % SEGMENT_BYTES as u64 != 0 || disk.is_read_only() {
        return RequestAction::Complete(STATUS_IO_ERROR);
    }
    let segment = Segment::decode(&parts.segment);
    if parts.readable != SEGMENT_BYTES as u64 || segment.flags & !flags != 0 {
        return RequestAction::Complete(STATUS_UNSUPPORTED);
    }
    if segment.sectors > RANGE_SECTORS_MAX {
        return RequestAction::Complete(STATUS_IO_ERROR);
    }
    transfer(disk, segment.sector, u64::from(segment.sectors) * SECTOR_BYTES, op(segment))
}

/// Maximum payload of a read or write in bytes: the largest request of EDK II's firmware, which
/// loads a file with one request. Operating systems send at most some MiB. Buffers may refer to the
/// same memory, so that a guest could otherwise request terabytes at once.
const TRANSFER_BYTES_MAX: u64 = 1 << 30;

/// Validates a read or write of `bytes` bytes from `sector` on. Completes one of more than
/// [`TRANSFER_BYTES_MAX`] bytes with an error.
fn payload(disk: &DiskProperties, sector: u64, bytes: u64, op: DiskOp) -> RequestAction {
    match bytes {
        0..=TRANSFER_BYTES_MAX => transfer(disk, sector, bytes, op),
        _ => RequestAction::Complete(STATUS_IO_ERROR),
    }
}

/// Validates an operation on `bytes` bytes from `sector` on. Completes it with an error if the
/// range is outside the disk or not of whole sectors.
fn transfer(disk: &DiskProperties, sector: u64, bytes: u64, op: DiskOp) -> RequestAction {
    let range = sector.checked_mul(SECTOR_BYTES).and_then(|from| ByteRange::new(from, bytes));
    let is_sound =
        |range: &ByteRange| range.is_within(disk.bytes()) && disk.is_sector_aligned(*range);
    match range.filter(is_sound) {
        Some(range) if range.is_empty() => RequestAction::Complete(STATUS_OK),
        Some(range) => RequestAction::Submit(op, range),
        None => RequestAction::Complete(STATUS_IO_ERROR),
    }
}

/// Returns true if a write must be durable before its completion (section 5.2.6.2): the driver has
/// selected write-through, or has not negotiated flushes.
fn writes_through(disk: &DiskProperties, features: RingFeatures) -> bool {
    if features.has(VIRTIO_BLK_F_CONFIG_WCE) {
        !disk.is_write_back()
    } else {
        !features.has(VIRTIO_BLK_F_FLUSH)
    }
}

/// Returns the virtio status of an outcome.
pub(crate) fn virtio_status(outcome: DiskOutcome) -> u8 {
    match outcome {
        DiskOutcome::Done => STATUS_OK,
        DiskOutcome::Failed | DiskOutcome::NoSpace | DiskOutcome::ReadOnly => STATUS_IO_ERROR,
        DiskOutcome::Unsupported => STATUS_UNSUPPORTED,
    }
}

#[cfg(test)]
#[path = "disk_request_tests.rs"]
mod tests;
