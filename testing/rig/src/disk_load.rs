//! Load on a disk that can verify its contents after the server was killed: every acknowledged
//! write must be there, flushed or not, and each sector of an unacknowledged write must be old or
//! new.
//!
//! A part of a disk has one owner, which sends one request at a time. Each write gives a block a
//! higher version, which each of its sectors contains together with its position. Zeros are
//! versions too. For each sector, the oldest permitted version is tracked: the last one that was
//! acknowledged, or found after a kill, because data that a server has returned once must not
//! disappear.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, bail};

use crate::nbd_client::{NbdClient, NbdFailure};

/// Size of a sector, which a disk writes completely or not at all.
const SECTOR: usize = 512;
const SECTORS: usize = 8;
/// Size of a write in bytes.
const BLOCK: usize = SECTOR * SECTORS;
/// Size of a discard in bytes: at least the allocation unit of a dynamic image.
const REGION_BYTES: u64 = 2 << 20;
/// Offsets of the written blocks in a region: the first, the last, and some between.
const PLACES: [u64; 4] =
    [0, 37 * BLOCK as u64, (1 << 20) - BLOCK as u64, REGION_BYTES - BLOCK as u64];

/// Deterministic pseudo-random numbers (xorshift64*, Vigna 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below `end`, which must not be 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % end
    }
}

/// Counts of completed work.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadDone {
    /// Blocks written.
    pub writes: u64,
    /// Regions zeroed.
    pub freed: u64,
    /// Flushes completed.
    pub flushes: u64,
    /// Blocks read and verified.
    pub verified: u64,
}

impl std::ops::AddAssign for LoadDone {
    fn add_assign(&mut self, other: Self) {
        self.writes += other.writes;
        self.freed += other.freed;
        self.flushes += other.flushes;
        self.verified += other.verified;
    }
}

/// Reason why the load ended.
#[derive(Debug)]
pub enum LoadEnd {
    /// The server has ended.
    Gone,
    /// The contents of the disk are wrong.
    Wrong(anyhow::Error),
}

impl From<NbdFailure> for LoadEnd {
    fn from(failure: NbdFailure) -> Self {
        match failure {
            NbdFailure::Gone(_) => Self::Gone,
            refusal @ NbdFailure::Refused(_) => Self::Wrong(refusal.into()),
        }
    }
}

/// State of one block.
#[derive(Clone, Debug, Default)]
struct Block {
    /// Offset on the disk.
    offset: u64,
    /// Last version that was sent.
    sent: u64,
    /// Versions that are zeros, besides 0.
    zeros: Vec<u64>,
    /// Version of each sector that was acknowledged or found last.
    known: [u64; SECTORS],
}

impl Block {
    /// Returns the contents of a sector in a version.
    fn content(&self, version: u64, nth: usize) -> [u8; SECTOR] {
        let mut sector = [0; SECTOR];
        if version == 0 || self.zeros.contains(&version) {
            return sector;
        }
        let mut random = Random::new(self.offset << 24 ^ version << 4 ^ nth as u64);
        for word in sector.chunks_exact_mut(8) {
            word.copy_from_slice(&(random.below(u64::MAX) | 1).to_le_bytes());
        }
        sector
    }

    fn block_content(&self, version: u64) -> Vec<u8> {
        (0..SECTORS).flat_map(|nth| self.content(version, nth)).collect()
    }

    /// Returns the version of a sector, from `oldest` on.
    fn identify(&self, nth: usize, content: &[u8], oldest: u64) -> Result<u64> {
        let is_version = |version: &u64| self.content(*version, nth) == content;
        if let Some(version) = (oldest..=self.sent).find(is_version) {
            return Ok(version);
        }
        let (position, newest) = (self.offset + (nth * SECTOR) as u64, self.sent);
        match (0..oldest).rev().find(is_version) {
            Some(old) => bail!("byte {position}: version {old}, of {oldest} to {newest}"),
            None => bail!(
                "byte {position}: none of the versions {oldest} to {newest}, but {:02x?} …",
                &content[..16]
            ),
        }
    }

    /// Verifies a block after a kill: each sector must have a permitted version. The found
    /// versions become the oldest permitted ones.
    fn settle(&mut self, content: &[u8]) -> Result<()> {
        for (nth, sector) in content.chunks_exact(SECTOR).enumerate() {
            self.known[nth] = self.identify(nth, sector, self.known[nth])?;
        }
        self.forget_zeros();
        Ok(())
    }

    /// Verifies a block while the server runs: each sector must have its last acknowledged version.
    fn compare(&self, content: &[u8]) -> Result<()> {
        for (nth, sector) in content.chunks_exact(SECTOR).enumerate() {
            if self.content(self.known[nth], nth) != sector {
                self.identify(nth, sector, self.sent + 1)?;
            }
        }
        Ok(())
    }

    /// Records that the last sent version was acknowledged.
    fn handle_answer(&mut self) {
        self.known = [self.sent; SECTORS];
        self.forget_zeros();
    }

    /// Forgets zero versions that are no longer permitted.
    fn forget_zeros(&mut self) {
        let oldest = self.known.iter().copied().min().unwrap_or(0);
        self.zeros.retain(|version| *version >= oldest);
    }
}

/// Part of a disk with one owner. It outlives connections and servers.
#[derive(Debug)]
pub struct DiskPart {
    blocks: Vec<Block>,
    random: Random,
    /// Work done so far.
    pub done: LoadDone,
}

impl DiskPart {
    /// Creates the part with the regions `first`, `first + step`, … of a disk with `bytes` zeros.
    #[must_use]
    pub fn new(first: u64, step: usize, bytes: u64, seed: u64) -> Self {
        let regions = (first..bytes / REGION_BYTES).step_by(step);
        let blocks = regions
            .flat_map(|region| PLACES.map(|offset| region * REGION_BYTES + offset))
            .map(|offset| Block { offset, ..Block::default() })
            .collect();
        Self { blocks, random: Random::new(seed ^ first << 32), done: LoadDone::default() }
    }

    /// Verifies everything, then writes, zeros, flushes and reads for as long as the server runs.
    /// Adds each completed request of the second phase to `steps`.
    pub fn run(&mut self, client: &mut NbdClient, steps: &AtomicU64) -> LoadEnd {
        let mut result = self.settle_all(client);
        while result.is_ok() {
            result = self.step(client);
            steps.fetch_add(1, Ordering::Relaxed);
        }
        result.err().unwrap_or(LoadEnd::Gone)
    }

    /// Verifies all blocks after a kill.
    ///
    /// # Errors
    /// The contents are wrong, or the server has ended.
    pub fn settle_all(&mut self, client: &mut NbdClient) -> Result<(), LoadEnd> {
        let mut content = [0; BLOCK];
        for block in &mut self.blocks {
            client.read(block.offset, &mut content)?;
            block.settle(&content).map_err(LoadEnd::Wrong)?;
            self.done.verified += 1;
        }
        Ok(())
    }

    fn step(&mut self, client: &mut NbdClient) -> Result<(), LoadEnd> {
        let index = self.random.below(self.blocks.len() as u64) as usize;
        match self.random.below(32) {
            0 => self.flush(client),
            1 => self.free(client, index / PLACES.len() * PLACES.len()),
            2..=9 => self.verify(client, index),
            choice => self.write(client, index, choice < 13),
        }
    }

    fn write(
        &mut self,
        client: &mut NbdClient,
        index: usize,
        durable: bool,
    ) -> Result<(), LoadEnd> {
        let block = &mut self.blocks[index];
        block.sent += 1;
        let version = block.sent;
        client.write(block.offset, &block.block_content(version), durable)?;
        block.handle_answer();
        self.done.writes += 1;
        Ok(())
    }

    /// Zeros the region whose first block has the index `first`.
    fn free(&mut self, client: &mut NbdClient, first: usize) -> Result<(), LoadEnd> {
        let region = &mut self.blocks[first..first + PLACES.len()];
        for block in &mut *region {
            block.sent += 1;
            block.zeros.push(block.sent);
        }
        client.write_zeroes(region[0].offset, REGION_BYTES)?;
        region.iter_mut().for_each(Block::handle_answer);
        self.done.freed += 1;
        Ok(())
    }

    fn flush(&mut self, client: &mut NbdClient) -> Result<(), LoadEnd> {
        client.flush()?;
        self.done.flushes += 1;
        Ok(())
    }

    fn verify(&mut self, client: &mut NbdClient, index: usize) -> Result<(), LoadEnd> {
        let mut content = [0; BLOCK];
        client.read(self.blocks[index].offset, &mut content)?;
        self.blocks[index].compare(&content).map_err(LoadEnd::Wrong)?;
        self.done.verified += 1;
        Ok(())
    }
}

#[cfg(test)]
#[path = "disk_load_tests.rs"]
mod tests;
