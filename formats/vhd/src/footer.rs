//! Hard disk footer (VHD specification, "Hard Disk Footer Format").

use suimon_image::{ImageError, ImageFault};

use crate::fields::{SECTOR_BYTES, bytes_at, checksum, put, u32_at, u64_at};
use crate::geometry::{GEOMETRY_SECTORS_MAX, Geometry};

/// Length of a footer in bytes.
pub(crate) const FOOTER_BYTES: u64 = SECTOR_BYTES;
/// Maximum disk size supported by common implementations: 2040 GiB.
pub const DISK_BYTES_MAX: u64 = 2040 << 30;

const COOKIE: &[u8; 8] = b"conectix";
const VERSION: u32 = 0x0001_0000;
const FEATURES_RESERVED: u32 = 2;
const CHECKSUM_AT: usize = 64;
/// Creators of images for which Current Size is authoritative. For all others, the geometry is
/// authoritative and may be smaller.
const CREATORS_OF_EXACT_SIZES: [&[u8]; 5] = [b"win ", b"qem2", b"d2v ", b"tap", b"CTXS"];

/// Type of a disk image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskType {
    /// Fixed: the file contains the whole disk, starting at offset 0.
    Fixed,
    /// Dynamic: blocks are allocated when they are written.
    Dynamic,
    /// Differencing: like dynamic; unwritten sectors are read from a parent.
    Differencing,
}

impl DiskType {
    pub(crate) const fn code(self) -> u32 {
        match self {
            Self::Fixed => 2,
            Self::Dynamic => 3,
            Self::Differencing => 4,
        }
    }

    const fn from_code(code: u32) -> Option<Self> {
        match code {
            2 => Some(Self::Fixed),
            3 => Some(Self::Dynamic),
            4 => Some(Self::Differencing),
            _ => None,
        }
    }
}

/// Which field of the footer determines the size of the disk; programs differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SizeSource {
    /// The field that the creator uses: Current Size for Hyper-V, Disk2vhd, XenServer, XenConverter
    /// and QEMU with `force_size`; the geometry for Virtual PC and all others, except for the
    /// largest geometry.
    #[default]
    Creator,
    /// Current Size, for every creator.
    CurrentSize,
    /// The geometry, except for the largest geometry.
    Geometry,
}

/// Decoded hard disk footer of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Footer {
    /// Features: bit 0 marks a temporary disk, bit 1 is always set.
    pub features: u32,
    /// Offset of the dynamic disk header in the file, in bytes; [`u64::MAX`] if there is none.
    pub data_offset: u64,
    /// Creation time in seconds since 2000-01-01 UTC.
    pub created_s_since_2000: u32,
    /// Creator Application: code of the program that created the image.
    pub creator_application: [u8; 4],
    /// Creator Version: version of that program.
    pub creator_version: u32,
    /// Creator Host OS: code of the operating system.
    pub creator_host_os: [u8; 4],
    /// Size of the disk at creation, in bytes.
    pub original_size: u64,
    /// Current size of the disk in bytes.
    pub current_size: u64,
    /// Disk geometry for ATA controllers.
    pub geometry: Geometry,
    /// Type of the disk image.
    pub disk_type: DiskType,
    /// Unique Id of the disk, by which children identify their parent.
    pub unique_id: [u8; 16],
    /// True if the image belongs to the saved state of a VM.
    pub is_in_saved_state: bool,
}

impl Footer {
    /// Decodes a footer that was read at `offset` of the file.
    ///
    /// # Errors
    ///
    /// The bytes are not a footer or are damaged, or version or disk type are unknown.
    pub fn parse(bytes: &[u8; 512], offset: u64) -> Result<Self, ImageError> {
        let invalid = |name, field_offset: u64, fault: ImageFault| {
            Err(ImageError::new(name, offset + field_offset, fault))
        };
        if bytes_at::<8>(bytes, 0) != *COOKIE {
            return invalid("Cookie", 0, ImageFault::BadMagic { expected: "conectix" });
        }
        let (stored, computed) = (u32_at(bytes, CHECKSUM_AT), checksum(bytes, CHECKSUM_AT));
        if stored != computed {
            let field_offset = CHECKSUM_AT as u64;
            return invalid("Checksum", field_offset, ImageFault::Checksum { stored, computed });
        }
        let version = u32_at(bytes, 12);
        if version >> 16 != VERSION >> 16 {
            let what = format!("version {}.{}", version >> 16, version & 0xffff);
            return invalid("File Format Version", 12, ImageFault::Unsupported { feature: what });
        }
        let code = u32_at(bytes, 60);
        let Some(disk_type) = DiskType::from_code(code) else {
            let fault = ImageFault::InvalidValue { value: code.into(), allowed: "2, 3 or 4" };
            return invalid("Disk Type", 60, fault);
        };
        let [heads, sectors_per_track] = bytes_at(bytes, 58);
        let cylinders = u16::from_be_bytes(bytes_at(bytes, 56));
        Ok(Self {
            features: u32_at(bytes, 8),
            data_offset: u64_at(bytes, 16),
            created_s_since_2000: u32_at(bytes, 24),
            creator_application: bytes_at(bytes, 28),
            creator_version: u32_at(bytes, 32),
            creator_host_os: bytes_at(bytes, 36),
            original_size: u64_at(bytes, 40),
            current_size: u64_at(bytes, 48),
            geometry: Geometry { cylinders, heads, sectors_per_track },
            disk_type,
            unique_id: bytes_at(bytes, 68),
            is_in_saved_state: bytes_at::<1>(bytes, 84) != [0],
        })
    }

    /// Encodes the footer with its checksum.
    #[must_use]
    pub fn encode(&self) -> [u8; 512] {
        let mut bytes = [0; 512];
        put(&mut bytes, 0, COOKIE);
        put(&mut bytes, 8, &(self.features | FEATURES_RESERVED).to_be_bytes());
        put(&mut bytes, 12, &VERSION.to_be_bytes());
        put(&mut bytes, 16, &self.data_offset.to_be_bytes());
        put(&mut bytes, 24, &self.created_s_since_2000.to_be_bytes());
        put(&mut bytes, 28, &self.creator_application);
        put(&mut bytes, 32, &self.creator_version.to_be_bytes());
        put(&mut bytes, 36, &self.creator_host_os);
        put(&mut bytes, 40, &self.original_size.to_be_bytes());
        put(&mut bytes, 48, &self.current_size.to_be_bytes());
        put(&mut bytes, 56, &self.geometry.cylinders.to_be_bytes());
        put(&mut bytes, 58, &[self.geometry.heads, self.geometry.sectors_per_track]);
        put(&mut bytes, 60, &self.disk_type.code().to_be_bytes());
        put(&mut bytes, 68, &self.unique_id);
        put(&mut bytes, 84, &[u8::from(self.is_in_saved_state)]);
        let sum = checksum(&bytes, CHECKSUM_AT);
        put(&mut bytes, CHECKSUM_AT, &sum.to_be_bytes());
        bytes
    }

    /// Returns the footer's bytes with size and geometry changed to `size` bytes, and with an
    /// updated checksum; other fields are preserved.
    pub(crate) fn with_size(bytes: &[u8; 512], size: u64) -> [u8; 512] {
        let mut bytes = *bytes;
        let geometry = Geometry::from_sectors(size / SECTOR_BYTES);
        put(&mut bytes, 48, &size.to_be_bytes());
        put(&mut bytes, 56, &geometry.cylinders.to_be_bytes());
        put(&mut bytes, 58, &[geometry.heads, geometry.sectors_per_track]);
        let sum = checksum(&bytes, CHECKSUM_AT);
        put(&mut bytes, CHECKSUM_AT, &sum.to_be_bytes());
        bytes
    }

    /// Returns true if the creator of the image uses Current Size instead of the geometry.
    pub(crate) fn has_exact_size(&self) -> bool {
        CREATORS_OF_EXACT_SIZES.iter().any(|creator| self.creator_application.starts_with(creator))
    }

    /// Returns the size of the disk in bytes, in whole sectors, from the field that `rule`
    /// determines. `offset` is the position of the footer, for errors.
    ///
    /// # Errors
    ///
    /// The size is 0 or exceeds [`DISK_BYTES_MAX`].
    pub fn size(&self, rule: SizeSource, offset: u64) -> Result<u64, ImageError> {
        let geometry_sectors = self.geometry.sectors();
        let is_exact = match rule {
            SizeSource::Creator => self.has_exact_size(),
            SizeSource::CurrentSize => true,
            SizeSource::Geometry => false,
        };
        let (name, field_offset, sectors) = if is_exact || geometry_sectors == GEOMETRY_SECTORS_MAX
        {
            ("Current Size", 48, self.current_size / SECTOR_BYTES)
        } else {
            ("Disk Geometry", 56, geometry_sectors)
        };
        let size = sectors.saturating_mul(SECTOR_BYTES);
        if size == 0 || size > DISK_BYTES_MAX {
            let allowed = "512 bytes to 2040 GiB";
            return Err(ImageError::new(
                name,
                offset + field_offset,
                ImageFault::InvalidValue { value: size, allowed },
            ));
        }
        Ok(size)
    }
}
