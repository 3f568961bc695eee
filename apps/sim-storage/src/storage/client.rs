//! Load of VMs on their disks.
//!
//! A client is a closed loop: it keeps `depth` requests outstanding and submits the next one
//! `think_us` after a completion. Iometer, the load generator of the published experiments, does so
//! with its outstanding I/Os per target.

use serde::Deserialize;
use suimon_sim_kernel::RandomStream;

/// Access pattern of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Pattern {
    /// Offsets are random multiples of the block size.
    Random,
    /// Blocks are consecutive, and start again at the beginning after the end of the disk.
    Sequential,
}

/// Load that a client generates.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoadSpec {
    pub(crate) block_kb: u32,
    pub(crate) pattern: Pattern,
    /// Percentage of requests that are writes.
    pub(crate) write_percent: u32,
    /// Number of requests that are always outstanding.
    pub(crate) depth: u32,
    /// Time in µs from a completion to the next request.
    #[serde(default)]
    pub(crate) think_us: u32,
    /// Size of the disk in GiB.
    pub(crate) size_gb: u32,
}

/// Client, with the current position in its disk.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) load: LoadSpec,
    /// Offset of its disk in the volume in bytes.
    base: u64,
    next: u64,
    random: RandomStream,
}

impl Client {
    pub(crate) fn new(load: LoadSpec, base: u64, random: RandomStream) -> Self {
        Self { load, base, next: 0, random }
    }

    /// Returns the size of a request in bytes.
    pub(crate) fn bytes(&self) -> u32 {
        self.load.block_kb << 10
    }

    /// Draws the next request: its offset in the volume in bytes, and true for a write.
    pub(crate) fn draw(&mut self) -> (u64, bool) {
        let block = u64::from(self.bytes());
        let blocks = (u64::from(self.load.size_gb) << 30) / block;
        let block_index = match self.load.pattern {
            Pattern::Random => self.random.draw_below(blocks),
            Pattern::Sequential => self.next,
        };
        self.next = (block_index + 1) % blocks.max(1);
        (self.base + block_index * block, self.random.draw_chance(self.load.write_percent))
    }
}
