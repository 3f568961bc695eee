//! Disks in a directory, made and opened as the daemon makes and opens them.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use suimon_ports::{FileName, StoreFiles};
use suimon_storage::DiskSpec;
use suimon_storage::images::{DiskFormat, DiskKind, DiskPlan, LeftRecords, Seeds, create, open};
use suimon_uring::HostStore;

/// A directory with disks.
pub struct StoreFolder {
    files: Arc<dyn StoreFiles>,
}

impl StoreFolder {
    /// A directory that is there.
    ///
    /// # Errors
    /// It is not.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self { files: Arc::new(HostStore::open(path)?) })
    }

    /// Makes a disk's file.
    ///
    /// # Errors
    /// The plan is not possible, or the store is full.
    pub fn make(&self, plan: &DiskPlan) -> Result<()> {
        Ok(seeded(|seeds| create(&self.files, plan, seeds))?)
    }

    /// Opens a disk that was made, for a processor.
    ///
    /// # Errors
    /// It is not there, in use, or not what the plan says.
    pub fn disk(&self, plan: &DiskPlan) -> Result<DiskSpec> {
        Ok(seeded(|seeds| open(self.files.as_ref(), plan, seeds))?.spec)
    }

    /// Bytes that a disk's file takes of the store.
    ///
    /// # Errors
    /// It is not there.
    pub fn allocated_bytes(&self, plan: &DiskPlan) -> Result<u64> {
        let name = plan.file.as_ref().context("it is the store itself")?;
        Ok(self.files.status(name)?.allocated_bytes)
    }
}

/// A plan of a disk of `size` bytes whose file is named by its kind and format, with blocks
/// as the format has them by itself.
#[must_use]
pub fn new_disk(format: DiskFormat, kind: DiskKind, size: Option<u64>) -> DiskPlan {
    DiskPlan {
        format,
        kind: Some(kind),
        file: FileName::new(&format!("{}.{}", kind.word(), format.word())).ok(),
        size,
        parent: None,
        is_read_only: false,
        logical_sector: 512,
        physical_sector: 4096,
        block_bytes: None,
    }
}

/// Runs what needs random numbers and the time.
///
/// # Panics
/// The system has no random numbers.
pub fn seeded<T>(run: impl FnOnce(&mut Seeds<'_>) -> T) -> T {
    let mut random = || {
        let mut bytes = [0; 16];
        let flags = rustix::rand::GetRandomFlags::empty();
        rustix::rand::getrandom(&mut bytes, flags).expect("random numbers");
        bytes
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    run(&mut Seeds {
        random: &mut random,
        now_unix_s: now.as_secs(),
        records: None,
        left: LeftRecords::Redo,
    })
}
