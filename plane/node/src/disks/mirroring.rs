//! Disks that go to another node with their VM: none does yet.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use suimon_contract::{ApiError, ErrorCode, Name};

use crate::shared::Shared;

/// How far a disk is copied.
#[derive(Default)]
pub(crate) struct MirrorProgress {
    pub(crate) copied_bytes: u64,
    pub(crate) left_bytes: u64,
    pub(crate) has_copied_all: bool,
    pub(crate) failure: Option<String>,
}

/// A disk that is copied to another node.
pub(crate) struct DiskMirror(());

/// A disk that is copied from another node.
pub(crate) struct ServedDisk(());

fn refused(disk: &Name) -> ApiError {
    let text = "disks do not move with their VMs yet";
    ApiError::new(ErrorCode::Unsupported, text).about(format!("disk/{disk}"))
}

impl DiskMirror {
    pub(crate) fn start(_: &Arc<Shared>, disk: &Name, _: OwnedFd) -> Result<Self, ApiError> {
        Err(refused(disk))
    }

    pub(crate) fn progress(&self) -> MirrorProgress {
        let () = self.0;
        MirrorProgress::default()
    }

    pub(crate) fn finish(&self, _: Instant) -> Result<(), ApiError> {
        let () = self.0;
        Ok(())
    }
}

impl ServedDisk {
    pub(crate) fn start(_: &Arc<Shared>, disk: &Name, _: OwnedFd) -> Result<Self, ApiError> {
        Err(refused(disk))
    }

    pub(crate) fn end(&self) -> Result<(), ApiError> {
        let () = self.0;
        Ok(())
    }
}
