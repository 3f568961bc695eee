//! File whose changes stay in memory, and a file that permits only planned changes.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

use suimon_image::{ByteRange, FileError, ImageFile};

/// Unit of recording and backup of changes, in bytes.
pub(super) const SECTOR_BYTES: u64 = 512;

/// Maximum number of sectors that a plan may write: 128 MiB, twice the longest log that is
/// replayed.
pub(super) const SECTORS_MAX: u64 = 1 << 18;

/// Bytes that are compared or copied at a time; a multiple of [`SECTOR_BYTES`].
const PIECE: u64 = 1 << 20;

type Sector = [u8; SECTOR_BYTES as usize];

/// File that keeps changes in memory and leaves the base file unchanged.
pub(super) struct PlannedFile<'a> {
    base: &'a dyn ImageFile,
    base_len: u64,
    state: RefCell<State>,
}

struct State {
    len: u64,
    /// Offset in bytes from which content of the base file is not visible any more, because the
    /// plan has truncated the file.
    base_end: u64,
    /// Written sectors within the length, by their offsets.
    sectors: BTreeMap<u64, Box<Sector>>,
    /// Offsets of all sectors that were ever written, including those that were truncated later.
    written: BTreeSet<u64>,
    least: u64,
    largest: u64,
}

/// Lengths of a file during a change, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileLengths {
    pub(super) before: u64,
    pub(super) after: u64,
    /// Maximum length during the change.
    pub(super) largest: u64,
}

impl<'a> PlannedFile<'a> {
    pub(super) fn new(base: &'a dyn ImageFile) -> Result<Self, FileError> {
        let len = base.len()?;
        let state = State {
            len,
            base_end: len,
            sectors: BTreeMap::new(),
            written: BTreeSet::new(),
            least: len,
            largest: len,
        };
        Ok(Self { base, base_len: len, state: RefCell::new(state) })
    }

    /// Returns the lengths of the file before, during and after the plan.
    ///
    /// # Errors
    /// The plan truncates the file and extends it again: the truncated content would not be backed
    /// up.
    pub(super) fn lengths(&self) -> Result<FileLengths, FileError> {
        let state = self.state.borrow();
        if state.least < state.len.min(self.base_len) {
            let text = "a change that both truncates and extends the file is not possible";
            return Err(io::Error::other(text).into());
        }
        Ok(FileLengths { before: self.base_len, after: state.len, largest: state.largest })
    }

    /// Returns the sectors that the plan writes, even with unchanged content, in order and merged
    /// to ranges. The last sector of a file that becomes shorter is included, because it may be a
    /// footer. Other truncated content is unreferenced.
    pub(super) fn ranges(&self) -> Vec<ByteRange> {
        let state = self.state.borrow();
        let is_cut = state.len < self.base_len;
        let last = is_cut.then(|| self.base_len.saturating_sub(1) / SECTOR_BYTES * SECTOR_BYTES);
        let mut ranges = RangeBuilder::default();
        for offset in &state.written {
            if let Some(last) = last.filter(|last| last < offset) {
                ranges.add_sector(last);
            }
            ranges.add_sector(*offset);
        }
        if let Some(last) = last {
            ranges.add_sector(last);
        }
        ranges.joined
    }

    /// Reads the content before the plan; zeros beyond the end of the file.
    pub(super) fn read_before(&self, offset: u64, bytes: &mut [u8]) -> Result<(), FileError> {
        read_padded(self.base, self.base_len, offset, bytes)
    }

    /// Reads the content after the plan; zeros beyond the end of the file.
    pub(super) fn read_after(&self, offset: u64, bytes: &mut [u8]) -> Result<(), FileError> {
        read_padded(self, self.state.borrow().len, offset, bytes)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        let mut state = self.state.borrow_mut();
        let mut unwritten = bytes;
        let mut position = offset;
        while !unwritten.is_empty() {
            let (start, within_sector) =
                (position - position % SECTOR_BYTES, to_usize(position % SECTOR_BYTES));
            let (part, after) =
                unwritten.split_at(unwritten.len().min(SECTOR_BYTES as usize - within_sector));
            if !state.sectors.contains_key(&start) {
                state.note(start)?;
                let mut sector = Box::new([0; SECTOR_BYTES as usize]);
                read_padded(self.base, state.base_end, start, sector.as_mut())?;
                state.sectors.insert(start, sector);
            }
            if let Some(sector) = state.sectors.get_mut(&start) {
                let target = sector.get_mut(within_sector..within_sector + part.len());
                target.unwrap_or_default().copy_from_slice(part);
            }
            position = position.saturating_add(part.len() as u64);
            unwritten = after;
        }
        let len = state.len.max(position);
        state.set_len(len);
        Ok(())
    }
}

impl State {
    fn note(&mut self, sector: u64) -> Result<(), FileError> {
        if self.written.contains(&sector) {
            return Ok(());
        }
        if self.written.len() as u64 == SECTORS_MAX {
            let text = "the change needs more than 128 MiB of metadata";
            return Err(io::Error::other(text).into());
        }
        self.written.insert(sector);
        Ok(())
    }

    fn set_len(&mut self, len: u64) {
        self.len = len;
        (self.least, self.largest) = (self.least.min(len), self.largest.max(len));
    }
}

impl ImageFile for PlannedFile<'_> {
    fn len(&self) -> Result<u64, FileError> {
        Ok(self.state.borrow().len)
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), FileError> {
        let state = self.state.borrow();
        let end = offset.saturating_add(bytes.len() as u64);
        if end > state.len {
            return Err(FileError::BeyondEnd { len: state.len, offset: end });
        }
        read_padded(self.base, state.base_end, offset, bytes)?;
        for (start, sector) in state.sectors.range(offset.saturating_sub(SECTOR_BYTES - 1)..end) {
            let (from, to) = ((*start).max(offset), start.saturating_add(SECTOR_BYTES).min(end));
            let target = bytes.get_mut(to_usize(from - offset)..to_usize(to - offset));
            let source = sector.get(to_usize(from - start)..to_usize(to - start));
            if let (Some(target), Some(source)) = (target, source) {
                target.copy_from_slice(source);
            }
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        self.write(offset, bytes)
    }

    fn set_len(&self, len: u64) -> Result<(), FileError> {
        let mut state = self.state.borrow_mut();
        state.set_len(len);
        state.base_end = state.base_end.min(len);
        let _ = state.sectors.split_off(&len.next_multiple_of(SECTOR_BYTES));
        let last = state.sectors.get_mut(&(len - len % SECTOR_BYTES));
        if let Some(after) = last.and_then(|last| last.get_mut(to_usize(len % SECTOR_BYTES)..)) {
            after.fill(0);
        }
        Ok(())
    }

    fn zero(&self, offset: u64, len: u64) -> Result<(), FileError> {
        const CHUNK: [u8; 4096] = [0; 4096];
        let end = offset.saturating_add(len).min(self.state.borrow().len);
        let mut offset = offset;
        while offset < end {
            let chunk = CHUNK.get(..to_usize((end - offset).min(CHUNK.len() as u64)));
            self.write(offset, chunk.unwrap_or(&CHUNK))?;
            offset = offset.saturating_add(CHUNK.len() as u64);
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), FileError> {
        Ok(())
    }
}

/// Builder that merges sectors that are added one by one to ranges.
#[derive(Default)]
pub(super) struct RangeBuilder {
    pub(super) joined: Vec<ByteRange>,
}

impl RangeBuilder {
    /// Adds the sector at an offset. Sectors must be added in ascending order.
    pub(super) fn add_sector(&mut self, offset: u64) {
        let last = self.joined.last().copied().filter(|last| last.end() >= offset);
        let range = match last {
            Some(last) if last.end() > offset => return,
            Some(last) => {
                self.joined.pop();
                ByteRange::new(last.offset(), last.len() + SECTOR_BYTES)
            }
            None => ByteRange::new(offset, SECTOR_BYTES),
        };
        self.joined.extend(range);
    }
}

/// Splits a range of whole sectors into parts of at most 1 MiB.
pub(super) fn chunks(range: ByteRange) -> impl Iterator<Item = ByteRange> {
    let parts = 0..range.len().div_ceil(PIECE);
    parts.filter_map(move |nth| {
        let start = range.offset().saturating_add(nth.saturating_mul(PIECE));
        ByteRange::new(start, range.end().saturating_sub(start).min(PIECE))
    })
}

/// File that passes on only writes within the ranges of a plan, and fails for others.
pub(super) struct GuardedFile<'a> {
    file: &'a dyn ImageFile,
    /// Permitted ranges, in ascending order and not touching.
    allowed: &'a [ByteRange],
    lengths: core::ops::RangeInclusive<u64>,
}

impl<'a> GuardedFile<'a> {
    pub(super) fn new(
        file: &'a dyn ImageFile,
        allowed: &'a [ByteRange],
        lengths: core::ops::RangeInclusive<u64>,
    ) -> Self {
        Self { file, allowed, lengths }
    }

    fn check(&self, offset: u64, end: u64) -> Result<(), FileError> {
        let nth = self.allowed.partition_point(|range| range.end() <= offset);
        let is_allowed = |range: &ByteRange| range.offset() <= offset && end <= range.end();
        if end <= offset || self.allowed.get(nth).is_some_and(is_allowed) {
            return Ok(());
        }
        let text = format!("a write at {offset} was not planned and is rejected");
        Err(io::Error::other(text).into())
    }
}

impl ImageFile for GuardedFile<'_> {
    fn len(&self) -> Result<u64, FileError> {
        self.file.len()
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), FileError> {
        self.file.read_at(offset, bytes)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        self.check(offset, offset.saturating_add(bytes.len() as u64))?;
        self.file.write_at(offset, bytes)
    }

    fn set_len(&self, len: u64) -> Result<(), FileError> {
        if !self.lengths.contains(&len) {
            let text = format!("a length of {len} was not planned and is rejected");
            return Err(io::Error::other(text).into());
        }
        self.file.set_len(len)
    }

    fn zero(&self, offset: u64, len: u64) -> Result<(), FileError> {
        // The same holds for real files, which have no space to zero beyond their end.
        self.check(offset, offset.saturating_add(len).min(self.file.len()?))?;
        self.file.zero(offset, len)
    }

    fn flush(&self) -> Result<(), FileError> {
        self.file.flush()
    }
}

/// Fills `bytes` with the content of a file before `end`, and with zeros beyond it.
pub(super) fn read_padded(
    file: &dyn ImageFile,
    end: u64,
    offset: u64,
    bytes: &mut [u8],
) -> Result<(), FileError> {
    let existing = to_usize(end.saturating_sub(offset)).min(bytes.len());
    let (existing, after) = bytes.split_at_mut(existing);
    after.fill(0);
    if existing.is_empty() { Ok(()) } else { file.read_at(offset, existing) }
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use suimon_image::testing::MemoryFile;

    use super::*;

    /// Performs a plan that writes beyond the end, truncates part of that, and zeroes beyond the
    /// end.
    fn plan(file: &dyn ImageFile) {
        file.write_at(3 * SECTOR_BYTES + 10, &[1; 20]).unwrap();
        file.write_at(9 * SECTOR_BYTES, &[2; SECTOR_BYTES as usize]).unwrap();
        file.write_at(6 * SECTOR_BYTES, &[3; SECTOR_BYTES as usize]).unwrap();
        file.set_len(7 * SECTOR_BYTES).unwrap();
        file.zero(6 * SECTOR_BYTES + 100, 1 << 30).unwrap();
    }

    #[test]
    fn a_guarded_file_permits_exactly_the_planned_changes() {
        let file = MemoryFile::new(vec![9; 5 * SECTOR_BYTES as usize]);
        let planned = PlannedFile::new(&file).unwrap();
        plan(&planned);
        let lengths = planned.lengths().unwrap();
        assert_eq!((lengths.before, lengths.after), (5 * SECTOR_BYTES, 7 * SECTOR_BYTES));
        assert_eq!(lengths.largest, 10 * SECTOR_BYTES);
        let ranges = planned.ranges();
        let expected =
            [3, 6, 9].map(|nth| ByteRange::new(nth * SECTOR_BYTES, SECTOR_BYTES).unwrap());
        assert_eq!(ranges, expected);
        let mut after = vec![0; 8 * SECTOR_BYTES as usize];
        planned.read_after(0, &mut after).unwrap();
        let min_len = lengths.before.min(lengths.after);
        let guarded = GuardedFile::new(&file, &ranges, min_len..=lengths.largest);
        plan(&guarded);
        assert_eq!(file.bytes(), after[..7 * SECTOR_BYTES as usize]);
        guarded.write_at(2 * SECTOR_BYTES, &[1]).unwrap_err();
        guarded.write_at(4 * SECTOR_BYTES - 1, &[1; 2]).unwrap_err();
        guarded.zero(0, 1).unwrap_err();
        guarded.set_len(0).unwrap_err();
        guarded.set_len(11 * SECTOR_BYTES).unwrap_err();
    }

    #[test]
    fn a_plan_that_truncates_and_extends_again_is_refused_before_any_write() {
        let file = MemoryFile::new(vec![9; 5 * SECTOR_BYTES as usize]);
        let planned = PlannedFile::new(&file).unwrap();
        planned.set_len(SECTOR_BYTES).unwrap();
        assert_eq!(planned.ranges(), [ByteRange::new(4 * SECTOR_BYTES, SECTOR_BYTES).unwrap()]);
        planned.lengths().unwrap();
        planned.set_len(2 * SECTOR_BYTES).unwrap();
        planned.lengths().unwrap_err();
    }

    #[test]
    fn a_plan_that_writes_too_much_is_refused_and_rewriting_costs_nothing() {
        let file = MemoryFile::new(vec![9; SECTOR_BYTES as usize]);
        let planned = PlannedFile::new(&file).unwrap();
        planned.set_len(1 << 40).unwrap();
        planned.zero(1 << 30, SECTORS_MAX * SECTOR_BYTES).unwrap();
        planned.zero(1 << 30, SECTORS_MAX * SECTOR_BYTES).unwrap();
        planned.write_at(1 << 31, &[1]).unwrap_err();
        assert_eq!(planned.ranges().len(), 1);
    }

    #[test]
    fn long_ranges_have_pieces() {
        let range = ByteRange::new(SECTOR_BYTES, 2 * PIECE + SECTOR_BYTES).unwrap();
        let piece_list: Vec<(u64, u64)> =
            chunks(range).map(|piece| (piece.offset(), piece.len())).collect();
        assert_eq!(
            piece_list,
            [
                (SECTOR_BYTES, PIECE),
                (SECTOR_BYTES + PIECE, PIECE),
                (SECTOR_BYTES + 2 * PIECE, SECTOR_BYTES)
            ]
        );
    }
}
