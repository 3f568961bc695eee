//! Text output of reports about image files.

use suimon_contract::{ImageChanges, ImageCheck, ImageInfo, ImageSeverity, ImageVerdict};

use crate::detail_text::{DetailText, serialized_name};
use crate::table::or_dash;
use crate::units;

/// Returns the properties of an image file, one per line.
pub fn info_text(info: &ImageInfo) -> String {
    let mut lines = DetailText::default();
    lines.add("file", &info.file);
    let kind = info.kind.map(|kind| format!(", {}", serialized_name(&kind))).unwrap_or_default();
    lines.add("format", format!("{}{kind}", serialized_name(&info.format)));
    lines.add(
        "size",
        format!("{} ({} bytes)", units::binary_bytes(info.size_bytes), info.size_bytes),
    );
    lines.add("file length", units::binary_bytes(info.file_bytes));
    lines.add("allocated", units::binary_bytes(info.allocated_bytes));
    lines.add("block", or_dash(info.block_bytes.map(units::binary_bytes)));
    lines.add(
        "sectors",
        format!("{} logical, {} physical", info.logical_sector_bytes, info.physical_sector_bytes),
    );
    lines.add("closed", if info.dirty { "no: its log must be replayed" } else { "yes" });
    lines.add("disk id", or_dash(info.disk_id.as_ref()));
    lines.add("content id", or_dash(info.content_id.as_ref()));
    if let Some(parent) = &info.parent {
        lines.add("parent recorded", parent.recorded_paths.join(", "));
        lines.add("parent", or_dash(parent.found_file.as_ref().or(parent.reason.as_ref())));
    }
    lines.into_text()
}

/// Returns the findings of a check, one per line, followed by the verdict and the allocation.
pub fn check_text(check: &ImageCheck) -> String {
    let mut text = String::new();
    for finding in &check.findings {
        let severity = match finding.severity {
            ImageSeverity::Error => "error",
            ImageSeverity::Leak => "leak",
            ImageSeverity::Note => "note",
        };
        text.push_str(&format!("{severity}: {}\n", finding.message));
    }
    if check.findings_omitted > 0 {
        text.push_str(&format!("{} more findings\n", check.findings_omitted));
    }
    let verdict = match check.verdict {
        ImageVerdict::Sound => "no errors were found".to_owned(),
        ImageVerdict::Damaged if check.errors == 1 => "1 error was found".to_owned(),
        ImageVerdict::Damaged => format!("{} errors were found", check.errors),
        ImageVerdict::Leaks => format!("{} bytes are leaked", check.leaked_bytes),
        ImageVerdict::Unsupported => "the format has no metadata to check".to_owned(),
    };
    text.push_str(&format!("{}: {verdict}\n", check.file));
    if check.blocks > 0 {
        text.push_str(&format!(
            "{}/{} blocks allocated, {} bytes unused between them\n",
            check.allocated_blocks, check.blocks, check.unused_bytes
        ));
    }
    text
}

/// Returns the changes that a repair or relink made, or would make, one per line.
pub fn changes_text(changes: &ImageChanges) -> String {
    let mut text = String::new();
    let prefix = if changes.dry_run { "would " } else { "" };
    for action in &changes.actions {
        text.push_str(&format!("{prefix}{action}\n"));
    }
    for change in &changes.changes {
        text.push_str(&format!("  {} bytes at {}\n", change.bytes, change.offset));
    }
    if changes.actions.is_empty() {
        text.push_str("nothing to change\n");
    }
    if let Some(backup) = &changes.backup {
        text.push_str(&format!("previous metadata: {backup}\n"));
    }
    text + &check_text(&changes.check)
}
