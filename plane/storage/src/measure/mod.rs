//! Measurement of a store's capacity with a file of its own.
//!
//! The measurement reproduces the conditions of disks: requests of the size that counts as one
//! operation bypass the page cache, use the I/O of disks, and are dispatched by Storage QoS
//! ([`StoreScheduler`](suimon_storage_qos::StoreScheduler)), which limits the queue depth. A
//! minimum may be used with reads, writes or both, so all three patterns are measured, and the
//! lowest rate is the capacity.
//!
//! A measurement never blocks, has no thread ([`Measurement::step`]), and changes no limits.
//!
//! Life cycle of a measurement
//! ```text
//! begin ──► its file is filled ──► each pattern: warm up, count ──► done
//!                 └── dropped, or the process dies: the file is gone
//! ```
//!
//! Invariants
//! - The file has no name after its creation, so it is deleted with its last open descriptor. A
//!   file that a crash leaves before its name is removed is deleted by
//!   [`sweep`](crate::images::sweep).
//! - A block device is read and never written.
//! - Half of the store's free space remains free.

mod fill;
mod pattern_run;

use std::io;
use std::sync::Arc;

use core::time::Duration;
use suimon_ports::{
    ArmResult, DiskFile, FileCompletion, FileIo, FileLockMode, FileName, FileSlot, StoreFault,
    StoreFileError, StoreFiles,
};
use suimon_quantity::Time;
use suimon_storage_qos::StoreSpec;
use thiserror::Error;

use self::fill::Fill;
use self::pattern_run::PatternRun;
use crate::Latencies;
use crate::images::{DRAFT_ENDING, DiskError, remove_left};

const MIB: u64 = 1 << 20;
/// Size of the file in bytes: larger than the caches of most devices' controllers, and written in a
/// short time.
const FILE_BYTES_MAX: u64 = 1024 * MIB;
/// Smallest useful size in bytes: with less, caches dominate the result.
const FILE_BYTES_MIN: u64 = 16 * MIB;

/// Operations of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Only reads.
    Read,
    /// Only writes.
    Write,
    /// Reads and writes, half of each.
    Mixed,
}

impl Pattern {
    const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Mixed];

    /// Returns the name of the pattern for reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "random reads",
            Self::Write => "random writes",
            Self::Mixed => "half reads, half writes",
        }
    }
}

/// Measured rate of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternFigure {
    /// Pattern that was measured.
    pub pattern: Pattern,
    /// Normalised operations per second.
    pub iops: u64,
    /// Queue depth of the device at the end.
    pub depth: u32,
    /// Device latencies of the requests.
    pub latencies: Latencies,
}

/// Results of a measurement by pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Results of the patterns in the order of their measurement.
    pub figures: Vec<PatternFigure>,
    /// Size of the file or device in bytes.
    pub file_bytes: u64,
    /// True if requests bypassed the page cache.
    pub is_direct: bool,
}

impl Measured {
    /// Returns the capacity: the lowest rate of all patterns.
    #[must_use]
    pub fn iops(&self) -> u64 {
        self.figures.iter().map(|figure| figure.iops).min().unwrap_or(0)
    }
}

/// Reason why a measurement failed.
#[derive(Debug, Error)]
pub enum MeasureError {
    /// The store refused to create or open a file.
    #[error(transparent)]
    Store(#[from] StoreFileError),
    /// The file of an earlier measurement cannot be removed.
    #[error(transparent)]
    WorkerEnded(#[from] DiskError),
    /// Too little free space for a measurement.
    #[error(
        "{free_mib} MiB are free in the store, but a measurement needs twice its test file of at \
         least {} MiB; free space on it",
        FILE_BYTES_MIN / MIB
    )]
    NoRoom {
        /// Free space in MiB.
        free_mib: u64,
    },
    /// An operation of the device failed.
    #[error("{what} at offset {offset} failed: {error}; see the kernel's log about the device")]
    Io {
        /// Operation that failed: reading, writing, filling or flushing.
        what: &'static str,
        /// Offset in the file or device, in bytes.
        offset: u64,
        /// Error that the system returned.
        error: io::Error,
    },
    /// The kernel refused to create the io_uring instance.
    #[error("the measurement cannot submit I/O: {0}")]
    Ring(io::Error),
    /// No request completed.
    #[error("no request completed in {0} s: the device does not respond; see the kernel's log")]
    Nothing(u64),
}

/// Progress of a measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasureProgress {
    /// Number of completed parts.
    pub done: usize,
    /// Number of parts in total.
    pub of: usize,
    /// Description of the current part for the operator.
    pub text: String,
    /// True if the measurement is done; no step follows.
    pub is_done: bool,
}

/// Parameters of a measurement.
#[derive(Clone, Debug)]
pub struct MeasurePlan {
    /// Specification of the store: normalization and queue depths.
    pub spec: StoreSpec,
    /// Duration of counting per pattern, after a warm-up of one third of it.
    pub each: Duration,
    /// Seed of the random offsets.
    pub seed: u64,
}

/// Measurement in progress.
pub struct Measurement {
    device: MeasuredDevice,
    plan: MeasurePlan,
    patterns: Vec<Pattern>,
    stage: Stage,
    measured: Measured,
    ended: Vec<FileCompletion>,
}

enum Stage {
    Fill(Fill),
    Run(Box<PatternRun>),
    Done,
}

/// File or device under measurement.
pub(super) struct MeasuredDevice {
    pub(super) io: Box<dyn FileIo>,
    pub(super) slot: FileSlot,
    /// Size in bytes of the range that requests access.
    pub(super) bytes: u64,
    pub(super) random: u64,
}

impl MeasuredDevice {
    fn new(
        mut io: Box<dyn FileIo>,
        file: Arc<dyn DiskFile>,
        seed: u64,
    ) -> Result<Self, MeasureError> {
        let slot = io.add_file(file).map_err(MeasureError::Ring)?;
        Ok(Self { io, slot, bytes: 0, random: seed })
    }

    /// Returns the next pseudo-random number (Steele and others, SplitMix64).
    pub(super) fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

impl Measurement {
    /// Begins a measurement, on a block device or with a file in a directory.
    ///
    /// # Errors
    /// The store is full, read-only, in use, or not accessible.
    pub fn begin(
        files: &dyn StoreFiles,
        io: Box<dyn FileIo>,
        plan: MeasurePlan,
    ) -> Result<Self, MeasureError> {
        let unit = plan.spec.normalization.bytes();
        match files.open_device(FileLockMode::Read, unit) {
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
        let is_direct = file.properties().is_direct;
        let device = MeasuredDevice::new(io, file, plan.seed)?;
        let stage = Stage::Fill(Fill::new(bytes));
        Ok(Self::new(device, plan, &Pattern::ALL, stage, is_direct))
    }

    fn of_device(
        file: Arc<dyn DiskFile>,
        io: Box<dyn FileIo>,
        plan: MeasurePlan,
    ) -> Result<Self, MeasureError> {
        let facts = file.properties();
        if facts.len < FILE_BYTES_MIN {
            return Err(MeasureError::NoRoom { free_mib: facts.len / MIB });
        }
        let mut device = MeasuredDevice::new(io, file, plan.seed)?;
        device.bytes = facts.len;
        let run = Box::new(PatternRun::new(Pattern::Read, &plan, &mut device));
        Ok(Self::new(device, plan, &[Pattern::Read], Stage::Run(run), facts.is_direct))
    }

    fn new(
        device: MeasuredDevice,
        plan: MeasurePlan,
        patterns: &[Pattern],
        stage: Stage,
        is_direct: bool,
    ) -> Self {
        let measured = Measured { figures: Vec::new(), file_bytes: device.bytes, is_direct };
        let patterns = patterns.to_vec();
        Self { device, plan, patterns, stage, measured, ended: Vec::new() }
    }

    /// Processes completions and submits requests. The caller repeats the call at once, or after
    /// [`Measurement::arm`] when the descriptor is readable.
    ///
    /// # Errors
    /// The measurement cannot continue and must be dropped.
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
        // Operations that the system does not accept now are submitted by the next step.
        let _ = self.device.io.submit_queued();
        Ok(self.progress(now))
    }

    /// Requests a wake-up for the next completion.
    pub fn arm(&mut self) -> ArmResult {
        self.device.io.arm()
    }

    /// Returns the descriptor that signals completions.
    #[must_use]
    pub fn wake_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.device.io.wake_fd()
    }

    /// Returns the results so far; complete when the measurement is done.
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
