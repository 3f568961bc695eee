//! Claims of the threads of a disk copy on the regions that they copy.

use suimon_image::ByteRange;
use suimon_storage_engine::DirtyMap;

/// Maximum number of bytes that a thread claims at a time, unless a region is larger.
const RUN_BYTES: u64 = 256 << 10;

/// Consecutive regions of the disk that one thread copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Number that identifies the claim when it is released.
    number: u64,
    first: u64,
    behind: u64,
    /// Range of the disk that the claim covers.
    pub(crate) range: ByteRange,
}

/// Claims in progress, and the position at which the search for the next one starts.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    next: u64,
    taken: Vec<Claim>,
    /// Number of the region at which the search for the next claim starts.
    cursor: u64,
    /// Number of the first claim made after the first pass over the disk; `None` during the first
    /// pass.
    first_pass: Option<u64>,
}

impl Claims {
    /// Claims the next marked regions that no thread copies, and clears their marks. If there are
    /// none after the cursor, ends the pass over the disk: resets the cursor to the beginning and
    /// returns `None`.
    pub(crate) fn claim_next(&mut self, dirty: &DirtyMap) -> Option<Claim> {
        let Some(first) = self.first_free(dirty) else {
            self.cursor = 0;
            self.first_pass.get_or_insert(self.next);
            return None;
        };
        let regions_max = (RUN_BYTES / dirty.region_bytes()).max(1);
        let mut region_end = first;
        while region_end - first < regions_max
            && self.is_free(region_end)
            && dirty.clear(region_end)
        {
            region_end += 1;
        }
        let offset = first.saturating_mul(dirty.region_bytes());
        let end = region_end.saturating_mul(dirty.region_bytes()).min(dirty.size_bytes());
        let range = ByteRange::new(offset, end.checked_sub(offset)?)?;
        let claim = Claim { number: self.next, first, behind: region_end, range };
        self.next += 1;
        self.cursor = region_end;
        self.taken.push(claim);
        Some(claim)
    }

    /// Releases a claim when its thread has copied the regions, or failed to.
    pub(crate) fn release(&mut self, claim: &Claim) {
        self.taken.retain(|taken_claim| taken_claim.number != claim.number);
    }

    /// Returns true if there are no claims.
    pub(crate) fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    /// Returns the number of bytes of all claims, which are being copied.
    pub(crate) fn bytes(&self) -> u64 {
        self.taken.iter().map(|claim| claim.range.len()).sum()
    }

    /// Returns true if all regions that were marked when copying began were copied.
    pub(crate) fn has_copied_all(&self) -> bool {
        self.first_pass.is_some_and(|until| self.taken.iter().all(|claim| claim.number >= until))
    }

    /// Returns the number of the first marked region at or after the cursor that no thread copies;
    /// `None` if there is none.
    fn first_free(&self, dirty: &DirtyMap) -> Option<u64> {
        let mut region = self.cursor;
        loop {
            region = dirty.next_marked(region)?;
            match self.taken.iter().find(|claim| (claim.first..claim.behind).contains(&region)) {
                Some(claim) => region = claim.behind,
                None => return Some(region),
            }
        }
    }

    fn is_free(&self, region: u64) -> bool {
        !self.taken.iter().any(|claim| (claim.first..claim.behind).contains(&region))
    }
}
