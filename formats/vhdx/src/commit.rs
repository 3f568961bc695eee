//! Commits: log first, then the pages in place.
//!
//! Order of steps
//! ```text
//! write pages       of the last log entry again, if the previous commit failed when
//!                   only some of them had been written, and this one has several
//!                   entries: the first of them would supersede the log's last entry
//!                   and not contain all of its pages
//! zero              space of failed writes that no metadata ever referred to, to
//!                   free space for the following writes on a full store
//! extend            to the file length that the pages require
//! flush             makes payload durable, and pages written in place by earlier
//!                   commits, so that their log entries may be overwritten
//! write log entry ┐
//! flush           │ repeated for each log entry; between two entries, the pages
//! [durable]       │ of the first are written in place and flushed
//! write pages     ┘
//! ```
//! Freed space, which no metadata refers to then, is zeroed after the commit.
//!
//! Pages are ordered so that any prefix of them is a consistent image: sector bitmaps first, then
//! the BAT in descending order, so that the entry of a chunk's sector bitmap precedes those of the
//! blocks that need it.

use std::collections::BTreeSet;

use suimon_image::{Commit, CommitOutcome, RangeSet, Step};

use crate::Vhdx;
use crate::commit_in_progress::{CommitInProgress, CommitLogEntry};
use crate::log::Page;
use crate::vhdx::WriteState;

impl Vhdx {
    pub(crate) fn start_commit(&mut self) -> Option<Commit> {
        let has_freed = self.write_state.as_ref().is_some_and(|writing| {
            !writing.space.freed_offsets_mb.is_empty()
                || !writing.space.unreferenced_offsets_mb.is_empty()
        });
        if self.bat.dirty_pages.is_empty() && self.bitmaps.dirty_pages.is_empty() && !has_freed {
            // The pages of a log entry that was not applied completely are dirty.
            return None;
        }
        let (bitmap_pages, bat_pages) = self.take_dirty_pages();
        let pages = self.pages(&bitmap_pages, &bat_pages);
        self.bitmaps.committing.clone_from(&bitmap_pages);
        let fresh = self.bitmaps.new_chunks.clone();
        let writing = self.write_state.as_mut()?;
        let log_before = writing.log;
        let unreferenced = core::mem::take(&mut writing.space.unreferenced_offsets_mb);
        let zeroed = unreferenced.iter().filter_map(|mb| writing.space.block_range(*mb));
        let zeroed: RangeSet = zeroed.collect();
        let is_in_parts = pages.len() > writing.log.pages_max();
        let applied_first = writing.unapplied_pages.iter().filter(|_| is_in_parts);
        let mut steps: Vec<Step> = applied_first.map(in_place).collect();
        steps.extend(zeroed.iter().map(Step::Zero));
        let mut file_len = writing.file_len;
        let required = writing.space.required_file_bytes();
        if file_len < required {
            file_len = writing.space.extended_file_bytes();
            steps.push(Step::Extend { len: file_len, required_len: required });
        }
        steps.push(Step::Flush);
        let steps_to_applied = is_in_parts.then_some(steps.len());
        let entries = writing.write_entries(&pages, file_len, &mut steps);
        if pages.is_empty() {
            steps.push(Step::DurableMarker);
        }
        let freed = core::mem::take(&mut writing.space.freed_offsets_mb);
        writing.committing = Some(CommitInProgress {
            bitmap_pages,
            bat_pages,
            new_bitmap_chunks: fresh,
            freed_offsets_mb: freed,
            unreferenced_offsets_mb: unreferenced,
            steps_to_applied,
            previous_log_writer: log_before,
            pages,
            log_entries: entries,
            file_len,
        });
        Some(Commit { steps })
    }

    fn pages(&self, bitmap_pages: &BTreeSet<u64>, bat_pages: &BTreeSet<u64>) -> Vec<Page> {
        let bitmaps = bitmap_pages.iter().filter_map(|page| self.bitmaps.page(*page, &self.bat));
        let bat = bat_pages.iter().rev().map(|page| self.bat.encode_page(*page, &self.geometry));
        bitmaps.chain(bat).collect()
    }

    pub(crate) fn end_commit(&mut self, outcome: CommitOutcome) {
        let Some(writing) = &mut self.write_state else { return };
        let Some(mut committed) = writing.committing.take() else { return };
        self.bitmaps.committing.clear();
        match outcome {
            CommitOutcome::Done => {
                writing.file_len = committed.file_len;
                writing.unapplied_pages.clear();
                writing.space.release(&committed.freed_offsets_mb);
                writing.space.add_blocks(&committed.unreferenced_offsets_mb);
                for chunk in committed.new_bitmap_chunks {
                    self.bitmaps.new_chunks.remove(&chunk);
                }
            }
            CommitOutcome::Failed { completed_steps: completed } => {
                writing.return_to_durable(&mut committed, completed);
                writing.space.freed_offsets_mb.append(&mut committed.freed_offsets_mb);
                writing
                    .space
                    .unreferenced_offsets_mb
                    .append(&mut committed.unreferenced_offsets_mb);
                self.bitmaps.dirty_pages.append(&mut committed.bitmap_pages);
                self.bat.dirty_pages.append(&mut committed.bat_pages);
            }
        }
    }
}

impl WriteState {
    /// Appends to `steps` the writes of pages to the log and then in place, in as many entries as
    /// needed. Returns the entries.
    fn write_entries(
        &mut self,
        pages: &[Page],
        file_len: u64,
        steps: &mut Vec<Step>,
    ) -> Vec<CommitLogEntry> {
        let last_file_len = self.space.required_file_bytes();
        let mut entries = Vec::new();
        let mut remaining = pages;
        while !remaining.is_empty() {
            let first = pages.len() - remaining.len();
            let count = self.log.append_entry(remaining, file_len, last_file_len, steps);
            let (logged, rest) = remaining.split_at(count);
            steps.push(Step::Flush);
            let steps_to_durable = steps.len();
            if rest.is_empty() {
                steps.push(Step::DurableMarker);
            }
            steps.extend(logged.iter().map(in_place));
            if !rest.is_empty() {
                steps.push(Step::Flush);
            }
            entries.push(CommitLogEntry {
                steps_to_durable,
                steps_to_applied: (!rest.is_empty()).then_some(steps.len()),
                pages: first..first + count,
                log_writer: self.log,
            });
            remaining = rest;
        }
        entries
    }

    /// Makes the log continue behind its last durable entry after the commit `failed`, of which the
    /// first `completed` steps succeeded.
    ///
    /// Each entry is replayed on its own. A durable entry must therefore not be superseded before
    /// its pages are in place. An entry that may not be durable protects no page.
    fn return_to_durable(&mut self, failed: &mut CommitInProgress, completed: usize) {
        if failed.steps_to_applied.is_some_and(|steps| steps <= completed) {
            self.unapplied_pages.clear();
        }
        let durable = failed.log_entries.iter().rfind(|entry| entry.steps_to_durable <= completed);
        self.log.rewind_to(durable.map_or(&failed.previous_log_writer, |entry| &entry.log_writer));
        let is_applied =
            |entry: &CommitLogEntry| entry.steps_to_applied.is_some_and(|steps| steps <= completed);
        if let Some(entry) = durable.filter(|entry| !is_applied(entry)) {
            self.unapplied_pages = failed.pages.drain(entry.pages.clone()).collect();
        }
    }
}

fn in_place((offset, page): &Page) -> Step {
    Step::Write { offset: *offset, bytes: page.to_vec() }
}
