//! [`FileStore`]: reads and commits of the embedded store.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use redb::{Database, Durability, TableDefinition, TableError};
use suimon_ports::{StateStore, StateStoreError, StateStoreErrorKind};

use crate::STATE_FILE_NAME;
use crate::errors::{self, TransactionError};
use crate::open::{self, catch_panic};

/// Maximum length of a table's name in bytes.
pub const TABLE_NAME_BYTES_MAX: usize = 64;
/// Maximum length of a key in bytes.
pub const KEY_BYTES_MAX: usize = 1024;
/// Maximum length of a value in bytes.
pub const VALUE_BYTES_MAX: usize = 4 << 20;
/// Maximum number of changes in one commit.
pub const CHANGES_MAX: usize = 65_536;

/// Minimum time between attempts to open an unwritable file for writing. Each attempt reads the
/// whole file.
const WRITABLE_RETRY: Duration = Duration::from_secs(1);

/// Implementation of [`StateStore`] in one file. Reads and one write run concurrently; a second
/// write blocks.
///
/// redb rejects further use of a file once a read or write of it has failed, for example because
/// the disk is full. The store then closes the file; the next call reopens it.
///
/// If the file cannot be opened for writing, a copy of it in memory serves reads. Each commit tries
/// to open the file for writing again, at most once per second, and fails if that is not possible.
pub struct FileStore {
    file: PathBuf,
    // Dropped before the lock below.
    state: RwLock<State>,
    /// Previous values of the keys in failed commits. A disk that failed on the last write of a
    /// commit may have stored the commit nevertheless. Entries are added while the state is locked,
    /// so that the call that reopens the file reverts them.
    replaced: Mutex<Vec<Replaced>>,
    _lock: OwnedFd,
}

struct State {
    /// `None` after a read or write has failed.
    database: Option<Database>,
    /// Set if `database` is a copy in memory because the file cannot be written.
    unwritable: Option<Unwritable>,
    /// Number of times the file was opened. A call whose failure concerns an earlier opening must
    /// not close the file.
    openings: u64,
}

/// Set while the file cannot be written: time of the last attempt to open it for writing.
struct Unwritable {
    error: StateStoreError,
    last_attempt_at: Instant,
}

/// Table, key, and previous value (`None` if the key did not exist).
type Replaced = (String, String, Option<Vec<u8>>);

impl FileStore {
    /// Opens the store in `directory`, which is created if it does not exist. If its file exists
    /// but cannot be written, because the file system is full or read-only, the store is opened for
    /// reading; commits fail until the file can be written.
    ///
    /// # Errors
    /// The directory cannot be used, another process uses it, or the file in it is damaged; it is
    /// never replaced.
    pub fn open(directory: &Path) -> Result<Self, StateStoreError> {
        let located = open::lock_and_create(directory)?;
        let store = Self {
            file: located.file,
            state: RwLock::new(State { database: None, unwritable: None, openings: 0 }),
            replaced: Mutex::default(),
            _lock: located.directory_lock,
        };
        drop(store.opened()?);
        Ok(store)
    }

    /// Returns true if `directory` has the file of a store.
    pub fn exists_in(directory: &Path) -> bool {
        directory.join(STATE_FILE_NAME).exists()
    }

    /// Returns the path of the store's file.
    pub fn path(&self) -> &Path {
        &self.file
    }

    /// Executes `work` with the open file. `work` appends the previous values of the keys that it
    /// changes to `replaced`, so that the change can be reverted if it fails.
    fn work<T>(
        &self,
        work: impl FnOnce(&Database, &mut Vec<Replaced>) -> Result<T, TransactionError>,
    ) -> Result<T, StateStoreError> {
        let mut replaced = Vec::new();
        let mut is_over = false;
        let state = self.opened()?;
        let database =
            state.database.as_ref().ok_or_else(|| errors::concurrent_failure_error(&self.file))?;
        let result = catch_panic(&self.file, || {
            work(database, &mut replaced).map_err(|error| {
                is_over = error.requires_reopening();
                errors::transaction_error(&self.file, error)
            })
        });
        if is_over {
            self.replaced().extend(replaced);
            let failed = state.openings;
            drop(state);
            self.close(failed);
        }
        result
    }

    /// Closes the file, unless it was reopened since the opening with the number `failed`.
    fn close(&self, failed: u64) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.openings == failed {
            state.database = None;
        }
    }

    /// Closes the file as after a failed read or write.
    #[cfg(test)]
    pub(crate) fn close_for_test(&self) {
        let openings = self.state.read().unwrap_or_else(PoisonError::into_inner).openings;
        self.close(openings);
    }

    fn replaced(&self) -> MutexGuard<'_, Vec<Replaced>> {
        self.replaced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state after opening its file if necessary. Another thread's failure may have
    /// closed the file again by then.
    fn opened(&self) -> Result<RwLockReadGuard<'_, State>, StateStoreError> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        if state.database.is_some() {
            return Ok(state);
        }
        drop(state);
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.database.is_none() {
            match self.open_writable(&mut state) {
                Err(error) if error.kind == StateStoreErrorKind::Unwritable => {
                    state.database = Some(self.reverted(open::open_copy)?);
                    state.unwritable = Some(Unwritable { error, last_attempt_at: Instant::now() });
                    state.openings += 1;
                }
                result => result?,
            }
        }
        drop(state);
        Ok(self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Opens the file for writing and reverts failed commits. Does not change `state` on errors.
    fn open_writable(&self, state: &mut State) -> Result<(), StateStoreError> {
        let database = self.reverted(open::open_verified)?;
        self.replaced().clear();
        *state = State {
            database: Some(database),
            unwritable: None,
            openings: state.openings.wrapping_add(1),
        };
        Ok(())
    }

    /// Opens the file with `open` and reverts commits that were reported as failed but may have
    /// been stored.
    fn reverted(
        &self,
        open: impl FnOnce(&Path) -> Result<Database, StateStoreError>,
    ) -> Result<Database, StateStoreError> {
        let replaced = self.replaced();
        catch_panic(&self.file, || {
            let database = open(&self.file)?;
            revert(&database, &replaced)
                .map_err(|error| errors::transaction_error(&self.file, error))?;
            Ok(database)
        })
    }

    /// Opens the file for writing if a copy in memory serves reads.
    ///
    /// # Errors
    /// The file still cannot be written, or the last attempt was less than [`WRITABLE_RETRY`] ago.
    fn ensure_writable(&self) -> Result<(), StateStoreError> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        match &state.unwritable {
            None => return Ok(()),
            Some(last) if last.last_attempt_at.elapsed() < WRITABLE_RETRY => {
                return Err(last.error.clone());
            }
            Some(_) => drop(state),
        }
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.unwritable.is_none() {
            return Ok(());
        }
        self.open_writable(&mut state).inspect_err(|error| {
            state.unwritable =
                Some(Unwritable { error: error.clone(), last_attempt_at: Instant::now() });
        })
    }
}

fn scan_table(
    database: &Database,
    table: &str,
    start: &str,
    limit: usize,
) -> Result<Vec<(String, Vec<u8>)>, TransactionError> {
    let transaction = database.begin_read()?;
    let table = match transaction.open_table(definition(table)) {
        Ok(table) => table,
        Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut entries = Vec::new();
    for entry in table.range(start..)?.take(limit) {
        let (key, value) = entry?;
        entries.push((key.value().to_owned(), value.value().to_vec()));
    }
    Ok(entries)
}

fn read_key(
    database: &Database,
    table: &str,
    key: &str,
) -> Result<Option<Vec<u8>>, TransactionError> {
    let transaction = database.begin_read()?;
    let table = match transaction.open_table(definition(table)) {
        Ok(table) => table,
        Err(TableError::TableDoesNotExist(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    Ok(table.get(key)?.map(|value| value.value().to_vec()))
}

fn write<'c>(
    database: &Database,
    changes: impl IntoIterator<Item = (&'c str, &'c str, Option<&'c [u8]>)>,
    replaced: &mut Vec<Replaced>,
) -> Result<(), TransactionError> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate);
    // An early return drops the transaction, which reverts it.
    for (name, key, value) in changes {
        let mut table = transaction.open_table(definition(name))?;
        let before = match value {
            Some(value) => table.insert(key, value),
            None => table.remove(key),
        }?;
        let before = before.map(|value| value.value().to_vec());
        replaced.push((name.to_owned(), key.to_owned(), before));
    }
    Ok(transaction.commit()?)
}

/// Reverts a commit that was reported as failed, if it was stored. Writes nothing otherwise, so
/// that a store on a full disk stays readable.
fn revert(database: &Database, replaced: &[Replaced]) -> Result<(), TransactionError> {
    let mut is_there = false;
    // The first entry of a key that was changed twice has its original value.
    let mut first = BTreeMap::new();
    for (table, key, value) in replaced {
        first.entry((table.as_str(), key.as_str())).or_insert(value.as_deref());
    }
    for ((table, key), value) in &first {
        is_there |= read_key(database, table, key)?.as_deref() != *value;
    }
    if is_there {
        let before = first.into_iter().map(|((table, key), value)| (table, key, value));
        write(database, before, &mut Vec::new())?;
    }
    Ok(())
}

impl StateStore for FileStore {
    fn read(&self, table: &str, key: &str) -> Result<Option<Vec<u8>>, StateStoreError> {
        self.work(|database, _| read_key(database, table, key))
    }

    fn scan(
        &self,
        table: &str,
        start: &str,
        limit: usize,
    ) -> Result<Vec<(String, Vec<u8>)>, StateStoreError> {
        self.work(|database, _| scan_table(database, table, start, limit))
    }

    /// Checks the limits of this crate before anything is written. An empty commit succeeds without
    /// a write.
    fn commit(&self, changes: &[(&str, String, Option<Vec<u8>>)]) -> Result<(), StateStoreError> {
        check_bounds(changes)?;
        if changes.is_empty() {
            return Ok(());
        }
        self.ensure_writable()?;
        let entries =
            changes.iter().map(|(table, key, value)| (*table, key.as_str(), value.as_deref()));
        self.work(|database, replaced| write(database, entries, replaced))
    }
}

fn definition(table: &str) -> TableDefinition<'_, &'static str, &'static [u8]> {
    TableDefinition::new(table)
}

fn check_bounds(changes: &[(&str, String, Option<Vec<u8>>)]) -> Result<(), StateStoreError> {
    let check_bound = |quantity: &str, len: usize, max: usize| {
        if len <= max { Ok(()) } else { Err(errors::limit_error(quantity, len, max)) }
    };
    check_bound("a number of changes", changes.len(), CHANGES_MAX)?;
    for (table, key, value) in changes {
        if table.is_empty() {
            return Err(StateStoreError::new("the name of a table is empty"));
        }
        check_bound("the length of a table's name", table.len(), TABLE_NAME_BYTES_MAX)?;
        check_bound("the length of a key", key.len(), KEY_BYTES_MAX)?;
        check_bound("the length of a value", value.as_ref().map_or(0, Vec::len), VALUE_BYTES_MAX)?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "file_store_tests.rs"]
mod tests;
