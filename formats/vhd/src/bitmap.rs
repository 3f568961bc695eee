//! Sector bitmaps ("Block Allocation Table and Data Blocks"): one bit per sector; the first sector
//! is the most significant bit of the first byte.

/// Returns true if the bit of `sector`, counted from the start of the block, is set.
pub(crate) fn is_set(bits: &[u8], sector: u64) -> bool {
    let byte = usize::try_from(sector / 8).ok().and_then(|index| bits.get(index));
    byte.is_some_and(|byte| byte & mask(sector) != 0)
}

const fn mask(sector: u64) -> u8 {
    0x80 >> (sector % 8)
}

/// Sets the bits of the sectors `start .. end`. Returns true if any bit changed.
pub(crate) fn set(bits: &mut [u8], start: u64, end: u64) -> bool {
    let mut changed = false;
    for sector in start..end {
        let Some(byte) = usize::try_from(sector / 8).ok().and_then(|index| bits.get_mut(index))
        else {
            break;
        };
        changed |= *byte & mask(sector) == 0;
        *byte |= mask(sector);
    }
    changed
}

/// Returns true if the first `sectors` bits are all set.
pub(crate) fn is_full(bits: &[u8], sectors: u64) -> bool {
    run_end(bits, 0, sectors) == sectors && (sectors == 0 || is_set(bits, 0))
}

/// Returns the first sector after `start` whose bit differs from that of `start`, at most `end`.
pub(crate) fn run_end(bits: &[u8], start: u64, end: u64) -> u64 {
    let first = is_set(bits, start);
    let full = if first { 0xff } else { 0 };
    let mut sector = start;
    while sector < end {
        let byte = usize::try_from(sector / 8).ok().and_then(|index| bits.get(index));
        if sector % 8 == 0 && byte == Some(&full) {
            sector += 8;
        } else if is_set(bits, sector) == first {
            sector += 1;
        } else {
            break;
        }
    }
    sector.min(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_sector_is_the_most_significant_bit() {
        let mut bits = [0_u8; 4];
        assert!(set(&mut bits, 6, 18));
        assert_eq!(bits, [0b11, 0xff, 0b1100_0000, 0]);
        assert!(!set(&mut bits, 8, 16));
        let runs: Vec<_> = [(0, 6), (6, 18), (18, 32)]
            .map(|(start, end)| (run_end(&bits, start, 32), end))
            .into_iter()
            .collect();
        assert!(runs.iter().all(|(actual, end)| actual == end), "{runs:?}");
        assert_eq!(run_end(&bits, 7, 12), 12);
        assert!(is_set(&bits, 17) && !is_set(&bits, 18) && !is_set(&bits, 99));
        assert!(!is_full(&bits, 32) && is_full(&[0xff, 0xf0], 12) && !is_full(&[0xff, 0xf0], 13));
    }
}
