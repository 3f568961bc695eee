//! Consistency check of images.

use core::ops::ControlFlow;

use suimon_image::{ImageError, ImageFault, ImageFile};

use crate::bitmap;
use crate::fields::{SECTOR_BYTES, to_index};
use crate::find_footers::{Footers, find_footers};
use crate::footer::{DiskType, SizeSource};
use crate::gap::tail_gap;
use crate::layout::Layout;
use crate::locator;
use crate::open::Structures;
use crate::space::exceeds_reserve;
use crate::table::{self, UNUSED};

/// Maximum number of findings in a report; further ones are only counted.
pub const FINDINGS_MAX: usize = 1000;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingSeverity {
    /// No data is affected, but other programs may interpret the image differently.
    Information,
    /// The footer or its copy is damaged while the other is intact; opening the image for writing
    /// repairs it.
    Repairable,
    /// The image cannot be opened, or reads may return wrong data.
    Damage,
}

/// Inconsistency found in an image.
#[derive(Debug)]
pub struct CheckFinding {
    /// Severity of the inconsistency.
    pub severity: FindingSeverity,
    /// Description of the inconsistency, with field and offset.
    pub error: ImageError,
}

/// Result of checking an image.
#[derive(Debug, Default)]
pub struct CheckReport {
    /// Findings in order of detection; at most [`FINDINGS_MAX`].
    pub findings: Vec<CheckFinding>,
    /// Number of findings beyond [`FINDINGS_MAX`].
    pub findings_omitted: u64,
    /// Number of allocated blocks; 0 for fixed disks.
    pub blocks_allocated: u64,
    /// Number of blocks of the disk; 0 for fixed disks.
    pub blocks: u64,
    /// Unused space in the file, in bytes.
    pub unused_bytes: u64,
    /// Unused space in bytes that directly precedes the footer, if it exceeds the reserve that
    /// images keep for new blocks; otherwise 0. It is included in `unused_bytes`.
    pub tail_bytes: u64,
}

impl CheckReport {
    /// Returns true if any finding has the severity [`FindingSeverity::Damage`].
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == FindingSeverity::Damage)
    }

    fn add(&mut self, severity: FindingSeverity, error: ImageError) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(CheckFinding { severity, error });
        } else {
            self.findings_omitted += 1;
        }
    }
}

/// Checks an image without changing it. Reads the structures that [`crate::Vhd::open`] reads, and
/// for dynamic disks each block's bitmap and the payload that must be zero. `rule` determines the
/// field with the size of the disk.
#[must_use]
pub fn check(file: &dyn ImageFile, rule: SizeSource) -> CheckReport {
    let mut report = CheckReport::default();
    if let Err(error) = check_all(file, rule, &mut report) {
        report.add(FindingSeverity::Damage, error);
    }
    report
}

/// Checks the image and adds findings to `report`.
///
/// # Errors
///
/// A defect that prevents further checks, because later structures depend on the damaged one.
fn check_all(
    file: &dyn ImageFile,
    rule: SizeSource,
    report: &mut CheckReport,
) -> Result<(), ImageError> {
    let mut footers = find_footers(file)?;
    if let Some(error) = footers.other_error.take() {
        report.add(FindingSeverity::Repairable, error);
    }
    if footers.is_at_end && !footers.is_complete {
        let fault = ImageFault::InvalidValue {
            value: 511,
            allowed: "512 bytes that start at a sector boundary",
        };
        report.add(
            FindingSeverity::Information,
            ImageError::new("footer", footers.payload_end_max, fault),
        );
    }
    let footer = &footers.selected.footer;
    if footer.disk_type == DiskType::Fixed {
        let size = footer.size(rule, footers.selected.offset)?;
        report.unused_bytes = footers.payload_end_max.saturating_sub(size);
        if size > footers.payload_end_max {
            let fault = ImageFault::Truncated { file_len: footers.payload_end_max };
            return Err(ImageError::new("Current Size", footers.selected.offset + 48, fault));
        }
        return Ok(());
    }
    let structures = Structures::read(file, &footers, rule)?;
    check_blocks(file, &footers, &structures, report)?;
    if footer.disk_type == DiskType::Differencing {
        let parent = locator::read_parent(file, &structures.header, footer.data_offset)?;
        if parent.locators.is_empty() {
            let offset = footer.data_offset + locator_table();
            let error =
                ImageError::new("Parent Locator Entry", offset, ImageFault::MissingStructure);
            report.add(FindingSeverity::Information, error);
        }
    }
    Ok(())
}

fn locator_table() -> u64 {
    crate::header::locator_offset(0) as u64
}

fn check_blocks(
    file: &dyn ImageFile,
    footers: &Footers,
    structures: &Structures,
    report: &mut CheckReport,
) -> Result<(), ImageError> {
    let Structures { layout, regions, .. } = structures;
    let table = table::read(file, layout)?;
    let blocks = table::blocks_by_sector(&table);
    report.blocks_allocated = blocks.len() as u64;
    report.blocks = layout.block_count.into();
    let _ = table::validate(layout, &blocks, regions, footers.payload_end_max, &mut |error| {
        report.add(FindingSeverity::Damage, error);
        ControlFlow::Continue(())
    });
    let gaps = table::gaps(layout, &blocks, regions, footers.correct_offset);
    report.unused_bytes =
        gaps.iter().map(|gap| (gap.end_sector - gap.start_sector) * SECTOR_BYTES).sum();
    let tail = tail_gap(&gaps, footers.correct_offset);
    report.tail_bytes = if exceeds_reserve(layout, tail) {
        (tail.end_sector - tail.start_sector) * SECTOR_BYTES
    } else {
        0
    };
    for (entry, sector) in (0..).zip(&table).filter(|(_, sector)| **sector != UNUSED) {
        if entry >= layout.block_count {
            let fault = ImageFault::InvalidValue {
                value: (*sector).into(),
                allowed: "no block beyond the disk's end",
            };
            let error = ImageError::new("BAT entry", layout.entry_offset(entry), fault);
            report.add(FindingSeverity::Information, error);
        }
    }
    if footers.selected.footer.disk_type == DiskType::Dynamic && !report.is_damaged() {
        for (sector, entry) in blocks.iter().filter(|(_, entry)| *entry < layout.block_count) {
            check_bitmap(file, layout, *sector, *entry, report)?;
        }
    }
    Ok(())
}

/// Checks that sectors of `block` with a clear bit are zero, because some programs read them and
/// others do not. The block begins at `sector` of the file.
fn check_bitmap(
    file: &dyn ImageFile,
    layout: &Layout,
    sector: u32,
    block: u32,
    report: &mut CheckReport,
) -> Result<(), ImageError> {
    let Some(range) = layout.bitmap_range(sector) else { return Ok(()) };
    let failed = |offset| move |error| ImageError::new("sector bitmap", offset, error);
    let mut bits = vec![0; to_index(range.len())];
    file.read_at(range.offset(), &mut bits).map_err(failed(range.offset()))?;
    let sectors = layout.block_sectors(block);
    let mut at = 0;
    while at < sectors {
        let end = bitmap::run_end(&bits, at, sectors);
        if !bitmap::is_set(&bits, at) {
            for unset in at..end {
                let offset = layout.payload_offset(sector) + unset * SECTOR_BYTES;
                let mut payload = [0; SECTOR_BYTES as usize];
                file.read_at(offset, &mut payload).map_err(failed(offset))?;
                if payload != [0; SECTOR_BYTES as usize] {
                    let what =
                        format!("bit {unset} is clear, but the sector at {offset} is not zero");
                    let fault = ImageFault::Unsupported { feature: what };
                    report.add(
                        FindingSeverity::Damage,
                        ImageError::new("sector bitmap", range.offset(), fault),
                    );
                    return Ok(());
                }
            }
        }
        at = end;
    }
    Ok(())
}
