//! Incomplete image files, which have a temporary name until they are complete.

use std::sync::Arc;

use suimon_ports::{DiskFile, FileLockMode, FileName, FileNameError, StoreFault, StoreFiles};

use super::error::{DiskError, DiskFault};

/// Suffix of the names of incomplete files; the names begin with a dot.
pub const INCOMPLETE_SUFFIX: &str = ".suimon-new";

/// File being written under a temporary name. Dropping it before it has its final name removes the
/// file. After a crash, [`remove_all_incomplete`] removes it.
pub(crate) struct IncompleteImage {
    files: Arc<dyn StoreFiles>,
    target: FileName,
    name: FileName,
    /// Open file; `None` once the file has its final name.
    file: Option<Arc<dyn DiskFile>>,
}

impl IncompleteImage {
    /// Creates the incomplete file of `target`. Removes a file of the same temporary name that
    /// remained after a crash. `unit`: alignment of all I/O in bytes.
    pub(crate) fn new(
        files: &Arc<dyn StoreFiles>,
        target: &FileName,
        unit: u32,
    ) -> Result<Self, DiskError> {
        let name = Self::name_for(target)?;
        remove_incomplete(files.as_ref(), &name)?;
        let file = Some(files.create(&name, unit)?);
        Ok(Self { files: Arc::clone(files), target: target.clone(), name, file })
    }

    /// Opens the incomplete file of `target` that an earlier job has left, to continue it; `None`
    /// if there is none.
    pub(crate) fn reopen(
        files: &Arc<dyn StoreFiles>,
        target: &FileName,
        unit: u32,
    ) -> Result<Option<Self>, DiskError> {
        let name = Self::name_for(target)?;
        match files.open(&name, FileLockMode::Write, unit) {
            Ok(file) => {
                let (files, target) = (Arc::clone(files), target.clone());
                Ok(Some(Self { files, target, name, file: Some(file) }))
            }
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Closes the incomplete file without removing it, so that a later job can continue it.
    pub(crate) fn keep_for_resume(mut self) {
        self.file = None;
    }

    /// Returns the temporary name of the incomplete file of `target`: `.NAME.suimon-new` in the
    /// same directory. Fails with [`DiskFault::InvalidPlan`] if that name is too long.
    pub(crate) fn name_for(target: &FileName) -> Result<FileName, DiskError> {
        let last = target.file_name();
        target.with_file_name(&format!(".{last}{INCOMPLETE_SUFFIX}")).map_err(
            |bad: FileNameError| {
                let value = format!("{last} ({bad})");
                let allowed = "a name that leaves room for 12 bytes";
                DiskError::new(target, DiskFault::InvalidPlan { field: "file", value, allowed })
            },
        )
    }

    /// Returns the open incomplete file. Fails with [`StoreFault::Missing`] once the file has its
    /// final name.
    pub(crate) fn file(&self) -> Result<&Arc<dyn DiskFile>, DiskError> {
        self.file.as_ref().ok_or_else(|| DiskError::new(&self.name, StoreFault::Missing))
    }

    /// Writes `bytes` at the beginning of the file.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<(), DiskError> {
        self.write_at(0, bytes)
    }

    /// Writes `bytes` at an offset of the file.
    pub(crate) fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        let written = self.file()?.write_at(offset, bytes);
        written.map_err(|error| {
            DiskError::new(&self.target, suimon_image::ImageError::new("file", 0, error))
                .normalize_store_full()
        })
    }

    /// Returns the temporary name of the file.
    pub(crate) const fn name(&self) -> &FileName {
        &self.name
    }

    /// Makes the complete file durable and gives it its final name. Fails if a file of that name
    /// exists.
    pub(crate) fn publish(self) -> Result<(), DiskError> {
        self.finish(|files, from, to| files.rename(from, to))
    }

    /// Makes the complete file durable and lets it replace the file that has the final name.
    pub(crate) fn replace_target(self) -> Result<(), DiskError> {
        self.finish(|files, from, to| files.replace(from, to))
    }

    fn finish(
        mut self,
        give_name: impl FnOnce(
            &dyn StoreFiles,
            &FileName,
            &FileName,
        ) -> Result<(), suimon_ports::StoreFileError>,
    ) -> Result<(), DiskError> {
        let flushed = self.file()?.flush();
        flushed.map_err(|error| {
            DiskError::new(&self.target, suimon_image::ImageError::new("file", 0, error))
        })?;
        give_name(self.files.as_ref(), &self.name, &self.target)?;
        self.file = None;
        Ok(())
    }
}

impl Drop for IncompleteImage {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // A file that cannot be removed now is removed by `remove_all_incomplete`.
            let _ = self.files.remove(&self.name);
        }
    }
}

/// Removes a file of this name that an interrupted operation has left. Returns false if there is
/// none.
///
/// # Errors
/// The file is in use, or the store failed.
pub fn remove_incomplete(files: &dyn StoreFiles, name: &FileName) -> Result<bool, DiskError> {
    match files.open(name, FileLockMode::Write, 1) {
        Ok(draft) => {
            files.remove(name)?;
            drop(draft);
            Ok(true)
        }
        Err(error) if error.is_missing() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Returns the name under which the image `target` is written until it is complete.
///
/// # Errors
/// The name of `target` is too long.
pub fn incomplete_name(target: &FileName) -> Result<FileName, DiskError> {
    IncompleteImage::name_for(target)
}

/// Removes incomplete files that remained after crashes, and returns their names. Files in use
/// remain, as do the files in `kept_files`, which jobs will continue.
///
/// # Errors
/// The store cannot be read, or a file cannot be removed.
pub fn remove_all_incomplete(
    files: &dyn StoreFiles,
    kept_files: &[FileName],
) -> Result<Vec<FileName>, DiskError> {
    let mut removed = Vec::new();
    let drafts = files.names(INCOMPLETE_SUFFIX)?;
    let is_incomplete =
        |name: &FileName| name.file_name().starts_with('.') && !kept_files.contains(name);
    for name in drafts.into_iter().filter(is_incomplete) {
        match remove_incomplete(files, &name) {
            Ok(true) => removed.push(name),
            Ok(false) => {}
            Err(error) => match *error.fault {
                DiskFault::Store(StoreFault::InUse { .. }) => {}
                _ => return Err(error),
            },
        }
    }
    Ok(removed)
}
