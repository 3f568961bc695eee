//! An image whose changes of metadata are kept where they outlive this process.

use std::collections::BTreeMap;

use suimon_image::{
    ByteRange, Commit, CommitOutcome, Extent, Image, ImageError, ImageFile, Located,
    MetadataChange, OpenedImage, Shape,
};
use suimon_ports::RedoRecord;

/// Bytes of metadata that a kept change counts as: with as many as a record has room for, a commit
/// is long due.
const BYTES_PER_CHANGE: u64 = 2048;

/// Changes of metadata that a discard makes at most for each block: that of its entry.
const CHANGES_PER_DISCARD: u64 = 1;

/// Blocks that are discarded at a time at most, so that their changes take little memory.
const DISCARDED_BLOCKS_MAX: u64 = 1 << 16;

/// An image with its record. A write is answered when its changes are kept; a commit makes them
/// durable and empties the record.
///
/// Nothing changes that cannot be kept: room is reserved before a write is placed. So the file is never
/// ahead of the record, and what is redone takes nothing back that a commit has written.
///
/// A record that cannot be written is used no more: each write to new space waits for a commit, and the
/// record is abandoned when the first of these begins.
pub struct RecordedImage {
    image: Box<dyn Image>,
    record: Box<dyn RedoRecord>,
    /// Whether a write to the record has failed.
    has_failed: bool,
    /// Number of the first change that is kept.
    first: u64,
    /// Changes that are not kept because one request makes more than the record has room for. They
    /// follow all that are kept.
    unkept: Vec<MetadataChange>,
    /// Number of changes since the record failed that no commit has made durable. What they are is not
    /// needed any more.
    unkept_after_failure: usize,
    /// What the commit under way has taken on: changes before this number, and so many others.
    committing: (u64, usize),
    /// Changes that writes under way will make at most, by their ranges, and in all.
    under_way: BTreeMap<(u64, u64), Reservation>,
    reserved: u64,
}

/// What writes to a range that are under way may need.
#[derive(Clone, Copy, Debug, Default)]
struct Reservation {
    writes: u32,
    changes: u64,
}

impl RecordedImage {
    /// Takes an image that was opened for writing and in which nothing has changed since, and its
    /// record, which keeps nothing of it yet.
    #[must_use]
    pub fn new(mut image: Box<dyn Image>, record: Box<dyn RedoRecord>) -> Self {
        image.remember_changes();
        let first = record.next();
        Self {
            image,
            record,
            has_failed: false,
            first,
            unkept: Vec::new(),
            unkept_after_failure: 0,
            committing: (first, 0),
            under_way: BTreeMap::new(),
            reserved: 0,
        }
    }

    /// Changes that can be kept and that no write under way will make.
    fn free(&self) -> u64 {
        if self.has_failed {
            return u64::MAX;
        }
        let kept = self.record.next().saturating_sub(self.first);
        self.record.room().saturating_sub(kept).saturating_sub(self.reserved)
    }

    /// Whether the record has more room after a commit, or after what is under way.
    fn can_have_more_room(&self) -> bool {
        self.free() < self.record.room()
    }

    /// A write that was placed has ended.
    fn release(&mut self, range: ByteRange) {
        let key = (range.offset(), range.len());
        let Some(reservation) = self.under_way.get_mut(&key) else { return };
        reservation.writes = reservation.writes.saturating_sub(1);
        if reservation.writes == 0 {
            self.reserved = self.reserved.saturating_sub(reservation.changes);
            self.under_way.remove(&key);
        }
    }

    /// What the commit under way had taken on is in the file.
    fn end_commit(&mut self) {
        let (before, others) = core::mem::take(&mut self.committing);
        match self.has_failed {
            true => self.unkept_after_failure = self.unkept_after_failure.saturating_sub(others),
            false => drop(self.unkept.drain(..others.min(self.unkept.len()))),
        }
        if !self.has_failed {
            match self.record.forget(before) {
                Ok(()) => self.first = before,
                Err(_) => self.give_up_record(),
            }
        }
        self.keep();
    }

    /// Before all changes are written to the file. Those that the record has and those that it has not
    /// may concern the same metadata: if the record could not take all, none may be redone.
    fn keep_or_abandon(&mut self) {
        self.keep();
        let has_kept = self.record.next() > self.first;
        let has_both = has_kept && !self.unkept.is_empty();
        debug_assert!(self.has_failed || !has_both, "room was reserved for all changes");
        if self.has_failed || has_both {
            self.give_up_record();
            // If this fails too, and the process is killed during the commit, the record does not fit
            // the image any more.
            let _ = self.record.abandon();
        }
    }

    /// Keeps what has changed.
    fn keep(&mut self) {
        self.image.take_changes(&mut self.unkept);
        if self.unkept.is_empty() {
            return;
        }
        if self.has_failed {
            return self.give_up_record();
        }
        let file_len = self.image.opened().file_len;
        // What is not kept waits for a commit, as without a record.
        match self.record.keep(&self.unkept, file_len) {
            Ok(true) => {
                self.unkept.clear();
                self.committing.1 = 0;
            }
            Ok(false) => {}
            Err(_) => self.give_up_record(),
        }
    }

    /// Keeps no changes any more: they are counted only.
    fn give_up_record(&mut self) {
        self.has_failed = true;
        self.unkept_after_failure = self.unkept_after_failure.saturating_add(self.unkept.len());
        self.unkept.clear();
    }
}

impl Image for RecordedImage {
    fn shape(&self) -> Shape {
        self.image.shape()
    }

    fn linear_offset(&self) -> Option<u64> {
        self.image.linear_offset()
    }

    fn locate(
        &mut self,
        range: ByteRange,
        extents: &mut Vec<Extent>,
    ) -> Result<Located, ImageError> {
        self.image.locate(range, extents)
    }

    fn place_write(
        &mut self,
        range: ByteRange,
        extents: &mut Vec<Extent>,
    ) -> Result<Located, ImageError> {
        let changes = self.image.changes_max(range);
        if changes > self.free() && self.can_have_more_room() {
            return Ok(Located::NeedCommit);
        }
        let located = self.image.place_write(range, extents)?;
        let key = (range.offset(), range.len());
        // A write that makes no change counts beside others of the same range, which release when
        // all have ended: nobody can say which one has.
        if located == Located::Ready && (changes > 0 || self.under_way.contains_key(&key)) {
            let reservation = self.under_way.entry(key).or_default();
            reservation.writes = reservation.writes.saturating_add(1);
            reservation.changes = reservation.changes.saturating_add(changes);
            self.reserved = self.reserved.saturating_add(changes);
        }
        Ok(located)
    }

    fn handle_written(&mut self, range: ByteRange) {
        self.release(range);
        self.image.handle_written(range);
        self.keep();
    }

    fn handle_failed(&mut self, range: ByteRange) {
        self.release(range);
        self.image.handle_failed(range);
        self.keep();
    }

    fn discard(
        &mut self,
        range: ByteRange,
        kept: &mut Vec<ByteRange>,
    ) -> Result<Located, ImageError> {
        let (before, block) = (kept.len(), self.image.shape().block);
        let mut rest = range;
        while !rest.is_empty() {
            if block == 0 {
                // Nothing can be freed: no metadata changes.
                return self.image.discard(range, kept);
            }
            // As many blocks as there is room for. Those that were discarded before the commit
            // change no more when the same is asked again.
            let blocks = (self.free() / CHANGES_PER_DISCARD).min(DISCARDED_BLOCKS_MAX);
            let blocks = if self.can_have_more_room() { blocks } else { blocks.max(1) };
            let end = (rest.offset() / block).saturating_add(blocks).saturating_mul(block);
            let (part, behind) = rest.split_at(end.saturating_sub(rest.offset()));
            let located = match part.is_empty() {
                true => Located::NeedCommit,
                false => self.image.discard(part, kept)?,
            };
            self.keep();
            if located != Located::Ready {
                kept.truncate(before);
                return Ok(located);
            }
            rest = behind;
        }
        Ok(Located::Ready)
    }

    fn handle_metadata(&mut self, range: ByteRange, bytes: &[u8]) -> Result<(), ImageError> {
        self.image.handle_metadata(range, bytes)
    }

    fn handle_metadata_failure(&mut self, range: ByteRange) {
        self.image.handle_metadata_failure(range);
    }

    fn uncommitted_bytes(&self) -> u64 {
        let kept = if self.has_failed { 0 } else { self.record.next().saturating_sub(self.first) };
        self.image.uncommitted_bytes().max(kept.saturating_mul(BYTES_PER_CHANGE))
    }

    fn outlives_process(&self) -> bool {
        self.unkept.is_empty() && self.unkept_after_failure == 0
    }

    fn begin_commit(&mut self) -> Option<Commit> {
        self.keep_or_abandon();
        self.committing = (self.record.next(), self.unkept.len() + self.unkept_after_failure);
        let commit = self.image.begin_commit();
        if commit.is_none() {
            // All of it is in the file.
            self.end_commit();
        }
        commit
    }

    fn handle_commit(&mut self, outcome: CommitOutcome) {
        self.image.handle_commit(outcome);
        if outcome != CommitOutcome::Done {
            return;
        }
        self.end_commit();
    }

    fn changes_max(&self, range: ByteRange) -> u64 {
        self.image.changes_max(range)
    }

    fn opened(&self) -> OpenedImage {
        self.image.opened()
    }

    fn close(mut self: Box<Self>, file: &dyn ImageFile) -> Result<(), ImageError> {
        self.keep_or_abandon();
        let Self { image, mut record, .. } = *self;
        image.close(file)?;
        // Either will do.
        let _ = record.abandon();
        let _ = record.remove();
        Ok(())
    }
}
