//! Load on a disk that knows what must be there after its server was killed: every write that
//! was answered, flushed or not, and each sector of one that was not as it was before or after.
//!
//! A part of a disk has one owner, who sends one request at a time. Each write gives a block
//! a higher version, which each of its sectors has in it with its place. Zeros are versions
//! too. Of each sector the oldest version is known that may be found: the last one that was
//! answered, or found after a death, for what a server has once shown must stay.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, bail};

use crate::nbd_client::{NbdClient, NbdFailure};

/// What a disk writes whole or not at all.
const SECTOR: usize = 512;
const SECTORS: usize = 8;
/// What is written at a time.
const BLOCK: usize = SECTOR * SECTORS;
/// What is freed at a time: at least what a dynamic image allocates at a time.
const REGION_BYTES: u64 = 2 << 20;
/// Where in a region blocks are that are written: its first and its last, and between.
const PLACES: [u64; 4] =
    [0, 37 * BLOCK as u64, (1 << 20) - BLOCK as u64, REGION_BYTES - BLOCK as u64];

/// Numbers that look like chance and are the same for the same seed (xorshift64*, Vigna
/// 2014).
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// From this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below this one, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % end
    }
}

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadDone {
    /// Blocks written.
    pub writes: u64,
    /// Regions of which zeros were made.
    pub freed: u64,
    /// Flushes that were answered.
    pub flushes: u64,
    /// Blocks that were read and were as they must be.
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

/// Why load ended.
#[derive(Debug)]
pub enum LoadEnd {
    /// The server is gone.
    Gone,
    /// Something is not as it must be.
    Wrong(anyhow::Error),
}

impl From<NbdFailure> for LoadEnd {
    fn from(failure: NbdFailure) -> Self {
        match failure {
            NbdFailure::Gone(_) => Self::Gone,
            refused @ NbdFailure::Refused(_) => Self::Wrong(refused.into()),
        }
    }
}

/// What is known of one block.
#[derive(Clone, Debug, Default)]
struct Block {
    /// Where on the disk.
    offset: u64,
    /// The last version that was sent.
    sent: u64,
    /// Versions that are zeros, besides 0.
    zeros: Vec<u64>,
    /// The version of each sector that was answered or found last.
    known: [u64; SECTORS],
}

impl Block {
    /// What a sector of a version has in it.
    fn content(&self, version: u64, nth: usize) -> [u8; SECTOR] {
        let mut sector = [0; SECTOR];
        if version == 0 || self.zeros.contains(&version) {
            return sector;
        }
        let mut chance = Chance::new(self.offset << 24 ^ version << 4 ^ nth as u64);
        for word in sector.chunks_exact_mut(8) {
            word.copy_from_slice(&(chance.below(u64::MAX) | 1).to_le_bytes());
        }
        sector
    }

    fn whole(&self, version: u64) -> Vec<u8> {
        (0..SECTORS).flat_map(|nth| self.content(version, nth)).collect()
    }

    /// Which version a sector has, of those that it may have.
    fn identify(&self, nth: usize, found: &[u8], oldest: u64) -> Result<u64> {
        let has = |version: &u64| self.content(*version, nth) == found;
        if let Some(version) = (oldest..=self.sent).find(has) {
            return Ok(version);
        }
        let (at, sent) = (self.offset + (nth * SECTOR) as u64, self.sent);
        match (0..oldest).rev().find(has) {
            Some(old) => bail!("byte {at}: version {old}, of {oldest} to {sent}"),
            None => bail!(
                "byte {at}: none of the versions {oldest} to {sent}, but {:02x?} …",
                &found[..16]
            ),
        }
    }

    /// After a death: each sector has what it may have. From now on it stays so.
    fn settle(&mut self, found: &[u8]) -> Result<()> {
        for (nth, sector) in found.chunks_exact(SECTOR).enumerate() {
            self.known[nth] = self.identify(nth, sector, self.known[nth])?;
        }
        self.forget_zeros();
        Ok(())
    }

    /// While the server lives: each sector has what it was given last.
    fn compare(&self, found: &[u8]) -> Result<()> {
        for (nth, sector) in found.chunks_exact(SECTOR).enumerate() {
            if self.content(self.known[nth], nth) != sector {
                self.identify(nth, sector, self.sent + 1)?;
            }
        }
        Ok(())
    }

    /// The last version that was sent is answered.
    fn handle_answer(&mut self) {
        self.known = [self.sent; SECTORS];
        self.forget_zeros();
    }

    /// Versions that cannot be found any more.
    fn forget_zeros(&mut self) {
        let oldest = self.known.iter().copied().min().unwrap_or(0);
        self.zeros.retain(|version| *version >= oldest);
    }
}

/// One owner's part of a disk. It outlives connections and servers.
#[derive(Debug)]
pub struct DiskPart {
    blocks: Vec<Block>,
    chance: Chance,
    /// What was done so far.
    pub done: LoadDone,
}

impl DiskPart {
    /// The regions `first`, `first + step`, … of a disk of zeros with this many bytes.
    #[must_use]
    pub fn new(first: u64, step: usize, bytes: u64, seed: u64) -> Self {
        let regions = (first..bytes / REGION_BYTES).step_by(step);
        let blocks = regions
            .flat_map(|region| PLACES.map(|place| region * REGION_BYTES + place))
            .map(|offset| Block { offset, ..Block::default() })
            .collect();
        Self { blocks, chance: Chance::new(seed ^ first << 32), done: LoadDone::default() }
    }

    /// Reads everything, then writes, frees, flushes and reads for as long as the server lives.
    /// Adds each completed request of the second part to `steps`.
    pub fn run(&mut self, client: &mut NbdClient, steps: &AtomicU64) -> LoadEnd {
        let mut ended = self.settle_all(client);
        while ended.is_ok() {
            ended = self.step(client);
            steps.fetch_add(1, Ordering::Relaxed);
        }
        ended.err().unwrap_or(LoadEnd::Gone)
    }

    /// Everything is as it may be after a death.
    ///
    /// # Errors
    /// It is not, or the server is gone.
    pub fn settle_all(&mut self, client: &mut NbdClient) -> Result<(), LoadEnd> {
        let mut found = [0; BLOCK];
        for block in &mut self.blocks {
            client.read(block.offset, &mut found)?;
            block.settle(&found).map_err(LoadEnd::Wrong)?;
            self.done.verified += 1;
        }
        Ok(())
    }

    fn step(&mut self, client: &mut NbdClient) -> Result<(), LoadEnd> {
        let at = self.chance.below(self.blocks.len() as u64) as usize;
        match self.chance.below(32) {
            0 => self.flush(client),
            1 => self.free(client, at / PLACES.len() * PLACES.len()),
            2..=9 => self.verify(client, at),
            dice => self.write(client, at, dice < 13),
        }
    }

    fn write(&mut self, client: &mut NbdClient, at: usize, durable: bool) -> Result<(), LoadEnd> {
        let block = &mut self.blocks[at];
        block.sent += 1;
        let version = block.sent;
        client.write(block.offset, &block.whole(version), durable)?;
        block.handle_answer();
        self.done.writes += 1;
        Ok(())
    }

    /// Makes zeros of the region whose first block this is.
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

    fn verify(&mut self, client: &mut NbdClient, at: usize) -> Result<(), LoadEnd> {
        let mut found = [0; BLOCK];
        client.read(self.blocks[at].offset, &mut found)?;
        self.blocks[at].compare(&found).map_err(LoadEnd::Wrong)?;
        self.done.verified += 1;
        Ok(())
    }
}

#[cfg(test)]
#[path = "disk_load_tests.rs"]
mod tests;
