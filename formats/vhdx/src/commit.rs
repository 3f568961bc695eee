//! What makes changes durable: the log first, then the pages in their places.
//!
//! Order of steps
//! ```text
//! zero              space that a failed write has had and nothing ever pointed to: a full store
//!                   has room for the rest again
//! extend            the file has all space that pages will point to
//! flush             so has the disk; payload is durable, and so is all that earlier
//!                   commits wrote in place: their entries of the log may go
//! write log entry ┐
//! flush           │ as often as pages fill entries; between two, the first one's
//! [durable]       │ pages are written in place and flushed
//! write pages     ┘
//! zero              space that was freed, which nothing points to any more
//! ```
//!
//! Pages go in an order in which any first part of them is an image: sector bitmaps, then
//! the BAT from its end, so that a chunk's sector bitmap is there before the blocks are
//! that need it.

use std::collections::BTreeSet;

use suimon_image::{Commit, CommitOutcome, Step};

use crate::Vhdx;
use crate::log::{Page, Writer};

/// What a commit that is under way is about.
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
