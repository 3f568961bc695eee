//! State of an iteration over the buffers of one descriptor chain.

use crate::cells::Descriptor;
use crate::chain_head::ChainHead;

/// Indirect descriptor table: guest address, and number of entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndirectTable {
    pub(crate) addr: u64,
    pub(crate) entries: u32,
}

/// Position of an iteration over one chain.
pub(crate) struct ChainWalk {
    pub(crate) head: u16,
    pub(crate) next: Option<Descriptor>,
    pub(crate) table: Option<IndirectTable>,
    /// Index of the descriptor `next` in the indirect table.
    pub(crate) table_position: u16,
    /// Number of descriptors of the current table before `next`.
    pub(crate) visited: u16,
    /// Maximum number of further descriptors of the current table. If there are more, the chain has
    /// a loop.
    pub(crate) remaining: u32,
    /// True if a device-writable buffer was found. No device-readable buffer may follow it.
    pub(crate) has_writable: bool,
}

impl ChainWalk {
    /// Starts an iteration over a chain in a ring of `size` entries.
    #[inline]
    pub(crate) fn new(head: ChainHead, size: u16) -> Self {
        Self {
            head: head.index,
            next: Some(head.first),
            table: None,
            table_position: 0,
            visited: 0,
            remaining: u32::from(size),
            has_writable: false,
        }
    }

    /// Returns the index of the first descriptor, or in a packed ring the buffer id.
    pub(crate) fn head(&self) -> u16 {
        self.head
    }

    /// Returns the number of descriptors before the current one in the same table.
    pub(crate) fn visited(&self) -> u16 {
        self.visited
    }
}
