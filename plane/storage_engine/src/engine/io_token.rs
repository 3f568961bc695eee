//! Tokens by which completions of I/O operations are identified.

/// Operation to which a completion belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IoPurpose {
    /// I/O of a part of the request with this number, at this page of the file. The last page
    /// number represents all later pages.
    Part(usize, u64),
    /// Metadata read of the disk with this number.
    Metadata(usize),
    /// Step with this number of a commit of the disk with this number.
    Commit(usize, usize),
    /// Zeroing of freed space of the disk with this number.
    Zeroing(usize),
}

/// Binary logarithm of the size of a page in bytes.
pub(crate) const PAGE_SHIFT: u32 = 12;

impl IoPurpose {
    const KIND_SHIFT: u32 = 62;
    const PAGE: u32 = 24;
    /// Maximum page number: pages of files up to a petabyte.
    pub(crate) const PAGE_MAX: u64 = (1 << (Self::KIND_SHIFT - Self::PAGE)) - 1;

    /// Returns the purpose for a part of a request at this file offset.
    pub(crate) fn part(request: usize, offset: u64) -> Self {
        Self::Part(request, (offset >> PAGE_SHIFT).min(Self::PAGE_MAX))
    }

    pub(crate) fn token(self) -> u64 {
        let (kind, number, page) = match self {
            Self::Part(number, page) => (0, number, page),
            Self::Metadata(number) => (1, number, 0),
            // A commit has far fewer steps than the token has page numbers.
            Self::Commit(number, step) => (2, number, step as u64 & Self::PAGE_MAX),
            Self::Zeroing(number) => (3, number, 0),
        };
        debug_assert!(number < 1 << Self::PAGE, "numbers are bounded far below");
        kind << Self::KIND_SHIFT | page << Self::PAGE | number as u64
    }

    pub(crate) fn from_token(token: u64) -> Self {
        // The request, disk or step number has 24 bits.
        let number = (token & ((1 << Self::PAGE) - 1)) as usize;
        let page = token >> Self::PAGE & Self::PAGE_MAX;
        match token >> Self::KIND_SHIFT {
            0 => Self::Part(number, page),
            1 => Self::Metadata(number),
            2 => Self::Commit(number, page as usize),
            _ => Self::Zeroing(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::IoPurpose;

    #[test]
    fn a_token_contains_the_purpose_it_was_created_from() {
        let parts = [IoPurpose::part(0, 0), IoPurpose::part(9, 4095), IoPurpose::part(3, u64::MAX)];
        let max_number = (1 << 24) - 1;
        let others = [
            IoPurpose::Metadata(7),
            IoPurpose::Commit(max_number, 9),
            IoPurpose::Zeroing(max_number),
        ];
        for purpose in parts.into_iter().chain(others) {
            assert_eq!(IoPurpose::from_token(purpose.token()), purpose);
        }
        assert_eq!(IoPurpose::part(3, 1 << 49), IoPurpose::Part(3, 1 << 37));
    }
}
