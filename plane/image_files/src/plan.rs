//! Specification of a disk ([`DiskPlan`]).

use suimon_ports::{FileLockMode, FileName};
use suimon_vhd::DISK_BYTES_MAX as VHD_DISK_BYTES_MAX;
use suimon_vhdx::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, DISK_BYTES_MAX as VHDX_DISK_BYTES_MAX};

use super::error::{DiskError, DiskFault};
use crate::format::{DiskFormat, DiskKind};
use crate::layer_options::LayerOptions;

/// Specification of a disk, independent of the files that exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskPlan {
    /// Format of the disk's image.
    pub format: DiskFormat,
    /// Allocation kind. `None`: an existing image determines its kind, and a new one has
    /// [`Self::creation_kind`]. An existing image of another kind is refused. For a raw file, the
    /// kind matters only on creation.
    pub kind: Option<DiskKind>,
    /// File of the image; `None` with [`DiskFormat::PassThrough`].
    pub file: Option<FileName>,
    /// Size of the disk in bytes. Required for creation without a parent; otherwise the default is
    /// the parent's size. Ignored on opening: the image determines its size.
    pub size_bytes: Option<u64>,
    /// File of the parent of a differencing image. `None`: the parent that the image records.
    pub parent: Option<FileName>,
    /// True if the disk is never written. Other processes may then read the file at the same time.
    pub is_read_only: bool,
    /// Logical sector size: 512 or 4096 bytes. An existing image must have the same size.
    pub logical_sector_bytes: u32,
    /// Physical sector size: 512 or 4096 bytes. An existing VHDX image determines its own.
    pub physical_sector_bytes: u32,
    /// Block size in bytes for creation, a power of two: 512 KiB to 2 MiB for VHD, 1 MiB to 256 MiB
    /// for VHDX. `None`: the parent's, or 2 MiB for VHD and 32 MiB for VHDX.
    pub block_bytes: Option<u64>,
}

/// Smallest and largest block size of a VHD in bytes.
const VHD_BLOCKS: (u64, u64) = (512 << 10, 2 << 20);

impl DiskPlan {
    /// Returns the name of the disk for errors: its file, or the format without a file.
    #[must_use]
    pub fn label(&self) -> String {
        self.file.as_ref().map_or_else(|| self.format.as_str().to_owned(), |file| file.to_string())
    }

    /// Returns the kind of a new image: the planned one; otherwise differencing if a parent is
    /// named, dynamic for VHD and VHDX, and fixed for other formats.
    #[must_use]
    pub fn creation_kind(&self) -> DiskKind {
        self.kind.unwrap_or(match self.format {
            DiskFormat::Raw | DiskFormat::PassThrough => DiskKind::Fixed,
            DiskFormat::Vhd | DiskFormat::Vhdx if self.parent.is_some() => DiskKind::Differencing,
            DiskFormat::Vhd | DiskFormat::Vhdx => DiskKind::Dynamic,
        })
    }

    /// Returns true if the disk is an image that records its kind.
    #[must_use]
    pub const fn has_metadata(&self) -> bool {
        self.format.has_metadata()
    }

    pub(crate) fn error(&self, fault: impl Into<DiskFault>) -> DiskError {
        DiskError::new(self.label(), fault)
    }

    pub(crate) fn invalid_value_error(
        &self,
        field: &'static str,
        value: &dyn ToString,
        allowed: &'static str,
    ) -> DiskError {
        self.error(DiskFault::InvalidPlan { field, value: value.to_string(), allowed })
    }

    /// Returns the file name of the image. Fails if the plan has none.
    pub(crate) fn file_name(&self) -> Result<&FileName, DiskError> {
        self.file
            .as_ref()
            .ok_or_else(|| self.invalid_value_error("file", &"missing", "a file name"))
    }

    /// Returns the alignment of all I/O on the disk's files, in bytes.
    pub(crate) const fn io_alignment(&self) -> u32 {
        match self.format {
            DiskFormat::Vhd => 512,
            _ => self.logical_sector_bytes,
        }
    }

    /// Returns the options for opening a file of the disk in this lock mode.
    pub(crate) const fn layer_options(&self, used: FileLockMode) -> LayerOptions {
        let sectors = (self.logical_sector_bytes, self.physical_sector_bytes);
        LayerOptions {
            format: self.format,
            lock_mode: used,
            io_alignment: self.io_alignment(),
            sector_sizes: sectors,
        }
    }

    /// Checks the plan for contradictions.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self) -> Result<(), DiskError> {
        let is_sector = |bytes: u32| bytes == 512 || bytes == 4096;
        if !is_sector(self.logical_sector_bytes) {
            return Err(self.invalid_value_error(
                "logical_sector",
                &self.logical_sector_bytes,
                "512 or 4096",
            ));
        }
        if !is_sector(self.physical_sector_bytes)
            || self.physical_sector_bytes < self.logical_sector_bytes
        {
            let allowed = "512 or 4096, not below logical_sector";
            return Err(self.invalid_value_error(
                "physical_sector",
                &self.physical_sector_bytes,
                allowed,
            ));
        }
        if self.format == DiskFormat::Vhd && self.logical_sector_bytes != 512 {
            let allowed = "512 with format vhd; use vhdx for larger sectors";
            return Err(self.invalid_value_error(
                "logical_sector",
                &self.logical_sector_bytes,
                allowed,
            ));
        }
        self.check_kind()?;
        self.check_block()?;
        self.size_bytes.map_or(Ok(()), |size| self.check_size(size))
    }

    fn check_kind(&self) -> Result<(), DiskError> {
        let is_passed = self.format == DiskFormat::PassThrough;
        if is_passed != self.file.is_none() {
            let value = self.file.as_ref().map_or("missing", FileName::as_str);
            return Err(self.invalid_value_error(
                "file",
                &value,
                "a file name, and none with format pass-through",
            ));
        }
        let kind = self.creation_kind();
        let allowed = match (self.format, kind) {
            (DiskFormat::Raw, DiskKind::Differencing) => "fixed or dynamic with format raw",
            (DiskFormat::PassThrough, DiskKind::Dynamic | DiskKind::Differencing) => {
                "fixed with format pass-through"
            }
            _ => "",
        };
        if !allowed.is_empty() {
            return Err(self.invalid_value_error("kind", &kind.as_str(), allowed));
        }
        if let Some(parent) = &self.parent {
            if kind != DiskKind::Differencing {
                return Err(self.invalid_value_error(
                    "parent",
                    &parent,
                    "no parent, unless kind is differencing",
                ));
            }
            if Some(parent) == self.file.as_ref() {
                return Err(self.invalid_value_error(
                    "parent",
                    &parent,
                    "a file other than the disk's own",
                ));
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
            _ => {
                return Err(self.invalid_value_error(
                    "block_bytes",
                    &block,
                    "no value with this format",
                ));
            }
        };
        if block.is_power_of_two() && (min..=max).contains(&block) {
            return Ok(());
        }
        Err(self.invalid_value_error("block_bytes", &block, allowed))
    }

    /// Checks that a disk of this format can have `size` bytes.
    ///
    /// # Errors
    /// The size is not possible.
    pub fn check_size(&self, size: u64) -> Result<(), DiskError> {
        if size == 0 || size % u64::from(self.logical_sector_bytes.max(1)) != 0 {
            return Err(self.invalid_value_error(
                "size",
                &size,
                "a multiple of logical_sector other than 0",
            ));
        }
        let (max, allowed) = match self.format {
            DiskFormat::Vhd => (VHD_DISK_BYTES_MAX, "at most 2040 GiB with format vhd; use vhdx"),
            DiskFormat::Vhdx => (VHDX_DISK_BYTES_MAX, "at most 64 TiB with format vhdx"),
            // Largest file offset of the system.
            _ => (i64::MAX.unsigned_abs(), "less than 8 EiB"),
        };
        if size > max { Err(self.invalid_value_error("size", &size, allowed)) } else { Ok(()) }
    }
}
