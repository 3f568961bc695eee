//! Formats and kinds of disk images.

/// Format of a disk's image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFormat {
    /// Raw file: the content of the disk without metadata.
    Raw,
    /// Virtual hard disk, version 1 (VHD).
    Vhd,
    /// Virtual hard disk, version 2 (VHDX).
    Vhdx,
    /// Block device of the store, used as the disk.
    PassThrough,
}

impl DiskFormat {
    /// Returns the name of the format in configurations and messages, such as `vhdx`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Vhd => "vhd",
            Self::Vhdx => "vhdx",
            Self::PassThrough => "pass-through",
        }
    }

    /// Returns true if images of the format have metadata, that is, for VHD and VHDX.
    #[must_use]
    pub const fn has_metadata(self) -> bool {
        matches!(self, Self::Vhd | Self::Vhdx)
    }
}

/// Allocation of a disk's space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskKind {
    /// Space is allocated on creation.
    Fixed,
    /// Space is allocated when it is first written. A raw file of this kind is sparse.
    Dynamic,
    /// Space is allocated when it is first written; other content is in a parent.
    Differencing,
}

impl DiskKind {
    /// Returns the name of the kind in configurations and messages, such as `dynamic`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Dynamic => "dynamic",
            Self::Differencing => "differencing",
        }
    }
}
