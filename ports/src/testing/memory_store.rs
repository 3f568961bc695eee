//! In-memory store that logs all changes, so that tests can construct the state after every
//! possible crash.

use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use suimon_image::testing::{Crash, FileContent, LoggedChange, MemoryFile, WriteOutcome};
use suimon_image::{FileError, ImageFile};

use crate::{
    DiskFile, FileId, FileLockMode, FileName, FileProperties, FileStatus, FileTime, FlushFailure,
    StoreFault, StoreFileError, StoreFiles, StoreIdentity, StoreSpace,
};

/// One logged change of a store. Files are identified by numbers that are never reused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreOp {
    /// A file was created.
    Create(FileName, usize),
    /// The contents of the file with this number changed, at this Unix time in seconds.
    File(usize, LoggedChange, u64),
    /// The modification time of the file with this number was set, in seconds since 1970-01-01 UTC.
    SetModified(usize, u64),
    /// A file was renamed, replacing the file that had the new name.
    Rename(FileName, FileName),
    /// A name was removed.
    Remove(FileName),
}

#[derive(Default)]
struct State {
    names: BTreeMap<FileName, usize>,
    files: Vec<Entry>,
    ops: Vec<StoreOp>,
    /// Names before the first logged change.
    names_before: BTreeMap<FileName, usize>,
    /// Contents and modification times of files before the first logged change.
    files_before: Vec<(FileContent, u64)>,
    /// Number of changes that succeed before the store is full; `None`: unlimited.
    capacity: Option<usize>,
    now_unix_s: u64,
    /// Attempts to open a file that was in use.
    conflicts: usize,
    /// True if modification times of open files cannot be set.
    refuses_times: bool,
    /// File that cannot be opened.
    unreadable: Option<FileName>,
}

struct Entry {
    file: MemoryFile,
    modified_unix_s: u64,
    readers: usize,
    writers: usize,
}

impl State {
    /// Logs a change; fails if the store is full. A flush needs no space.
    fn log_change(&mut self, op: StoreOp) -> io::Result<()> {
        let is_flush = matches!(op, StoreOp::File(_, LoggedChange::Flush, _));
        match self.capacity.as_mut().filter(|_| !is_flush) {
            Some(0) => return Err(io::ErrorKind::StorageFull.into()),
            Some(remaining) => *remaining -= 1,
            None => {}
        }
        self.ops.push(op);
        Ok(())
    }

    fn find(&self, name: &FileName) -> Result<usize, StoreFileError> {
        let file_number = self.names.get(name).copied();
        file_number.ok_or_else(|| StoreFileError::new(name, StoreFault::Missing))
    }

    /// Returns the number of a file that can be opened.
    fn find_readable(&self, name: &FileName) -> Result<usize, StoreFileError> {
        if self.unreadable.as_ref() == Some(name) {
            let error = io::Error::from(io::ErrorKind::PermissionDenied);
            return Err(StoreFileError::new(name, StoreFault::System(error)));
        }
        self.find(name)
    }

    fn add(&mut self, content: impl Into<FileContent>) -> usize {
        self.files.push(Entry {
            file: MemoryFile::new(content),
            modified_unix_s: self.now_unix_s,
            readers: 0,
            writers: 0,
        });
        self.files.len() - 1
    }
}

/// In-memory store. Clones share the store.
#[derive(Clone, Default)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
    set_stalled: Arc<(Mutex<bool>, Condvar)>,
}

impl MemoryStore {
    /// Creates a store with these files, as if durable before the first logged change.
    #[must_use]
    pub fn with_files(files: impl IntoIterator<Item = (FileName, Vec<u8>)>) -> Self {
        let store = Self::default();
        {
            let mut state = store.state();
            for (name, bytes) in files {
                let number = state.add(bytes);
                state.names.insert(name, number);
            }
        }
        store.clear_log();
        store
    }

    /// Starts or ends a stall: meanwhile every access to the store and its files blocks, except
    /// [`MemoryStore::files`].
    pub fn set_stalled(&self, stalls: bool) {
        let (is_stalled, changed) = &*self.set_stalled;
        *is_stalled.lock().unwrap_or_else(PoisonError::into_inner) = stalls;
        changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let (is_stalled, changed) = &*self.set_stalled;
        let guard = is_stalled.lock().unwrap_or_else(PoisonError::into_inner);
        // Held until the state is locked, so that no access begins after `set_stalled(true)`
        // returns.
        let _not_stalled = changed.wait_while(guard, |stalls| *stalls);
        self.state_now()
    }

    fn state_now(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the modification time given to files that change from now on, in seconds since
    /// 1970-01-01 UTC.
    pub fn set_time(&self, now_unix_s: u64) {
        self.state().now_unix_s = now_unix_s;
    }

    /// Sets whether modification times of open files cannot be set, as for files of another owner.
    pub fn set_rejects_modified_time(&self, refuses: bool) {
        self.state().refuses_times = refuses;
    }

    /// Makes a file unreadable; `None`: no file.
    pub fn set_unreadable(&self, name: Option<FileName>) {
        self.state().unreadable = name;
    }

    /// Makes the store full after `changes` more changes; `None`: never.
    pub fn set_change_limit(&self, changes: Option<usize>) {
        self.state().capacity = changes;
    }

    /// Returns how often a file could not be opened because it was in use.
    #[must_use]
    pub fn open_conflict_count(&self) -> usize {
        self.state().conflicts
    }

    /// Returns name and contents of all files.
    #[must_use]
    pub fn files(&self) -> BTreeMap<FileName, Vec<u8>> {
        let state = self.state_now();
        let bytes = |number: &usize| state.files.get(*number).map(|entry| entry.file.bytes());
        state
            .names
            .iter()
            .filter_map(|(name, number)| Some((name.clone(), bytes(number)?)))
            .collect()
    }

    /// Returns the changes logged since the store was created or since [`MemoryStore::clear_log`].
    #[must_use]
    pub fn ops(&self) -> Vec<StoreOp> {
        self.state().ops.clone()
    }

    /// Clears the log of changes; files are unchanged.
    pub fn clear_log(&self) {
        let mut state = self.state();
        state.ops.clear();
        let before = |entry: &Entry| (entry.file.content(), entry.modified_unix_s);
        state.files_before = state.files.iter().map(before).collect();
        state.names_before = state.names.clone();
    }

    /// Returns the store after a crash that occurred when the first `started` logged changes had
    /// begun. Changes of names are durable, as [`StoreFiles`] requires. `fate` decides each
    /// unflushed change of a file. Modification times are preserved.
    #[must_use]
    pub fn store_after_crash(
        &self,
        started: usize,
        mut fate: impl FnMut() -> WriteOutcome,
    ) -> Self {
        let state = self.state();
        let ops = state.ops.get(..started).unwrap_or(&state.ops);
        let mut names = state.names_before.clone();
        for op in ops {
            match op {
                StoreOp::Create(name, number) => drop(names.insert(name.clone(), *number)),
                StoreOp::Rename(from, to) => {
                    if let Some(number) = names.remove(from) {
                        names.insert(to.clone(), number);
                    }
                }
                StoreOp::Remove(name) => drop(names.remove(name)),
                StoreOp::File(..) | StoreOp::SetModified(..) => {}
            }
        }
        let crashed = Self::default();
        for (name, number) in names {
            let (before, mut modified_unix_s) = match state.files_before.get(number) {
                Some((content, modified_unix_s)) => (content.clone(), *modified_unix_s),
                None => (FileContent::default(), 0),
            };
            let mut of_file: Vec<LoggedChange> = Vec::new();
            for op in ops {
                match op {
                    StoreOp::File(file_number, op, modified_at) if *file_number == number => {
                        of_file.push(op.clone());
                        modified_unix_s =
                            if *op == LoggedChange::Flush { modified_unix_s } else { *modified_at };
                    }
                    StoreOp::SetModified(file_number, modified_at) if *file_number == number => {
                        modified_unix_s = *modified_at;
                    }
                    _ => {}
                }
            }
            let crash = Crash { before: &before, changes: &of_file, started_count: of_file.len() };
            let fates: Vec<WriteOutcome> = (0..crash.unflushed_count()).map(|_| fate()).collect();
            let content = crash.content_after(&[], &fates);
            let mut after = crashed.state();
            after.now_unix_s = modified_unix_s;
            let number = after.add(content);
            after.names.insert(name, number);
        }
        crashed.state().now_unix_s = state.now_unix_s;
        crashed.clear_log();
        crashed
    }

    /// Returns the store as another process finds it after a kill of this one: with all completed
    /// changes, and without the operations that are stalled.
    #[must_use]
    pub fn after_kill(&self) -> Self {
        let survivor = Self::default();
        {
            let (from, mut to) = (self.state_now(), survivor.state());
            let entries = from.files.iter().map(|entry| Entry {
                file: MemoryFile::new(entry.file.content()),
                modified_unix_s: entry.modified_unix_s,
                readers: 0,
                writers: 0,
            });
            (to.files, to.names) = (entries.collect(), from.names.clone());
            to.now_unix_s = from.now_unix_s;
        }
        survivor.clear_log();
        survivor
    }

    fn opened(
        &self,
        state: &mut State,
        name: &FileName,
        number: usize,
        used: FileLockMode,
    ) -> Result<Arc<dyn DiskFile>, StoreFileError> {
        let Some(entry) = state.files.get_mut(number) else {
            return Err(StoreFileError::new(name, StoreFault::Missing));
        };
        if entry.writers > 0 || (used == FileLockMode::Write && entry.readers > 0) {
            state.conflicts += 1;
            let holder = "another user of this store".to_owned();
            return Err(StoreFileError::new(name, StoreFault::InUse { lock_holder: holder }));
        }
        match used {
            FileLockMode::Read => entry.readers += 1,
            FileLockMode::Write => entry.writers += 1,
        }
        let flush_failure = FlushFailure::default();
        let store = self.clone();
        Ok(Arc::new(StoredFile { store, number, used, is_locked: true, flush_failure }))
    }
}

impl StoreFiles for MemoryStore {
    fn open(
        &self,
        name: &FileName,
        used: FileLockMode,
        _unit: u32,
    ) -> Result<Arc<dyn DiskFile>, StoreFileError> {
        let mut state = self.state();
        let number = state.find_readable(name)?;
        self.opened(&mut state, name, number, used)
    }

    fn open_unlocked(
        &self,
        name: &FileName,
        _unit: u32,
    ) -> Result<Arc<dyn DiskFile>, StoreFileError> {
        let number = self.state().find_readable(name)?;
        let (used, flush_failure) = (FileLockMode::Read, FlushFailure::default());
        let store = self.clone();
        Ok(Arc::new(StoredFile { store, number, used, is_locked: false, flush_failure }))
    }

    fn create(&self, name: &FileName, _unit: u32) -> Result<Arc<dyn DiskFile>, StoreFileError> {
        let mut state = self.state();
        if state.names.contains_key(name) {
            return Err(StoreFileError::new(name, StoreFault::Exists));
        }
        let number = state.files.len();
        state
            .log_change(StoreOp::Create(name.clone(), number))
            .map_err(|_| StoreFileError::new(name, StoreFault::Full))?;
        let number = state.add(Vec::new());
        state.names.insert(name.clone(), number);
        self.opened(&mut state, name, number, FileLockMode::Write)
    }

    fn open_device(
        &self,
        _used: FileLockMode,
        _unit: u32,
    ) -> Result<Arc<dyn DiskFile>, StoreFileError> {
        let fault = StoreFault::WrongStoreType { found_type: "memory", hint: "name a file" };
        Err(StoreFileError::new("memory", fault))
    }

    fn reserve(&self, name: &FileName) -> Result<(), StoreFileError> {
        let state = self.state();
        state.find(name)?;
        match state.capacity {
            Some(0) => Err(StoreFileError::new(name, StoreFault::Full)),
            _ => Ok(()),
        }
    }

    fn status(&self, name: &FileName) -> Result<FileStatus, StoreFileError> {
        let state = self.state();
        let number = state.find(name)?;
        let entry = state.files.get(number);
        let len = entry.and_then(|entry| entry.file.len().ok()).unwrap_or(0);
        let modified_unix_s = entry.map_or(0, |entry| entry.modified_unix_s);
        Ok(FileStatus { len, allocated_bytes: len, modified_unix_s })
    }

    fn set_modified(&self, name: &FileName, unix_s: u64) -> Result<(), StoreFileError> {
        let mut state = self.state();
        let number = state.find(name)?;
        state.ops.push(StoreOp::SetModified(number, unix_s));
        if let Some(entry) = state.files.get_mut(number) {
            entry.modified_unix_s = unix_s;
        }
        Ok(())
    }

    fn rename(&self, from: &FileName, to: &FileName) -> Result<(), StoreFileError> {
        if self.state().names.contains_key(to) {
            return Err(StoreFileError::new(to, StoreFault::Exists));
        }
        self.replace(from, to)
    }

    fn replace(&self, from: &FileName, to: &FileName) -> Result<(), StoreFileError> {
        let mut state = self.state();
        let number = state.find(from)?;
        state
            .log_change(StoreOp::Rename(from.clone(), to.clone()))
            .map_err(|_| StoreFileError::new(to, StoreFault::Full))?;
        state.names.remove(from);
        state.names.insert(to.clone(), number);
        Ok(())
    }

    fn remove(&self, name: &FileName) -> Result<(), StoreFileError> {
        let mut state = self.state();
        state.find(name)?;
        // Removal succeeds even if the store is full.
        state.ops.push(StoreOp::Remove(name.clone()));
        state.names.remove(name);
        Ok(())
    }

    fn names_with(&self, endings: &[&str]) -> Result<Vec<FileName>, StoreFileError> {
        let state = self.state();
        let has_ending =
            |name: &&FileName| endings.iter().any(|ending| name.file_name().ends_with(*ending));
        Ok(state.names.keys().filter(has_ending).cloned().collect())
    }

    fn space(&self) -> Result<StoreSpace, StoreFileError> {
        let is_full = self.state().capacity == Some(0);
        Ok(StoreSpace { total_bytes: 1 << 40, free_bytes: if is_full { 0 } else { 1 << 40 } })
    }

    fn identity(&self) -> StoreIdentity {
        // Unique while the store exists.
        let inode = u64::try_from(Arc::as_ptr(&self.state).addr()).unwrap_or(u64::MAX);
        StoreIdentity { device: 0, inode }
    }
}

/// Open file of a [`MemoryStore`].
struct StoredFile {
    store: MemoryStore,
    number: usize,
    used: FileLockMode,
    /// True if the file is locked in the mode `used`.
    is_locked: bool,
    flush_failure: FlushFailure,
}

impl StoredFile {
    fn inspect<T>(
        &self,
        read: impl FnOnce(&MemoryFile) -> Result<T, FileError>,
    ) -> Result<T, FileError> {
        let state = self.store.state();
        let entry = state.files.get(self.number).ok_or(io::ErrorKind::NotFound);
        read(&entry.map_err(io::Error::from)?.file)
    }

    fn change(&self, op: &LoggedChange) -> Result<(), FileError> {
        if self.used == FileLockMode::Read {
            return Err(io::Error::from(io::ErrorKind::PermissionDenied).into());
        }
        let mut state = self.store.state();
        let now_unix_s = state.now_unix_s;
        state.log_change(StoreOp::File(self.number, op.clone(), now_unix_s))?;
        let Some(entry) = state.files.get_mut(self.number) else { return Ok(()) };
        if *op != LoggedChange::Flush {
            entry.modified_unix_s = now_unix_s;
        }
        match op {
            LoggedChange::Write { offset, bytes } => entry.file.write_at(*offset, bytes)?,
            LoggedChange::SetLen(len) => entry.file.set_len(*len)?,
            LoggedChange::Zero { offset, len } => entry.file.zero(*offset, *len)?,
            LoggedChange::Flush => {}
        }
        // The store logs the change; a second copy in the file's own log would double the memory.
        entry.file.clear_log();
        Ok(())
    }
}

impl Drop for StoredFile {
    fn drop(&mut self) {
        if !self.is_locked {
            return;
        }
        let mut state = self.store.state();
        let Some(entry) = state.files.get_mut(self.number) else { return };
        match self.used {
            FileLockMode::Read => entry.readers -= 1,
            FileLockMode::Write => entry.writers -= 1,
        }
    }
}

impl DiskFile for StoredFile {
    fn properties(&self) -> FileProperties {
        FileProperties {
            len: ImageFile::len(self).unwrap_or(0),
            is_direct: false,
            alignment: 1,
            is_block_device: false,
            can_punch_holes: true,
            id: Some(FileId {
                device: 0,
                inode: self.number as u64,
                created_unix_ns: self.number as u128 + 1,
            }),
        }
    }

    fn flush_failure(&self) -> Option<&FlushFailure> {
        Some(&self.flush_failure)
    }

    fn modified(&self) -> io::Result<FileTime> {
        let state = self.store.state();
        let entry = state.files.get(self.number).ok_or(io::ErrorKind::NotFound)?;
        Ok(FileTime { unix_s: i64::try_from(entry.modified_unix_s).unwrap_or(i64::MAX), ns: 0 })
    }

    fn set_modified(&self, time: FileTime) -> io::Result<()> {
        let mut state = self.store.state();
        if state.refuses_times {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let unix_s = u64::try_from(time.unix_s).unwrap_or(0);
        state.ops.push(StoreOp::SetModified(self.number, unix_s));
        let entry = state.files.get_mut(self.number).ok_or(io::ErrorKind::NotFound)?;
        entry.modified_unix_s = unix_s;
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_image_file(&self) -> &dyn ImageFile {
        self
    }
}

impl ImageFile for StoredFile {
    fn len(&self) -> Result<u64, FileError> {
        self.inspect(MemoryFile::len)
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), FileError> {
        self.inspect(|file| file.read_at(offset, bytes))
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        self.change(&LoggedChange::Write { offset, bytes: bytes.to_vec() })
    }

    fn set_len(&self, len: u64) -> Result<(), FileError> {
        self.change(&LoggedChange::SetLen(len))
    }

    fn zero(&self, offset: u64, len: u64) -> Result<(), FileError> {
        self.change(&LoggedChange::Zero { offset, len })
    }

    fn flush(&self) -> Result<(), FileError> {
        self.flush_failure.check()?;
        self.change(&LoggedChange::Flush).inspect_err(|error| {
            if let FileError::System(error) = error {
                self.flush_failure.record(error);
            }
        })
    }
}
