//! Files that are not finished.

use std::sync::Arc;

use suimon_ports::{BadFileName, DiskFile, FileName, FileUse, StoreFault, StoreFiles};

use super::error::{DiskError, DiskFault};

/// How names of files end that are not finished; they begin with a dot.
pub const DRAFT_ENDING: &str = ".suimon-new";

/// A file that will have a name once it is whole. Dropped before that, it is removed; after
/// a crash [`sweep`] does it.
pub(crate) struct Draft {
    files: Arc<dyn StoreFiles>,
    target: FileName,
    name: FileName,
    /// `None` once it has its name.
    file: Option<Arc<dyn DiskFile>>,
}

impl Draft {
    /// Makes the file. One that a crash has left is removed.
    pub(crate) fn new(
        files: &Arc<dyn StoreFiles>,
        target: &FileName,
        unit: u32,
    ) -> Result<Self, DiskError> {
        let name = Self::name_for(target)?;
        remove_left(files.as_ref(), &name)?;
        let file = Some(files.create(&name, unit)?);
        Ok(Self { files: Arc::clone(files), target: target.clone(), name, file })
    }

    /// Takes one that was left, to go on with it; `None` if there is none.
    pub(crate) fn reopen(
        files: &Arc<dyn StoreFiles>,
        target: &FileName,
        unit: u32,
    ) -> Result<Option<Self>, DiskError> {
        let name = Self::name_for(target)?;
        match files.open(&name, FileUse::Write, unit) {
            Ok(file) => {
                let (files, target) = (Arc::clone(files), target.clone());
                Ok(Some(Self { files, target, name, file: Some(file) }))
            }
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// It is left for somebody who goes on with it, and keeps the name that it has.
    pub(crate) fn leave(mut self) {
        self.file = None;
    }

    /// Under which name the file for `target` is made.
    pub(crate) fn name_for(target: &FileName) -> Result<FileName, DiskError> {
        let last = target.last();
        target.sibling(&format!(".{last}{DRAFT_ENDING}")).map_err(|bad: BadFileName| {
            let value = format!("{last} ({bad})");
            let allowed = "a name that leaves room for 12 bytes";
            DiskError::new(target, DiskFault::Plan { field: "file", value, allowed })
        })
    }

    /// The file.
    pub(crate) fn file(&self) -> Result<&Arc<dyn DiskFile>, DiskError> {
        self.file.as_ref().ok_or_else(|| DiskError::new(&self.name, StoreFault::Missing))
    }

    /// Writes all that is to be in it.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<(), DiskError> {
        self.write_at(0, bytes)
    }

    /// Writes a part of what is to be in it.
    pub(crate) fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        let written = self.file()?.write_at(offset, bytes);
        written.map_err(|error| {
            DiskError::new(&self.target, suimon_image::ImageError::new("file", 0, error)).or_full()
        })
    }

    /// The name that it has now.
    pub(crate) const fn name(&self) -> &FileName {
        &self.name
    }

    /// It is whole: it gets its name, which nobody has.
    pub(crate) fn publish(self) -> Result<(), DiskError> {
        self.finish(|files, from, to| files.rename(from, to))
    }

    /// It is whole: it takes the place of the file that has its name.
    pub(crate) fn replace(self) -> Result<(), DiskError> {
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

impl Drop for Draft {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // What cannot be removed now, `sweep` removes.
            let _ = self.files.remove(&self.name);
        }
    }
}

/// Removes a file that was never finished, if nobody is at it.
pub(crate) fn remove_left(files: &dyn StoreFiles, name: &FileName) -> Result<bool, DiskError> {
    match files.open(name, FileUse::Write, 1) {
        Ok(left) => {
            files.remove(name)?;
            drop(left);
            Ok(true)
        }
        Err(error) if error.is_missing() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Under which name the image `target` is made until it is whole.
///
/// # Errors
/// The name of `target` is too long for that.
pub fn draft_name(target: &FileName) -> Result<FileName, DiskError> {
    Draft::name_for(target)
}

/// Removes what crashes have left of images that were being made; returns what that was.
/// What somebody is still making stays, and what is `kept` for work that goes on.
///
/// # Errors
/// The store cannot be read, or a file not removed.
pub fn sweep(files: &dyn StoreFiles, kept: &[FileName]) -> Result<Vec<FileName>, DiskError> {
    let mut removed = Vec::new();
    let drafts = files.names(DRAFT_ENDING)?;
    let is_left = |name: &FileName| name.last().starts_with('.') && !kept.contains(name);
    for name in drafts.into_iter().filter(is_left) {
        match remove_left(files, &name) {
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
