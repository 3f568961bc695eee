//! Check of the metadata of an open image.

use suimon_vhd::{FindingSeverity, SizeSource};

use super::error::DiskError;
use super::open::OpenedDisk;
use super::plan::DiskPlan;
use crate::format::DiskFormat;

/// Checks the metadata of a disk's own image. The image must have been opened and not used yet.
/// Payload is not read. Blocks on the file.
///
/// # Errors
/// The first damage found.
pub fn verify_metadata(opened: &OpenedDisk, plan: &DiskPlan) -> Result<(), DiskError> {
    let Some(top_layer) = opened.layer_stack.layers.first() else { return Ok(()) };
    let file = top_layer.file.as_image_file();
    let damage = match plan.format {
        DiskFormat::Raw | DiskFormat::PassThrough => None,
        DiskFormat::Vhd => {
            let findings = suimon_vhd::check(file, SizeSource::Creator).findings;
            let damage =
                findings.into_iter().find(|finding| finding.severity == FindingSeverity::Damage);
            damage.map(|finding| finding.error)
        }
        DiskFormat::Vhdx => suimon_vhdx::check(file).faults.into_iter().next(),
    };
    damage.map_or(Ok(()), |error| Err(DiskError::new(plan.label(), error)))
}
