//! What cannot be exported, and what could be.

use thiserror::Error;

/// A property of an export that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ExportError {
    /// A string that is too long for the protocol.
    #[error("the export's {field} has {bytes} bytes; give {max} or fewer")]
    TooLong {
        /// Which string.
        field: &'static str,
        /// Its bytes.
        bytes: usize,
        /// The most there can be.
        max: usize,
    },
    /// A string with a NUL in it.
    #[error("the export's {field} has a NUL at offset {at}; leave it out")]
    Nul {
        /// Which string.
        field: &'static str,
        /// Where the NUL is.
        at: usize,
    },
    /// A smallest block that is none.
    #[error("a smallest block of {found} bytes cannot be; give a power of two up to {max}")]
    BlockMin {
        /// Its bytes.
        found: u32,
        /// The most there can be.
        max: u32,
    },
    /// A preferred block that is none.
    #[error("a preferred block of {found} bytes cannot be; give a power of two from {lowest} on")]
    BlockPreferred {
        /// Its bytes.
        found: u32,
        /// The least there can be.
        lowest: u32,
    },
    /// A longest payload that cannot be.
    #[error(
        "a longest payload of {found} bytes cannot be; give a multiple of {block} from {lowest} to \
         {highest}"
    )]
    PayloadMax {
        /// Its bytes.
        found: u32,
        /// The least there can be.
        lowest: u32,
        /// The most there can be.
        highest: u32,
        /// Bytes of the smallest block.
        block: u32,
    },
    /// More bytes than clients can count.
    #[error("an export of {found} bytes is larger than clients can count; give {max} or fewer")]
    Size {
        /// Its bytes.
        found: u64,
        /// The most there can be.
        max: u64,
    },
    /// Bytes at the end that no client could reach.
    #[error("an export of {found} bytes does not end with a block; give a multiple of {block}")]
    SizeOffBlock {
        /// Its bytes.
        found: u64,
        /// Bytes of the smallest block.
        block: u32,
    },
    /// Fast zeroes without zeroes.
    #[error("fast_zero without write_zeroes cannot be; offer both or none")]
    FastZeroAlone,
}
