//! An image whose changes of metadata are kept where they outlive this process.

use std::collections::BTreeMap;

use suimon_image::{
    ByteRange, Commit, CommitOutcome, Extent, Image, ImageError, ImageFile, Located,
    MetadataChange, OpenedImage, Place, Shape,
};
use suimon_ports::RedoRecord;

/// Bytes of metadata that a kept change counts as: with as many as a record has room for, a commit
/// is long due.
const BYTES_PER_CHANGE: u64 = 2048;

/// Changes of metadata that a write or a discard makes at most for each block that it touches, and for each
/// 16 MiB of one: entries of the block and of its sector bitmap, and the bitmap's bits at both ends and
/// page by page (VHDX: 4 KiB of bits for 16 MiB in sectors of 512 bytes).
const CHANGES_PER_BLOCK: u64 = 8;
const CHANGES_PER_16_MIB: u64 = 4;

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
    /// Changes that are not kept, because there was no room or the record cannot be written. They
    /// come behind all that are.
    unkept: Vec<MetadataChange>,
    /// What the commit under way has taken on: changes before this number, and so many others.
    committing: (u64, usize),
    /// Changes that writes under way will make at most, and how many writes of a range there are.
    reserved: u64,
    under_way: BTreeMap<(u64, u64), u32>,
    /// Empty between calls.
    places: Vec<Extent>,
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
            committing: (first, 0),
            reserved: 0,
            under_way: BTreeMap::new(),
            places: Vec::new(),
        }
    }

    /// Changes of a block at most.
    fn changes_of_block(&self) -> u64 {
        let block = self.image.shape().block;
        CHANGES_PER_BLOCK.saturating_add((block >> 24).saturating_mul(CHANGES_PER_16_MIB))
    }

    /// Changes that a request makes at most.
    fn changes_of(&self, range: ByteRange) -> u64 {
        let block = self.image.shape().block.max(1);
        let blocks = range.end().div_ceil(block).saturating_sub(range.offset() / block);
        blocks.saturating_mul(self.changes_of_block())
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

    /// Whether a write goes where the range is in the file already, so that no metadata changes.
    fn is_in_place(&mut self, range: ByteRange) -> Result<Result<bool, Located>, ImageError> {
        self.places.clear();
        let located = self.image.locate(range, &mut self.places)?;
        if located != Located::Ready {
            return Ok(Err(located));
        }
        Ok(Ok(self.places.iter().all(|extent| matches!(extent.place, Place::File(_)))))
    }

    /// A write that was placed has ended.
    fn release(&mut self, range: ByteRange) {
        let key = (range.offset(), range.len());
        let Some(count) = self.under_way.get_mut(&key) else { return };
        *count = count.saturating_sub(1);
        if *count == 0 {
            self.under_way.remove(&key);
        }
        self.reserved = self.reserved.saturating_sub(self.changes_of(range));
    }

    /// What the commit under way had taken on is in the file.
    fn end_commit(&mut self) {
        let (before, others) = core::mem::take(&mut self.committing);
        self.unkept.drain(..others.min(self.unkept.len()));
        if !self.has_failed {
            match self.record.forget(before) {
                Ok(()) => self.first = before,
                Err(_) => self.has_failed = true,
            }
        }
        self.keep();
    }

    /// Keeps what has changed.
    fn keep(&mut self) {
        self.image.take_changes(&mut self.unkept);
        if self.unkept.is_empty() || self.has_failed {
            return;
        }
        let file_len = self.image.opened().file_len;
        // What is not kept waits for a commit, as without a record.
        match self.record.keep(&self.unkept, file_len) {
            Ok(true) => {
                self.unkept.clear();
                self.committing.1 = 0;
            }
            Ok(false) => {}
            Err(_) => self.has_failed = true,
        }
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
        match self.is_in_place(range)? {
            Err(located) => return Ok(located),
            Ok(true) => return self.image.place_write(range, extents),
            Ok(false) => {}
        }
        let changes = self.changes_of(range);
        if changes > self.free() && self.can_have_more_room() {
            return Ok(Located::NeedCommit);
        }
        let located = self.image.place_write(range, extents)?;
        if located == Located::Ready {
            self.reserved = self.reserved.saturating_add(changes);
            let count = self.under_way.entry((range.offset(), range.len())).or_insert(0);
            *count = count.saturating_add(1);
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
        let (before, block) = (kept.len(), self.image.shape().block.max(1));
        let mut rest = range;
        while !rest.is_empty() {
            // As many blocks as there is room for. Those that were discarded before the commit
            // change no more when the same is asked again.
            let blocks = self.free() / self.changes_of_block();
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

    fn uncommitted_bytes(&self) -> u64 {
        let kept = if self.has_failed { 0 } else { self.record.next().saturating_sub(self.first) };
        self.image.uncommitted_bytes().max(kept.saturating_mul(BYTES_PER_CHANGE))
    }

    fn outlives_process(&self) -> bool {
        self.unkept.is_empty()
    }

    fn begin_commit(&mut self) -> Option<Commit> {
        self.keep();
        if self.has_failed {
            // The commit will have what the record has not. If this fails too, a process that is
            // killed leaves an image that the next one refuses.
            let _ = self.record.abandon();
        }
        self.committing = (self.record.next(), self.unkept.len());
        let commit = self.image.begin_commit();
        if commit.is_none() {
            // All of it is in the file.
            self.end_commit();
        }
        commit
    }

    fn handle_commit(&mut self, outcome: CommitOutcome) {
        self.image.handle_commit(outcome);
        if outcome == CommitOutcome::Failed {
            return;
        }
        self.end_commit();
    }

    fn opened(&self) -> OpenedImage {
        self.image.opened()
    }

    fn close(self: Box<Self>, file: &dyn ImageFile) -> Result<(), ImageError> {
        let Self { image, mut record, .. } = *self;
        image.close(file)?;
        // Either will do: an empty record is none.
        let _ = record.forget(record.next());
        let _ = record.remove();
        Ok(())
    }
}
