//! Expected content of a disk while requests are in flight, and after a crash.

use std::collections::BTreeMap;

use suimon_image::ByteRange;
use suimon_image::testing::{FileContent, MemoryFile, is_filled};
use suimon_ports::DiskOp;

use crate::testing::image_kinds::Kind;
use crate::testing::random_numbers::RandomNumbers;
use crate::testing::requests::{SIZE, range};
use crate::tests::disk_bench::{Bench, REGION, REGIONS, SECTOR};

const FLUSH_TAG: u32 = REGIONS as u32;

/// Possible contents of a sector while changes are in flight.
#[derive(Clone, Debug)]
pub(crate) struct Sector {
    /// Content that a read returns, unless a write is in flight.
    pub(crate) now: u8,
    /// Content that a crash may leave: the durable one and all later ones. `None` for any content,
    /// after a discard.
    pub(crate) may_be: Vec<Option<u8>>,
    /// Number of changes of the sector that precede those in `may_be`.
    gone: usize,
    /// Number of completed changes of the sector.
    pub(crate) answered: usize,
}

/// Expected content of the whole disk.
pub(crate) struct Model {
    pub(crate) sectors: Vec<Sector>,
    pub(crate) random: RandomNumbers,
    /// Requests in flight by tag: operation, range, and the byte that a write writes.
    pub(crate) in_flight: BTreeMap<u32, (DiskOp, ByteRange, u8)>,
    next_byte: u8,
    /// Flush in flight: number of completed changes of each sector when it was submitted; `None` if
    /// there is none.
    pub(crate) flush: Option<Vec<usize>>,
}

impl Model {
    pub(crate) fn new(kind: Kind, seed: u64) -> Self {
        let byte = kind.parent.unwrap_or(0);
        let sector = Sector { now: byte, may_be: vec![Some(byte)], gone: 0, answered: 1 };
        let sectors = vec![sector; SIZE as usize / SECTOR];
        Self {
            sectors,
            random: RandomNumbers(seed),
            in_flight: BTreeMap::new(),
            next_byte: 1,
            flush: None,
        }
    }

    pub(crate) fn sectors(&mut self, range: ByteRange) -> &mut [Sector] {
        &mut self.sectors[range.offset() as usize / SECTOR..range.end() as usize / SECTOR]
    }

    /// Submits a random request that does not overlap those in flight.
    pub(crate) fn submit_random(&mut self, bench: &Bench) {
        let region = self.random.below(REGIONS);
        let tag = region as u32;
        if self.in_flight.contains_key(&tag) {
            return;
        }
        let sectors = REGION / SECTOR as u64;
        let first = self.random.below(sectors);
        let count = 1 + self.random.below(sectors - first);
        let range = if self.random.below(24) == 0 {
            // Ranges of whole blocks of every format.
            range(region / 8 * 8 * REGION, 8 * REGION)
        } else {
            range(region * REGION + first * SECTOR as u64, count * SECTOR as u64)
        };
        if self.in_flight.values().any(|(_, other_range, _)| other_range.overlaps(range)) {
            return;
        }
        let is_durable = self.random.below(8) == 0;
        let op = match self.random.below(12) {
            0..=4 => DiskOp::Write { is_durable },
            5..=8 => DiskOp::Read,
            9 => DiskOp::Discard,
            10 => {
                let may_unmap = self.random.below(2) == 0;
                DiskOp::WriteZeroes { may_unmap, is_durable, only_if_fast: false }
            }
            _ if self.flush.is_none() => {
                self.flush = Some(self.sectors.iter().map(|sector| sector.answered).collect());
                let nothing = ByteRange::new(0, 0).unwrap();
                return bench.submit(FLUSH_TAG, DiskOp::Flush, nothing, Vec::new());
            }
            _ => return,
        };
        self.next_byte = self.next_byte.checked_add(1).unwrap_or(1);
        let byte = self.next_byte;
        let change = match op {
            DiskOp::Write { .. } => Some(Some(byte)),
            DiskOp::WriteZeroes { .. } => Some(Some(0)),
            DiskOp::Discard => Some(None),
            DiskOp::Read | DiskOp::Flush | DiskOp::AllocationStatus { .. } => None,
        };
        if let Some(change) = change {
            for sector in self.sectors(range) {
                sector.may_be.push(change);
            }
        }
        self.in_flight.insert(tag, (op, range, byte));
        bench.submit(tag, op, range, vec![byte; range.len() as usize]);
    }

    pub(crate) fn handle_completion(&mut self, bench: &Bench, tag: u32) {
        if tag == FLUSH_TAG {
            let flushed = self.flush.take().unwrap();
            for (sector, change_count) in self.sectors.iter_mut().zip(flushed) {
                sector.handle_durable(change_count);
            }
            return;
        }
        let (op, range, byte) = self.in_flight.remove(&tag).unwrap();
        match op {
            DiskOp::Read => {
                let content = bench.payloads.lock().unwrap()[tag as usize].clone();
                for (sector, bytes) in self.sectors(range).iter().zip(content.chunks(SECTOR)) {
                    let is_right =
                        is_filled(bytes, sector.now) || matches!(sector.may_be.last(), Some(None));
                    assert!(is_right, "{range}: {} is {:?}", sector.now, bytes.first());
                }
            }
            DiskOp::Write { is_durable } => self.end_change(range, byte, is_durable),
            DiskOp::WriteZeroes { is_durable, .. } => self.end_change(range, 0, is_durable),
            DiskOp::Discard => {
                self.sectors(range).iter_mut().for_each(|sector| sector.answered += 1);
            }
            DiskOp::Flush | DiskOp::AllocationStatus { .. } => {}
        }
    }

    fn end_change(&mut self, range: ByteRange, byte: u8, is_durable: bool) {
        for sector in self.sectors(range) {
            sector.now = byte;
            sector.answered += 1;
            if is_durable {
                sector.handle_durable(sector.answered);
            }
        }
    }

    /// Compares the file after a crash with the permitted content.
    pub(crate) fn check_crash(&self, kind: Kind, file: FileContent) {
        let mut bench = Bench::with_memory(kind, MemoryFile::new(file), 1, 64);
        let content = bench.read(range(0, SIZE));
        for (number, (bytes, sector)) in content.chunks(SECTOR).zip(&self.sectors).enumerate() {
            let is_permitted = |&byte: &Option<u8>| byte.is_none_or(|byte| is_filled(bytes, byte));
            // A sector is never torn, and never older than the durable content.
            assert!(
                sector.may_be.iter().any(is_permitted),
                "{}: sector {number} is {}, may be {:?}",
                kind.name,
                bytes[0],
                sector.may_be
            );
        }
    }
}

impl Sector {
    /// Records that the first `changes` changes are durable. The last of them and later ones are
    /// possible after a crash.
    pub(crate) fn handle_durable(&mut self, changes: usize) {
        let superseded = changes.saturating_sub(1).saturating_sub(self.gone);
        self.may_be.drain(..superseded);
        self.gone += superseded;
    }
}
