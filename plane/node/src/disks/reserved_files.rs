//! Image files that no disk may open: files that an attempt to open a disk has created and that are
//! not in service yet, and files that are about to be removed.
//!
//! A removal can be queued behind a store that does not respond. A disk that opened the file
//! meanwhile would lose it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use suimon_ports::FileName;

type StoredFile = (PathBuf, FileName);

/// Image files that no disk may open, with the paths of their stores. Clones share the list.
#[derive(Clone, Default)]
pub(super) struct ReservedFiles(Arc<Mutex<Vec<StoredFile>>>);

/// Image file that no disk may open until this value is dropped.
pub(super) struct ReservedFile {
    files: ReservedFiles,
    file: StoredFile,
}

impl ReservedFiles {
    /// Adds a file that is about to be removed.
    pub(super) fn add(&self, store: &Path, file: &FileName) -> ReservedFile {
        let file = (store.to_owned(), file.clone());
        self.lock().push(file.clone());
        ReservedFile { files: self.clone(), file }
    }

    /// Adds a file that is about to be created; `None` if it is being created or removed already.
    pub(super) fn add_new(&self, store: &Path, file: &FileName) -> Option<ReservedFile> {
        let file = (store.to_owned(), file.clone());
        let mut files = self.lock();
        if files.contains(&file) {
            return None;
        }
        files.push(file.clone());
        drop(files);
        Some(ReservedFile { files: self.clone(), file })
    }

    /// Returns true if the file is being created or removed.
    pub(super) fn contains(&self, store: &Path, file: &FileName) -> bool {
        self.lock().iter().any(|(unsettled_store, name)| unsettled_store == store && name == file)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<StoredFile>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ReservedFile {
    fn drop(&mut self) {
        let mut files = self.files.lock();
        if let Some(index) = files.iter().position(|file| *file == self.file) {
            files.swap_remove(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_unsettled_until_all_its_operations_have_ended() {
        let files = ReservedFiles::default();
        let (store, file) = (Path::new("/srv/fast"), FileName::new("boot.raw").unwrap());
        let unsettled_file = files.add_new(store, &file).unwrap();
        assert!(files.add_new(store, &file).is_none());
        assert!(files.add_new(Path::new("/srv/other"), &file).is_some());
        let removed = files.add(store, &file);
        drop(unsettled_file);
        assert!(files.contains(store, &file));
        drop(removed);
        assert!(!files.contains(store, &file));
        assert!(files.lock().is_empty());
    }
}
