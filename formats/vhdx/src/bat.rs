//! Block allocation table (BAT) in memory ([MS-VHDX] 2.5).

use std::collections::BTreeSet;

use suimon_image::{ByteRange, ImageError, ImageFault, MetadataChange};

use crate::fields::{FILE_MB_MAX, MB, PAGE_BYTES, PAGE_LEN, put, to_usize, u64_at};
use crate::geometry::{BatEntryTarget, Geometry, PAGE_ENTRIES};
use crate::replayed_view::ReplayedView;
use crate::space::Occupancy;

const STATE_MASK: u64 = 7;
/// Code of the unmapped state in version 0.95 of the format.
const UNMAPPED_V095: u64 = 5;
const MB_SHIFT: u32 = 20;
/// Number of bytes of the BAT that are read at a time.
const READ_LEN: u64 = MB;

/// State of a block ([MS-VHDX] 2.5.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum BlockState {
    /// Not allocated: read from the parent, or as zeros without a parent.
    NotPresent = 0,
    Undefined = 1,
    Zero = 2,
    /// Discarded by the guest; reads as zeros.
    Unmapped = 3,
    FullyPresent = 6,
    /// Allocated; the sector bitmap determines which sectors are in the file and which in the
    /// parent.
    PartiallyPresent = 7,
}

/// State and file offset of a block, packed into 4 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatEntry(u32);

impl BatEntry {
    pub(crate) const NOT_PRESENT: Self = Self(0);
    pub(crate) const UNMAPPED: Self = Self(BlockState::Unmapped as u32);

    /// Returns the entry of a block that is allocated at `mb` megabytes, below [`FILE_MB_MAX`].
    pub(crate) const fn present(state: BlockState, mb: u32) -> Self {
        Self(mb << 3 | state as u32)
    }

    #[inline]
    pub(crate) fn state(self) -> BlockState {
        match self.0 & 7 {
            6 => BlockState::FullyPresent,
            7 => BlockState::PartiallyPresent,
            0 => BlockState::NotPresent,
            1 => BlockState::Undefined,
            2 => BlockState::Zero,
            _ => BlockState::Unmapped,
        }
    }

    /// Returns true if the block is allocated in the file.
    #[inline]
    pub(crate) fn is_present(self) -> bool {
        self.0 & 7 >= 6
    }

    #[inline]
    pub(crate) fn is_fully_present(self) -> bool {
        self.0 & 7 == 6
    }

    /// Returns the file offset of an allocated block in megabytes.
    pub(crate) fn offset_mb(self) -> u32 {
        self.0 >> 3
    }

    /// Returns the file offset of an allocated block in bytes.
    #[inline]
    pub(crate) fn offset(self) -> u64 {
        u64::from(self.0 >> 3) << MB_SHIFT
    }

    fn stored(self) -> u64 {
        u64::from(self.0 & 7) | self.offset()
    }
}

/// Block allocation table: 4 bytes per block, and for differencing images 4 bytes per sector
/// bitmap. 64 TB with blocks of 1 MB need 256 MB.
#[derive(Debug)]
pub(crate) struct Bat {
    payload: Vec<BatEntry>,
    bitmaps: Vec<BatEntry>,
    /// Numbers of the pages of the table that changed since they were last part of a commit.
    pub dirty_pages: BTreeSet<u64>,
    /// Changes of entries and sector bitmaps since they were last taken for a redo record; `None`
    /// if they are not recorded.
    pub unrecorded_changes: Option<Vec<MetadataChange>>,
    pub region: ByteRange,
}

/// Handler of errors in entries. It returns the error to end reading, or records it and returns
/// `Ok` to continue.
pub(crate) type FaultHandler<'a> = dyn FnMut(ImageError) -> Result<(), ImageError> + 'a;

impl Bat {
    /// Reads the table and marks the space that it refers to as occupied.
    ///
    /// # Errors
    ///
    /// The error that `faults` returned, or the file cannot be read.
    pub(crate) fn read(
        view: &ReplayedView<'_>,
        region: ByteRange,
        geometry: &Geometry,
        occupancy: &mut Occupancy,
        faults: &mut FaultHandler<'_>,
    ) -> Result<Self, ImageError> {
        // The disk has at most 2^26 blocks, so the memory is bounded.
        let entries = geometry.entry_count();
        if !region.is_within(view.replayed_len) {
            let fault = ImageFault::Truncated { file_len: view.file_len };
            return Err(ImageError::new("BAT", region.offset(), fault));
        }
        if region.len() / 8 < entries {
            let fault = ImageFault::InvalidValue {
                value: region.len(),
                allowed: "the length that the disk needs",
            };
            return Err(ImageError::new("BAT region length", region.offset(), fault));
        }
        let chunks = if geometry.has_parent { geometry.chunks() } else { 0 };
        let mut bat = Self {
            payload: Vec::with_capacity(to_usize(geometry.blocks())),
            bitmaps: Vec::with_capacity(to_usize(chunks)),
            dirty_pages: BTreeSet::new(),
            unrecorded_changes: None,
            region,
        };
        let (used, _) = region.split_at(entries * 8);
        for (_, part) in used.blocks(READ_LEN) {
            let bytes = view.read("BAT", part)?;
            for (raw, offset) in bytes.chunks_exact(8).zip((part.offset()..).step_by(8)) {
                let raw = u64_at(raw, 0);
                let slot = geometry.entry_target((offset - region.offset()) / 8);
                let entry = match parse(raw, slot, offset, geometry, view, occupancy) {
                    Ok(entry) => entry,
                    Err(fault) => {
                        faults(fault)?;
                        BatEntry::NOT_PRESENT
                    }
                };
                match slot {
                    BatEntryTarget::Payload(block) if block < geometry.blocks() => {
                        bat.payload.push(entry);
                    }
                    BatEntryTarget::Bitmap(_) if geometry.has_parent => bat.bitmaps.push(entry),
                    BatEntryTarget::Payload(_) | BatEntryTarget::Bitmap(_) => {}
                }
            }
        }
        bat.check_bitmaps(geometry, faults)?;
        Ok(bat)
    }

    /// Returns a table without allocated blocks.
    #[cfg(test)]
    pub(crate) fn empty(region: ByteRange, geometry: &Geometry) -> Self {
        let (payload, bitmaps, dirty, changes) = Default::default();
        let mut bat =
            Self { payload, bitmaps, dirty_pages: dirty, unrecorded_changes: changes, region };
        bat.resize(geometry);
        bat
    }

    /// Checks that a sector bitmap is allocated for each partially present block.
    fn check_bitmaps(
        &self,
        geometry: &Geometry,
        faults: &mut FaultHandler<'_>,
    ) -> Result<(), ImageError> {
        for (block, entry) in (0..).zip(&self.payload) {
            let is_alone = entry.state() == BlockState::PartiallyPresent
                && !self.bitmap_entry(geometry.chunk_of_block(block)).is_present();
            if is_alone {
                let offset = self.region.offset() + geometry.payload_entry_index(block) * 8;
                faults(ImageError::new(
                    "sector bitmap of a block",
                    offset,
                    ImageFault::MissingStructure,
                ))?;
            }
        }
        Ok(())
    }

    /// Returns true if the file range lies within an allocated sector bitmap.
    pub(crate) fn contains_bitmap_range(&self, range: ByteRange) -> bool {
        let bitmaps = self.bitmaps.iter().filter(|entry| entry.is_present());
        let mut bitmaps = bitmaps.filter_map(|entry| ByteRange::new(entry.offset(), MB));
        bitmaps.any(|bitmap| bitmap.contains(range))
    }

    /// Returns the entry of a block. Blocks beyond the end of the disk are not present.
    #[inline]
    pub(crate) fn payload_entry(&self, block: u64) -> BatEntry {
        let entry = usize::try_from(block).ok().and_then(|block| self.payload.get(block));
        entry.copied().unwrap_or(BatEntry::NOT_PRESENT)
    }

    /// Returns the entry of a chunk's sector bitmap.
    pub(crate) fn bitmap_entry(&self, chunk: u64) -> BatEntry {
        let entry = usize::try_from(chunk).ok().and_then(|chunk| self.bitmaps.get(chunk));
        entry.copied().unwrap_or(BatEntry::NOT_PRESENT)
    }

    pub(crate) fn set_payload_entry(&mut self, block: u64, entry: BatEntry, geometry: &Geometry) {
        if let Some(slot) = self.payload.get_mut(to_usize(block)) {
            let before = core::mem::replace(slot, entry);
            self.record_change(geometry.payload_entry_index(block), before, entry);
        }
    }

    pub(crate) fn set_bitmap_entry(&mut self, chunk: u64, entry: BatEntry, geometry: &Geometry) {
        if let Some(slot) = self.bitmaps.get_mut(to_usize(chunk)) {
            let before = core::mem::replace(slot, entry);
            self.record_change(geometry.bitmap_entry_index(chunk), before, entry);
        }
    }

    /// Records the change of entry `number` for a commit and for the redo record.
    fn record_change(&mut self, number: u64, before: BatEntry, after: BatEntry) {
        self.dirty_pages.insert(number / PAGE_ENTRIES);
        if let Some(changes) = &mut self.unrecorded_changes {
            let offset = self.region.offset().saturating_add(number * 8);
            let stored = |entry: BatEntry| entry.stored().to_le_bytes();
            changes.push(MetadataChange::entry(offset, stored(before), stored(after)));
        }
    }

    /// Adapts the table to a new disk size: removes entries, or adds entries in state not present.
    pub(crate) fn resize(&mut self, geometry: &Geometry) {
        self.payload.resize(to_usize(geometry.blocks()), BatEntry::NOT_PRESENT);
        let chunks = if geometry.has_parent { geometry.chunks() } else { 0 };
        self.bitmaps.resize(to_usize(chunks), BatEntry::NOT_PRESENT);
    }

    /// Returns the entries of all blocks, in order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = BatEntry> {
        self.payload.iter().copied()
    }

    /// Returns file offset and encoded contents of page number `page` of the table.
    pub(crate) fn encode_page(&self, page: u64, geometry: &Geometry) -> (u64, Box<[u8; PAGE_LEN]>) {
        let mut bytes = Box::new([0; PAGE_LEN]);
        let first = page * PAGE_ENTRIES;
        let end = (first + PAGE_ENTRIES).min(geometry.entry_count());
        for (entry, offset) in (first..end).zip((0..).step_by(8)) {
            let entry = match geometry.entry_target(entry) {
                BatEntryTarget::Payload(block) => self.payload_entry(block),
                BatEntryTarget::Bitmap(chunk) => self.bitmap_entry(chunk),
            };
            put(bytes.as_mut_slice(), offset, &entry.stored().to_le_bytes());
        }
        (self.region.offset().saturating_add(page * PAGE_BYTES), bytes)
    }
}

/// Normalizes an entry in stored form: clears reserved bits, and for unallocated blocks the offset,
/// which is undefined ([MS-VHDX] 2.5.1.1).
pub(crate) fn normalize(entry: [u8; 8]) -> [u8; 8] {
    let raw = u64::from_le_bytes(entry);
    let normalized = match raw & STATE_MASK {
        state @ 0..=3 => state,
        UNMAPPED_V095 => BlockState::Unmapped as u64,
        state => raw >> MB_SHIFT << MB_SHIFT | state,
    };
    normalized.to_le_bytes()
}

/// Decodes the entry `raw`, which was read at `offset` of the file, and marks its space as
/// occupied. `slot` is the block or sector bitmap that the entry describes.
///
/// # Errors
///
/// The entry is invalid or its space is already occupied.
fn parse(
    raw: u64,
    slot: BatEntryTarget,
    offset: u64,
    geometry: &Geometry,
    view: &ReplayedView<'_>,
    occupancy: &mut Occupancy,
) -> Result<BatEntry, ImageError> {
    let invalid = |fault| ImageError::new("BatEntry", offset, fault);
    let (state, len, required) = match slot {
        BatEntryTarget::Bitmap(_) if !geometry.has_parent => return Ok(BatEntry::NOT_PRESENT),
        BatEntryTarget::Payload(block) if block >= geometry.blocks() => {
            return Ok(BatEntry::NOT_PRESENT);
        }
        BatEntryTarget::Bitmap(_) => match raw & STATE_MASK {
            0 => return Ok(BatEntry::NOT_PRESENT),
            6 => (BlockState::FullyPresent, MB, MB),
            value => {
                let allowed = "0 or 6, the states of a sector bitmap";
                return Err(invalid(ImageFault::InvalidValue { value, allowed }));
            }
        },
        BatEntryTarget::Payload(block) => match raw & STATE_MASK {
            6 => (BlockState::FullyPresent, geometry.block_bytes(), geometry.bytes_in_block(block)),
            7 if geometry.has_parent => (
                BlockState::PartiallyPresent,
                geometry.block_bytes(),
                geometry.bytes_in_block(block),
            ),
            value @ 0..=3 => return Ok(BatEntry(value as u32)),
            UNMAPPED_V095 => return Ok(BatEntry::UNMAPPED),
            value => {
                let allowed = "a state of a payload block: 0 to 3 or 6, and 7 only with a parent";
                return Err(invalid(ImageFault::InvalidValue { value, allowed }));
            }
        },
    };
    let mb = raw >> MB_SHIFT;
    let last = mb.saturating_add(len / MB);
    let valid_mb = u32::try_from(mb).ok().filter(|_| mb != 0 && last <= FILE_MB_MAX);
    let Some(mb) = valid_mb else {
        let allowed = "an offset behind the headers and below 512 TB";
        return Err(invalid(ImageFault::InvalidValue { value: mb, allowed }));
    };
    // The last block may be truncated at the end of the disk.
    if (u64::from(mb) << MB_SHIFT) + required > view.replayed_len {
        return Err(invalid(ImageFault::Truncated { file_len: view.file_len }));
    }
    let end = u32::try_from(last).unwrap_or(u32::MAX);
    let result = match slot {
        BatEntryTarget::Payload(_) => occupancy.occupy_payload(mb, end),
        BatEntryTarget::Bitmap(_) => occupancy.occupy(mb, end),
    };
    result.map_err(|other| invalid(ImageFault::Overlap { other }))?;
    Ok(BatEntry::present(state, mb))
}
