//! Reports of `suimon image`: properties of an image file, result of a check, and changes made.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{DiskFormat, DiskKind};

/// Properties of an image file, as `suimon image info` reports them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImageInfo {
    /// Path of the file, or its name in the store.
    pub file: String,
    /// Image format of the file.
    pub format: DiskFormat,
    /// Kind of the image; absent for a raw file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<DiskKind>,
    /// Size of the disk in bytes, as a guest sees it.
    pub size_bytes: u64,
    /// Length of the file in bytes.
    pub file_bytes: u64,
    /// Bytes allocated by the file.
    pub allocated_bytes: u64,
    /// Block size in bytes; absent for formats and kinds without blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_bytes: Option<u64>,
    /// Logical sector size in bytes.
    #[serde(rename = "logical_sector")]
    pub logical_sector_bytes: u32,
    /// Physical sector size in bytes.
    #[serde(rename = "physical_sector")]
    pub physical_sector_bytes: u32,
    /// True if the image was not closed. The next writer replays its log.
    pub dirty: bool,
    /// Identity of the disk: Unique Id of a VHD, Virtual Disk Id of a VHDX; absent for a raw file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_id: Option<String>,
    /// VHDX: identity of the content, which children record as their parent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_id: Option<String>,
    /// differencing: recorded and resolved parent of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ImageParent>,
}

/// The parent of a differencing image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImageParent {
    /// Paths that the image records, in Windows syntax.
    #[serde(rename = "recorded")]
    pub recorded_paths: Vec<String>,
    /// File of the parent that was found; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "file")]
    pub found_file: Option<String>,
    /// Reason why no parent was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Result of a check, with the exit codes of `qemu-img check`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ImageVerdict {
    /// The image has no errors.
    Sound,
    /// The image has errors.
    Damaged,
    /// Unreferenced space was found, and no errors.
    Leaks,
    /// The format has no metadata to check.
    Unsupported,
}

impl ImageVerdict {
    /// Returns the exit code that `qemu-img check` documents for this result.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Sound => 0,
            Self::Damaged => 2,
            Self::Leaks => 3,
            Self::Unsupported => 63,
        }
    }
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ImageSeverity {
    /// Metadata is damaged, or content may be damaged.
    Error,
    /// Space of the file is unreferenced.
    Leak,
    /// No fault, or a deviation that other programs may interpret differently.
    Note,
}

/// Finding of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImageFinding {
    /// Severity of the finding.
    pub severity: ImageSeverity,
    /// Message with field, offset and fault.
    pub message: String,
}

/// Result of checking an image file, as `suimon image check` reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImageCheck {
    /// Path of the file, or its name in the store.
    pub file: String,
    /// Image format of the file.
    pub format: DiskFormat,
    /// Overall result of the check.
    pub verdict: ImageVerdict,
    /// Number of errors found.
    pub errors: u64,
    /// Unreferenced bytes at the end of the file, which a repair releases.
    pub leaked_bytes: u64,
    /// Unreferenced bytes between blocks. Writes reuse them; `suimon disk compact` releases them.
    pub unused_bytes: u64,
    /// Blocks of the disk; 0 for formats without blocks.
    pub blocks: u64,
    /// Blocks allocated in the file.
    pub allocated_blocks: u64,
    /// Findings, in the order of the file's structures; at most 1000.
    pub findings: Vec<ImageFinding>,
    /// Number of findings omitted from the list.
    #[serde(rename = "findings_left_off")]
    pub findings_omitted: u64,
}

/// Range of a file that an operation changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImageChange {
    /// Offset of the first changed byte.
    pub offset: u64,
    /// Length of the range in bytes.
    pub bytes: u64,
}

/// Changes of metadata, as `suimon image repair` and `suimon image relink` report them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImageChanges {
    /// Path of the file, or its name in the store.
    pub file: String,
    /// True if nothing was written.
    pub dry_run: bool,
    /// Actions performed, or to be performed in a dry run.
    pub actions: Vec<String>,
    /// Ranges of the file that change.
    pub changes: Vec<ImageChange>,
    /// Length of the file before the change, in bytes.
    pub file_bytes_before: u64,
    /// Length of the file after the change, in bytes.
    pub file_bytes_after: u64,
    /// File with the previous metadata; absent if nothing changed, and for a dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<String>,
    /// Check of the image after the change.
    pub check: ImageCheck,
}

/// Request for an operation on an image of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageRequest {
    /// File, relative to the store's path.
    pub file: crate::StoreFile,
    /// Image format; detected if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<DiskFormat>,
    /// relink: file of the parent, relative to the store's path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<crate::StoreFile>,
    /// repair: backup file to restore instead of repairing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "undo")]
    pub undo_backup: Option<crate::StoreFile>,
    /// repair, relink: report the changes without writing.
    #[serde(default)]
    pub dry_run: bool,
}
