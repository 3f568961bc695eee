//! An image whose changes of metadata are kept where they outlive this process.

use suimon_image::{
    ByteRange, Commit, CommitOutcome, Extent, Image, ImageError, ImageFile, Located,
    MetadataChange, OpenedImage, Shape,
};
use suimon_ports::RedoRecord;

/// Bytes of metadata that a kept change counts as: with as many as a record has room for, a commit
/// is long due.
const BYTES_PER_CHANGE: u64 = 2048;

/// An image with its record. A write is answered when its changes are kept; a commit makes them
/// durable and empties the record.
pub struct RecordedImage {
    image: Box<dyn Image>,
    record: Box<dyn RedoRecord>,
    /// Number of the first change that is kept.
    first: u64,
    /// Changes that are not kept, because there was no room or the record cannot be written. They
    /// come behind all that are.
    unkept: Vec<MetadataChange>,
    /// What the commit under way has taken on: changes before this number, and so many others.
    committing: (u64, usize),
}

impl RecordedImage {
    /// Takes an image that was opened for writing and in which nothing has changed since, and its
    /// record, which keeps nothing of it yet.
    #[must_use]
    pub fn new(mut image: Box<dyn Image>, record: Box<dyn RedoRecord>) -> Self {
        image.remember_changes();
        let first = record.next();
        Self { image, record, first, unkept: Vec::new(), committing: (first, 0) }
    }

    /// Keeps what has changed.
    fn keep(&mut self) {
        self.image.take_changes(&mut self.unkept);
        if self.unkept.is_empty() {
            return;
        }
        let file_len = self.image.opened().file_len;
        // What is not kept waits for a commit, as without a record.
        if self.record.keep(&self.unkept, file_len).unwrap_or(false) {
            self.unkept.clear();
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
        self.image.place_write(range, extents)
    }

    fn handle_written(&mut self, range: ByteRange) {
        self.image.handle_written(range);
        self.keep();
    }

    fn handle_failed(&mut self, range: ByteRange) {
        self.image.handle_failed(range);
        self.keep();
    }

    fn discard(
        &mut self,
        range: ByteRange,
        kept: &mut Vec<ByteRange>,
    ) -> Result<Located, ImageError> {
        let located = self.image.discard(range, kept);
        self.keep();
        located
    }

    fn handle_metadata(&mut self, range: ByteRange, bytes: &[u8]) -> Result<(), ImageError> {
        self.image.handle_metadata(range, bytes)
    }

    fn uncommitted_bytes(&self) -> u64 {
        let kept = self.record.next().saturating_sub(self.first);
        self.image.uncommitted_bytes().max(kept.saturating_mul(BYTES_PER_CHANGE))
    }

    fn outlives_process(&self) -> bool {
        self.unkept.is_empty()
    }

    fn begin_commit(&mut self) -> Option<Commit> {
        self.committing = (self.record.next(), self.unkept.len());
        self.image.begin_commit()
    }

    fn handle_commit(&mut self, outcome: CommitOutcome) {
        self.image.handle_commit(outcome);
        if outcome == CommitOutcome::Failed {
            return;
        }
        let (before, others) = core::mem::take(&mut self.committing);
        self.unkept.drain(..others.min(self.unkept.len()));
        if self.record.forget(before).is_ok() {
            self.first = before;
        }
        self.keep();
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
