//! Errors of images.

use crate::FileError;

/// Kind of an image error.
#[derive(Debug, thiserror::Error)]
pub enum ImageFault {
    /// Magic number not found: the file is not an image of this format.
    #[error("not an image of this format, expected {expected}")]
    BadMagic {
        /// Magic number that was expected.
        expected: &'static str,
    },
    /// A structure extends beyond the end of the file.
    #[error("extends beyond the end of the file at {file_len}; the file was truncated, restore it")]
    Truncated {
        /// Length of the file in bytes.
        file_len: u64,
    },
    /// The stored and the computed checksum differ.
    #[error("wrong checksum: stored {stored:#010x}, computed {computed:#010x}")]
    Checksum {
        /// Checksum stored in the structure.
        stored: u32,
        /// Checksum computed over the structure.
        computed: u32,
    },
    /// A field has a value that the specification does not permit.
    #[error("value {value}, expected {allowed}")]
    InvalidValue {
        /// Value found in the field.
        value: u64,
        /// Description of the permitted values.
        allowed: &'static str,
    },
    /// Two structures of the file overlap.
    #[error("overlaps with {other}")]
    Overlap {
        /// Name of the other structure.
        other: &'static str,
    },
    /// A required feature is not supported.
    #[error("required feature not supported: {feature}")]
    Unsupported {
        /// Description of the unsupported feature.
        feature: String,
    },
    /// The image was modified since the metadata changes to redo were recorded.
    #[error("the image was changed by another program since: {difference}")]
    ImageModified {
        /// Description of the detected difference.
        difference: &'static str,
    },
    /// A required structure is missing.
    #[error("missing")]
    MissingStructure,
    /// The image would exceed a limit of its format.
    #[error("exceeds the limit of {limit}")]
    FormatLimit {
        /// Limit of the format, in its unit.
        limit: u64,
    },
    /// Write to an image opened for reading.
    #[error("the image is open read-only")]
    ReadOnly,
    /// Reading or writing the file failed.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Error with its location in an image.
#[derive(Debug, thiserror::Error)]
#[error("{field} at offset {offset} of the image: {fault}")]
pub struct ImageError {
    /// Name of the field or structure in the format's specification.
    pub field: &'static str,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Kind and details of the error.
    #[source]
    pub fault: ImageFault,
}

impl ImageError {
    /// Creates an error for a field.
    #[must_use]
    pub fn new(field: &'static str, offset: u64, fault: impl Into<ImageFault>) -> Self {
        Self { field, offset, fault: fault.into() }
    }
}
