//! Changes of a file that are computed in memory, and a file on which nothing else can be done.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;

use suimon_image::{FileError, ImageFile};

use super::change::SECTOR;

/// Sectors that a plan may touch: 128 MiB, twice the longest log that is replayed.
const SECTORS_MAX: usize = 1 << 18;

type Sector = [u8; SECTOR as usize];

/// A file whose changes stay in memory.
pub(super) struct PlannedFile<'a> {
    base: &'a dyn ImageFile,
    base_len: u64,
    state: RefCell<State>,
}

struct State {
    len: u64,
    /// What lies behind this is not the base's any more.
    base_end: u64,
    sectors: BTreeMap<u64, Box<Sector>>,
}

/// A touched stretch of whole sectors, with its content before and after. Both have the stretch's
/// length: what a file does not have reads as zeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Touched {
    pub(super) offset: u64,
    pub(super) before: Vec<u8>,
    pub(super) after: Vec<u8>,
}

impl Touched {
    pub(super) fn end(&self) -> u64 {
        self.offset.saturating_add(self.after.len() as u64)
    }
}

impl<'a> PlannedFile<'a> {
    pub(super) fn new(base: &'a dyn ImageFile) -> Result<Self, FileError> {
        let base_len = base.len()?;
        let state = State { len: base_len, base_end: base_len, sectors: BTreeMap::new() };
        Ok(Self { base, base_len, state: RefCell::new(state) })
    }

    /// Returns the stretches that were written, in order, whether their content differs or not.
    pub(super) fn touched(&self) -> Result<Vec<Touched>, FileError> {
        let state = self.state.borrow();
        let mut all: Vec<Touched> = Vec::new();
        for (offset, after) in &state.sectors {
            let mut before = [0; SECTOR as usize];
            read_padded(self.base, self.base_len, *offset, &mut before)?;
            match all.last_mut().filter(|last| last.end() == *offset) {
                Some(last) => {
                    last.before.extend_from_slice(&before);
                    last.after.extend_from_slice(after.as_slice());
                }
                None => all.push(Touched {
                    offset: *offset,
                    before: before.to_vec(),
                    after: after.to_vec(),
                }),
            }
        }
        Ok(all)
    }

    /// Returns the last sector of a file that becomes shorter: it may be a footer. What was cut off
    /// before it is unreferenced.
    pub(super) fn cut_end(&self) -> Result<Option<Touched>, FileError> {
        let last = self.base_len.saturating_sub(1) / SECTOR * SECTOR;
        if last < self.state.borrow().len {
            return Ok(None);
        }
        let mut before = vec![0; SECTOR as usize];
        read_padded(self.base, self.base_len, last, &mut before)?;
        Ok(Some(Touched { offset: last, before, after: vec![0; SECTOR as usize] }))
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        let mut state = self.state.borrow_mut();
        let mut rest = bytes;
        let mut at = offset;
        while !rest.is_empty() {
            let (start, within) = (at - at % SECTOR, to_usize(at % SECTOR));
            let (part, after) = rest.split_at(rest.len().min(SECTOR as usize - within));
            if !state.sectors.contains_key(&start) {
                if state.sectors.len() == SECTORS_MAX {
                    let text = "the change needs more than 128 MiB of metadata";
                    return Err(io::Error::other(text).into());
                }
                let mut sector = Box::new([0; SECTOR as usize]);
                read_padded(self.base, state.base_end, start, sector.as_mut())?;
                state.sectors.insert(start, sector);
            }
            if let Some(sector) = state.sectors.get_mut(&start) {
                let place = sector.get_mut(within..within + part.len());
                place.unwrap_or_default().copy_from_slice(part);
            }
            at = at.saturating_add(part.len() as u64);
            rest = after;
        }
        state.len = state.len.max(at);
        Ok(())
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
            return Err(FileError::End { len: state.len, wanted: end });
        }
        read_padded(self.base, state.base_end, offset, bytes)?;
        for (start, sector) in state.sectors.range(offset.saturating_sub(SECTOR - 1)..end) {
            let (from, to) = ((*start).max(offset), start.saturating_add(SECTOR).min(end));
            let place = bytes.get_mut(to_usize(from - offset)..to_usize(to - offset));
            let source = sector.get(to_usize(from - start)..to_usize(to - start));
            if let (Some(place), Some(source)) = (place, source) {
                place.copy_from_slice(source);
            }
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        self.write(offset, bytes)
    }

    fn set_len(&self, len: u64) -> Result<(), FileError> {
        let mut state = self.state.borrow_mut();
        (state.len, state.base_end) = (len, state.base_end.min(len));
        let _ = state.sectors.split_off(&len.next_multiple_of(SECTOR));
        let last = state.sectors.get_mut(&(len - len % SECTOR));
        if let Some(behind) = last.and_then(|last| last.get_mut(to_usize(len % SECTOR)..)) {
            behind.fill(0);
        }
        Ok(())
    }

    fn zero(&self, offset: u64, len: u64) -> Result<(), FileError> {
        const CHUNK: [u8; 4096] = [0; 4096];
        let end = offset.saturating_add(len).min(self.state.borrow().len);
        let mut at = offset;
        while at < end {
            let chunk = CHUNK.get(..to_usize((end - at).min(CHUNK.len() as u64)));
            self.write(at, chunk.unwrap_or(&CHUNK))?;
            at = at.saturating_add(CHUNK.len() as u64);
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), FileError> {
        Ok(())
    }
}

/// A file that can only be written where a plan has touched it.
pub(super) struct GuardedFile<'a> {
    file: &'a dyn ImageFile,
    allowed: Vec<(u64, u64)>,
    len_min: u64,
}

impl<'a> GuardedFile<'a> {
    /// The file may become shorter than now, but not shorter than `len_min`.
    pub(super) fn new(file: &'a dyn ImageFile, touched: &[Touched], len_min: u64) -> Self {
        let allowed = touched.iter().map(|stretch| (stretch.offset, stretch.end())).collect();
        Self { file, allowed, len_min }
    }

    fn check(&self, offset: u64, len: u64) -> Result<(), FileError> {
        let end = offset.saturating_add(len);
        if len == 0 || self.allowed.iter().any(|(from, to)| *from <= offset && end <= *to) {
            return Ok(());
        }
        let text = format!("a change at {offset} was not planned; nothing is written there");
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
        self.check(offset, bytes.len() as u64)?;
        self.file.write_at(offset, bytes)
    }

    fn set_len(&self, len: u64) -> Result<(), FileError> {
        if len < self.len_min {
            let text = format!("a length of {len} was not planned; the file is not cut");
            return Err(io::Error::other(text).into());
        }
        self.file.set_len(len)
    }

    fn zero(&self, offset: u64, len: u64) -> Result<(), FileError> {
        self.check(offset, len)?;
        self.file.zero(offset, len)
    }

    fn flush(&self) -> Result<(), FileError> {
        self.file.flush()
    }
}

/// Reads what the file has before `end`, and zeros behind it.
pub(super) fn read_padded(
    file: &dyn ImageFile,
    end: u64,
    offset: u64,
    bytes: &mut [u8],
) -> Result<(), FileError> {
    let there = to_usize(end.saturating_sub(offset)).min(bytes.len());
    let (there, behind) = bytes.split_at_mut(there);
    behind.fill(0);
    if there.is_empty() { Ok(()) } else { file.read_at(offset, there) }
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
