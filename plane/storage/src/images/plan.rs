//! What a disk is to be.

use suimon_ports::{FileName, FileUse};
use suimon_vhd::SIZE_MAX;
use suimon_vhdx::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, DISK_BYTES_MAX};

use super::error::{DiskError, DiskFault};
use super::layer::LayerOptions;

/// How a disk's bytes are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFormat {
    /// The file is the disk.
    Raw,
    /// Virtual hard disk.
    Vhd,
    /// Virtual hard disk, version 2.
    Vhdx,
    /// The store, which is a block device, is the disk.
    PassThrough,
}

impl DiskFormat {
    /// As a person writes it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Vhd => "vhd",
            Self::Vhdx => "vhdx",
            Self::PassThrough => "pass-through",
        }
    }

    /// Returns true if images have metadata beside the content of the disk.
    #[must_use]
    pub const fn has_metadata(self) -> bool {
        matches!(self, Self::Vhd | Self::Vhdx)
    }
}

/// When a disk's bytes take space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskKind {
    /// From the beginning.
    Fixed,
    /// When they are written. Of a raw file: it has holes.
    Dynamic,
    /// When they are written; what was not is in a parent.
    Differencing,
}

impl DiskKind {
    /// As a person writes it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Dynamic => "dynamic",
            Self::Differencing => "differencing",
        }
    }
}

/// What a disk is to be. Which files there are is for the store to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskPlan {
    /// The format.
    pub format: DiskFormat,
    /// Allocation kind. `None`: an existing image states its own; a new one is of
    /// [`Self::new_kind`]. An existing image of another kind is refused. For a raw file the
    /// kind only has a meaning when the file is made.
    pub kind: Option<DiskKind>,
    /// The image's file; `None` with [`DiskFormat::PassThrough`].
    pub file: Option<FileName>,
    /// Bytes of the disk. Needed to make one, unless it has a parent, whose size it has
    /// then. An image that is opened tells its own.
    pub size: Option<u64>,
    /// The parent's file, of a differencing image. `None`: the parent that the image records.
    pub parent: Option<FileName>,
    /// Nothing is written, and others may read the file meanwhile.
    pub is_read_only: bool,
    /// The smallest unit of a request: 512 or 4096 bytes. An image that is opened has to
    /// have it.
    pub logical_sector: u32,
    /// What the disk would rather have: 512 or 4096 bytes. A VHDX image that is opened
    /// tells its own.
    pub physical_sector: u32,
    /// Bytes of a block, for an image that is made: of VHD 512 KiB to 2 MiB, of VHDX 1 MiB
    /// to 256 MiB, a power of two. `None`: 2 MiB and 32 MiB, or as the parent has.
    pub block_bytes: Option<u64>,
}

/// Blocks of a VHD.
const VHD_BLOCKS: (u64, u64) = (512 << 10, 2 << 20);

impl DiskPlan {
    /// The disk for errors: its file, or what it is instead.
    #[must_use]
    pub fn label(&self) -> String {
        self.file.as_ref().map_or_else(|| self.format.word().to_owned(), |file| file.to_string())
    }

    /// Returns the kind of an image that is made: the planned one; else differencing if a
    /// parent is named, dynamic for VHD and VHDX, and fixed for others.
    #[must_use]
    pub fn new_kind(&self) -> DiskKind {
        self.kind.unwrap_or(match self.format {
            DiskFormat::Raw | DiskFormat::PassThrough => DiskKind::Fixed,
            DiskFormat::Vhd | DiskFormat::Vhdx if self.parent.is_some() => DiskKind::Differencing,
            DiskFormat::Vhd | DiskFormat::Vhdx => DiskKind::Dynamic,
        })
    }

    /// Returns true if the disk is an image that states its own kind.
    #[must_use]
    pub const fn has_image(&self) -> bool {
        self.format.has_metadata()
    }

    pub(crate) fn error(&self, fault: impl Into<DiskFault>) -> DiskError {
        DiskError::new(self.label(), fault)
    }

    pub(crate) fn refuse(
        &self,
        field: &'static str,
        value: &dyn ToString,
        allowed: &'static str,
    ) -> DiskError {
        self.error(DiskFault::Plan { field, value: value.to_string(), allowed })
    }

    /// The image's file.
    pub(crate) fn named(&self) -> Result<&FileName, DiskError> {
        self.file.as_ref().ok_or_else(|| self.refuse("file", &"missing", "the name of a file"))
    }

    /// All I/O on the files is aligned to so many bytes.
    pub(crate) const fn unit(&self) -> u32 {
        match self.format {
            DiskFormat::Vhd => 512,
            _ => self.logical_sector,
        }
    }

    /// How its file is opened.
    pub(crate) const fn layer_options(&self, used: FileUse) -> LayerOptions {
        let sectors = (self.logical_sector, self.physical_sector);
        LayerOptions { format: self.format, used, unit: self.unit(), sectors }
    }

    /// Whether what it says goes together.
    ///
    /// # Errors
    /// The first thing that does not.
    pub fn check(&self) -> Result<(), DiskError> {
        let is_sector = |bytes: u32| bytes == 512 || bytes == 4096;
        if !is_sector(self.logical_sector) {
            return Err(self.refuse("logical_sector", &self.logical_sector, "512 or 4096"));
        }
        if !is_sector(self.physical_sector) || self.physical_sector < self.logical_sector {
            let allowed = "512 or 4096, not below logical_sector";
            return Err(self.refuse("physical_sector", &self.physical_sector, allowed));
        }
        if self.format == DiskFormat::Vhd && self.logical_sector != 512 {
            let allowed = "512 with format vhd; use vhdx for larger sectors";
            return Err(self.refuse("logical_sector", &self.logical_sector, allowed));
        }
        self.check_kind()?;
        self.check_block()?;
        self.size.map_or(Ok(()), |size| self.check_size(size))
    }

    fn check_kind(&self) -> Result<(), DiskError> {
        let is_passed = self.format == DiskFormat::PassThrough;
        if is_passed != self.file.is_none() {
            let value = self.file.as_ref().map_or("missing", FileName::as_str);
            return Err(self.refuse("file", &value, "a name, and none with format pass-through"));
        }
        let kind = self.new_kind();
        let allowed = match (self.format, kind) {
            (DiskFormat::Raw, DiskKind::Differencing) => "fixed or dynamic with format raw",
            (DiskFormat::PassThrough, DiskKind::Dynamic | DiskKind::Differencing) => {
                "fixed with format pass-through"
            }
            _ => "",
        };
        if !allowed.is_empty() {
            return Err(self.refuse("kind", &kind.word(), allowed));
        }
        if let Some(parent) = &self.parent {
            if kind != DiskKind::Differencing {
                return Err(self.refuse("parent", &parent, "none, unless kind is differencing"));
            }
            if Some(parent) == self.file.as_ref() {
                return Err(self.refuse("parent", &parent, "another file than the disk's own"));
            }
        }
        Ok(())
    }

    fn check_block(&self) -> Result<(), DiskError> {
        let Some(block) = self.block_bytes else { return Ok(()) };
        let ((min, max), allowed) = match self.format {
            DiskFormat::Vhd => (VHD_BLOCKS, "a power of two from 512 KiB to 2 MiB"),
            DiskFormat::Vhdx => {
                ((BLOCK_BYTES_MIN, BLOCK_BYTES_MAX), "a power of two from 1 MiB to 256 MiB")
            }
            _ => return Err(self.refuse("block_bytes", &block, "nothing with this format")),
        };
        if block.is_power_of_two() && (min..=max).contains(&block) {
            return Ok(());
        }
        Err(self.refuse("block_bytes", &block, allowed))
    }

    /// Whether a disk of this format can have so many bytes.
    ///
    /// # Errors
    /// It cannot.
    pub fn check_size(&self, size: u64) -> Result<(), DiskError> {
        if size == 0 || size % u64::from(self.logical_sector.max(1)) != 0 {
            return Err(self.refuse("size", &size, "a multiple of logical_sector, not 0"));
        }
        let (max, allowed) = match self.format {
            DiskFormat::Vhd => (SIZE_MAX, "at most 2040 GiB with format vhd; use vhdx"),
            DiskFormat::Vhdx => (DISK_BYTES_MAX, "at most 64 TiB with format vhdx"),
            // What a file's offset can tell.
            _ => (i64::MAX.unsigned_abs(), "less than 8 EiB"),
        };
        if size > max { Err(self.refuse("size", &size, allowed)) } else { Ok(()) }
    }
}
