//! Commit in progress: what each completed step has made durable.

use core::ops::Range;
use std::collections::BTreeSet;

use crate::log::{LogWriter, Page};

/// State of a commit in progress.
#[derive(Debug)]
pub(crate) struct CommitInProgress {
    pub(crate) bitmap_pages: BTreeSet<u64>,
    pub(crate) bat_pages: BTreeSet<u64>,
    pub(crate) new_bitmap_chunks: BTreeSet<u64>,
    pub(crate) freed_offsets_mb: Vec<u32>,
    pub(crate) unreferenced_offsets_mb: Vec<u32>,
    /// Number of steps after which the pages of the log's previous last entry are durable in place.
    /// `None` if this commit does not write them first.
    pub(crate) steps_to_applied: Option<usize>,
    /// State of the log writer before this commit.
    pub(crate) previous_log_writer: LogWriter,
    pub(crate) pages: Vec<Page>,
    pub(crate) log_entries: Vec<CommitLogEntry>,
    pub(crate) file_len: u64,
}

/// Log entry that a commit writes.
#[derive(Debug)]
pub(crate) struct CommitLogEntry {
    /// Number of steps after which the entry is durable.
    pub(crate) steps_to_durable: usize,
    /// Number of steps after which the entry's pages are durable in place. `None` if the first
    /// flush of the next commit makes them durable.
    pub(crate) steps_to_applied: Option<usize>,
    /// Range of the entry's pages in the list of pages of the commit.
    pub(crate) pages: Range<usize>,
    /// State of the log writer after the entry.
    pub(crate) log_writer: LogWriter,
}

impl CommitInProgress {
    pub(crate) fn page_count(&self) -> u64 {
        (self.bitmap_pages.len() as u64).saturating_add(self.bat_pages.len() as u64)
    }
}
