//! Disks in a directory, created and opened as the daemon creates and opens them.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use suimon_image_files::LayerStack;
use suimon_image_files::{
    DiskFormat, DiskKind, DiskPlan, HostInputs, RemainingRecordPolicy, create, open,
};
use suimon_ports::{FileName, StoreFiles};
use suimon_uring::HostStore;

/// A directory with disks.
pub struct StoreFolder {
    files: Arc<dyn StoreFiles>,
}

impl StoreFolder {
    /// Opens an existing directory.
    ///
    /// # Errors
    /// The directory does not exist.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self { files: Arc::new(HostStore::open(path)?) })
    }

    /// Creates the file of a disk.
    ///
    /// # Errors
    /// The plan is invalid, or the store is full.
    pub fn make(&self, plan: &DiskPlan) -> Result<()> {
        Ok(seeded(|seeds| create(&self.files, plan, seeds))?)
    }

    /// Opens an existing disk for a worker.
    ///
    /// # Errors
    /// The file does not exist, is in use, or does not match the plan.
    pub fn disk(&self, plan: &DiskPlan) -> Result<LayerStack> {
        Ok(seeded(|seeds| open(self.files.as_ref(), plan, seeds))?.layer_stack)
    }

    /// Returns the number of bytes that the file of a disk occupies in the store.
    ///
    /// # Errors
    /// The file does not exist.
    pub fn allocated_bytes(&self, plan: &DiskPlan) -> Result<u64> {
        let name = plan.file.as_ref().context("it is the store itself")?;
        Ok(self.files.status(name)?.allocated_bytes)
    }
}

/// Returns the plan of a disk of `size` bytes with the format's default block size. The file is
/// named after kind and format.
#[must_use]
pub fn new_disk(format: DiskFormat, kind: DiskKind, size: Option<u64>) -> DiskPlan {
    DiskPlan {
        format,
        kind: Some(kind),
        file: FileName::new(&format!("{}.{}", kind.as_str(), format.as_str())).ok(),
        size_bytes: size,
        parent: None,
        is_read_only: false,
        logical_sector_bytes: 512,
        physical_sector_bytes: 4096,
        block_bytes: None,
    }
}

/// Calls a function that needs random numbers and the current time.
///
/// # Panics
/// The system has no random numbers.
pub fn seeded<T>(run: impl FnOnce(&mut HostInputs<'_>) -> T) -> T {
    let mut random = || {
        let mut bytes = [0; 16];
        let flags = rustix::rand::GetRandomFlags::empty();
        rustix::rand::getrandom(&mut bytes, flags).expect("random numbers");
        bytes
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    run(&mut HostInputs {
        random: &mut random,
        now_unix_s: now.as_secs(),
        redo_records: None,
        remaining_redo_records: RemainingRecordPolicy::Redo,
    })
}
