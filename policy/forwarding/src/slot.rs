//! Index of a port.

/// Index of a port in one [`Tables`](crate::Tables), invalid for others: look it up again with
/// [`Tables::slot`](crate::Tables::slot) after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortSlot(pub(crate) u16);

impl PortSlot {
    /// Returns the slot as an index below [`Tables::port_count`](crate::Tables::port_count) into
    /// tables of the caller.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
