//! Guest-visible properties of a disk: sizes and alignment.

use suimon_image::DiskGeometry;

/// Returns the guest-visible properties of a disk with `size` bytes and blocks of `block` bytes.
/// `is_aligned` is true if 4096-byte sectors of the disk are aligned in the file.
pub(crate) const fn disk_geometry(size: u64, block: u64, is_aligned: bool) -> DiskGeometry {
    let physical_sector = if is_aligned { 4096 } else { 512 };
    DiskGeometry {
        size_bytes: size,
        logical_sector_bytes: 512,
        physical_sector_bytes: physical_sector,
        block_bytes: block,
    }
}
