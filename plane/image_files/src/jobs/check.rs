//! Check of a disk's image and payload.

use suimon_image::{ByteRange, ImageError};
use suimon_ports::{FileLockMode, FileName, StoreFiles};
use suimon_vhd::{FindingSeverity, SizeSource};

use super::offline_disk::{LayerScope, OfflineDisk, RangeLocation};
use super::{Checkpoint, DiskJob, JobProgress, STEP_BYTES};
use crate::{DiskError, DiskFault, DiskFormat, DiskPlan, HostInputs, OpenLayer, close, open};

/// Maximum number of findings in a report; further ones are counted.
const FINDINGS_MAX: usize = 1000;

/// Maximum number of ranges without payload that one step of the job checks.
const STRETCHES_PER_STEP: usize = 64;

/// Fault of a disk found by a check.
#[derive(Debug)]
pub struct CheckFinding {
    /// True if content may be lost or wrong. Other faults are repaired by opening the disk for
    /// writing.
    pub is_damage: bool,
    /// Fault with its file and field.
    pub error: DiskError,
}

/// Findings and counters of a check.
#[derive(Debug, Default)]
pub struct CheckReport {
    /// Faults in the order of their detection.
    pub findings: Vec<CheckFinding>,
    /// Number of findings beyond those in `findings`.
    pub findings_omitted: u64,
    /// Unreferenced bytes of the disk's own file, which compaction releases.
    pub unused_bytes: u64,
    /// Bytes of payload read in all layers.
    pub read_bytes: u64,
}

impl CheckReport {
    /// Returns true if a listed finding states that content may be lost or wrong.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.findings.iter().any(|finding| finding.is_damage)
    }

    fn add(&mut self, is_damage: bool, error: DiskError) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(CheckFinding { is_damage, error });
        } else {
            self.findings_omitted = self.findings_omitted.saturating_add(1);
        }
    }
}

/// Job that checks the metadata of a disk's image at the beginning, and then reads all payload in
/// steps, including the parents'. It writes nothing except recorded metadata changes that a killed
/// process left; [`repair`] repairs.
pub struct CheckJob {
    disk: Option<OfflineDisk>,
    offset: u64,
    report: CheckReport,
}

impl CheckJob {
    /// Checks the metadata, and opens the disk for reading.
    ///
    /// # Errors
    /// The plan is not possible, or the file is missing or in use. Any other failure to open the
    /// disk is a finding.
    pub fn begin(
        files: &dyn StoreFiles,
        plan: &DiskPlan,
        seeds: &mut HostInputs<'_>,
    ) -> Result<Self, DiskError> {
        plan.check()?;
        let mut report = CheckReport::default();
        if let Some(name) = &plan.file {
            // Applying the record may fail; the failure is then reported when the disk is opened.
            let _ = OpenLayer::redo_remaining(
                files,
                name,
                plan.layer_options(FileLockMode::Read),
                seeds,
            );
            check_structures(files, plan, name, &mut report)?;
        }
        let reading = DiskPlan { is_read_only: true, ..plan.clone() };
        let disk = match open(files, &reading, seeds) {
            Ok(disk) => Some(OfflineDisk::from(disk)),
            Err(error) if matches!(*error.fault, DiskFault::Store(_)) => return Err(error),
            // This fault is among the findings already.
            Err(error) if is_own(&error, plan) && report.is_damaged() => None,
            Err(error) => {
                report.add(true, error);
                None
            }
        };
        Ok(Self { disk, offset: 0, report })
    }

    /// Returns the findings so far. The report is complete when the job is done.
    #[must_use]
    pub const fn report(&self) -> &CheckReport {
        &self.report
    }

    /// Returns the report of the job, which is complete when the job is done.
    #[must_use]
    pub fn into_report(self) -> CheckReport {
        self.report
    }

    /// Reads the payload of a range and adds faults to the report. Fails if the range cannot be
    /// translated.
    fn read(
        disk: &mut OfflineDisk,
        range: ByteRange,
        report: &mut CheckReport,
    ) -> Result<(), DiskError> {
        let mut bytes = Vec::new();
        for (range, location) in disk.locate_range(range, LayerScope::All)? {
            let RangeLocation::File { layer, offset } = location else { continue };
            for (_, piece) in range.blocks(STEP_BYTES) {
                let offset = offset.saturating_add(piece.offset() - range.offset());
                bytes.resize(usize::try_from(piece.len()).unwrap_or(0), 0);
                if let Err(error) = disk.read(layer, offset, &mut bytes) {
                    report.add(true, error);
                }
                report.read_bytes = report.read_bytes.saturating_add(piece.len());
            }
        }
        Ok(())
    }
}

/// Repairs a disk that was not closed, or that has lost one of two copies of metadata: opens it for
/// writing and closes it. Damage without a copy is not repaired.
///
/// # Errors
/// The disk is damaged, in use, not as planned, or cannot be written.
pub fn repair(
    files: &dyn StoreFiles,
    plan: &DiskPlan,
    seeds: &mut HostInputs<'_>,
) -> Result<(), DiskError> {
    let disk = open(files, &DiskPlan { is_read_only: false, ..plan.clone() }, seeds)?;
    close(disk.layer_stack, &plan.label())
}

fn is_own(error: &DiskError, plan: &DiskPlan) -> bool {
    error.file == plan.label() && matches!(*error.fault, DiskFault::Image(_))
}

fn check_structures(
    files: &dyn StoreFiles,
    plan: &DiskPlan,
    name: &FileName,
    report: &mut CheckReport,
) -> Result<(), DiskError> {
    let file = files.open(name, FileLockMode::Read, plan.io_alignment())?;
    let disk_error = |error: ImageError| DiskError::new(name, error);
    match plan.format {
        DiskFormat::Raw | DiskFormat::PassThrough => {}
        DiskFormat::Vhd => {
            let of_format = suimon_vhd::check(file.as_image_file(), SizeSource::Creator);
            report.unused_bytes = of_format.unused_bytes;
            report.findings_omitted = of_format.findings_omitted;
            for finding in of_format.findings {
                report.add(finding.severity == FindingSeverity::Damage, disk_error(finding.error));
            }
        }
        DiskFormat::Vhdx => {
            let of_format = suimon_vhdx::check(file.as_image_file());
            report.unused_bytes = of_format.unused_bytes;
            report.findings_omitted = of_format.faults_omitted;
            for fault in of_format.faults {
                report.add(true, disk_error(fault));
            }
        }
    }
    Ok(())
}

impl DiskJob for CheckJob {
    fn checkpoint(&mut self, _now_unix_s: u64) -> Result<Option<Checkpoint>, DiskError> {
        Ok(None)
    }

    fn step(&mut self) -> Result<JobProgress, DiskError> {
        let Some(disk) = &mut self.disk else {
            return Ok(JobProgress { done_bytes: 0, total_bytes: 0, is_done: true });
        };
        let (total_bytes, stretch) = (disk.size(), disk.chunk_bytes().min(STEP_BYTES));
        let read_before = self.report.read_bytes;
        for _ in 0..STRETCHES_PER_STEP {
            let remaining = total_bytes.saturating_sub(self.offset);
            let Some(range) = ByteRange::new(self.offset, remaining.min(stretch)) else { break };
            if range.is_empty() || self.report.read_bytes > read_before {
                break;
            }
            if let Err(error) = Self::read(disk, range, &mut self.report) {
                self.report.add(true, error);
            }
            self.offset = range.end();
        }
        let is_completed = self.offset >= total_bytes;
        Ok(JobProgress { done_bytes: self.offset, total_bytes, is_done: is_completed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An image decides how many faults it has.
    #[test]
    fn findings_beyond_the_limit_are_counted() {
        let mut report = CheckReport::default();
        for _ in 0..FINDINGS_MAX + 7 {
            let fault = DiskFault::FlushFailed { error: "no such device".to_owned() };
            report.add(true, DiskError::new("a.vhdx", fault));
        }
        assert_eq!((report.findings.len(), report.findings_omitted), (FINDINGS_MAX, 7));
        assert!(report.is_damaged());
    }
}
