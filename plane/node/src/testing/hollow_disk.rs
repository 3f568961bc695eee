//! Remote disk without a remote node.

use suimon_image::ByteRange;
use suimon_ports::{Allocation, AllocationExtent, DiskClient, DiskClientError};

/// Remote disk that is empty.
pub(crate) struct HollowDisk {
    pub(crate) bytes: u64,
}

impl DiskClient for HollowDisk {
    fn size_bytes(&self) -> u64 {
        self.bytes
    }

    fn sector_bytes(&self) -> u32 {
        512
    }

    fn read(&self, range: ByteRange, bytes: &mut Vec<u8>) -> Result<(), DiskClientError> {
        bytes.clear();
        bytes.resize(range.len() as usize, 0);
        Ok(())
    }

    fn write(&self, _offset: u64, _bytes: &[u8]) -> Result<(), DiskClientError> {
        Ok(())
    }

    fn write_zeroes(&self, _range: ByteRange) -> Result<(), DiskClientError> {
        Ok(())
    }

    fn allocation(&self, range: ByteRange) -> Result<Vec<AllocationExtent>, DiskClientError> {
        Ok(vec![AllocationExtent { allocation: Allocation::Hole, len: range.len() }])
    }

    fn flush(&self) -> Result<(), DiskClientError> {
        Ok(())
    }

    fn disconnect(&self) {}
}
