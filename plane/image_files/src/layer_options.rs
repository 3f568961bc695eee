//! Options for opening a layer.

use suimon_ports::FileLockMode;

use crate::format::DiskFormat;

/// Options for opening a file as an image.
#[derive(Clone, Copy)]
pub(crate) struct LayerOptions {
    pub(crate) format: DiskFormat,
    pub(crate) lock_mode: FileLockMode,
    pub(crate) io_alignment: u32,
    /// Logical and physical sector sizes of a raw file in bytes. Other formats record their own.
    pub(crate) sector_sizes: (u32, u32),
}
