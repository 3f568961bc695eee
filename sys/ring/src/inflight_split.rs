//! Split ring's part of the in-flight region (`QueueRegionSplit`).
//!
//! Order of stores for a batch: each head is recorded (counter, then `inflight`) and linked to the
//! list of the last batch; the used index is published in the ring; the `inflight` marks of the
//! heads are cleared; `used_idx` is updated. If a recovering ring finds the two indices different,
//! the batch was returned, and the ring clears the heads' marks.
//!
//! A ring that returns chains in any order records a head when it is taken. The number of chains
//! taken is then that of the used ones plus that of the recorded ones, which determines the next
//! available entry.

use crate::fault::RingFault;
use crate::inflight::{InflightFields, InflightQueue};
use crate::inflight_layout::{
    ENTRIES_AT, SPLIT_ENTRY_BYTES, SPLIT_HEADER_BYTES, VERSION, VERSION_AT,
};

const LAST_BATCH_HEAD_AT: usize = 12;
const USED_IDX_AT: usize = 14;
const NEXT_AT: usize = 6;
const COUNTER_AT: usize = 8;

/// Part of an in-flight region, as the split ring that uses it maintains it.
pub(crate) struct SplitInflight {
    part: InflightFields,
    counter: u64,
    /// Last head that was recorded in the list of the last batch, to which the next one is linked.
    last: u16,
    /// Heads of chains that are completed and not returned; at most the ring's size.
    batch: Vec<u16>,
    /// Number of heads of a previous device that are not returned yet. They are returned before all
    /// others.
    recovered: usize,
    /// True if heads are recorded when they are taken, because they are returned in any order.
    records_on_take: bool,
}

/// Heads that a previous device took and did not return, oldest first. A ring takes them before
/// those in the available ring, in place of the same number of its entries.
#[derive(Default)]
pub(crate) struct RecoveredHeads {
    /// Index in the available ring at which the first head is taken.
    from: u16,
    heads: Vec<u16>,
}

impl RecoveredHeads {
    /// Returns the head to take in place of the entry of the available ring at `position`; `None`
    /// if that entry is to be taken.
    #[inline]
    pub(crate) fn head(&self, position: u16) -> Option<u16> {
        self.heads.get(usize::from(position.wrapping_sub(self.from))).copied()
    }

    /// Records that all chains before `position` `next` were returned. Drops the heads once all of
    /// them were returned, because positions repeat after 65536 chains.
    pub(crate) fn advance(&mut self, next: u16) {
        if usize::from(next.wrapping_sub(self.from)) >= self.heads.len() {
            self.heads.clear();
        }
    }

    /// Returns true if all heads were returned.
    pub(crate) fn is_done(&self) -> bool {
        self.heads.is_empty()
    }
}

impl SplitInflight {
    /// Opens the part for a ring of `size` entries. `used` is the used index in the ring, `avail`
    /// the available index. If the previous process died, returns the heads to take first, and the
    /// ring must continue at `used`; otherwise returns `None`. `queue` is named in errors.
    ///
    /// # Errors
    /// The part does not fit the ring, or its contents are inconsistent.
    pub(crate) fn open(
        inflight: &InflightQueue,
        queue: u16,
        size: u16,
        used: u16,
        avail: u16,
    ) -> Result<(Self, Option<RecoveredHeads>), RingFault> {
        inflight.check(queue, size, false)?;
        let part = inflight.fields();
        let was_abandoned = inflight.was_in_use_at_crash();
        let batch = Vec::with_capacity(usize::from(size));
        let mut opened =
            Self { part, counter: 0, last: 0, batch, recovered: 0, records_on_take: false };
        if !was_abandoned {
            opened.reset(size, used);
            return Ok((opened, None));
        }
        opened.recover_batch(size, used);
        let heads = opened.inflight_heads(size);
        if usize::from(avail.wrapping_sub(used)) < heads.len() {
            let reason = "more buffers are in flight than were made available";
            return Err(RingFault::Inflight { queue, reason });
        }
        opened.recovered = heads.len();
        Ok((opened, Some(RecoveredHeads { from: used, heads })))
    }

    /// Initialises an empty part, regardless of its contents.
    fn reset(&mut self, size: u16, used: u16) {
        for index in 0..size {
            self.part.store_8(entry_at(index), 0);
        }
        self.part.store_16(ENTRIES_AT, size);
        self.part.store_16(LAST_BATCH_HEAD_AT, 0);
        self.part.store_16(USED_IDX_AT, used);
        self.part.store_16(VERSION_AT, VERSION);
    }

    /// Clears the marks of a batch that was returned immediately before the previous process died.
    fn recover_batch(&mut self, size: u16, used: u16) {
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

    /// Returns the heads of chains in flight, oldest first.
    fn inflight_heads(&mut self, size: u16) -> Vec<u16> {
        let mut heads: Vec<(u64, u16)> = (0..size)
            .filter(|index| self.part.load_8(entry_at(*index)) == 1)
            .map(|index| (self.part.load_64(entry_at(index) + COUNTER_AT), index))
            .collect();
        heads.sort_unstable();
        self.counter = heads.last().map_or(0, |(counter, _)| counter.wrapping_add(1));
        heads.into_iter().map(|(_, head)| head).collect()
    }

    /// Configures the part for a ring that returns chains in any order and records them when it
    /// takes them ([`SplitInflight::record_taken`]).
    pub(crate) fn with_recording_on_take(self) -> Self {
        Self { records_on_take: true, ..self }
    }

    /// Records that a chain was taken. The heads of a previous device are taken first and recorded
    /// already.
    pub(crate) fn record_taken(&mut self, head: u16) {
        if self.recovered > 0 {
            self.recovered -= 1;
            return;
        }
        let offset = entry_at(head);
        self.part.store_64(offset + COUNTER_AT, self.counter);
        self.counter = self.counter.wrapping_add(1);
        self.part.store_8(offset, 1);
    }

    /// Adds a completed chain to the batch that will be returned.
    #[inline]
    pub(crate) fn record_completed(&mut self, head: u16) {
        self.batch.push(head);
    }

    /// Returns the number of completed chains that are not returned.
    pub(crate) fn completed_count(&self) -> usize {
        self.batch.len()
    }

    /// Removes all completed chains except the first `keep` from the batch.
    pub(crate) fn truncate_completed(&mut self, keep: usize) {
        self.batch.truncate(keep);
    }

    /// Records the completed chains before they are returned.
    pub(crate) fn begin_used_batch(&mut self) {
        for (index, head) in self.batch.iter().enumerate() {
            let offset = entry_at(*head);
            // Heads of a previous device are recorded already and keep their counters: with a new
            // counter a head would be ordered after younger ones.
            if !self.records_on_take && index >= self.recovered {
                self.part.store_64(offset + COUNTER_AT, self.counter);
                self.counter = self.counter.wrapping_add(1);
                self.part.store_8(offset, 1);
            }
            self.part.store_16(offset + NEXT_AT, self.last);
            self.last = *head;
            self.part.store_16(LAST_BATCH_HEAD_AT, *head);
        }
    }

    /// Records that the batch was returned: clears the marks of its chains. `used` is the ring's
    /// used index.
    pub(crate) fn end_used_batch(&mut self, used: u16) {
        for head in &self.batch {
            self.part.store_8(entry_at(*head), 0);
        }
        self.part.store_16(USED_IDX_AT, used);
        if !self.records_on_take {
            self.recovered = self.recovered.saturating_sub(self.batch.len());
        }
        self.batch.clear();
    }

    /// Empties the part, because the ring is dropped with no chain in flight.
    pub(crate) fn close(&mut self) {
        self.part.store_16(VERSION_AT, 0);
    }
}

/// Returns the offset in bytes of the entry of the head `index` in the part.
fn entry_at(index: u16) -> usize {
    SPLIT_HEADER_BYTES + SPLIT_ENTRY_BYTES * usize::from(index)
}
