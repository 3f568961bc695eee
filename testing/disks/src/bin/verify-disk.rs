//! Writes blocks to a disk and verifies them: `verify-disk FILE SECONDS [BLOCKS [DEPTH [STOP]]]`.
//! The load ends after `SECONDS`, or as soon as the file `STOP` exists.
//!
//! Each block is owned by one of `DEPTH` threads. The owner increments the block's version with
//! each write, so it knows the expected version, and verifies the block before each write and at
//! intervals after a write. This detects lost writes, writes repeated after a newer one,
//! misdirected writes and torn writes: the block has a different version, a different block number,
//! or different versions within it. At the end all blocks are read once more.
//!
//! All I/O bypasses the page cache (`O_DIRECT`). The program prints the number of operations and
//! the duration of the longest one. It exits with status 1 at the first difference or error.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

const BLOCK: usize = 4096;
/// Number of words in a block. Each word contains the block number and the version.
const WORDS: usize = BLOCK / 8;
/// Default number of blocks and of threads.
const BLOCKS: u64 = 1024;
const DEPTH: u64 = 16;

/// Statistics of a thread.
#[derive(Default)]
struct Done {
    reads: u64,
    writes: u64,
    longest: Duration,
}

/// The blocks of one thread: `first`, `first + step`, ….
struct Part {
    file: File,
    first: u64,
    step: u64,
    /// Expected version of each block; 0 if it was never written.
    versions: Vec<u64>,
    buffer: Vec<u8>,
    state: u64,
    done: Done,
}

/// End condition of the load.
struct End {
    at: Instant,
    /// File whose existence also ends the load.
    stop: Option<PathBuf>,
}

impl End {
    fn is_reached(&self) -> bool {
        Instant::now() >= self.at || self.stop.as_ref().is_some_and(|file| file.exists())
    }
}

impl Part {
    fn run(mut self, end: &End) -> Result<Done> {
        while !end.is_reached() {
            let nth = self.random() as usize % self.versions.len();
            if self.versions[nth] > 0 {
                self.verify(nth)?;
            }
            self.write(nth)?;
            if self.random() % 4 == 0 {
                self.verify(nth)?;
            }
            if self.random() % 64 == 0 {
                self.file.sync_data().context("a flush failed")?;
            }
        }
        for nth in
            (0..self.versions.len()).filter(|nth| self.versions[*nth] > 0).collect::<Vec<_>>()
        {
            self.verify(nth)?;
        }
        Ok(self.done)
    }

    fn block(&self, nth: usize) -> u64 {
        self.first + nth as u64 * self.step
    }

    /// Returns the part of the buffer that is aligned for direct I/O.
    fn aligned(&mut self) -> &mut [u8] {
        let align_offset = self.buffer.as_ptr().align_offset(BLOCK);
        &mut self.buffer[align_offset..align_offset + BLOCK]
    }

    fn write(&mut self, nth: usize) -> Result<()> {
        let (block, version) = (self.block(nth), self.versions[nth] + 1);
        for (index, target) in self.aligned().chunks_exact_mut(8).enumerate() {
            target.copy_from_slice(&word(block, version, index).to_le_bytes());
        }
        let file = self.file.try_clone()?;
        let start = Instant::now();
        file.write_all_at(self.aligned(), block * BLOCK as u64)
            .with_context(|| format!("write of block {block}"))?;
        self.done.longest = self.done.longest.max(start.elapsed());
        self.done.writes += 1;
        self.versions[nth] = version;
        Ok(())
    }

    fn verify(&mut self, nth: usize) -> Result<()> {
        let (block, version) = (self.block(nth), self.versions[nth]);
        let file = self.file.try_clone()?;
        let start = Instant::now();
        file.read_exact_at(self.aligned(), block * BLOCK as u64)
            .with_context(|| format!("read of block {block}"))?;
        self.done.longest = self.done.longest.max(start.elapsed());
        self.done.reads += 1;
        for (index, source) in self.aligned().chunks_exact(8).enumerate() {
            let value = u64::from_le_bytes(source.try_into()?);
            if value != word(block, version, index) {
                let is_older = (1..version).rev().find(|old| value == word(block, *old, index));
                match is_older {
                    Some(old) => bail!("block {block}: version {old} in place of {version}"),
                    None => bail!("block {block}: {value:#x} at word {index} of version {version}"),
                }
            }
        }
        Ok(())
    }

    /// Returns the next pseudorandom number (xorshift64).
    fn random(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state >> 8
    }
}

fn word(block: u64, version: u64, index: usize) -> u64 {
    let mixed = block << 40 ^ version << 9 ^ (index % WORDS) as u64;
    mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

fn run() -> Result<String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, otherwise: u64| match arguments.get(index) {
        Some(argument) => argument.parse().with_context(|| argument.clone()),
        None => Ok(otherwise),
    };
    let path =
        arguments.first().context("usage: verify-disk FILE SECONDS [BLOCKS [DEPTH [STOP]]]")?;
    let end = Instant::now() + Duration::from_secs(number(1, 5)?);
    let end = Arc::new(End { at: end, stop: arguments.get(4).map(PathBuf::from) });
    let (blocks, depth) = (number(2, BLOCKS)?, number(3, DEPTH)?.max(1));
    ensure!(blocks >= depth, "fewer blocks than threads");
    let mut threads = Vec::new();
    for first in 0..depth {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(rustix::fs::OFlags::DIRECT.bits() as i32)
            .open(path)?;
        let count = (blocks - first).div_ceil(depth) as usize;
        let part = Part {
            file,
            first,
            step: depth,
            versions: vec![0; count],
            buffer: vec![0; 2 * BLOCK],
            state: first * 2 + 0x2545_f491_4f6c_dd1d,
            done: Done::default(),
        };
        let end = Arc::clone(&end);
        threads.push(std::thread::spawn(move || part.run(&end)));
    }
    let mut totals = Done::default();
    for thread in threads {
        let Ok(result) = thread.join() else { bail!("a thread panicked") };
        let result = result?;
        totals.reads += result.reads;
        totals.writes += result.writes;
        totals.longest = totals.longest.max(result.longest);
    }
    let Done { reads, writes, longest } = totals;
    Ok(format!("reads={reads} writes={writes} longest_ms={}", longest.as_millis()))
}

fn main() -> ExitCode {
    match run() {
        Ok(result) => {
            println!("{result}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("{error:#}");
            // Ends the process without waiting for the other threads.
            std::process::exit(1);
        }
    }
}
