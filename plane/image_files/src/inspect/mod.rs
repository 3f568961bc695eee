//! Image files that no disk serves: properties, checks, metadata repairs, and the record of the
//! parent.
//!
//! The module opens no files outside of the given store, and never writes payload. Redo records of
//! a killed daemon must be applied by the caller before the image is changed.
//!
//! Life cycle of a change
//! ```text
//! plan in memory ──► metadata only? ──► backup, durable ──► the same on the file ──► check
//!       └── dry run ends here
//! ```
//!
//! Invariants
//! - A change is computed in memory first ([`planned_file`]). Only the sectors touched by the plan
//!   are written, and none of them contains payload.
//! - The former content of these sectors is durable in a backup before the first of them is
//!   written. The backup's name marks the change as incomplete until it has ended. Meanwhile the
//!   image is not opened for writing, and the next change reverts the incomplete one.
//! - The modification time of the file is preserved by a change, and is set through the locked
//!   file.
//! - A file that another program has locked is not opened.

mod backup;
mod change;
mod changed_image;
mod check;
mod info;
mod payload;
mod planned_file;
#[cfg(test)]
mod tests;
mod undo;
#[cfg(test)]
mod undo_tests;

use std::sync::Arc;

use suimon_image::ImageError;
use suimon_ports::{FileLockMode, FileName, StoreFiles};

pub use change::{apply_remaining_redo, repair, set_parent};
pub use check::check;
pub use info::{info, kind};
pub use undo::undo;

use crate::{DiskError, DiskFault, DiskFormat, LayerOptions};

/// Alignment of I/O in bytes: none, because all I/O uses the page cache.
const UNIT: u32 = 1;

/// Logical and physical sector sizes of a raw file, which records none.
const RAW_SECTORS: (u32, u32) = (512, 512);

/// Image file of a store.
#[derive(Clone, Copy)]
pub struct ImageTarget<'a> {
    /// Store that contains the file.
    pub files: &'a Arc<dyn StoreFiles>,
    /// Name of the file in the store.
    pub name: &'a FileName,
    /// Image format; detected if `None`.
    pub format: Option<DiskFormat>,
    /// Prefix of names in reports: `/` if the store is the host's root directory.
    pub display_prefix: &'static str,
}

impl ImageTarget<'_> {
    fn show(&self, name: &FileName) -> String {
        format!("{}{name}", self.display_prefix)
    }

    fn options(&self, format: DiskFormat, used: FileLockMode) -> LayerOptions {
        LayerOptions { format, lock_mode: used, io_alignment: UNIT, sector_sizes: RAW_SECTORS }
    }

    /// Returns the given format, or the detected one.
    fn read_format(&self) -> Result<DiskFormat, DiskError> {
        self.format.map_or_else(|| self.detect(), Ok)
    }

    /// Returns the format for a change. A detected format is accepted only if the name's suffix
    /// agrees: the first sector of a raw disk is under the guest's control.
    fn write_format(&self) -> Result<DiskFormat, DiskError> {
        if let Some(format) = self.format {
            return Ok(format);
        }
        let detected = self.detect()?;
        if by_ending(self.name) == detected {
            return Ok(detected);
        }
        let value = format!("{} by the contents, but not by the file name", detected.as_str());
        let allowed = "vhd or vhdx; name the format with --format";
        Err(DiskError::new(
            self.show(self.name),
            DiskFault::InvalidPlan { field: "format", value, allowed },
        ))
    }

    /// Detects the format by the file's signatures, or by the name's suffix if they are damaged.
    fn detect(&self) -> Result<DiskFormat, DiskError> {
        let file = self.files.open(self.name, FileLockMode::Read, UNIT)?;
        let failed =
            |error| DiskError::new(self.show(self.name), ImageError::new("file", 0, error));
        let len = file.len().map_err(failed)?;
        let has_signature = |offset: Option<u64>, signature: &[u8; 8]| -> Result<bool, DiskError> {
            let Some(offset) = offset.filter(|offset| len.saturating_sub(*offset) >= 8) else {
                return Ok(false);
            };
            let mut bytes = [0; 8];
            file.read_at(offset, &mut bytes).map_err(failed)?;
            Ok(bytes == *signature)
        };
        if has_signature(Some(0), b"vhdxfile")? {
            return Ok(DiskFormat::Vhdx);
        }
        for offset in [len.checked_sub(512), len.checked_sub(511), Some(0)] {
            if has_signature(offset, b"conectix")? {
                return Ok(DiskFormat::Vhd);
            }
        }
        Ok(by_ending(self.name))
    }
}

/// Returns the format that a name's suffix indicates; raw for unknown suffixes.
fn by_ending(name: &FileName) -> DiskFormat {
    let ending = name.file_name().rsplit_once('.').map_or("", |(_, ending)| ending);
    match ending.to_ascii_lowercase().as_str() {
        "vhd" | "avhd" => DiskFormat::Vhd,
        "vhdx" | "avhdx" => DiskFormat::Vhdx,
        _ => DiskFormat::Raw,
    }
}

/// Converts a format to the type of the API.
const fn contract_format(format: DiskFormat) -> suimon_contract::DiskFormat {
    match format {
        DiskFormat::Raw => suimon_contract::DiskFormat::Raw,
        DiskFormat::Vhd => suimon_contract::DiskFormat::Vhd,
        DiskFormat::Vhdx => suimon_contract::DiskFormat::Vhdx,
        DiskFormat::PassThrough => suimon_contract::DiskFormat::PassThrough,
    }
}
