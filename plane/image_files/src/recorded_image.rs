//! Image with a redo record of its metadata changes outside of this process.

use std::cell::Cell;
use std::collections::BTreeMap;

use suimon_image::{
    ByteRange, Commit, CommitOutcome, DiskGeometry, FileError, Image, ImageError, ImageExtent,
    ImageFile, ImageIdentity, MetadataChange, RangeSet, Translation,
};
use suimon_ports::RedoRecord;

/// Number of metadata bytes that one recorded change counts as in [`Image::uncommitted_bytes`], so
/// that a commit is due at the latest when the record is full.
const BYTES_PER_CHANGE: u64 = 2048;

/// Maximum number of metadata changes per block of a discard: only the block's entry changes.
const CHANGES_PER_DISCARD: u64 = 1;

/// Largest number of blocks discarded at a time, which bounds the memory for their changes.
const DISCARDED_BLOCKS_MAX: u64 = 1 << 16;

/// File that notes whether a flush through it has failed.
struct WatchedFile<'a> {
    file: &'a dyn ImageFile,
    has_failed_flush: Cell<bool>,
}

impl ImageFile for WatchedFile<'_> {
    fn len(&self) -> Result<u64, FileError> {
        self.file.len()
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), FileError> {
        self.file.read_at(offset, bytes)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        self.file.write_at(offset, bytes)
    }

    fn set_len(&self, len: u64) -> Result<(), FileError> {
        self.file.set_len(len)
    }

    fn zero(&self, offset: u64, len: u64) -> Result<(), FileError> {
        self.file.zero(offset, len)
    }

    fn flush(&self) -> Result<(), FileError> {
        self.file.flush().inspect_err(|_| self.has_failed_flush.set(true))
    }
}

/// Image with a redo record of its metadata changes. A write completes when its metadata changes
/// are recorded. A commit makes them durable and empties the record.
///
/// A change is made only if it can be recorded: room is reserved before a write is translated. The
/// file therefore never contains a change that the record lacks, and applying the record does not
/// revert changes that a commit has written.
///
/// After a write to the record has failed, the record is not used any more. Each write to newly
/// allocated space then waits for a commit, as do later writes to the same blocks until that commit
/// has ended. The record is abandoned when the first of these commits begins.
pub struct RecordedImage {
    image: Box<dyn Image>,
    /// Redo record; `None` if no record could be created.
    record: Option<Box<dyn RedoRecord>>,
    /// True if a write to the record has failed, or there is none.
    has_failed: bool,
    /// Number of the oldest change in the record.
    first: u64,
    /// Changes that were not recorded, because one request made more changes than the record has
    /// room for. They follow all recorded changes.
    unrecorded_changes: Vec<MetadataChange>,
    /// Ranges of the disk with changes that are neither recorded nor part of a commit.
    unrecorded: Unrecorded,
    /// Ranges of the disk with changes that are not recorded and part of the commit in flight.
    committing_unrecorded: Unrecorded,
    /// Changes that the commit in flight includes: the number before which recorded changes are
    /// included, and the number of changes in `unrecorded_changes` that are included.
    committing: (u64, usize),
    /// Reservations of record space for changes by writes in flight, by range (offset, length); and
    /// the sum of their changes.
    in_flight: BTreeMap<(u64, u64), Reservation>,
    reserved: u64,
}

/// Ranges of a disk, in whole blocks, with metadata changes that are in no redo record.
#[derive(Debug, Default)]
struct Unrecorded {
    ranges: RangeSet,
    /// True if changes of any range may be unrecorded, because the record has just failed.
    is_all: bool,
}

impl Unrecorded {
    fn intersects(&self, range: ByteRange) -> bool {
        self.is_all || self.ranges.intersects(range)
    }

    /// Adds the blocks of a range. `None` adds all blocks.
    fn insert(&mut self, range: Option<ByteRange>, block: u64) {
        let block_range = range.and_then(|range| {
            let start = range.offset() - range.offset() % block.max(1);
            let end = range.end().checked_next_multiple_of(block.max(1))?;
            ByteRange::new(start, end - start)
        });
        match block_range {
            Some(range) => self.ranges.insert(range),
            None => self.is_all = true,
        }
    }

    fn append(&mut self, mut other: Self) {
        self.is_all |= other.is_all;
        self.ranges.append(&mut other.ranges);
    }
}

/// Reservation of record space for writes in flight to one range.
#[derive(Clone, Copy, Debug, Default)]
struct Reservation {
    writes: u32,
    changes: u64,
}

impl RecordedImage {
    /// Creates a recorded image from its empty record and an image that was opened for writing and
    /// not changed since.
    #[must_use]
    pub fn new(image: Box<dyn Image>, record: Box<dyn RedoRecord>) -> Self {
        Self::with(image, Some(record))
    }

    /// Creates an image that cannot record its changes. It behaves as after a failure of its
    /// record.
    #[must_use]
    pub fn without_record(image: Box<dyn Image>) -> Self {
        Self::with(image, None)
    }

    fn with(mut image: Box<dyn Image>, record: Option<Box<dyn RedoRecord>>) -> Self {
        image.enable_change_log();
        let first = record.as_ref().map_or(0, |record| record.next_change_number());
        Self {
            image,
            has_failed: record.is_none(),
            record,
            first,
            unrecorded_changes: Vec::new(),
            unrecorded: Unrecorded::default(),
            committing_unrecorded: Unrecorded::default(),
            committing: (first, 0),
            in_flight: BTreeMap::new(),
            reserved: 0,
        }
    }

    /// Returns the record unless a write to it has failed.
    fn usable(&self) -> Option<&dyn RedoRecord> {
        self.record.as_deref().filter(|_| !self.has_failed)
    }

    /// Returns the number of further changes for which the record has room that is neither used nor
    /// reserved; [`u64::MAX`] without a usable record.
    fn free(&self) -> u64 {
        self.usable().map_or(u64::MAX, |record| {
            let record_position = record.next_change_number().saturating_sub(self.first);
            record.capacity_changes().saturating_sub(record_position).saturating_sub(self.reserved)
        })
    }

    /// Returns true if a commit, or the end of writes in flight, can free room in the record.
    fn can_have_more_room(&self) -> bool {
        self.usable().is_some_and(|record| self.free() < record.capacity_changes())
    }

    /// Releases the reservation of a write of `range` that has ended.
    fn release(&mut self, range: ByteRange) {
        let key = (range.offset(), range.len());
        let Some(reservation) = self.in_flight.get_mut(&key) else { return };
        reservation.writes = reservation.writes.saturating_sub(1);
        if reservation.writes == 0 {
            self.reserved = self.reserved.saturating_sub(reservation.changes);
            self.in_flight.remove(&key);
        }
    }

    /// Removes the changes from the record that the commit which has ended has written to the file.
    fn end_commit(&mut self) {
        let (before, others) = core::mem::take(&mut self.committing);
        self.committing_unrecorded = Unrecorded::default();
        if !self.has_failed {
            self.unrecorded_changes.drain(..others.min(self.unrecorded_changes.len()));
            match self.record.as_mut().map(|record| record.truncate_before(before)) {
                None | Some(Ok(())) => self.first = before,
                Some(Err(_)) => self.give_up_record(),
            }
        }
        self.keep(None);
    }

    /// Records pending changes before a commit writes all changes to the file. Recorded and
    /// unrecorded changes may concern the same metadata. If not all changes could be recorded, none
    /// may be applied later, and the record is abandoned.
    fn keep_or_abandon(&mut self) {
        self.keep(None);
        let has_kept = self.usable().is_some_and(|record| record.next_change_number() > self.first);
        let has_both = has_kept && !self.unrecorded_changes.is_empty();
        debug_assert!(!has_both, "room was reserved for all changes");
        if has_both {
            self.give_up_record();
        }
        if self.has_failed {
            // If this fails as well and the process is killed during the commit, the record does
            // not match the image.
            let _ = self.record.as_mut().map(|record| record.abandon());
        }
    }

    /// Writes pending changes to the record. `range`: range of the disk that has changed since the
    /// previous call; `None` if unknown.
    fn keep(&mut self, range: Option<ByteRange>) {
        let before = self.unrecorded_changes.len();
        self.image.take_logged_changes(&mut self.unrecorded_changes);
        let has_new = self.unrecorded_changes.len() > before;
        if self.unrecorded_changes.is_empty() {
            return;
        }
        let block = self.image.disk_geometry().block_bytes;
        let Some(record) = self.record.as_mut().filter(|_| !self.has_failed) else {
            // The contents of the changes are not needed any more.
            self.unrecorded_changes.clear();
            return self.unrecorded.insert(range, block);
        };
        // An unrecorded change waits for a commit, as without a record.
        match record.append(&self.unrecorded_changes, self.image.identity().file_len) {
            Ok(true) => {
                self.unrecorded_changes.clear();
                self.committing.1 = 0;
                self.unrecorded = Unrecorded::default();
                self.committing_unrecorded = Unrecorded::default();
            }
            Ok(false) if has_new => self.unrecorded.insert(range, block),
            Ok(false) => {}
            Err(_) => self.give_up_record(),
        }
    }

    /// Stops recording. The content of the record is irrelevant from now on, because the next
    /// commit abandons the record.
    fn give_up_record(&mut self) {
        self.has_failed = true;
        self.unrecorded.is_all = true;
        self.unrecorded_changes.clear();
    }
}

impl Image for RecordedImage {
    fn disk_geometry(&self) -> DiskGeometry {
        self.image.disk_geometry()
    }

    fn linear_offset(&self) -> Option<u64> {
        self.image.linear_offset()
    }

    fn translate_read(
        &mut self,
        range: ByteRange,
        extents: &mut Vec<ImageExtent>,
    ) -> Result<Translation, ImageError> {
        self.image.translate_read(range, extents)
    }

    fn translate_write(
        &mut self,
        range: ByteRange,
        extents: &mut Vec<ImageExtent>,
    ) -> Result<Translation, ImageError> {
        let changes = self.image.logged_changes_max(range);
        if changes > self.free() && self.can_have_more_room() {
            return Ok(Translation::NeedsCommit);
        }
        let located = self.image.translate_write(range, extents)?;
        if self.has_failed {
            // Translating a write may allocate a sector bitmap.
            self.keep(Some(range));
        }
        let key = (range.offset(), range.len());
        // A write without changes counts together with other writes of the same range. The
        // reservation is released when all have ended, because their ends cannot be distinguished.
        if located == Translation::Ready && (changes > 0 || self.in_flight.contains_key(&key)) {
            let reservation = self.in_flight.entry(key).or_default();
            reservation.writes = reservation.writes.saturating_add(1);
            reservation.changes = reservation.changes.saturating_add(changes);
            self.reserved = self.reserved.saturating_add(changes);
        }
        Ok(located)
    }

    fn handle_written(&mut self, range: ByteRange) {
        self.release(range);
        self.image.handle_written(range);
        self.keep(Some(range));
    }

    fn handle_write_failed(&mut self, range: ByteRange) {
        self.release(range);
        self.image.handle_write_failed(range);
        self.keep(Some(range));
    }

    fn discard(
        &mut self,
        range: ByteRange,
        kept_ranges: &mut Vec<ByteRange>,
    ) -> Result<Translation, ImageError> {
        let (before, block) = (kept_ranges.len(), self.image.disk_geometry().block_bytes);
        let mut remaining = range;
        while !remaining.is_empty() {
            if block == 0 {
                // No space can be freed, so metadata does not change.
                return self.image.discard(range, kept_ranges);
            }
            // The number of blocks is limited to the room in the record. Blocks discarded before a
            // commit do not change again when the request is repeated.
            let blocks = (self.free() / CHANGES_PER_DISCARD).min(DISCARDED_BLOCKS_MAX);
            let blocks = if self.can_have_more_room() { blocks } else { blocks.max(1) };
            let end = (remaining.offset() / block).saturating_add(blocks).saturating_mul(block);
            let (part, after) = remaining.split_at(end.saturating_sub(remaining.offset()));
            let located = match part.is_empty() {
                true => Translation::NeedsCommit,
                false => self.image.discard(part, kept_ranges)?,
            };
            self.keep(Some(part));
            if located != Translation::Ready {
                kept_ranges.truncate(before);
                return Ok(located);
            }
            remaining = after;
        }
        Ok(Translation::Ready)
    }

    fn handle_metadata(&mut self, range: ByteRange, bytes: &[u8]) -> Result<(), ImageError> {
        self.image.handle_metadata(range, bytes)
    }

    fn handle_metadata_failure(&mut self, range: ByteRange) {
        self.image.handle_metadata_failure(range);
    }

    fn uncommitted_bytes(&self) -> u64 {
        let record_position = self
            .usable()
            .map_or(0, |record| record.next_change_number().saturating_sub(self.first));
        self.image.uncommitted_bytes().max(record_position.saturating_mul(BYTES_PER_CHANGE))
    }

    fn poll_zeroing(&mut self) -> Option<ByteRange> {
        self.image.poll_zeroing()
    }

    fn handle_zeroed(&mut self, is_zero: bool) {
        self.image.handle_zeroed(is_zero);
    }

    fn has_redo_record(&self, range: ByteRange) -> bool {
        !self.unrecorded.intersects(range) && !self.committing_unrecorded.intersects(range)
    }

    fn begin_commit(&mut self) -> Option<Commit> {
        self.keep_or_abandon();
        let recorded = self.record.as_ref().map_or(0, |record| record.next_change_number());
        self.committing = (recorded, self.unrecorded_changes.len());
        self.committing_unrecorded = core::mem::take(&mut self.unrecorded);
        let commit = self.image.begin_commit();
        if commit.is_none() {
            // The file contains all changes now.
            self.end_commit();
        }
        commit
    }

    fn handle_commit(&mut self, outcome: CommitOutcome) {
        self.image.handle_commit(outcome);
        if outcome != CommitOutcome::Done {
            let failed = core::mem::take(&mut self.committing_unrecorded);
            return self.unrecorded.append(failed);
        }
        self.end_commit();
    }

    fn handle_flush_failure(&mut self) {
        self.give_up_record();
        // If this fails, the process that opens the image next applies the changes again.
        let _ = self.record.as_mut().map(|record| record.abandon());
    }

    fn logged_changes_max(&self, range: ByteRange) -> u64 {
        self.image.logged_changes_max(range)
    }

    fn identity(&self) -> ImageIdentity {
        self.image.identity()
    }

    fn close(mut self: Box<Self>, file: &dyn ImageFile) -> Result<(), ImageError> {
        self.keep_or_abandon();
        let Self { image, mut record, .. } = *self;
        let file = WatchedFile { file, has_failed_flush: Cell::new(false) };
        if let Err(error) = image.close(&file) {
            if file.has_failed_flush.get() {
                // See `handle_flush_failure`.
                let _ = record.as_mut().map(|record| record.abandon());
            }
            return Err(error);
        }
        if let Some(mut record) = record {
            // Either of the two suffices.
            let _ = record.abandon();
            let _ = record.remove();
        }
        Ok(())
    }
}
