//! Simulated power failures at each point of a file's history, with the possible states of the
//! file.
#![allow(dead_code, unreachable_pub, reason = "each test uses some of it")]

use suimon_image::testing::{Crash, FileContent, LoggedChange, WriteOutcome};

/// Deterministic pseudo-random numbers (xorshift64).
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() >> 16) as usize % end.max(1)
    }

    fn order(&mut self, len: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..len).collect();
        for index in (1..len).rev() {
            order.swap(index, self.below(index + 1));
        }
        order
    }

    fn fates(&mut self, len: usize) -> Vec<WriteOutcome> {
        let fate = |number: u64| match number % 3 {
            0 => WriteOutcome::Persisted,
            1 => WriteOutcome::Lost,
            _ => WriteOutcome::Torn(number.rotate_right(9)),
        };
        (0..len).map(|_| fate(self.next() >> 8)).collect()
    }
}

/// Returns possible states of a file after a power failure when `started` changes had begun: all
/// unsynced changes applied, none, and twice a random selection in random order.
pub fn remains(
    before: &FileContent,
    ops: &[LoggedChange],
    started: usize,
    numbers: &mut Numbers,
) -> Vec<FileContent> {
    let crash = Crash { before, changes: ops, started_count: started };
    let unsynced = crash.unflushed_count();
    let mut files = vec![crash.content_after(&[], &[])];
    if unsynced > 0 {
        files.push(crash.content_after(&[], &vec![WriteOutcome::Lost; unsynced]));
        for _ in 0..2 {
            let (order, fates) = (numbers.order(unsynced), numbers.fates(unsynced));
            files.push(crash.content_after(&order, &fates));
        }
    }
    files
}

/// Returns the points with the most unsynced changes: directly before each flush, and at the end.
pub fn flush_boundaries(ops: &[LoggedChange]) -> Vec<usize> {
    let flushes = ops.iter().enumerate().filter(|(_, op)| **op == LoggedChange::Flush);
    flushes.map(|(index, _)| index).chain([ops.len()]).collect()
}
