//! Crash simulation: possible contents of a file after a crash of the host.
//!
//! Fault model: changes before the last flush are durable. Each later change is applied completely,
//! not at all, or in some of its 512-byte sectors; later changes take effect in any order. Sectors
//! are never torn.

use super::FileContent;
use super::memory_file::{LoggedChange, apply};

const SECTOR: u64 = 512;

/// Fate of a change without a subsequent flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// The change took effect.
    Persisted,
    /// The change was lost.
    Lost,
    /// For a write, the sectors with their bit set took effect (bit `n % 64` for sector `n`). Other
    /// changes took effect completely.
    Torn(u64),
}

/// Crash after a number of changes to a file.
#[derive(Clone, Debug)]
pub struct Crash<'a> {
    /// Contents of the file before the first change.
    pub before: &'a FileContent,
    /// Changes in the order of their start.
    pub changes: &'a [LoggedChange],
    /// Number of changes begun before the crash.
    pub started_count: usize,
}

impl Crash<'_> {
    /// Returns the number of changes begun without a subsequent flush: the number of outcomes that
    /// [`Crash::file`] uses.
    #[must_use]
    pub fn unflushed_count(&self) -> usize {
        self.started().len() - self.durable()
    }

    /// Returns the file after the crash. `order` lists the changes without a subsequent flush, by
    /// index, in the order in which they take effect; `fates` is the outcome of each. Missing
    /// entries of `order` and `fates` mean original order and [`WriteOutcome::Persisted`].
    #[must_use]
    pub fn content_after(&self, order: &[usize], fates: &[WriteOutcome]) -> FileContent {
        let mut content = self.before.clone();
        let (durable, unsynced) = self.started().split_at(self.durable());
        for op in durable {
            apply(&mut content, op);
        }
        for position in 0..unsynced.len() {
            let op_index = order.get(position).copied().unwrap_or(position);
            let Some(op) = unsynced.get(op_index) else { continue };
            match fates.get(op_index).copied().unwrap_or(WriteOutcome::Persisted) {
                WriteOutcome::Persisted => apply(&mut content, op),
                WriteOutcome::Lost => {}
                WriteOutcome::Torn(sectors) => tear(&mut content, op, sectors),
            }
        }
        content
    }

    fn started(&self) -> &[LoggedChange] {
        self.changes.get(..self.started_count).unwrap_or(self.changes)
    }

    fn durable(&self) -> usize {
        let last_flush = self.started().iter().rposition(|op| *op == LoggedChange::Flush);
        last_flush.map_or(0, |offset| offset + 1)
    }
}

fn tear(content: &mut FileContent, op: &LoggedChange, sectors: u64) {
    let LoggedChange::Write { offset, bytes: new } = op else { return apply(content, op) };
    let mut offset = *offset;
    let mut remaining = new.as_slice();
    let mut sector = 0_u32;
    while !remaining.is_empty() {
        let len = usize::try_from(SECTOR - offset % SECTOR)
            .unwrap_or(remaining.len())
            .min(remaining.len());
        let (piece, next) = remaining.split_at(len);
        if sectors.rotate_right(sector) & 1 == 1 {
            apply(content, &LoggedChange::Write { offset, bytes: piece.to_vec() });
        }
        offset = offset.saturating_add(len as u64);
        sector = sector.wrapping_add(1);
        remaining = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ImageFile;
    use crate::testing::MemoryFile;

    #[test]
    fn crash_affects_only_unsynced_changes() {
        let file = MemoryFile::default();
        file.write_at(0, &[1; 1024]).unwrap();
        file.flush().unwrap();
        file.write_at(0, &[2; 1024]).unwrap();
        file.write_at(512, &[3; 512]).unwrap();
        let ops = file.log();
        let crash =
            Crash { before: &FileContent::default(), changes: &ops, started_count: ops.len() };
        assert_eq!(crash.unflushed_count(), 2);
        let ends =
            |content: FileContent| (content.read_padded(0, 1)[0], content.read_padded(1023, 1)[0]);
        assert_eq!(ends(crash.content_after(&[], &[])), (2, 3));
        assert_eq!(ends(crash.content_after(&[1, 0], &[])), (2, 2));
        assert_eq!(
            ends(crash.content_after(&[], &[WriteOutcome::Lost, WriteOutcome::Lost])),
            (1, 1)
        );
        assert_eq!(
            ends(crash.content_after(&[], &[WriteOutcome::Torn(0b10), WriteOutcome::Lost])),
            (1, 2)
        );
        // Only changes that have begun are relevant.
        assert_eq!(ends(Crash { started_count: 1, ..crash }.content_after(&[], &[])), (1, 1));
    }
}
