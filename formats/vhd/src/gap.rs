//! Unused ranges (gaps) of the file.

use crate::fields::SECTOR_BYTES;

/// Range of unused sectors in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) start_sector: u64,
    pub(crate) end_sector: u64,
}

/// Returns the gap that ends at the footer at `offset`; it may be empty.
pub(crate) fn tail_gap(gaps: &[Gap], offset: u64) -> Gap {
    let sector = offset / SECTOR_BYTES;
    let last = gaps.last().copied().filter(|gap| gap.end_sector == sector);
    last.unwrap_or(Gap { start_sector: sector, end_sector: sector })
}
