//! Images that a change creates on request for disks that had an image before (`--create-image`), and
//! their records in the state store.
//!
//! If the change fails, its image is removed. The daemon can end before, for example while the removal
//! waits for a store that does not respond. The next daemon must not open the empty image as the
//! disk's image. The image is therefore recorded before it gets its name, and the commit of the change
//! deletes the record. A file with the identity of a record is removed before a disk is opened.
//! Another file of the name, such as one that was restored or mounted, is left alone.

mod control;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use suimon_contract::{ApiError, ErrorCode};
use suimon_ports::{FileId, FileLockMode, FileName, StateStore, StateStoreError, StoreFiles};

use crate::errors::store_error;
use crate::state::{DeferringStore, StoreChange, decode, encode, path_key, scan_all};

const CREATED_IMAGES: &str = "created_images";

/// Maximum number of records. Each remains from a change that was interrupted while its store was not
/// accessible.
pub(super) const CREATED_IMAGES_MAX: usize = 64;

/// Image that was created by a change in progress or by one that has failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CreatedImage {
    /// Path of the store.
    store: PathBuf,
    /// Name of the file in the store.
    file: String,
    device: u64,
    inode: u64,
    /// Creation time of the file in nanoseconds since 1970-01-01 UTC; 0 if unknown.
    created_unix_ns: u64,
}

/// Result of the comparison of a file with the record of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Match {
    /// The file is the recorded image.
    Same,
    Other,
    /// The file system does not record when files are created.
    Unknown,
}

/// Records of created images. Used by the control thread and by store threads.
pub(super) struct CreatedImages {
    store: Arc<DeferringStore>,
    /// Records by path of the image.
    records: Mutex<BTreeMap<PathBuf, CreatedImage>>,
}

impl CreatedImage {
    fn new(store: &Path, file: &FileName, id: Option<FileId>) -> Self {
        let id = id.unwrap_or(FileId { device: 0, inode: 0, created_unix_ns: 0 });
        Self {
            store: store.to_owned(),
            file: file.as_str().to_owned(),
            device: id.device,
            inode: id.inode,
            created_unix_ns: u64::try_from(id.created_unix_ns).unwrap_or(0),
        }
    }

    fn path(&self) -> PathBuf {
        self.store.join(&self.file)
    }

    /// Compares a file with the record. Device numbers change when the host starts, and inode numbers
    /// are reused; the creation time decides.
    fn compare(&self, id: Option<FileId>) -> Match {
        let Some(id) = id else { return Match::Unknown };
        if self.inode != 0 && id.inode != self.inode {
            return Match::Other;
        }
        match (self.created_unix_ns, u64::try_from(id.created_unix_ns).unwrap_or(0)) {
            (0, _) | (_, 0) => Match::Unknown,
            (recorded, found) if recorded == found => Match::Same,
            _ => Match::Other,
        }
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
        let is_full = {
            let records = self.lock();
            records.len() >= CREATED_IMAGES_MAX && !records.contains_key(&path)
        };
        if is_full {
            let text = format!(
                "{CREATED_IMAGES_MAX} images that failed changes have created are not removed yet; \
                 mount their stores, or delete the stores from the configuration, and restart the \
                 daemon"
            );
            return Err(ApiError::new(ErrorCode::Conflict, text));
        }
        let saved = record.save().and_then(|change| self.store.commit(&[change]));
        saved.map_err(|error| store_error(&error))?;
        self.lock().insert(path, record);
        Ok(())
    }

    fn find(&self, path: &Path) -> Option<CreatedImage> {
        self.lock().get(path).cloned()
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

/// Removes a file if it is the recorded image. Returns false if it is another file.
fn remove_recorded(
    files: &dyn StoreFiles,
    file: &FileName,
    record: &CreatedImage,
) -> Result<bool, suimon_ports::StoreFileError> {
    let found = files.open(file, FileLockMode::Write, 1)?;
    let is_it = record.compare(found.properties().id) == Match::Same;
    drop(found);
    if is_it {
        files.remove(file)?;
    }
    Ok(is_it)
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
            CreatedImage::new(Path::new("/srv/fast"), &file, None)
        };
        for number in 0..64 {
            images.add(record(number)).unwrap();
        }
        let error = images.add(record(64)).unwrap_err();
        assert_eq!(error.code, ErrorCode::Conflict);
        // The image of a path that is recorded replaces the former one.
        images.add(record(0)).unwrap();
        let later = CreatedImages::new(state);
        later.load().unwrap();
        assert_eq!(later.lock().len(), 64);
        later.forget(&record(1));
        later.add(record(64)).unwrap();
    }

    #[test]
    fn a_file_is_the_recorded_image_if_inode_and_creation_time_are_equal() {
        let id = |device, inode, created_unix_ns| Some(FileId { device, inode, created_unix_ns });
        let file = FileName::new("boot.raw").unwrap();
        let record = |id| CreatedImage::new(Path::new("/srv/fast"), &file, id);
        let known = record(id(1, 2, 3));
        assert_eq!(known.compare(id(1, 2, 3)), Match::Same);
        assert_eq!(known.compare(id(9, 2, 3)), Match::Same, "the host was restarted");
        assert_eq!(known.compare(id(1, 4, 3)), Match::Other);
        assert_eq!(known.compare(id(1, 2, 4)), Match::Other, "the inode number is reused");
        assert_eq!(known.compare(id(1, 2, 0)), Match::Unknown);
        assert_eq!(known.compare(None), Match::Unknown);
        assert_eq!(record(id(1, 2, 0)).compare(id(1, 2, 0)), Match::Unknown);
        assert_eq!(record(id(1, 2, 0)).compare(id(1, 4, 0)), Match::Other);
        assert_eq!(record(id(1, 2, 0)).compare(id(1, 2, 3)), Match::Unknown);
        assert_eq!(record(None).compare(id(1, 2, 3)), Match::Unknown);
    }
}
