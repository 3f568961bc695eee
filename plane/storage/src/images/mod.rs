//! Disks of a store: what one is to be ([`DiskPlan`]), making it ([`create`]), and opening
//! it with all its parents ([`open`]).
//!
//! What it does not do: it decides nothing about when, draws no random numbers and reads
//! no clock ([`Seeds`]), and resizes nothing ([`jobs`](crate::jobs)).
//!
//! Life of a disk's file
//! ```text
//! create ──► .NAME.suimon-new ──► whole and durable ──► NAME ──► open ──► close
//!                  │                                              ▲         │
//!                  └── crash ──► sweep removes it                 └─────────┘
//! ```
//!
//! Invariants
//! - A file under a disk's name is whole: what is being made has a name of its own until
//!   it is durable.
//! - Parents are looked for in the store only, opened for reading, and believed only if
//!   they are the disks that the child names, unchanged.
//! - A chain of parents is bounded ([`LAYERS_MAX`]) and has no file twice.

mod create;
mod draft;
mod error;
mod layer;
mod locate_parent;
mod mark;
mod open;
#[cfg(test)]
pub(crate) mod open_tests;
mod plan;
mod recorded;
mod redoing;
mod unfinished;

pub use create::{create, exists};
pub use draft::{DRAFT_ENDING, draft_name, sweep};
pub use error::{DiskError, DiskFault};
pub use mark::{MarkFault, StoreMark};
pub use open::{LAYERS_MAX, OpenedDisk, close, open, parents};
pub use plan::{DiskFormat, DiskKind, DiskPlan};
pub use recorded::RecordedImage;
pub use redoing::discard_left;
pub(crate) use redoing::has_left;

pub(crate) use create::{Making, decide, parent_of, refuse_too_large, write_image};
pub(crate) use draft::{Draft, remove_left};
pub(crate) use layer::{Identity, LayerOptions, OpenLayer, Opened};
pub(crate) use locate_parent::{candidates, is_child_of, recorded_paths, relative_path, verify};
pub(crate) use open::{LAYERS_READ_MAX, find_parent, open_layers, open_up_to};

pub(crate) use unfinished::{unfinished_backup, unfinished_name};

use suimon_ports::RedoRecords;

/// What making and opening images needs of the host.
pub struct Seeds<'a> {
    /// Draws 128 random bits that nobody has drawn before.
    pub random: &'a mut dyn FnMut() -> [u8; 16],
    /// Now: seconds since 1970-01-01 UTC.
    pub now_unix_s: u64,
    /// Where changes of metadata are kept. Without, each write to new space waits for a commit.
    pub records: Option<&'a dyn RedoRecords>,
    /// What becomes of records that a killed process left of images that are opened.
    pub left: LeftRecords,
}

/// What becomes of the record that a killed process left of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeftRecords {
    /// It is redone.
    #[default]
    Redo,
    /// It is discarded: another host has had the image since.
    Discard,
    /// It is kept, and images are read as they are in their files. For opening images for reading
    /// only.
    Keep,
}

impl Seeds<'_> {
    /// Returns seeds for reading images whose files must not be written, whatever records are left.
    pub(crate) fn keeping_records(&mut self) -> Seeds<'_> {
        Seeds {
            random: &mut *self.random,
            now_unix_s: self.now_unix_s,
            records: self.records,
            left: LeftRecords::Keep,
        }
    }

    pub(crate) fn guid(&mut self) -> suimon_vhdx::Guid {
        suimon_vhdx::Guid::from_stored((self.random)())
    }

    pub(crate) fn write_guids(&mut self) -> suimon_vhdx::WriteGuids {
        suimon_vhdx::WriteGuids {
            file_write: self.guid(),
            data_write: self.guid(),
            log: self.guid(),
        }
    }
}

/// Seconds from 1970-01-01 to 2000-01-01, from which VHD counts.
const VHD_EPOCH_UNIX_S: u64 = 946_684_800;

/// A time as VHD has it.
pub(crate) fn vhd_time(unix_s: u64) -> u32 {
    u32::try_from(unix_s.saturating_sub(VHD_EPOCH_UNIX_S)).unwrap_or(u32::MAX)
}

/// A time of VHD as the system has it.
pub(crate) fn unix_time(vhd: u32) -> u64 {
    VHD_EPOCH_UNIX_S.saturating_add(vhd.into())
}
