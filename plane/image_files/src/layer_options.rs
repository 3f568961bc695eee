//! Options for opening a layer.

use suimon_ports::FileLockMode;

use crate::format::DiskFormat;

/// Options for opening a file as an image.
#[derive(Clone, Copy)]
pub(crate) struct LayerOptions {
    pub(crate) format: DiskFormat,
    pub(crate) used: FileLockMode,
    pub(crate) unit: u32,
    /// Logical and physical sector sizes of a raw file in bytes. Other formats record their own.
    pub(crate) sectors: (u32, u32),
}
