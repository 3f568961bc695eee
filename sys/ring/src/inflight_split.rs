//! A split ring's part of the in-flight region (`QueueRegionSplit`).
//!
//! Order of stores, for a batch: each head is entered (counter, then `inflight`)
//! and linked into the list of the last batch; the used index is published in the
//! ring; the heads are taken out; `used_idx` follows. Whoever finds the two
//! indices unequal knows that the batch was returned and takes its heads out.
//!
//! A ring that returns chains in any order enters a head when it takes it. What it has
//! taken is then what was used and what is entered, and so is the place of the next
//! available entry.

use crate::fault::RingFault;
use crate::inflight::{ENTRIES_AT, InflightQueue, Part, VERSION, VERSION_AT};

/// Bytes before the entries.
pub(crate) const HEADER_BYTES: usize = 16;
/// Bytes of an entry (`DescStateSplit`).
pub(crate) const ENTRY_BYTES: usize = 16;

const LAST_BATCH_HEAD_AT: usize = 12;
const USED_IDX_AT: usize = 14;
const NEXT_AT: usize = 6;
const COUNTER_AT: usize = 8;

/// The part while a ring uses it.
pub(crate) struct SplitInflight {
    part: Part,
    counter: u64,
    /// The last head entered, for the list.
    last: u16,
    /// Heads completed and not yet returned; never more than the ring is long.
    batch: Vec<u16>,
    /// Heads of an earlier device that are still to be returned. They come first.
    left_over: usize,
    /// Heads are entered when they are taken, because they are returned in any order.
    enters_early: bool,
}

/// Heads that an earlier device took and did not return, oldest first. A ring takes
/// them before those in the available ring, and instead of as many entries of it.
#[derive(Default)]
pub(crate) struct SplitReplay {
    /// The position of the first.
    from: u16,
    heads: Vec<u16>,
}

impl SplitReplay {
    /// The head to take at this position instead of what the available ring says.
    #[inline]
    pub(crate) fn head(&self, at: u16) -> Option<u16> {
        self.heads.get(usize::from(at.wrapping_sub(self.from))).copied()
    }

    /// All chains before position `next` were returned. Once these are among them
    /// they are forgotten: positions come around again after 65536 chains.
    pub(crate) fn go_on(&mut self, next: u16) {
        if usize::from(next.wrapping_sub(self.from)) >= self.heads.len() {
            self.heads.clear();
        }
    }

    /// Whether everything was returned.
    pub(crate) fn is_done(&self) -> bool {
        self.heads.is_empty()
    }
}

impl SplitInflight {
    /// Starts to use the part. `used` is the used index in the ring, `avail` the
    /// available index. If the ring was abandoned, it goes on at `used`, with what
    /// is returned here.
    ///
    /// # Errors
    /// The part does not fit the ring, or says what cannot be.
    pub(crate) fn open(
        inflight: &InflightQueue,
        queue: u16,
        size: u16,
        used: u16,
        avail: u16,
    ) -> Result<(Self, Option<SplitReplay>), RingFault> {
        inflight.check(queue, size, false)?;
        let part = inflight.part();
        let was_abandoned = inflight.was_abandoned();
        let batch = Vec::with_capacity(usize::from(size));
        let mut opened =
            Self { part, counter: 0, last: 0, batch, left_over: 0, enters_early: false };
        if !was_abandoned {
            opened.reset(size, used);
            return Ok((opened, None));
        }
        opened.settle(size, used);
        let heads = opened.inflight_heads(size);
        if usize::from(avail.wrapping_sub(used)) < heads.len() {
            let reason = "more buffers are in flight than were made available";
            return Err(RingFault::Inflight { queue, reason });
        }
        opened.left_over = heads.len();
        Ok((opened, Some(SplitReplay { from: used, heads })))
    }

    /// Makes an empty part of whatever it was.
    fn reset(&mut self, size: u16, used: u16) {
        for index in 0..size {
            self.part.store_8(entry_at(index), 0);
        }
        self.part.store_16(ENTRIES_AT, size);
        self.part.store_16(LAST_BATCH_HEAD_AT, 0);
        self.part.store_16(USED_IDX_AT, used);
        self.part.store_16(VERSION_AT, VERSION);
    }

    /// Takes out the heads of a batch that was returned just before the end.
    fn settle(&mut self, size: u16, used: u16) {
        let returned = used.wrapping_sub(self.part.load_16(USED_IDX_AT)).min(size);
        let mut head = self.part.load_16(LAST_BATCH_HEAD_AT);
        for _ in 0..returned {
            if head >= size {
                break;
            }
            self.part.store_8(entry_at(head), 0);
            head = self.part.load_16(entry_at(head) + NEXT_AT);
        }
        self.part.store_16(USED_IDX_AT, used);
    }

    /// Heads in flight, oldest first.
    fn inflight_heads(&mut self, size: u16) -> Vec<u16> {
        let mut heads: Vec<(u64, u16)> = (0..size)
            .filter(|index| self.part.load_8(entry_at(*index)) == 1)
            .map(|index| (self.part.load_64(entry_at(index) + COUNTER_AT), index))
            .collect();
        heads.sort_unstable();
        self.counter = heads.last().map_or(0, |(counter, _)| counter.wrapping_add(1));
        heads.into_iter().map(|(_, head)| head).collect()
    }

    /// The same for a ring that says when it takes a chain
    /// ([`SplitInflight::note_taken`]) and completes chains in any order.
    pub(crate) fn entering_early(self) -> Self {
        Self { enters_early: true, ..self }
    }

    /// A chain was taken. Left-over heads come first, and are entered already.
    pub(crate) fn note_taken(&mut self, head: u16) {
        if self.left_over > 0 {
            self.left_over -= 1;
            return;
        }
        let at = entry_at(head);
        self.part.store_64(at + COUNTER_AT, self.counter);
        self.counter = self.counter.wrapping_add(1);
        self.part.store_8(at, 1);
    }

    /// A chain was completed.
    #[inline]
    pub(crate) fn note_completed(&mut self, head: u16) {
        self.batch.push(head);
    }

    /// How many chains were completed and not returned.
    pub(crate) fn completed(&self) -> usize {
        self.batch.len()
    }

    /// Forgets completed chains but the first `keep`.
    pub(crate) fn forget(&mut self, keep: usize) {
        self.batch.truncate(keep);
    }

    /// The completed chains are about to be returned.
    pub(crate) fn enter_batch(&mut self) {
        for (nth, head) in self.batch.iter().enumerate() {
            let at = entry_at(*head);
            // Left-over heads are entered already, and keep their place in the order:
            // with a new counter one would seem younger than those behind it.
            if !self.enters_early && nth >= self.left_over {
                self.part.store_64(at + COUNTER_AT, self.counter);
                self.counter = self.counter.wrapping_add(1);
                self.part.store_8(at, 1);
            }
            self.part.store_16(at + NEXT_AT, self.last);
            self.last = *head;
            self.part.store_16(LAST_BATCH_HEAD_AT, *head);
        }
    }

    /// They were: the ring's used index is `used`.
    pub(crate) fn leave_batch(&mut self, used: u16) {
        for head in &self.batch {
            self.part.store_8(entry_at(*head), 0);
        }
        self.part.store_16(USED_IDX_AT, used);
        if !self.enters_early {
            self.left_over = self.left_over.saturating_sub(self.batch.len());
        }
        self.batch.clear();
    }

    /// The ring is given up in order and nothing is in flight.
    pub(crate) fn close(&mut self) {
        self.part.store_16(VERSION_AT, 0);
    }
}

/// Where the entry of head `index` starts.
fn entry_at(index: u16) -> usize {
    HEADER_BYTES + ENTRY_BYTES * usize::from(index)
}
