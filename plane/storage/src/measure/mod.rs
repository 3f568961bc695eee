//! Finds out what a store can do, on a file of its own that nobody else sees.
//!
//! What is measured is what disks of the store will find: requests of the size that counts
//! as one operation go past the page cache by the I/O that disks use, and Storage QoS itself
//! ([`StoreScheduler`](suimon_storage_qos::StoreScheduler)) says how many the device gets at a
//! time. A minimum may be asked for with reads, writes or both, so all three are tried, and
//! the least is what can be promised.
//!
//! What it does not do: it waits for nothing and has no thread ([`Measurement::step`]), and
//! changes no limit.
//!
//! Life of a measurement
//! ```text
//! begin ──► its file is filled ──► each pattern: warm up, count ──► done
//!                 └── dropped, or the process dies: the file is gone
//! ```
//!
//! Invariants
//! - The file has no name from the moment it was made, so it is gone with whoever has it
//!   open. What a crash leaves in that moment, [`sweep`](crate::images::sweep) removes.
//! - A block device is read and never written.
//! - Half of what is free in the store stays free.

mod fill;
mod pattern_run;

use std::io;
use std::sync::Arc;

use core::time::Duration;
use suimon_ports::{
    DiskFile, FileDone, FileIo, FileName, FileSlot, FileUse, StoreFault, StoreFileError,
    StoreFiles, Wakeup,
};
use suimon_quantity::Time;
use suimon_storage_qos::StoreSpec;
use thiserror::Error;

use self::fill::Fill;
use self::pattern_run::PatternRun;
use crate::Latencies;
use crate::images::{DRAFT_ENDING, DiskError, remove_left};

const MIB: u64 = 1 << 20;
/// Larger than the caches of most devices' controllers, and soon written.
const FILE_BYTES_MAX: u64 = 1024 * MIB;
/// Less says more of caches than of the device.
const FILE_BYTES_MIN: u64 = 16 * MIB;

/// What is asked of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Half of each.
    Mixed,
}

impl Pattern {
    const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Mixed];

    /// For people.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "random reads",
            Self::Write => "random writes",
            Self::Mixed => "half reads, half writes",
        }
    }
}

/// What a store did under a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternFigure {
    /// The pattern.
    pub pattern: Pattern,
    /// Normalised operations per second.
    pub iops: u64,
    /// Requests that the device had at a time in the end.
    pub depth: u32,
    /// What requests took in the device.
    pub latencies: Latencies,
}

/// What was found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Of each pattern, in the order in which they were tried.
    pub figures: Vec<PatternFigure>,
    /// Bytes that requests went to.
    pub file_bytes: u64,
    /// Whether they went past the page cache.
    pub is_direct: bool,
}

impl Measured {
    /// What can be promised of: the least of all patterns.
    #[must_use]
    pub fn iops(&self) -> u64 {
        self.figures.iter().map(|figure| figure.iops).min().unwrap_or(0)
    }
}

/// Why nothing was found out.
#[derive(Debug, Error)]
pub enum MeasureError {
    /// The store does not let a file be made or opened.
    #[error(transparent)]
    Store(#[from] StoreFileError),
    /// Something is left of a measurement before, and does not go.
    #[error(transparent)]
    Left(#[from] DiskError),
    /// There is too little to measure with.
    #[error(
        "{free_mib} MiB are free in the store: a measurement takes half of that, and {} MiB at \
         least; free space in it",
        FILE_BYTES_MIN / MIB
    )]
    NoRoom {
        /// What is free, in MiB.
        free_mib: u64,
    },
    /// The device does not do what it was asked for.
    #[error("{what} at offset {offset} failed: {error}; see the system's log about the device")]
    Io {
        /// What.
        what: &'static str,
        /// Where in the file or device, in bytes.
        offset: u64,
        /// What the system said.
        error: io::Error,
    },
    /// The system gives no more I/O.
    #[error("no I/O is to be had: {0}")]
    Ring(io::Error),
    /// Nothing came back.
    #[error("no request ended in {0} s: the device does not answer; see the system's log")]
    Nothing(u64),
}

/// How far a measurement is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasureProgress {
    /// Parts that are done.
    pub done: usize,
    /// Of how many.
    pub of: usize,
    /// The part under way, for people.
    pub text: String,
    /// Whether all is done; no step follows.
    pub is_done: bool,
}

/// How to measure.
#[derive(Clone, Debug)]
pub struct MeasurePlan {
    /// The store's, for how requests are counted and how many the device may get.
    pub spec: StoreSpec,
    /// For how long each pattern is counted, after a third as long to warm up.
    pub each: Duration,
    /// Where random places begin.
    pub seed: u64,
}

/// A measurement under way.
pub struct Measurement {
    device: Device,
    plan: MeasurePlan,
    patterns: Vec<Pattern>,
    stage: Stage,
    measured: Measured,
    ended: Vec<FileDone>,
}

enum Stage {
    Fill(Fill),
    Run(Box<PatternRun>),
    Done,
}

/// What requests go to.
pub(super) struct Device {
    pub(super) io: Box<dyn FileIo>,
    pub(super) slot: FileSlot,
    /// Its bytes that requests go to.
    pub(super) bytes: u64,
    pub(super) random: u64,
}

impl Device {
    fn new(
        mut io: Box<dyn FileIo>,
        file: Arc<dyn DiskFile>,
        seed: u64,
    ) -> Result<Self, MeasureError> {
        let slot = io.add_file(file).map_err(MeasureError::Ring)?;
        Ok(Self { io, slot, bytes: 0, random: seed })
    }

    /// The next of numbers that look random (Steele and others, SplitMix64).
    pub(super) fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

impl Measurement {
    /// Begins, on a block device or with a file of its own in a directory.
    ///
    /// # Errors
    /// The store is full, only for reading, in use, or not to be had.
    pub fn begin(
        files: &dyn StoreFiles,
        io: Box<dyn FileIo>,
        plan: MeasurePlan,
    ) -> Result<Self, MeasureError> {
        let unit = plan.spec.normalization.bytes();
        match files.open_device(FileUse::Read, unit) {
            Ok(file) => Self::of_device(file, io, plan),
            Err(error) if matches!(error.fault, StoreFault::WrongStore { .. }) => {
                Self::of_directory(files, io, plan)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn of_directory(
        files: &dyn StoreFiles,
        io: Box<dyn FileIo>,
        plan: MeasurePlan,
    ) -> Result<Self, MeasureError> {
        let free = files.space()?.free_bytes;
        let bytes = (free / 2 / MIB * MIB).min(FILE_BYTES_MAX);
        if bytes < FILE_BYTES_MIN {
            return Err(MeasureError::NoRoom { free_mib: free / MIB });
        }
        let text = format!(".measure{DRAFT_ENDING}");
        let bad = |_| StoreFileError::new(&text, io::Error::from(io::ErrorKind::InvalidInput));
        let name = FileName::new(&text).map_err(bad)?;
        remove_left(files, &name)?;
        let file = files.create(&name, plan.spec.normalization.bytes())?;
        files.remove(&name)?;
        let is_direct = file.facts().is_direct;
        let device = Device::new(io, file, plan.seed)?;
        let stage = Stage::Fill(Fill::new(bytes));
        Ok(Self::new(device, plan, &Pattern::ALL, stage, is_direct))
    }

    fn of_device(
        file: Arc<dyn DiskFile>,
        io: Box<dyn FileIo>,
        plan: MeasurePlan,
    ) -> Result<Self, MeasureError> {
        let facts = file.facts();
        if facts.len < FILE_BYTES_MIN {
            return Err(MeasureError::NoRoom { free_mib: facts.len / MIB });
        }
        let mut device = Device::new(io, file, plan.seed)?;
        device.bytes = facts.len;
        let run = Box::new(PatternRun::new(Pattern::Read, &plan, &mut device));
        Ok(Self::new(device, plan, &[Pattern::Read], Stage::Run(run), facts.is_direct))
    }

    fn new(
        device: Device,
        plan: MeasurePlan,
        patterns: &[Pattern],
        stage: Stage,
        is_direct: bool,
    ) -> Self {
        let measured = Measured { figures: Vec::new(), file_bytes: device.bytes, is_direct };
        let patterns = patterns.to_vec();
        Self { device, plan, patterns, stage, measured, ended: Vec::new() }
    }

    /// Hears what has ended and asks for more. To be called again at once, or after
    /// [`Measurement::arm`] has said that there is something to wait for.
    ///
    /// # Errors
    /// It cannot go on: it is to be dropped.
    pub fn step(&mut self, now: Time) -> Result<MeasureProgress, MeasureError> {
        let mut ended = core::mem::take(&mut self.ended);
        self.device.io.poll_done(&mut ended);
        let next = match &mut self.stage {
            Stage::Fill(fill) => {
                let is_filled = fill.step(now, &mut self.device, &mut ended)?;
                is_filled.then(|| self.next_run())
            }
            Stage::Run(run) => {
                let figure = run.step(now, &mut self.device, &mut ended)?;
                figure.map(|figure| {
                    self.measured.figures.push(figure);
                    self.next_run()
                })
            }
            Stage::Done => None,
        };
        ended.clear();
        self.ended = ended;
        if let Some(next) = next {
            self.stage = next;
        }
        // What the system does not take now is handed to it by the next step.
        let _ = self.device.io.kick();
        Ok(self.progress(now))
    }

    /// Asks for a wake-up when something ends.
    pub fn arm(&mut self) -> Wakeup {
        self.device.io.arm()
    }

    /// The descriptor to wait on.
    #[must_use]
    pub fn wake_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.device.io.wake_fd()
    }

    /// What was found out until now; all of it when it is done.
    #[must_use]
    pub const fn measured(&self) -> &Measured {
        &self.measured
    }

    fn next_run(&mut self) -> Stage {
        self.measured.file_bytes = self.device.bytes;
        match self.patterns.get(self.measured.figures.len()) {
            Some(pattern) => {
                Stage::Run(Box::new(PatternRun::new(*pattern, &self.plan, &mut self.device)))
            }
            None => Stage::Done,
        }
    }

    fn progress(&self, now: Time) -> MeasureProgress {
        let fills = self.patterns.contains(&Pattern::Write);
        let done = self.measured.figures.len();
        let (before, text) = match &self.stage {
            Stage::Fill(fill) => (0, fill.text()),
            Stage::Run(run) => (usize::from(fills), run.text(now)),
            Stage::Done => (usize::from(fills), String::new()),
        };
        let of = self.patterns.len() + usize::from(fills);
        let is_done = matches!(self.stage, Stage::Done);
        MeasureProgress { done: before + done, of, text, is_done }
    }
}

#[cfg(test)]
mod tests;
