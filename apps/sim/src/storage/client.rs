//! What VMs do with their disks.
//!
//! A client is a closed loop: it keeps `depth` requests outstanding and asks again as soon as
//! one is answered, `think_us` later. Iometer, by which the published experiments were loaded,
//! does so with its outstanding I/Os per target.

use serde::Deserialize;

use crate::kernel::Dice;

/// How a client chooses where it reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Pattern {
    /// Anywhere, at multiples of the block.
    Random,
    /// One block after the other, from the beginning again at the end.
    Sequential,
}

/// What a client does.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoadSpec {
    pub(crate) block_kb: u32,
    pub(crate) pattern: Pattern,
    /// Of a hundred requests.
    pub(crate) write_percent: u32,
    /// Requests outstanding.
    pub(crate) depth: u32,
    /// From an answer to the next request.
    #[serde(default)]
    pub(crate) think_us: u32,
    /// Of its disk, in 2³⁰ bytes.
    pub(crate) size_gb: u32,
}

/// A client and where it is in its disk.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) load: LoadSpec,
    /// Where its disk begins in the volume.
    base: u64,
    next: u64,
    dice: Dice,
}

impl Client {
    pub(crate) fn new(load: LoadSpec, base: u64, dice: Dice) -> Self {
        Self { load, base, next: 0, dice }
    }

    /// Bytes of a request.
    pub(crate) fn bytes(&self) -> u32 {
        self.load.block_kb << 10
    }

    /// Where in the volume the next request is, and whether it writes.
    pub(crate) fn draw(&mut self) -> (u64, bool) {
        let block = u64::from(self.bytes());
        let blocks = (u64::from(self.load.size_gb) << 30) / block;
        let at = match self.load.pattern {
            Pattern::Random => self.dice.below(blocks),
            Pattern::Sequential => self.next,
        };
        self.next = (at + 1) % blocks.max(1);
        (self.base + at * block, self.dice.percent(self.load.write_percent))
    }
}
