//! Images that a change creates on request for disks that had an image before (`--create-image`), and
//! their records in the state store.
//!
//! If the change fails, its image is removed. The daemon can end before, for example while the removal
//! waits for a store that does not respond. The next daemon must not open the empty image as the
//! disk's image. The image is therefore recorded before it gets its name, and the commit of the change
//! deletes the record. A file that equals its record is removed before a disk is opened.
//!
//! Inode number and creation time of a file stay the same when it is overwritten in place, or written
//! by a guest. The record therefore also has length and modification time. The modification time is
//! set to an earlier one before the image is recorded, so that each later write changes it. A file that
//! was written, restored or mounted since stays, and is opened as the disk's image.

mod control;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use suimon_contract::{ApiError, ErrorCode};
use suimon_image::FileError;
use suimon_ports::{
    DiskFile, FileId, FileLockMode, FileName, FileTime, StateStore, StateStoreError,
    StoreFileError, StoreFiles,
};
use suimon_storage::images;

use super::required::RequiredDisk;
use crate::errors::store_error;
use crate::state::{DeferringStore, StoreChange, decode, encode, path_key, scan_all};

const CREATED_IMAGES: &str = "created_images";

/// Maximum number of records. Each remains from a change that was interrupted while its store was not
/// accessible.
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
pub(super) enum Match {
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

impl CreatedImage {
    /// `found`: identity and state of the file, as far as known.
    fn new(
        (store_name, store): (&str, &Path),
        file: &FileName,
        found: (Option<FileId>, Option<WrittenState>),
    ) -> Self {
        let (id, written) = found;
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
        }
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

    /// Compares a file with the record. Device numbers change when the host starts, and inode numbers
    /// are reused.
    fn compare(&self, id: Option<FileId>, written: Option<WrittenState>) -> Match {
        let Some(id) = id else { return Match::Unknown };
        if self.inode != 0 && id.inode != self.inode {
            return Match::Other;
        }
        let created = u64::try_from(id.created_unix_ns).unwrap_or(0);
        if self.created_unix_ns != 0 && created != 0 && created != self.created_unix_ns {
            return Match::Other;
        }
        match (self.written, written) {
            (Some(recorded), Some(found)) if recorded == found => Match::Same,
            (Some(_), Some(_)) => Match::Other,
            _ => Match::Unknown,
        }
    }

    pub(super) fn compare_file(&self, found: &dyn DiskFile) -> Match {
        self.compare(found.properties().id, WrittenState::of(found).ok())
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
    pub(super) fn find_of(&self, disk: &RequiredDisk) -> Option<CreatedImage> {
        let records = self.lock();
        let of_path = records.get(&disk.image_path());
        of_path.or_else(|| records.values().find(|record| record.is_of(disk))).cloned()
    }

    /// Deletes the records of images that did not get their name before the daemon was killed.
    /// `swept`: incomplete images that were removed when the store was opened.
    pub(super) fn forget_unnamed(&self, store: &Path, files: &dyn StoreFiles, swept: &[FileName]) {
        let records: Vec<CreatedImage> =
            self.lock().values().filter(|record| record.store == store).cloned().collect();
        for record in records {
            let Ok(file) = FileName::new(&record.file) else { continue };
            let is_swept = images::draft_name(&file).is_ok_and(|draft| swept.contains(&draft));
            if is_swept && files.status(&file).is_err_and(|error| error.is_missing()) {
                self.forget(&record);
            }
        }
    }

    /// Deletes a record unless it was replaced. A failure is logged; the record then refers to no file.
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

/// Removes a file for which `check` returns [`Match::Same`]. The file is locked until it is removed, so
/// that no other process uses it after the check. The caller has an `UnsettledFile`, so that no disk
/// opens it.
pub(super) fn remove_if_same(
    files: &dyn StoreFiles,
    file: &FileName,
    check: impl FnOnce(&dyn DiskFile) -> Match,
) -> Result<Match, StoreFileError> {
    let found = files.open(file, FileLockMode::Write, 1)?;
    let matching = check(found.as_ref());
    if matching == Match::Same {
        files.remove(file)?;
    }
    drop(found);
    Ok(matching)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MemoryStore;

    #[test]
    fn the_number_of_recorded_images_is_limited() {
        let state = Arc::new(DeferringStore::new(Arc::new(MemoryStore::default())));
        let images = CreatedImages::new(state.clone());
        let record = |number: usize| {
            let file = FileName::new(&format!("{number}.raw")).unwrap();
            CreatedImage::new(("fast", Path::new("/srv/fast")), &file, (None, None))
        };
        for number in 0..64 {
            images.add(record(number)).unwrap();
        }
        let error = images.add(record(64)).unwrap_err();
        assert_eq!(error.code, ErrorCode::Conflict);
        assert!(error.message.contains("/srv/fast/0.raw, /srv/fast/1.raw"), "{error}");
        // The image of a path that is recorded replaces the former one.
        images.add(record(0)).unwrap();
        let later = CreatedImages::new(state);
        later.load().unwrap();
        assert_eq!(later.lock().len(), 64);
        later.forget(&record(1));
        later.add(record(64)).unwrap();
    }

    #[test]
    fn a_file_is_the_recorded_image_if_identity_length_and_modification_time_are_equal() {
        let id = |device, inode, created_unix_ns| Some(FileId { device, inode, created_unix_ns });
        let state = |len, modified_unix_s, modified_ns| {
            Some(WrittenState { len, modified_unix_s, modified_ns })
        };
        let file = FileName::new("boot.raw").unwrap();
        let record = |found| CreatedImage::new(("fast", Path::new("/srv/fast")), &file, found);
        let written = state(4096, 7, 8);
        let known = record((id(1, 2, 3), written));
        assert_eq!(known.compare(id(1, 2, 3), written), Match::Same);
        assert_eq!(known.compare(id(9, 2, 3), written), Match::Same, "the host was restarted");
        assert_eq!(known.compare(id(1, 2, 0), written), Match::Same, "unknown creation time");
        assert_eq!(known.compare(id(1, 4, 3), written), Match::Other);
        assert_eq!(known.compare(id(1, 2, 4), written), Match::Other, "the inode is reused");
        for other in [state(4097, 7, 8), state(4096, 8, 8), state(4096, 7, 9)] {
            assert_eq!(known.compare(id(1, 2, 3), other), Match::Other, "written: {other:?}");
        }
        assert_eq!(known.compare(id(1, 2, 3), None), Match::Unknown);
        assert_eq!(known.compare(None, written), Match::Unknown);
        let without_creation_time = record((id(1, 2, 0), written));
        assert_eq!(without_creation_time.compare(id(1, 2, 3), written), Match::Same);
        assert_eq!(record((None, written)).compare(id(1, 2, 3), written), Match::Unknown);
        assert_eq!(record((id(1, 2, 3), None)).compare(id(1, 2, 3), written), Match::Unknown);
    }

    #[test]
    fn a_record_without_length_and_modification_time_removes_no_file() {
        let earlier = r#"{"store": "/srv/fast", "file": "boot.raw", "device": 1, "inode": 2,
            "created_unix_ns": 3}"#;
        let record: CreatedImage = serde_json::from_str(earlier).unwrap();
        let id = Some(FileId { device: 1, inode: 2, created_unix_ns: 3 });
        let written = Some(WrittenState { len: 0, modified_unix_s: 0, modified_ns: 0 });
        assert_eq!(record.compare(id, written), Match::Unknown);
    }

    /// The daemon was killed between the record and the rename of the image.
    #[test]
    fn a_record_ends_with_the_incomplete_image_that_it_refers_to() {
        let state = Arc::new(DeferringStore::new(Arc::new(MemoryStore::default())));
        let recorded = CreatedImages::new(state);
        let (store, file) = (Path::new("/srv/fast"), FileName::new("boot.raw").unwrap());
        let record = CreatedImage::new(("fast", store), &file, (None, None));
        recorded.add(record.clone()).unwrap();
        let files = suimon_ports::testing::MemoryStore::default();
        recorded.forget_unnamed(store, &files, &[]);
        let draft = images::draft_name(&file).unwrap();
        recorded.forget_unnamed(Path::new("/srv/other"), &files, std::slice::from_ref(&draft));
        assert_eq!(recorded.find(&record.path()), Some(record.clone()), "of another store");
        recorded.forget_unnamed(store, &files, &[draft]);
        assert_eq!(recorded.find(&record.path()), None);
    }
}
