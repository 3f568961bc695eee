//! Unused ranges (gaps) of the file.

use crate::fields::SECTOR;

/// Range of unused sectors in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// Returns the gap that ends at the footer at `offset`; it may be empty.
pub(crate) fn tail(gaps: &[Gap], offset: u64) -> Gap {
    let sector = offset / SECTOR;
    let last = gaps.last().copied().filter(|gap| gap.end == sector);
    last.unwrap_or(Gap { start: sector, end: sector })
}
