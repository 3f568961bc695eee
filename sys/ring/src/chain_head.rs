//! First descriptor of a chain.

use crate::cells::Descriptor;

/// Descriptor chain that was fetched from the ring.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ChainHead {
    /// First descriptor of the chain.
    pub(crate) first: Descriptor,
    /// Index of the first descriptor, or in a packed ring the buffer id.
    pub(crate) index: u16,
    /// Number of the chain's descriptors in the ring. Set in packed rings only.
    pub(crate) descriptor_count: u16,
}
