//! Integrity check of an image file.

use suimon_contract::{ImageCheck, ImageFinding, ImageSeverity, ImageVerdict};
use suimon_image::ImageFile;
use suimon_ports::FileLockMode;
use suimon_vhd::{FindingSeverity, SizeSource};

use super::{ImageTarget, UNIT, contract_format};
use crate::{DiskError, DiskFault, DiskFormat, find_incomplete_change_backup};

/// Maximum number of findings in a report; further ones are counted.
const FINDINGS_MAX: usize = 1000;

/// Checks the consistency of all metadata of an image. Nothing is written. Payload is not read,
/// except for sectors of a dynamic VHD that must be zeros.
///
/// # Errors
/// The file is missing, locked, or cannot be read. Damage of the image is part of the report.
pub fn check(target: ImageTarget<'_>) -> Result<ImageCheck, DiskError> {
    let format = target.read_format()?;
    let file = target.files.open(target.name, FileLockMode::Read, UNIT)?;
    let mut check = check_file(file.as_image_file(), format, target.show(target.name));
    if let Some(backup) = find_incomplete_change_backup(target.files.as_ref(), target.name)? {
        let fault = DiskFault::MetadataChangeIncomplete { backup: target.show(&backup) };
        add(&mut check, ImageSeverity::Error, fault.to_string());
        check.verdict = ImageVerdict::Damaged;
    }
    Ok(check)
}

/// Checks the metadata of an opened file. `label`: name of the image in the report.
pub(super) fn check_file(file: &dyn ImageFile, format: DiskFormat, label: String) -> ImageCheck {
    let mut check = ImageCheck {
        file: label,
        format: contract_format(format),
        verdict: ImageVerdict::Unsupported,
        errors: 0,
        leaked_bytes: 0,
        unused_bytes: 0,
        blocks: 0,
        allocated_blocks: 0,
        findings: Vec::new(),
        findings_omitted: 0,
    };
    match format {
        DiskFormat::Raw | DiskFormat::PassThrough => return check,
        DiskFormat::Vhd => check_vhd(file, &mut check),
        DiskFormat::Vhdx => check_vhdx(file, &mut check),
    }
    if check.leaked_bytes > 0 {
        let text = format!(
            "{} unreferenced bytes at the end of the file; a repair releases them",
            check.leaked_bytes
        );
        add(&mut check, ImageSeverity::Leak, text);
    }
    check.verdict = match (check.errors, check.leaked_bytes) {
        (0, 0) => ImageVerdict::Sound,
        (0, _) => ImageVerdict::Leaks,
        _ => ImageVerdict::Damaged,
    };
    check
}

fn add(check: &mut ImageCheck, severity: ImageSeverity, message: String) {
    check.errors += u64::from(severity == ImageSeverity::Error);
    if check.findings.len() < FINDINGS_MAX {
        check.findings.push(ImageFinding { severity, message });
    } else {
        check.findings_omitted += 1;
    }
}

fn check_vhd(file: &dyn ImageFile, check: &mut ImageCheck) {
    let report = suimon_vhd::check(file, SizeSource::Creator);
    (check.blocks, check.allocated_blocks) = (report.blocks, report.blocks_allocated);
    for finding in &report.findings {
        let severity = match finding.severity {
            FindingSeverity::Information => ImageSeverity::Note,
            FindingSeverity::Repairable | FindingSeverity::Damage => ImageSeverity::Error,
        };
        add(check, severity, finding.error.to_string());
    }
    // Omitted findings are not classified by severity and count as errors.
    check.errors += report.findings_omitted;
    check.findings_omitted += report.findings_omitted;
    check.leaked_bytes = report.tail_bytes;
    check.unused_bytes = report.unused_bytes.saturating_sub(report.tail_bytes);
}

fn check_vhdx(file: &dyn ImageFile, check: &mut ImageCheck) {
    let report = suimon_vhdx::check(file);
    (check.blocks, check.allocated_blocks) = (report.blocks, report.present_blocks);
    for fault in &report.faults {
        add(check, ImageSeverity::Error, fault.to_string());
    }
    check.errors += report.faults_omitted;
    check.findings_omitted += report.faults_omitted;
    if report.is_dirty {
        let text = format!(
            "the image was not closed, and its log has {} entries; the next writer or a repair \
             replays them",
            report.log_entries
        );
        add(check, ImageSeverity::Note, text);
    }
    // An image that was not closed retains reserved space at its end.
    check.leaked_bytes = if report.is_dirty { 0 } else { report.tail_bytes };
    check.unused_bytes = report.unused_bytes.saturating_sub(report.tail_bytes);
}
