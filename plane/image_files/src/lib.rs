//! Images of a store's disks: specification ([`DiskPlan`]), creation ([`create`]), and opening with
//! all parents ([`open`]).
//!
//! [`jobs`] checks, resizes, compacts, converts and merges images; [`inspect`] reads, repairs and
//! relinks images that no disk uses. All functions are called by control threads and may block on
//! the store. This crate generates no random numbers and reads no clock ([`HostInputs`]).
//!
//! Life cycle of a disk's file
//! ```text
//! create ──► .NAME.suimon-new ──► whole and durable ──► NAME ──► open ──► close
//!                  │                                              ▲         │
//!                  └── crash ──► sweep removes it                 └─────────┘
//! ```
//!
//! Invariants
//! - A file under a disk's name is complete: an image being created has another name until it is
//!   durable.
//! - Parents are searched in the store only, opened for reading, and accepted only if they are the
//!   disks that the child references, unchanged.
//! - A chain of parents is bounded ([`LAYERS_MAX`]) and contains no file twice.
#![forbid(unsafe_code)]

mod content_fingerprint;
mod create;
mod error;
mod format;
mod incomplete_change;
mod incomplete_image;
pub mod inspect;
pub mod jobs;
mod layer;
mod layer_options;
mod layer_stack;
mod links;
mod locate_parent;
mod open;
#[cfg(test)]
pub(crate) mod open_tests;
mod plan;
mod recorded_image;
mod redoing;
mod store_marker;
mod verify_metadata;

pub use content_fingerprint::ContentFingerprint;
pub use create::{UnnamedImage, create, create_unnamed, exists};
pub use error::{DiskError, DiskFault};
pub use format::{DiskFormat, DiskKind};
pub use incomplete_image::{
    INCOMPLETE_SUFFIX, incomplete_name, remove_all_incomplete, remove_incomplete,
};
pub use layer_stack::{DiscardSupport, DiskLayer, LayerStack};
pub use links::ImageLinks;
pub use open::{LAYERS_MAX, OpenedDisk, close, open};
pub use plan::DiskPlan;
pub use recorded_image::RecordedImage;
pub use redoing::discard_remaining_record;
pub(crate) use redoing::has_remaining_record;
pub use store_marker::{StoreMarker, StoreMarkerFault};
pub use verify_metadata::verify_metadata;

pub(crate) use create::{
    NewImageSpec, check_free_space, new_image_spec, parent_properties, write_image,
};
pub(crate) use incomplete_image::IncompleteImage;
pub(crate) use layer::{Identity, OpenLayer, OpenedImage};
pub(crate) use locate_parent::{candidates, is_child_of, recorded_paths, relative_path, verify};
pub(crate) use open::{LAYERS_READ_MAX, find_parent, open_layers, open_up_to};

pub(crate) use incomplete_change::{find_incomplete_change_backup, incomplete_change_backup_name};
pub(crate) use layer_options::LayerOptions;

use suimon_ports::RedoRecords;

/// Random numbers, time and redo records that the caller provides for creating and opening images.
pub struct HostInputs<'a> {
    /// Generator of unique random values of 128 bits.
    pub random: &'a mut dyn FnMut() -> [u8; 16],
    /// Current time in seconds since 1970-01-01 UTC.
    pub now_unix_s: u64,
    /// Redo records of the host's images. `None`: each write to newly allocated space waits for a
    /// commit.
    pub redo_records: Option<&'a dyn RedoRecords>,
    /// Handling of redo records that a killed process left.
    pub remaining_redo_records: RemainingRecordPolicy,
}

/// Handling of the redo record of an image that a killed process left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RemainingRecordPolicy {
    /// The changes of the record are applied.
    #[default]
    Redo,
    /// The record is discarded, because another host has used the image since.
    Discard,
    /// The record is kept, and the image is read without its changes. Only for images that are
    /// opened for reading.
    Keep,
}

impl HostInputs<'_> {
    /// Returns the same inputs with [`RemainingRecordPolicy::Keep`], for reading images without
    /// writing to their files.
    pub(crate) fn with_records_kept(&mut self) -> HostInputs<'_> {
        HostInputs {
            random: &mut *self.random,
            now_unix_s: self.now_unix_s,
            redo_records: self.redo_records,
            remaining_redo_records: RemainingRecordPolicy::Keep,
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

/// Seconds from 1970-01-01 to 2000-01-01, the epoch of VHD.
const VHD_EPOCH_UNIX_S: u64 = 946_684_800;

/// Converts Unix time to VHD time.
pub(crate) fn vhd_time(unix_s: u64) -> u32 {
    u32::try_from(unix_s.saturating_sub(VHD_EPOCH_UNIX_S)).unwrap_or(u32::MAX)
}

/// Converts VHD time to Unix time.
pub(crate) fn unix_time(vhd: u32) -> u64 {
    VHD_EPOCH_UNIX_S.saturating_add(vhd.into())
}
