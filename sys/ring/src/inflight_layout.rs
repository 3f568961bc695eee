//! Layout of the parts of an in-flight region (vhost-user, "Inflight I/O tracking").

/// Version of both layouts (`version`).
pub(crate) const VERSION: u16 = 1;
/// Offset of the version in bytes, in both layouts.
pub(crate) const VERSION_AT: usize = 8;
/// Offset of the number of entries in bytes, in both layouts.
pub(crate) const ENTRIES_AT: usize = 10;
/// Size in bytes of the header before the entries of a split ring's part.
pub(crate) const SPLIT_HEADER_BYTES: usize = 16;
/// Size in bytes of an entry of a split ring's part (`DescStateSplit`).
pub(crate) const SPLIT_ENTRY_BYTES: usize = 16;
/// Size in bytes of the header before the entries of a packed ring's part.
pub(crate) const PACKED_HEADER_BYTES: usize = 32;
/// Size in bytes of an entry of a packed ring's part (`DescStatePacked`).
pub(crate) const PACKED_ENTRY_BYTES: usize = 32;

/// Indices of the first and last entry of a chain in a packed ring's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChainEntries {
    pub(crate) first: u16,
    pub(crate) last: u16,
}
