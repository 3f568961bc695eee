//! Validation of a change: rules between the previous and the new desired state.

use std::collections::BTreeMap;

use crate::finding::FindingLocation;
use crate::{ApiError, ErrorCode, HostConfig, Name, ResourceKind};

/// Rejects changes that are invalid although both states are valid: shrinking a disk.
///
/// # Errors
/// Every invalid change; never empty.
pub fn validate_change(from: &HostConfig, to: &HostConfig) -> Result<(), Vec<ApiError>> {
    let before: BTreeMap<&Name, _> =
        from.disks.iter().filter_map(|disk| Some((&disk.name, (disk.size_bytes?, disk)))).collect();
    let mut errors = Vec::new();
    for (index, disk) in to.disks.iter().enumerate() {
        let (Some(size), Some((size_before, disk_before))) =
            (disk.size_bytes, before.get(&disk.name))
        else {
            continue;
        };
        // A different file is a different disk and may have any size.
        let same_file = disk.store == disk_before.store
            && disk.effective_file() == disk_before.effective_file();
        if size < *size_before && same_file {
            let finding = FindingLocation::new(ResourceKind::Disk, index).finding(
                ErrorCode::InvalidValue,
                "size_bytes",
                format!(
                    "{size} is less than the present size {size_before}, and disks cannot shrink; \
                     set {size_before} or more"
                ),
            );
            errors.push(finding.into_error(Some(disk.name.as_str())));
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

#[cfg(test)]
#[path = "change_checks_tests.rs"]
mod tests;
