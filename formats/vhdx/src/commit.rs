//! Commits: log first, then the pages in place.
//!
//! Order of steps
//! ```text
//! zero              space of failed writes that no metadata ever referred to, to
//!                   free space for the following writes on a full store
//! extend            to the file length that the pages require
//! flush             makes payload durable, and pages written in place by earlier
//!                   commits, so that their log entries may be overwritten
//! write log entry ┐
//! flush           │ repeated for each log entry; between two entries, the pages
//! [durable]       │ of the first are written in place and flushed
//! write pages     ┘
//! zero              freed space, which no metadata refers to any more
//! ```
//!
//! Pages are ordered so that any prefix of them is a consistent image: sector bitmaps first, then
//! the BAT in descending order, so that the entry of a chunk's sector bitmap precedes those of the
//! blocks that need it.

use std::collections::BTreeSet;

use suimon_image::{Commit, CommitOutcome, Step};

use crate::Vhdx;
use crate::log::{Page, Writer};

/// State of a commit in progress.
#[derive(Debug)]
pub(crate) struct Committing {
    bitmap_pages: BTreeSet<u64>,
    bat_pages: BTreeSet<u64>,
    fresh: BTreeSet<u64>,
    freed: Vec<u32>,
    unreferenced: Vec<u32>,
    gap: Option<(u32, u32)>,
    log_before: Writer,
    file_len: u64,
}

impl Committing {
    pub(crate) fn pages(&self) -> u64 {
        (self.bitmap_pages.len() as u64).saturating_add(self.bat_pages.len() as u64)
    }
}

impl Vhdx {
    pub(crate) fn commit_steps(&mut self) -> Option<Commit> {
        let has_freed = self.writing.as_ref().is_some_and(|writing| {
            !writing.space.freed.is_empty() || !writing.space.unreferenced.is_empty()
        });
        if self.bat.dirty.is_empty() && self.bitmaps.dirty.is_empty() && !has_freed {
            return None;
        }
        let (bitmap_pages, bat_pages) = self.take_dirty();
        let pages = self.pages(&bitmap_pages, &bat_pages);
        self.bitmaps.committing.clone_from(&bitmap_pages);
        let fresh = self.bitmaps.fresh.clone();
        let writing = self.writing.as_mut()?;
        let log_before = writing.log;
        let unreferenced = core::mem::take(&mut writing.space.unreferenced);
        let zeroed = unreferenced.iter().filter_map(|mb| writing.space.block_range(*mb));
        let mut steps: Vec<Step> = zeroed.map(Step::Zero).collect();
        let mut file_len = writing.file_len;
        let needed = writing.space.end_bytes();
        if file_len < needed {
            file_len = writing.space.grown_bytes();
            steps.push(Step::Extend { len: file_len, needed });
        }
        steps.push(Step::Flush);
        let last_file_len = writing.space.end_bytes();
        let mut rest = pages.as_slice();
        while !rest.is_empty() {
            let count = writing.log.write(rest, file_len, last_file_len, &mut steps);
            let (logged, more) = rest.split_at(count);
            steps.push(Step::Flush);
            if more.is_empty() {
                steps.push(Step::Durable);
            }
            steps.extend(
                logged
                    .iter()
                    .map(|(offset, page)| Step::Write { offset: *offset, bytes: page.to_vec() }),
            );
            if !more.is_empty() {
                steps.push(Step::Flush);
            }
            rest = more;
        }
        if pages.is_empty() {
            steps.push(Step::Durable);
        }
        let freed = core::mem::take(&mut writing.space.freed);
        let gap = writing.space.take_gap();
        let zeroed = freed.iter().filter_map(|mb| writing.space.block_range(*mb));
        let zeroed = zeroed.chain(gap.and_then(|gap| writing.space.range(gap)));
        steps.extend(zeroed.map(Step::Zero));
        writing.committing = Some(Committing {
            bitmap_pages,
            bat_pages,
            fresh,
            freed,
            unreferenced,
            gap,
            log_before,
            file_len,
        });
        Some(Commit { steps })
    }

    fn pages(&self, bitmap_pages: &BTreeSet<u64>, bat_pages: &BTreeSet<u64>) -> Vec<Page> {
        let bitmaps = bitmap_pages.iter().filter_map(|page| self.bitmaps.page(*page, &self.bat));
        let bat = bat_pages.iter().rev().map(|page| self.bat.page(*page, &self.geometry));
        bitmaps.chain(bat).collect()
    }

    pub(crate) fn end_commit(&mut self, outcome: CommitOutcome) {
        let Some(writing) = &mut self.writing else { return };
        let Some(mut ended) = writing.committing.take() else { return };
        self.bitmaps.committing.clear();
        match outcome {
            CommitOutcome::Done => {
                writing.file_len = ended.file_len;
                writing.space.add_blocks(&ended.freed);
                writing.space.add_blocks(&ended.unreferenced);
                if let Some(gap) = ended.gap {
                    writing.space.add_zeroed(gap);
                }
                for chunk in ended.fresh {
                    self.bitmaps.fresh.remove(&chunk);
                }
            }
            CommitOutcome::Failed => {
                writing.log.handle_failure(&ended.log_before);
                writing.space.freed.append(&mut ended.freed);
                writing.space.unreferenced.append(&mut ended.unreferenced);
                if let Some(gap) = ended.gap {
                    writing.space.return_gap(gap);
                }
                self.bitmaps.dirty.append(&mut ended.bitmap_pages);
                self.bat.dirty.append(&mut ended.bat_pages);
            }
        }
    }
}
