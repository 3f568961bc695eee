//! Formats and kinds of disk images.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Image format of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DiskFormat {
    /// Raw image: the file's bytes are the disk's bytes.
    Raw,
    /// VHD image (Virtual Hard Disk, up to 2040 GiB).
    Vhd,
    /// VHDX image (Virtual Hard Disk v2).
    Vhdx,
    /// No file: the disk is the store's whole block device.
    PassThrough,
}

impl DiskFormat {
    /// Returns the file name extension of the format; `None` without a file.
    pub const fn extension(self) -> Option<&'static str> {
        match self {
            Self::Raw => Some("raw"),
            Self::Vhd => Some("vhd"),
            Self::Vhdx => Some("vhdx"),
            Self::PassThrough => None,
        }
    }

    /// Returns the kind of a new disk if the configuration names none.
    pub const fn default_kind(self) -> DiskKind {
        match self {
            Self::Raw | Self::PassThrough => DiskKind::Fixed,
            Self::Vhd | Self::Vhdx => DiskKind::Dynamic,
        }
    }
}

/// Allocation of a disk's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DiskKind {
    /// The file has space for the whole disk.
    Fixed,
    /// The file holds written blocks only.
    Dynamic,
    /// The file holds written blocks; other blocks are read from a parent.
    Differencing,
}
