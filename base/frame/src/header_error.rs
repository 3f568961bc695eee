//! Errors of parsing headers.

use thiserror::Error;

/// Error of parsing a frame's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameHeaderError {
    /// The frame ends within a header.
    #[error(
        "the frame ends inside its {layer} header: it has {len} bytes, and the header begins at \
         offset {offset}"
    )]
    Truncated {
        /// Name of the header's protocol.
        layer: &'static str,
        /// Offset of the header in bytes.
        offset: usize,
        /// Length of the frame in bytes.
        len: usize,
    },
    /// The type field and the IP version disagree.
    #[error("the type field says IP version {expected}, the IP header says {found}")]
    Version {
        /// IP version according to the type field.
        expected: u8,
        /// IP version in the header.
        found: u8,
    },
    /// A header states a length below its minimum.
    #[error("the {layer} header has a length of {bytes} bytes, below the minimum")]
    HeaderLength {
        /// Name of the header's protocol.
        layer: &'static str,
        /// Length that the header states, in bytes.
        bytes: usize,
    },
    /// The number of IPv6 extension headers exceeds the limit.
    #[error("the frame has more than {parsed_count} IPv6 extension headers")]
    TooManyExtensions {
        /// Number of extension headers parsed.
        parsed_count: usize,
    },
}

impl FrameHeaderError {
    #[inline]
    pub(crate) fn truncated(layer: &'static str, offset: usize, bytes: &[u8]) -> Self {
        Self::Truncated { layer, offset, len: bytes.len() }
    }
}
