//! Image files that no disk serves: what they are, whether they are sound, repairs of their
//! metadata, and the record of their parent.
//!
//! What it does not do: it follows no names out of the store it is given, and never writes
//! payload. Redo records of a killed daemon are the caller's: an image that has one is redone
//! before it is changed.
//!
//! Life of a change
//! ```text
//! plan in memory ──► metadata only? ──► backup, durable ──► the same on the file ──► check
//!       └── dry run ends here
//! ```
//!
//! Invariants
//! - A change is computed in memory first ([`planned_file`]); the file is written only in the
//!   sectors that the plan has touched, none of which holds payload.
//! - The former content of these sectors is durable in a backup before the first of them is
//!   written. Until the change has ended, the backup's name states that it is unfinished: then the
//!   image is not opened for writing, and the next change takes the unfinished one back.
//! - The time of a file's last change stays as it was before a change, and is set through the
//!   locked file.
//! - A file that is locked by another program is not opened.

mod backup;
mod change;
mod check;
mod info;
mod planned_file;
#[cfg(test)]
mod tests;
mod undo;
#[cfg(test)]
mod undo_tests;

use std::sync::Arc;

use suimon_image::ImageError;
use suimon_ports::{FileName, FileUse, StoreFiles};

pub use change::{redo_left, relink, repair};
pub use check::check;
pub use info::info;
pub use undo::undo;

use crate::images::{DiskError, DiskFault, DiskFormat, LayerOptions};

/// All I/O goes through the page cache.
const UNIT: u32 = 1;

/// Sectors of a raw file, which states none.
const RAW_SECTORS: (u32, u32) = (512, 512);

/// An image file of a store.
#[derive(Clone, Copy)]
pub struct ImageTarget<'a> {
    /// The store.
    pub files: &'a Arc<dyn StoreFiles>,
    /// The file's name in it.
    pub name: &'a FileName,
    /// Image format; detected if `None`.
    pub format: Option<DiskFormat>,
    /// What precedes names of the store in reports: `/` where the store is the host's root.
    pub prefix: &'static str,
}

impl ImageTarget<'_> {
    fn show(&self, name: &FileName) -> String {
        format!("{}{name}", self.prefix)
    }

    fn options(&self, format: DiskFormat, used: FileUse) -> LayerOptions {
        LayerOptions { format, used, unit: UNIT, sectors: RAW_SECTORS }
    }

    /// The given format, or the detected one.
    fn read_format(&self) -> Result<DiskFormat, DiskError> {
        self.format.map_or_else(|| self.detect(), Ok)
    }

    /// The format for a change. A detected format counts only if the name's ending agrees: the
    /// first sector of a raw disk is the guest's, which can write anything there.
    fn write_format(&self) -> Result<DiskFormat, DiskError> {
        if let Some(format) = self.format {
            return Ok(format);
        }
        let detected = self.detect()?;
        if by_ending(self.name) == detected {
            return Ok(detected);
        }
        let value = format!("{} by its content, which the name does not confirm", detected.word());
        let allowed = "vhd or vhdx, named with --format";
        Err(DiskError::new(
            self.show(self.name),
            DiskFault::Plan { field: "format", value, allowed },
        ))
    }

    /// Detects the format by the file's signatures; by the name's ending if they are damaged.
    fn detect(&self) -> Result<DiskFormat, DiskError> {
        let file = self.files.open(self.name, FileUse::Read, UNIT)?;
        let failed =
            |error| DiskError::new(self.show(self.name), ImageError::new("file", 0, error));
        let len = file.len().map_err(failed)?;
        let has = |offset: Option<u64>, signature: &[u8; 8]| -> Result<bool, DiskError> {
            let Some(offset) = offset.filter(|offset| len.saturating_sub(*offset) >= 8) else {
                return Ok(false);
            };
            let mut bytes = [0; 8];
            file.read_at(offset, &mut bytes).map_err(failed)?;
            Ok(bytes == *signature)
        };
        if has(Some(0), b"vhdxfile")? {
            return Ok(DiskFormat::Vhdx);
        }
        for offset in [len.checked_sub(512), len.checked_sub(511), Some(0)] {
            if has(offset, b"conectix")? {
                return Ok(DiskFormat::Vhd);
            }
        }
        Ok(by_ending(self.name))
    }
}

/// Returns the format that a name's ending states.
fn by_ending(name: &FileName) -> DiskFormat {
    let ending = name.last().rsplit_once('.').map_or("", |(_, ending)| ending);
    match ending.to_ascii_lowercase().as_str() {
        "vhd" | "avhd" => DiskFormat::Vhd,
        "vhdx" | "avhdx" => DiskFormat::Vhdx,
        _ => DiskFormat::Raw,
    }
}

/// Returns the contract's word for a format.
const fn contract_format(format: DiskFormat) -> suimon_contract::DiskFormat {
    match format {
        DiskFormat::Raw => suimon_contract::DiskFormat::Raw,
        DiskFormat::Vhd => suimon_contract::DiskFormat::Vhd,
        DiskFormat::Vhdx => suimon_contract::DiskFormat::Vhdx,
        DiskFormat::PassThrough => suimon_contract::DiskFormat::PassThrough,
    }
}
