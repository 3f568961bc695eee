//! Which regions are copied next, and by whom.

use suimon_image::ByteRange;

use crate::dirty::DirtyMap;

/// Bytes that are copied at once, unless a region has more.
const RUN_BYTES: u64 = 256 << 10;

/// Regions that a thread copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// By which it is given back.
    number: u64,
    first: u64,
    behind: u64,
    /// What they are of the disk.
    pub(crate) range: ByteRange,
}

/// What is copied now, and where it goes on.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    next: u64,
    taken: Vec<Claim>,
    /// Where the next region is looked for.
    cursor: u64,
    /// Claims below this number are of the first pass; `None`: it is not over.
    first_pass: Option<u64>,
}

impl Claims {
    /// Takes the next regions with a mark that nobody copies, and their marks away. `None`:
    /// there are none from the cursor on, and it is at the beginning again.
    pub(crate) fn take(&mut self, dirty: &DirtyMap) -> Option<Claim> {
        let Some(first) = self.first_free(dirty) else {
            self.cursor = 0;
            self.first_pass.get_or_insert(self.next);
            return None;
        };
        let regions_max = (RUN_BYTES / dirty.region_bytes()).max(1);
        let mut behind = first;
        while behind - first < regions_max && self.is_free(behind) && dirty.clear(behind) {
            behind += 1;
        }
        let offset = first.saturating_mul(dirty.region_bytes());
        let end = behind.saturating_mul(dirty.region_bytes()).min(dirty.size());
        let range = ByteRange::new(offset, end.checked_sub(offset)?)?;
        let claim = Claim { number: self.next, first, behind, range };
        self.next += 1;
        self.cursor = behind;
        self.taken.push(claim);
        Some(claim)
    }

    /// A thread has copied these, or has not.
    pub(crate) fn give_back(&mut self, claim: &Claim) {
        self.taken.retain(|taken| taken.number != claim.number);
    }

    /// Whether nobody copies anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    /// Bytes that are being copied.
    pub(crate) fn bytes(&self) -> u64 {
        self.taken.iter().map(|taken| taken.range.len()).sum()
    }

    /// Whether everything was copied that was marked at the beginning.
    pub(crate) fn has_copied_all(&self) -> bool {
        self.first_pass.is_some_and(|until| self.taken.iter().all(|taken| taken.number >= until))
    }

    /// The first region with a mark, from the cursor on, that nobody copies.
    fn first_free(&self, dirty: &DirtyMap) -> Option<u64> {
        let mut at = self.cursor;
        loop {
            at = dirty.next(at)?;
            match self.taken.iter().find(|taken| (taken.first..taken.behind).contains(&at)) {
                Some(taken) => at = taken.behind,
                None => return Some(at),
            }
        }
    }

    fn is_free(&self, region: u64) -> bool {
        !self.taken.iter().any(|taken| (taken.first..taken.behind).contains(&region))
    }
}
