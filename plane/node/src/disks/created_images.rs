//! Images that a change creates on request for disks that had an image before (`--create-image`),
//! and their records in the state store.
//!
//! If the change fails, its image is removed. The daemon can end before, for example while the
//! removal waits for a store that does not respond. The next daemon must not open the empty image
//! as the disk's image. The image is therefore recorded before it gets its name, and the commit of
//! the change deletes the record. A file that equals its record is removed before a disk is opened.
//!
//! Inode number and creation time of a file stay the same when it is overwritten in place, or
//! written by a guest. The record therefore also has length, modification time and a digest of the
//! content. The modification time is set to an earlier one before the image is recorded, so that
//! each later write changes it. A file that was written, restored or mounted since stays, and is
//! opened as the disk's image.
//!
//! The modification time alone is not sufficient: a flush (`fdatasync(2)`) does not make it
//! durable, and opening a VHDX changes it.

mod control;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use suimon_contract::{ApiError, ErrorCode};
use suimon_image::FileError;
use suimon_image_files::{ContentFingerprint, DiskFormat};
use suimon_ports::{
    DiskFile, FileId, FileLockMode, FileName, FileTime, StateStore, StateStoreError,
    StoreFileError, StoreFiles,
};

use super::required::RequiredDisk;
use crate::errors::store_error;
use crate::state::{DeferringStore, StoreChange, decode, encode, path_key, scan_all};

const CREATED_IMAGES: &str = "created_images";

/// Maximum number of records. Each remains from a change that was interrupted while its store was
/// not accessible.
pub(super) const CREATED_IMAGES_MAX: usize = 64;

/// Maximum number of recorded images that an error lists.
const LISTED_MAX: usize = 3;

/// Image that was created by a change in progress or by one that has failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CreatedImage {
    /// Path of the store.
    store: PathBuf,
    /// Name of the store. Finds the image after a change of the store's path. Empty in records of
    /// earlier versions.
    #[serde(default)]
    store_name: String,
    /// Name of the file in the store.
    file: String,
    device: u64,
    inode: u64,
    /// Creation time of the file in nanoseconds since 1970-01-01 UTC; 0 if unknown.
    created_unix_ns: u64,
    /// Length and modification time; `None` if unknown, and in records of earlier versions. Such a
    /// file is never removed.
    #[serde(default)]
    written: Option<WrittenState>,
    /// Content of the file. `None` in records of earlier versions, which are compared without it.
    #[serde(default)]
    content: Option<RecordedContent>,
    /// True if the image is a VHDX, whose modification time changes when it is opened.
    #[serde(default)]
    is_vhdx: bool,
    /// True if the running daemon has created the image. The host has not crashed since, so that
    /// the modification time of the file is that of its last write.
    #[serde(skip)]
    is_of_this_daemon: bool,
}

/// Content of a file when it was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RecordedContent {
    /// Summary of the content ([`ContentFingerprint`]).
    Known { pages: u64, digest: u64, is_vhdx: bool },
    /// The content could not be determined.
    Unknown,
}

/// Properties of a file that a write changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WrittenState {
    /// Length in bytes.
    len: u64,
    /// Modification time (mtime): seconds since 1970-01-01 UTC.
    modified_unix_s: i64,
    /// Nanoseconds of the modification time, below 1 000 000 000.
    modified_ns: u32,
}

/// Result of the comparison of a file with an image that a change has created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileComparison {
    /// The file is the created image.
    Same,
    /// The file is another one, or was written since.
    Other,
    /// The file system does not provide the required properties, or the record lacks them.
    Unknown,
}

/// Records of created images. Used by the control thread and by store threads.
pub(super) struct CreatedImages {
    store: Arc<DeferringStore>,
    /// Records by path of the image.
    records: Mutex<BTreeMap<PathBuf, CreatedImage>>,
}

impl WrittenState {
    fn of(file: &dyn DiskFile) -> Result<Self, FileError> {
        let FileTime { unix_s, ns } = file.modified()?;
        Ok(Self { len: file.len()?, modified_unix_s: unix_s, modified_ns: ns })
    }

    /// Sets the modification time of a complete image to an earlier one, so that each later write
    /// changes it. Returns the resulting state; the file system may have rounded the time.
    fn mark(image: &dyn DiskFile) -> Result<Self, FileError> {
        // A delayed write could change the time afterwards.
        image.flush()?;
        let FileTime { unix_s, ns } = image.modified()?;
        image.set_modified(FileTime { unix_s: unix_s.saturating_sub(1), ns })?;
        Self::of(image)
    }
}

impl From<Option<ContentFingerprint>> for RecordedContent {
    fn from(mark: Option<ContentFingerprint>) -> Self {
        let to_known = |ContentFingerprint { nonzero_pages: pages, digest, is_vhdx }| Self::Known {
            pages,
            digest,
            is_vhdx,
        };
        mark.map_or(Self::Unknown, to_known)
    }
}

impl RecordedContent {
    const fn mark(self) -> Option<ContentFingerprint> {
        match self {
            Self::Known { pages, digest, is_vhdx } => {
                Some(ContentFingerprint { nonzero_pages: pages, digest, is_vhdx })
            }
            Self::Unknown => None,
        }
    }
}

impl CreatedImage {
    /// Creates the record of an image that the running daemon has created. `file_state`: identity
    /// of the file, and its length and modification time, as far as the file system provides them.
    fn new(
        (store_name, store): (&str, &Path),
        file: &FileName,
        file_state: (Option<FileId>, Option<WrittenState>),
    ) -> Self {
        let (id, written) = file_state;
        let written = id.and(written);
        let id = id.unwrap_or(FileId { device: 0, inode: 0, created_unix_ns: 0 });
        Self {
            store: store.to_owned(),
            store_name: store_name.to_owned(),
            file: file.as_str().to_owned(),
            device: id.device,
            inode: id.inode,
            created_unix_ns: u64::try_from(id.created_unix_ns).unwrap_or(0),
            written,
            content: None,
            is_vhdx: false,
            is_of_this_daemon: true,
        }
    }

    /// Adds the content of the file; `None` if it could not be determined.
    fn with_content(self, mark: Option<ContentFingerprint>) -> Self {
        Self { content: Some(mark.into()), ..self }
    }

    /// Adds the format of the file.
    fn with_format(self, format: DiskFormat) -> Self {
        Self { is_vhdx: matches!(format, DiskFormat::Vhdx), ..self }
    }

    fn path(&self) -> PathBuf {
        self.store.join(&self.file)
    }

    /// Returns true if the disk's image has the recorded name, also if the path of its store was
    /// changed since.
    fn is_of(&self, disk: &RequiredDisk) -> bool {
        let is_named = || disk.plan().file.is_some_and(|file| file.as_str() == self.file);
        disk.image_path() == self.path()
            || (disk.store.name.to_string() == self.store_name && is_named())
    }

    /// Compares a file with the record. Device numbers change when the host starts, and inode
    /// numbers are reused. `has_content`: compares the content of the file, if the other properties
    /// are equal.
    fn compare(
        &self,
        id: Option<FileId>,
        written: Option<WrittenState>,
        has_content: impl FnOnce(ContentFingerprint) -> Option<bool>,
    ) -> FileComparison {
        let Some(id) = id else { return FileComparison::Unknown };
        if self.inode != 0 && id.inode != self.inode {
            return FileComparison::Other;
        }
        let created = u64::try_from(id.created_unix_ns).unwrap_or(0);
        if self.created_unix_ns != 0 && created != 0 && created != self.created_unix_ns {
            return FileComparison::Other;
        }
        let (Some(recorded), Some(current)) = (self.written, written) else {
            return FileComparison::Unknown;
        };
        let mark = self.content.and_then(RecordedContent::mark);
        let has_times = !self.is_vhdx && !mark.is_some_and(|mark| mark.is_vhdx);
        if recorded.len != current.len || (has_times && recorded != current) {
            return FileComparison::Other;
        }
        if self.content.is_none() {
            return FileComparison::Same;
        }
        match mark.and_then(has_content) {
            Some(true) => FileComparison::Same,
            Some(false) => FileComparison::Other,
            None if self.is_of_this_daemon && recorded == current => FileComparison::Same,
            None => FileComparison::Unknown,
        }
    }

    /// Compares an open, locked file with the record. Blocks on the file system.
    pub(super) fn compare_file(&self, file: &dyn DiskFile) -> FileComparison {
        let written = WrittenState::of(file).ok();
        self.compare(file.properties().id, written, |mark| mark.matches(file))
    }

    fn save(&self) -> Result<StoreChange, StateStoreError> {
        Ok((CREATED_IMAGES, path_key(&self.path()), Some(encode(CREATED_IMAGES, self)?)))
    }

    fn clear(&self) -> StoreChange {
        (CREATED_IMAGES, path_key(&self.path()), None)
    }
}

impl CreatedImages {
    pub(super) fn new(store: Arc<DeferringStore>) -> Self {
        Self { store, records: Mutex::default() }
    }

    /// Reads the records that an earlier daemon has left.
    fn load(&self) -> Result<(), StateStoreError> {
        let mut records = BTreeMap::new();
        scan_all(self.store.as_ref(), CREATED_IMAGES, &mut |key, value| {
            let record: CreatedImage = decode(CREATED_IMAGES, key, value)?;
            records.insert(record.path(), record);
            Ok(())
        })?;
        *self.lock() = records;
        Ok(())
    }

    /// Records a complete image before it gets its name.
    fn add(&self, record: CreatedImage) -> Result<(), ApiError> {
        let path = record.path();
        if let Some(listed) = self.listed_if_full(&path) {
            let text = format!(
                "{CREATED_IMAGES_MAX} images that failed changes have created are not removed yet, \
                 among them {listed}; mount their stores, or delete the stores from the \
                 configuration, and restart the daemon"
            );
            return Err(ApiError::new(ErrorCode::Conflict, text));
        }
        let saved = record.save().and_then(|change| self.store.commit(&[change]));
        saved.map_err(|error| store_error(&error))?;
        self.lock().insert(path, record);
        Ok(())
    }

    /// Returns the paths of some recorded images if there is no room for another one.
    fn listed_if_full(&self, path: &Path) -> Option<String> {
        let records = self.lock();
        if records.len() < CREATED_IMAGES_MAX || records.contains_key(path) {
            return None;
        }
        let listed = records.keys().take(LISTED_MAX).map(|path| path.display().to_string());
        Some(listed.collect::<Vec<_>>().join(", "))
    }

    fn find(&self, path: &Path) -> Option<CreatedImage> {
        self.lock().get(path).cloned()
    }

    /// Returns the record of a disk's image, also if the path of its store was changed since.
    pub(super) fn find_for_disk(&self, disk: &RequiredDisk) -> Option<CreatedImage> {
        let records = self.lock();
        let of_path = records.get(&disk.image_path());
        of_path.or_else(|| records.values().find(|record| record.is_of(disk))).cloned()
    }

    /// Deletes the records of images that did not get their name before the daemon was killed.
    /// `swept`: incomplete images that were removed when the store was opened.
    pub(super) fn delete_unnamed_records(
        &self,
        store: &Path,
        files: &dyn StoreFiles,
        swept: &[FileName],
    ) {
        let records: Vec<CreatedImage> =
            self.lock().values().filter(|record| record.store == store).cloned().collect();
        for record in records {
            let Ok(file) = FileName::new(&record.file) else { continue };
            let is_swept = suimon_image_files::incomplete_name(&file)
                .is_ok_and(|draft| swept.contains(&draft));
            if is_swept && files.status(&file).is_err_and(|error| error.is_missing()) {
                self.forget(&record);
            }
        }
    }

    /// Deletes a record unless it was replaced. A failure is logged; the record then refers to no
    /// file.
    fn forget(&self, record: &CreatedImage) {
        let path = record.path();
        if self.lock().get(&path) != Some(record) {
            return;
        }
        match self.store.commit(&[record.clear()]) {
            Ok(()) => drop(self.lock().remove(&path)),
            Err(error) => tracing::warn!(
                file = %path.display(), %error, "an image that does not exist is still recorded"
            ),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, CreatedImage>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes a file for which `check` returns [`FileComparison::Same`]. The file is locked until it
/// is removed, so that no other process uses it after the check. The caller has a `ReservedFile`,
/// so that no disk opens it.
pub(super) fn remove_if_same(
    files: &dyn StoreFiles,
    file: &FileName,
    check: impl FnOnce(&dyn DiskFile) -> FileComparison,
) -> Result<FileComparison, StoreFileError> {
    let opened = files.open(file, FileLockMode::Write, 1)?;
    let matching = check(opened.as_ref());
    if matching == FileComparison::Same {
        files.remove(file)?;
    }
    drop(opened);
    Ok(matching)
}

#[cfg(test)]
mod tests;
