//! Errors of export properties.

use thiserror::Error;

/// Invalid property of an export, from [`Export::new`](crate::Export::new).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ExportError {
    /// A string exceeds the protocol's limit.
    #[error("the export's {field} has {bytes} bytes; set at most {max}")]
    StringTooLong {
        /// Name of the property: `name` or `description`.
        field: &'static str,
        /// Length of the string in bytes.
        bytes: usize,
        /// Maximum length permitted, in bytes.
        max: usize,
    },
    /// A string contains a NUL byte.
    #[error("the export's {field} has a NUL at offset {offset}; remove it")]
    Nul {
        /// Name of the property: `name` or `description`.
        field: &'static str,
        /// Offset of the NUL in the string, in bytes.
        offset: usize,
    },
    /// The minimum block size is not a power of two or too large.
    #[error("a minimum block size of {found} bytes is invalid; set a power of two up to {max}")]
    BlockMin {
        /// Value in the specification, in bytes.
        found: u32,
        /// Maximum value permitted, in bytes.
        max: u32,
    },
    /// The preferred block size is not a power of two or too small.
    #[error("a preferred block size of {found} bytes is invalid; set a power of two from {min} on")]
    BlockPreferred {
        /// Value in the specification, in bytes.
        found: u32,
        /// Minimum value permitted, in bytes.
        min: u32,
    },
    /// The maximum payload is out of range or not a multiple of the block size.
    #[error(
        "a maximum payload of {found} bytes is invalid; set a multiple of {block_min} from {min} \
         to {max}"
    )]
    PayloadMax {
        /// Value in the specification, in bytes.
        found: u32,
        /// Minimum value permitted, in bytes.
        min: u32,
        /// Maximum value permitted, in bytes.
        max: u32,
        /// Minimum block size in bytes.
        block_min: u32,
    },
    /// The size exceeds [`EXPORT_BYTES_MAX`](crate::EXPORT_BYTES_MAX), because client offsets could
    /// not address it.
    #[error(
        "an export of {found} bytes exceeds the limit of the protocol; set at most {max} bytes"
    )]
    SizeTooLarge {
        /// Value in the specification, in bytes.
        found: u64,
        /// Maximum value permitted, in bytes.
        max: u64,
    },
    /// The size is not a multiple of the minimum block size.
    #[error(
        "the size of an export, {found} bytes, must be a multiple of its block size {block_min}"
    )]
    SizeUnaligned {
        /// Value in the specification, in bytes.
        found: u64,
        /// Minimum block size in bytes.
        block_min: u32,
    },
    /// Fast zeroing is offered without zeroing.
    #[error("fast_zero requires write_zeroes; set both or none")]
    FastZeroWithoutZero,
}
