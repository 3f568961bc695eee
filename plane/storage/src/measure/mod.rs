//! Measurement of a store's capacity with a temporary file.
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
//!   [`sweep`](suimon_image_files::sweep).
//! - A block device is read and never written.
//! - Half of the store's free space remains free.

mod device;
mod error;
mod fill;
mod pattern;
mod pattern_run;
mod plan;
mod sizes;

use std::io;
use std::sync::Arc;

use suimon_image_files::{INCOMPLETE_SUFFIX, remove_incomplete};
use suimon_ports::{
    ArmResult, DiskFile, FileCompletion, FileIo, FileLockMode, FileName, StoreFault,
    StoreFileError, StoreFiles,
};
use suimon_quantity::Time;

use self::fill::FileFiller;
use self::pattern_run::PatternRun;
use crate::measure::device::MeasuredDevice;
use crate::measure::sizes::{FILE_BYTES_MAX, FILE_BYTES_MIN, MIB};

pub use self::error::MeasureError;
pub use self::pattern::{Pattern, PatternResult};
pub use self::plan::MeasurePlan;

/// Results of a measurement for each read/write mix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasurementResult {
    /// Results of the patterns in the order of their measurement.
    pub results: Vec<PatternResult>,
    /// Size of the test file or block device in bytes; 0 before the file is filled.
    pub file_bytes: u64,
    /// True if requests bypassed the page cache.
    pub is_direct: bool,
}

impl MeasurementResult {
    /// Returns the capacity: the lowest rate of all patterns, in normalised operations per second.
    #[must_use]
    pub fn iops(&self) -> u64 {
        self.results.iter().map(|figure| figure.iops).min().unwrap_or(0)
    }
}

/// Progress of a measurement, returned by each step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasureProgress {
    /// Number of completed parts of the measurement.
    pub stages_done: usize,
    /// Total number of parts: one for filling the file, and one per pattern.
    pub stages_total: usize,
    /// Description of the current part for the operator.
    pub stage_description: String,
    /// True if the measurement is done; no step follows.
    pub is_done: bool,
}

/// Measurement in progress; dropping it ends the measurement and deletes its file.
pub struct Measurement {
    device: MeasuredDevice,
    plan: MeasurePlan,
    patterns: Vec<Pattern>,
    stage: Stage,
    measured: MeasurementResult,
    completions: Vec<FileCompletion>,
}

enum Stage {
    Fill(FileFiller),
    Run(Box<PatternRun>),
    Done,
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
            Err(error) if matches!(error.fault, StoreFault::WrongStoreType { .. }) => {
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
        let text = format!(".measure{INCOMPLETE_SUFFIX}");
        let bad = |_| StoreFileError::new(&text, io::Error::from(io::ErrorKind::InvalidInput));
        let name = FileName::new(&text).map_err(bad)?;
        remove_incomplete(files, &name)?;
        let file = files.create(&name, plan.spec.normalization.bytes())?;
        files.remove(&name)?;
        let is_direct = file.properties().is_direct;
        let device = MeasuredDevice::new(io, file, plan.seed)?;
        let stage = Stage::Fill(FileFiller::new(bytes));
        Ok(Self::new(device, plan, &Pattern::ALL, stage, is_direct))
    }

    fn of_device(
        file: Arc<dyn DiskFile>,
        io: Box<dyn FileIo>,
        plan: MeasurePlan,
    ) -> Result<Self, MeasureError> {
        let properties = file.properties();
        if properties.len < FILE_BYTES_MIN {
            return Err(MeasureError::NoRoom { free_mib: properties.len / MIB });
        }
        let mut device = MeasuredDevice::new(io, file, plan.seed)?;
        device.bytes = properties.len;
        let run = Box::new(PatternRun::new(Pattern::Read, &plan, &mut device));
        Ok(Self::new(device, plan, &[Pattern::Read], Stage::Run(run), properties.is_direct))
    }

    fn new(
        device: MeasuredDevice,
        plan: MeasurePlan,
        patterns: &[Pattern],
        stage: Stage,
        is_direct: bool,
    ) -> Self {
        let measured =
            MeasurementResult { results: Vec::new(), file_bytes: device.bytes, is_direct };
        let patterns = patterns.to_vec();
        Self { device, plan, patterns, stage, measured, completions: Vec::new() }
    }

    /// Processes completions and submits requests. The caller repeats the call at once, or after
    /// [`Measurement::arm`] when the descriptor is readable.
    ///
    /// # Errors
    /// The measurement cannot continue and must be dropped.
    pub fn step(&mut self, now: Time) -> Result<MeasureProgress, MeasureError> {
        let mut completions = core::mem::take(&mut self.completions);
        self.device.io.poll_completions(&mut completions);
        let next = match &mut self.stage {
            Stage::Fill(fill) => {
                let is_filled = fill.step(now, &mut self.device, &mut completions)?;
                is_filled.then(|| self.next_run())
            }
            Stage::Run(run) => {
                let figure = run.step(now, &mut self.device, &mut completions)?;
                figure.map(|figure| {
                    self.measured.results.push(figure);
                    self.next_run()
                })
            }
            Stage::Done => None,
        };
        completions.clear();
        self.completions = completions;
        if let Some(next) = next {
            self.stage = next;
        }
        // Operations that the system does not accept now will be submitted by the next step.
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

    /// Returns the results so far. They are complete when the measurement is done.
    #[must_use]
    pub const fn result(&self) -> &MeasurementResult {
        &self.measured
    }

    fn next_run(&mut self) -> Stage {
        self.measured.file_bytes = self.device.bytes;
        match self.patterns.get(self.measured.results.len()) {
            Some(pattern) => {
                Stage::Run(Box::new(PatternRun::new(*pattern, &self.plan, &mut self.device)))
            }
            None => Stage::Done,
        }
    }

    fn progress(&self, now: Time) -> MeasureProgress {
        let fills = self.patterns.contains(&Pattern::Write);
        let completed = self.measured.results.len();
        let (before, text) = match &self.stage {
            Stage::Fill(fill) => (0, fill.progress_text()),
            Stage::Run(run) => (usize::from(fills), run.progress_text(now)),
            Stage::Done => (usize::from(fills), String::new()),
        };
        let total = self.patterns.len() + usize::from(fills);
        let is_completed = matches!(self.stage, Stage::Done);
        MeasureProgress {
            stages_done: before + completed,
            stages_total: total,
            stage_description: text,
            is_done: is_completed,
        }
    }
}

#[cfg(test)]
mod tests;
