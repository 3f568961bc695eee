//! Reading and committing.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use redb::{Database, Durability, TableDefinition, TableError};
use suimon_ports::{StateStore, StoreError};

use crate::explain;
use crate::open::{self, contained};

/// Longest name of a table, in bytes.
pub const TABLE_BYTES_MAX: usize = 64;
/// Longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 1024;
/// Longest value, in bytes.
pub const VALUE_BYTES_MAX: usize = 4 << 20;
/// Most changes in one commit.
pub const CHANGES_MAX: usize = 65_536;

/// A [`StateStore`] in one file. Readers and one writer work side by side; a
/// second writer waits.
pub struct FileStore {
    file: PathBuf,
    // Closed before the lock below is released.
    database: Database,
    _lock: OwnedFd,
}

impl FileStore {
    /// Opens the store in `directory`, which is made if it does not exist.
    ///
    /// # Errors
    /// The directory cannot be used, another process has it, or the file in it
    /// is damaged; it is never replaced.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        let opened = open::open(directory)?;
        Ok(Self { file: opened.file, database: opened.database, _lock: opened.directory })
    }

    /// The store's file.
    pub fn path(&self) -> &Path {
        &self.file
    }

    fn explain(&self, error: impl Into<redb::Error>) -> StoreError {
        explain::transaction(&self.file, error)
    }

    fn scan_table(
        &self,
        table: &str,
        from: &str,
        limit: usize,
    ) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        let transaction = self.database.begin_read().map_err(|error| self.explain(error))?;
        let table = match transaction.open_table(definition(table)) {
            Ok(table) => table,
            Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
            Err(error) => return Err(self.explain(error)),
        };
        let range = table.range(from..).map_err(|error| self.explain(error))?;
        let mut entries = Vec::new();
        for entry in range.take(limit) {
            let (key, value) = entry.map_err(|error| self.explain(error))?;
            entries.push((key.value().to_owned(), value.value().to_vec()));
        }
        Ok(entries)
    }

    fn read_key(&self, table: &str, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let transaction = self.database.begin_read().map_err(|error| self.explain(error))?;
        let table = match transaction.open_table(definition(table)) {
            Ok(table) => table,
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            Err(error) => return Err(self.explain(error)),
        };
        let value = table.get(key).map_err(|error| self.explain(error))?;
        Ok(value.map(|value| value.value().to_vec()))
    }

    fn write(&self, changes: &[(&str, String, Option<Vec<u8>>)]) -> Result<(), StoreError> {
        let mut transaction = self.database.begin_write().map_err(|error| self.explain(error))?;
        transaction.set_durability(Durability::Immediate);
        // An early return drops the transaction, which takes everything back.
        for (table, key, value) in changes {
            let mut table =
                transaction.open_table(definition(table)).map_err(|error| self.explain(error))?;
            match value {
                Some(value) => table.insert(key.as_str(), value.as_slice()),
                None => table.remove(key.as_str()),
            }
            .map_err(|error| self.explain(error))?;
        }
        transaction.commit().map_err(|error| self.explain(error))
    }
}

impl StateStore for FileStore {
    fn read(&self, table: &str, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        contained(&self.file, || self.read_key(table, key))
    }

    fn scan(
        &self,
        table: &str,
        from: &str,
        limit: usize,
    ) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        contained(&self.file, || self.scan_table(table, from, limit))
    }

    /// Refuses, before anything is written, what is outside the bounds of this
    /// crate's constants. No change is a commit too, and costs nothing.
    fn commit(&self, changes: &[(&str, String, Option<Vec<u8>>)]) -> Result<(), StoreError> {
        check_bounds(changes)?;
        if changes.is_empty() {
            return Ok(());
        }
        contained(&self.file, || self.write(changes))
    }
}

fn definition(table: &str) -> TableDefinition<'_, &'static str, &'static [u8]> {
    TableDefinition::new(table)
}

fn check_bounds(changes: &[(&str, String, Option<Vec<u8>>)]) -> Result<(), StoreError> {
    let within = |what: &str, len: usize, max: usize| {
        if len <= max { Ok(()) } else { Err(explain::bound(what, len, max)) }
    };
    within("a number of changes", changes.len(), CHANGES_MAX)?;
    for (table, key, value) in changes {
        if table.is_empty() {
            return Err(StoreError { detail: "a table needs a name".to_owned() });
        }
        within("the length of a table's name", table.len(), TABLE_BYTES_MAX)?;
        within("the length of a key", key.len(), KEY_BYTES_MAX)?;
        within("the length of a value", value.as_ref().map_or(0, Vec::len), VALUE_BYTES_MAX)?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "file_store_tests.rs"]
mod tests;
