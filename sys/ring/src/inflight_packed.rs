//! Packed ring's part of the in-flight region (`QueueRegionPacked`).
//!
//! The device overwrites descriptors of a packed ring when it returns buffers. The part therefore
//! keeps a copy of each descriptor taken, in entries from a free list.
//!
//! A ring that returns chains in any order records each chain when it is taken, with the stores of
//! step 1. Its batch is then already recorded.
//!
//! Order of stores for a batch:
//! 1. Each chain is copied to entries, its head marked `inflight`, and the entries are removed
//!    from the free list (`old_free_head` is the list's head without the chain being recorded).
//! 2. The entries are returned to the free list, and the used position moves.
//! 3. The ring is written.
//! 4. The `inflight` marks of the heads are cleared, and the `old_` fields are updated.
//!
//! If a recovering ring finds the used position different from the old one, it reads the ring: if
//! the ring was written, the batch was returned and step 4 is completed; otherwise free list and
//! position are reset to the `old_` fields.
//!
//! Both positions and their wrap counters are stored as one word, so that a crash never leaves a
//! partial position.

use crate::cells::Descriptor;
use crate::fault::RingFault;
use crate::inflight::{InflightFields, InflightQueue};
use crate::inflight_layout::{
    ChainEntries, ENTRIES_AT, PACKED_ENTRY_BYTES, PACKED_HEADER_BYTES, VERSION, VERSION_AT,
};
use crate::packed_areas::{CompletedChain, PackedCells};
use crate::packed_arming::PackedNotificationFields;
use crate::ring_position::RingPosition;

const FREE_HEAD_AT: usize = 12;
const OLD_FREE_HEAD_AT: usize = 14;
/// Offset in the part of one word: `used_idx`, `old_used_idx`, the two wrap counters and padding.
const POSITIONS_AT: usize = 16;

const NEXT_AT: usize = 2;
const LAST_AT: usize = 4;
const NUM_AT: usize = 6;
const COUNTER_AT: usize = 8;
/// Offset in an entry of one word: buffer id, flags and length.
const REST_AT: usize = 16;
const ADDR_AT: usize = 24;

/// Part of an in-flight region, as the packed ring that uses it maintains it.
pub(crate) struct PackedInflight {
    part: InflightFields,
    counter: u64,
    free_head: u16,
    /// Private copy of the links between entries, in the free list and in chains.
    next: Vec<u16>,
    old: RingPosition,
}

/// Position of a ring whose process died, and the chains to process again.
pub(crate) struct PackedRecovery {
    /// Position at which the ring continues.
    pub(crate) position: RingPosition,
    /// Chains to take first, in place of descriptors in the ring.
    pub(crate) replay: RecoveredChains,
}

/// Chains that a previous device took and did not return, oldest first.
#[derive(Default)]
pub(crate) struct RecoveredChains {
    descriptors: Vec<Descriptor>,
    chains: Vec<ChainEntries>,
    pub(crate) taken_position: RecoveredPosition,
}

/// Number of descriptors and number of chains of [`RecoveredChains`] that were taken.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecoveredPosition {
    descriptors: usize,
    chains: usize,
}

impl RecoveredChains {
    /// Returns the descriptor at `distance` from the next one to take; `None` beyond the last one.
    #[inline]
    pub(crate) fn descriptor(&self, distance: u16) -> Option<Descriptor> {
        self.descriptors.get(self.taken_position.descriptors + usize::from(distance)).copied()
    }

    /// Takes the next chain, which has `descriptors` descriptors. Returns `None` if all were taken.
    #[inline]
    pub(crate) fn take(&mut self, descriptors: u16) -> Option<ChainEntries> {
        let entries = self.chains.get(self.taken_position.chains).copied()?;
        self.taken_position.chains += 1;
        self.taken_position.descriptors += usize::from(descriptors);
        Some(entries)
    }

    /// Returns true if all chains were taken.
    pub(crate) fn is_done(&self) -> bool {
        self.taken_position.chains == self.chains.len()
    }
}

impl PackedInflight {
    /// Opens the part for a ring with the base `base`. Returns how the ring continues if its
    /// process died, otherwise `None`. `queue` is named in errors.
    ///
    /// # Errors
    /// The part does not fit the ring, or its contents are inconsistent.
    pub(crate) fn open(
        inflight: &InflightQueue,
        queue: u16,
        cells: &PackedCells,
        base: RingPosition,
    ) -> Result<(Self, Option<PackedRecovery>), RingFault> {
        let size = cells.size();
        inflight.check(queue, size, true)?;
        let was_abandoned = inflight.was_in_use_at_crash();
        let mut opened = Self {
            part: inflight.fields(),
            counter: 0,
            free_head: 0,
            next: (1..=size).collect(),
            old: base,
        };
        if !was_abandoned {
            opened.reset(size);
            return Ok((opened, None));
        }
        let fault = |reason| RingFault::Inflight { queue, reason };
        opened.recover_batch(cells).map_err(fault)?;
        let replay = opened.recover_chains(size).map_err(fault)?;
        let position = opened.old;
        Ok((opened, Some(PackedRecovery { position, replay })))
    }

    /// Initialises an empty part, regardless of its contents.
    fn reset(&mut self, size: u16) {
        for (index, next) in (0..size).zip(&self.next) {
            self.part.store_8(entry_at(index), 0);
            self.part.store_16(entry_at(index) + NEXT_AT, *next);
        }
        self.part.store_16(ENTRIES_AT, size);
        self.part.store_16(FREE_HEAD_AT, 0);
        self.part.store_16(OLD_FREE_HEAD_AT, 0);
        self.store_positions(self.old, self.old);
        self.part.store_16(VERSION_AT, VERSION);
    }

    /// Completes or reverts the return of a batch that the death of the process interrupted.
    ///
    /// # Errors
    /// A description of the inconsistency.
    fn recover_batch(&mut self, cells: &PackedCells) -> Result<(), &'static str> {
        let size = cells.size();
        let (used, old) = self.load_positions();
        if used.index >= size || old.index >= size {
            return Err("its used index is outside of the ring");
        }
        let was_returned = used != old && !cells.is_available(old);
        if was_returned {
            self.free_head = self.part.load_16(FREE_HEAD_AT);
            self.part.store_16(OLD_FREE_HEAD_AT, self.free_head);
            self.old = used;
        } else {
            self.free_head = self.part.load_16(OLD_FREE_HEAD_AT);
            self.part.store_16(FREE_HEAD_AT, self.free_head);
            self.old = old;
        }
        self.store_positions(self.old, self.old);
        let mut free = self.free_head;
        for _ in 0..size {
            if free >= size {
                break;
            }
            self.part.store_8(entry_at(free), 0);
            free = self.part.load_16(entry_at(free) + NEXT_AT);
        }
        Ok(())
    }

    /// Reads the chains in flight, and links all other entries to a free list.
    ///
    /// # Errors
    /// A description of the inconsistency.
    fn recover_chains(&mut self, size: u16) -> Result<RecoveredChains, &'static str> {
        let mut heads: Vec<(u64, u16)> = (0..size)
            .filter(|index| self.part.load_8(entry_at(*index)) == 1)
            .map(|index| (self.part.load_64(entry_at(index) + COUNTER_AT), index))
            .collect();
        heads.sort_unstable();
        self.counter = heads.last().map_or(0, |(counter, _)| counter.wrapping_add(1));
        let mut replay = RecoveredChains::default();
        let mut is_used = vec![false; usize::from(size)];
        for (_, head) in heads {
            let entries = self.collect_chain(head, &mut is_used, &mut replay.descriptors)?;
            replay.chains.push(entries);
        }
        // The previous device's list holds the same entries; only their order changes. None of them
        // is in flight, so a crash between two stores leaves a consistent part.
        let mut following = size;
        for index in (0..size).rev() {
            if is_used.get(usize::from(index)) == Some(&false) {
                self.link(index, following);
                following = index;
            }
        }
        self.free_head = following;
        self.part.store_16(OLD_FREE_HEAD_AT, following);
        self.part.store_16(FREE_HEAD_AT, following);
        Ok(replay)
    }

    /// Reads the chain in flight whose first entry is `head`: appends its descriptors, and marks
    /// its entries in `is_used`.
    ///
    /// # Errors
    /// A description of the inconsistency.
    fn collect_chain(
        &mut self,
        head: u16,
        is_used: &mut [bool],
        descriptors: &mut Vec<Descriptor>,
    ) -> Result<ChainEntries, &'static str> {
        let count = self.part.load_16(entry_at(head) + NUM_AT);
        let mut last = head;
        for number in 0..count {
            let index =
                if number == 0 { head } else { self.part.load_16(entry_at(last) + NEXT_AT) };
            match is_used.get_mut(usize::from(index)) {
                Some(used) if !*used => *used = true,
                _ => return Err("an in-flight chain has entries of another chain"),
            }
            if number != 0 {
                self.record_link(last, index);
            }
            last = index;
            let offset = entry_at(index);
            let word = self.part.load_64(offset + REST_AT);
            let (id, flags) = (word as u16, (word >> 16) as u16 & !Descriptor::NEXT);
            let next_flag = if number + 1 == count { 0 } else { Descriptor::NEXT };
            descriptors.push(Descriptor {
                addr: self.part.load_64(offset + ADDR_AT),
                len: (word >> 32) as u32,
                flags: flags | next_flag,
                next: id,
            });
        }
        if count == 0 {
            Err("an in-flight chain has no entries")
        } else {
            Ok(ChainEntries { first: head, last })
        }
    }

    /// Records the completed chains of `batch` before they are returned (steps 1 and 2 of the
    /// module documentation). `used` is the used position afterwards.
    pub(crate) fn begin_used_batch(
        &mut self,
        cells: &PackedCells,
        batch: &mut [CompletedChain],
        used: RingPosition,
    ) {
        for element in batch.iter_mut() {
            if element.entries.is_none() {
                element.entries =
                    self.record_chain(cells, element.position, element.descriptor_count);
            }
        }
        for entries in batch.iter().filter_map(|element| element.entries) {
            self.link(entries.last, self.free_head);
            self.free_head = entries.first;
            self.part.store_16(FREE_HEAD_AT, self.free_head);
        }
        self.store_positions(used, self.old);
    }

    /// Copies the descriptors of a chain to free entries, and marks the chain as in flight. Returns
    /// the entries; `None` if too few are free, which is possible only if the driver has made
    /// descriptors available twice.
    pub(crate) fn record_chain(
        &mut self,
        cells: &PackedCells,
        position: RingPosition,
        descriptors: u16,
    ) -> Option<ChainEntries> {
        let size = cells.size();
        let head = self.free_head;
        let mut last = head;
        let mut entry = head;
        for number in 0..descriptors {
            if entry >= size {
                return None;
            }
            let offset = entry_at(entry);
            if number == 0 {
                self.part.store_16(offset + NUM_AT, 0);
                self.part.store_64(offset + COUNTER_AT, self.counter);
                self.part.store_8(offset, 1);
            }
            let descriptor = cells.descriptor(position.advanced_by(number, size).index);
            let word = u64::from(descriptor.next)
                | u64::from(descriptor.flags) << 16
                | u64::from(descriptor.len) << 32;
            self.part.store_64(offset + REST_AT, word);
            self.part.store_64(offset + ADDR_AT, descriptor.addr);
            self.part.store_16(entry_at(head) + LAST_AT, entry);
            self.part.store_16(entry_at(head) + NUM_AT, number + 1);
            last = entry;
            entry = self.next.get(usize::from(entry)).copied().unwrap_or(size);
            self.part.store_16(FREE_HEAD_AT, entry);
        }
        self.counter = self.counter.wrapping_add(1);
        self.free_head = entry;
        self.part.store_16(OLD_FREE_HEAD_AT, entry);
        Some(ChainEntries { first: head, last })
    }

    /// Records that the chains of `batch` were returned: clears their marks (step 4 of the module
    /// documentation). `used` is the used position.
    pub(crate) fn end_used_batch(&mut self, batch: &[CompletedChain], used: RingPosition) {
        for entries in batch.iter().filter_map(|element| element.entries) {
            self.part.store_8(entry_at(entries.first), 0);
        }
        self.part.store_16(OLD_FREE_HEAD_AT, self.free_head);
        self.old = used;
        self.store_positions(used, used);
    }

    /// Empties the part, because the ring is dropped with no chain in flight.
    pub(crate) fn close(&mut self) {
        self.part.store_16(VERSION_AT, 0);
    }

    fn link(&mut self, entry: u16, next: u16) {
        self.record_link(entry, next);
        self.part.store_16(entry_at(entry) + NEXT_AT, next);
    }

    fn record_link(&mut self, entry: u16, next: u16) {
        if let Some(link) = self.next.get_mut(usize::from(entry)) {
            *link = next;
        }
    }

    fn load_positions(&self) -> (RingPosition, RingPosition) {
        let [a, b, c, d, wrap, old_wrap, ..] = self.part.load_64(POSITIONS_AT).to_le_bytes();
        let decode = |index, wrap| RingPosition {
            index: u16::from_le_bytes(index),
            wrap_counter: wrap != 0,
        };
        (decode([a, b], wrap), decode([c, d], old_wrap))
    }

    fn store_positions(&self, used: RingPosition, old: RingPosition) {
        let word = u64::from(used.index)
            | u64::from(old.index) << 16
            | u64::from(used.wrap_counter) << 32
            | u64::from(old.wrap_counter) << 40;
        self.part.store_64(POSITIONS_AT, word);
    }
}

/// Returns the offset in bytes of entry `index` in the part.
fn entry_at(index: u16) -> usize {
    PACKED_HEADER_BYTES + PACKED_ENTRY_BYTES * usize::from(index)
}
