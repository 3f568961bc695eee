//! Commit in progress: what each completed step has made durable.

use core::ops::Range;
use std::collections::BTreeSet;

use crate::log::{Page, Writer};

/// State of a commit in progress.
#[derive(Debug)]
pub(crate) struct Committing {
    pub(crate) bitmap_pages: BTreeSet<u64>,
    pub(crate) bat_pages: BTreeSet<u64>,
    pub(crate) fresh: BTreeSet<u64>,
    pub(crate) freed: Vec<u32>,
    pub(crate) unreferenced: Vec<u32>,
    /// Number of steps after which the pages of the log's previous last entry are durable in place.
    /// `None` if this commit does not write them first.
    pub(crate) steps_to_applied: Option<usize>,
    /// State of the log writer before this commit.
    pub(crate) log_before: Writer,
    pub(crate) pages: Vec<Page>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) file_len: u64,
}

/// Log entry that a commit writes.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Number of steps after which the entry is durable.
    pub(crate) steps_to_durable: usize,
    /// Number of steps after which the entry's pages are durable in place. `None` if the first
    /// flush of the next commit makes them durable.
    pub(crate) steps_to_applied: Option<usize>,
    /// Range of the entry's pages in the list of pages of the commit.
    pub(crate) pages: Range<usize>,
    /// State of the log writer after the entry.
    pub(crate) log: Writer,
}

impl Committing {
    pub(crate) fn pages(&self) -> u64 {
        (self.bitmap_pages.len() as u64).saturating_add(self.bat_pages.len() as u64)
    }
}
