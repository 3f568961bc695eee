//! Configuration space of a disk (`struct virtio_blk_config`, virtio 1.3, section 5.2.4).

use suimon_ring::{DiskProperties, RANGE_SECTORS_MAX, SECTOR_BYTES};

/// Size of configuration space in bytes. Fields of features that are not offered are 0.
pub(crate) const DISK_CONFIG_BYTES: usize = 96;
/// Offset in bytes of the field `writeback`, the only one that a driver may write.
pub(crate) const WRITEBACK_AT: u32 = 32;
/// Maximum number of payload segments of a request (`seg_max`). With header and status, a request
/// fits into a ring of 128 entries, the smallest default of front-ends.
const SEGMENTS_MAX: u32 = 126;

/// Contents of a disk's configuration space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiskConfig<'a> {
    pub(crate) properties: &'a DiskProperties,
    /// Maximum number of queues (`num_queues`).
    pub(crate) queues: u16,
    /// Physical sector size in bytes.
    pub(crate) physical_sector_bytes: u32,
}

impl DiskConfig<'_> {
    /// Returns `size` bytes at `offset`; an empty vector if configuration space does not contain
    /// all of them.
    pub(crate) fn read(&self, offset: u32, size: u32) -> Vec<u8> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = start.saturating_add(usize::try_from(size).unwrap_or(usize::MAX));
        self.bytes().get(start..end).unwrap_or_default().to_vec()
    }

    fn bytes(&self) -> [u8; DISK_CONFIG_BYTES] {
        let properties = self.properties;
        let sector_bytes = properties.sector_bytes();
        let ratio = (self.physical_sector_bytes / sector_bytes).max(1);
        let physical_exponent = ratio.ilog2() as u8;
        let io_min = u16::try_from(ratio).unwrap_or(u16::MAX);
        let max_sectors = RANGE_SECTORS_MAX.to_le_bytes();
        let alignment = (sector_bytes / SECTOR_BYTES as u32).to_le_bytes();
        let one_bytes = 1_u32.to_le_bytes();
        let fields: [&[u8]; 18] = [
            &(properties.bytes() / SECTOR_BYTES).to_le_bytes(),
            // size_max: no limit.
            &[0; 4],
            &SEGMENTS_MAX.to_le_bytes(),
            // No geometry.
            &[0; 4],
            &sector_bytes.to_le_bytes(),
            &[physical_exponent],
            // alignment_offset.
            &[0],
            &io_min.to_le_bytes(),
            // opt_io_size: no preference.
            &[0; 4],
            &[u8::from(properties.is_write_back())],
            &[0],
            &self.queues.to_le_bytes(),
            &max_sectors,
            &one_bytes,
            &alignment,
            &max_sectors,
            &one_bytes,
            // write_zeroes_may_unmap.
            &[1],
        ];
        let mut space = [0; DISK_CONFIG_BYTES];
        for (to, from) in space.iter_mut().zip(fields.into_iter().flatten()) {
            *to = *from;
        }
        space
    }
}

#[cfg(test)]
mod tests {
    use suimon_ring::GuestVisibleDisk;

    use super::*;

    #[test]
    fn fields_lie_where_the_specification_puts_them() {
        let disk = GuestVisibleDisk {
            bytes: 5 << 30,
            sector_bytes: 512,
            is_read_only: false,
            serial: String::new(),
        };
        let properties = DiskProperties::new(&disk);
        let space = DiskConfig { properties: &properties, queues: 4, physical_sector_bytes: 4096 };
        let number = |offset, size| {
            let bytes = space.read(offset, size);
            assert_eq!(bytes.len(), size as usize);
            bytes.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte))
        };
        let fields = [
            ("capacity", 0, 8, 5 << 21),
            ("size_max", 8, 4, 0),
            ("seg_max", 12, 4, 126),
            ("geometry", 16, 4, 0),
            ("blk_size", 20, 4, 512),
            ("physical_block_exp", 24, 1, 3),
            ("alignment_offset", 25, 1, 0),
            ("min_io_size", 26, 2, 8),
            ("opt_io_size", 28, 4, 0),
            ("writeback", 32, 1, 1),
            ("num_queues", 34, 2, 4),
            ("max_discard_sectors", 36, 4, 1 << 22),
            ("max_discard_seg", 40, 4, 1),
            ("discard_sector_alignment", 44, 4, 1),
            ("max_write_zeroes_sectors", 48, 4, 1 << 22),
            ("max_write_zeroes_seg", 52, 4, 1),
            ("write_zeroes_may_unmap", 56, 1, 1),
            ("the rest", 57, 8, 0),
        ];
        for (name, offset, size, value) in fields {
            assert_eq!(number(offset, size), value, "{name}");
        }
        properties.set_write_back(false);
        properties.resize(1 << 30);
        assert_eq!((space.read(32, 1), space.read(0, 4)), (vec![0], vec![0, 0, 0x20, 0]));
        for (offset, size) in [(0, 97), (96, 1), (u32::MAX, 1), (0, u32::MAX)] {
            assert!(space.read(offset, size).is_empty(), "{offset} {size}");
        }
    }
}
