//! Payload ranges of an image, which no change of its metadata may write.

use suimon_image::{ByteRange, ImageError, ImageFault, ImageFile};
use suimon_vhd::SizeSource;
use suimon_vhdx::Vhdx;

use crate::DiskFormat;
use crate::inspect::planned_file::SECTOR_BYTES;

/// Bytes at the beginning of a VHDX file that never contain payload.
const VHDX_HEADER_SECTION: u64 = 1 << 20;

/// Fails if a planned change would write payload of the image in one of its `states`: before,
/// during or after the change. If the payload ranges are unknown because the image is damaged in
/// all states, only headers and footers may be written. `len` is the length before the change, in
/// bytes.
pub(super) fn check_writes_no_payload(
    states: &[&dyn ImageFile],
    format: DiskFormat,
    len: u64,
    ranges: &[ByteRange],
) -> Result<(), ImageError> {
    let mut is_readable = false;
    for state in states {
        is_readable |= for_each_payload_range(*state, format, &mut |payload| {
            let nth = ranges.partition_point(|range| range.end() <= payload.offset());
            match ranges.get(nth).filter(|range| range.offset() < payload.end()) {
                Some(range) => Err(payload_error(range.offset())),
                None => Ok(()),
            }
        })?;
    }
    let is_outside = |range: &&ByteRange| match format {
        DiskFormat::Vhd => {
            range.offset() >= SECTOR_BYTES && range.end().saturating_add(SECTOR_BYTES) <= len
        }
        _ => range.end() > VHDX_HEADER_SECTION,
    };
    match ranges.iter().find(is_outside).filter(|_| !is_readable) {
        Some(range) => Err(payload_error(range.offset())),
        None => Ok(()),
    }
}

/// Calls `handle_range` for each range of the file with payload. Returns false if the ranges are
/// unknown because the image is damaged.
pub(super) fn for_each_payload_range(
    file: &dyn ImageFile,
    format: DiskFormat,
    handle_range: &mut dyn FnMut(ByteRange) -> Result<(), ImageError>,
) -> Result<bool, ImageError> {
    match format {
        DiskFormat::Vhd => match suimon_vhd::payload_ranges(file, SizeSource::Creator) {
            Ok(ranges) => ranges.into_iter().try_for_each(handle_range).map(|()| true),
            Err(_) => Ok(false),
        },
        _ => match Vhdx::open_read_only(file) {
            Ok(image) => image.payload_ranges().try_for_each(handle_range).map(|()| true),
            Err(_) => Ok(false),
        },
    }
}

fn payload_error(offset: u64) -> ImageError {
    let operation = "a change of payload, which is not permitted".to_owned();
    ImageError::new("payload", offset, ImageFault::Unsupported { feature: operation })
}
