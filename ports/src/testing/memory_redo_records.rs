//! In-memory redo records, which survive the simulated process that writes them.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use suimon_image::{ImageIdentity, MetadataChange, RedoChanges};

use crate::{RedoRecord, RedoRecords};

/// Default capacity of a record, in changes.
const ROOM: usize = 1024;

#[derive(Debug, Default)]
struct SharedRecord {
    first: u64,
    changes: Vec<MetadataChange>,
    opened: ImageIdentity,
    redone_as: [u8; 16],
    is_abandoned: bool,
}

/// Redo records of a host. Clones share the records.
#[derive(Clone, Debug)]
pub struct MemoryRedoRecords {
    capacity: usize,
    by_key: Arc<Mutex<BTreeMap<String, SharedRecord>>>,
    /// Number of writes that succeed before one fails; `None`: all succeed.
    until_failure: Arc<Mutex<Option<u64>>>,
}

impl Default for MemoryRedoRecords {
    fn default() -> Self {
        Self::with_capacity(ROOM)
    }
}

impl MemoryRedoRecords {
    /// Returns an empty set of records, each with a capacity of `capacity` changes.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self { capacity, by_key: Arc::default(), until_failure: Arc::default() }
    }

    /// Makes the write after `writes` successful ones fail.
    pub fn fail_after_writes(&self, writes: u64) {
        *self.until_failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(writes);
    }

    /// Returns the number of records.
    #[must_use]
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    /// Returns true if the record of this key was abandoned.
    #[must_use]
    pub fn is_abandoned(&self, key: &str) -> bool {
        self.lock().get(key).is_some_and(|record| record.is_abandoned)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, SharedRecord>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RedoRecords for MemoryRedoRecords {
    fn load(&self, key: &str) -> io::Result<Option<RedoChanges>> {
        let mut records = self.lock();
        let number = records.len() as u8;
        let Some(record) = records.get_mut(key).filter(|record| !record.changes.is_empty()) else {
            return Ok(None);
        };
        if record.redone_as == [0; 16] {
            record.redone_as = [0x70 | number; 16];
        }
        let (opened, changes) = (record.opened, record.changes.clone());
        Ok(Some(RedoChanges { identity_at_open: opened, changes, new_write_id: record.redone_as }))
    }

    fn discard(&self, key: &str) -> io::Result<()> {
        self.lock().remove(key);
        Ok(())
    }

    fn location(&self, key: &str) -> String {
        format!("memory/{key}")
    }

    fn create(&self, key: &str, opened: ImageIdentity) -> io::Result<Box<dyn RedoRecord>> {
        self.lock().insert(key.to_owned(), SharedRecord { opened, ..SharedRecord::default() });
        Ok(Box::new(MemoryRecord { records: self.clone(), key: key.to_owned() }))
    }
}

struct MemoryRecord {
    records: MemoryRedoRecords,
    key: String,
}

impl MemoryRecord {
    /// Counts a write. Returns an error if it is the one selected by
    /// [`MemoryRedoRecords::fail_after_writes`].
    fn fail(&self) -> io::Result<()> {
        let mut remaining =
            self.records.until_failure.lock().unwrap_or_else(PoisonError::into_inner);
        match *remaining {
            Some(0) => {
                *remaining = None;
                Err(io::Error::other("the record cannot be written"))
            }
            _ => {
                *remaining = remaining.map(|remaining| remaining - 1);
                Ok(())
            }
        }
    }

    fn with<T>(&self, run: impl FnOnce(&mut SharedRecord) -> T) -> io::Result<T> {
        self.records.lock().get_mut(&self.key).map(run).ok_or(io::ErrorKind::NotFound.into())
    }
}

impl RedoRecord for MemoryRecord {
    fn append(&mut self, changes: &[MetadataChange], file_len: u64) -> io::Result<bool> {
        let capacity = self.records.capacity;
        self.fail()?;
        self.with(|record| {
            assert!(!record.is_abandoned, "an abandoned record accepts no changes");
            if record.changes.len() + changes.len() > capacity {
                return false;
            }
            record.changes.extend_from_slice(changes);
            record.opened.file_len = record.opened.file_len.max(file_len);
            true
        })
    }

    fn capacity_changes(&self) -> u64 {
        self.records.capacity as u64
    }

    fn next_change_number(&self) -> u64 {
        self.with(|record| record.first + record.changes.len() as u64).unwrap_or_default()
    }

    fn truncate_before(&mut self, before: u64) -> io::Result<()> {
        self.fail()?;
        self.with(|record| {
            let count = before.saturating_sub(record.first).min(record.changes.len() as u64);
            record.changes.drain(..count as usize);
            record.first += count;
        })
    }

    fn abandon(&mut self) -> io::Result<()> {
        self.fail()?;
        self.with(|record| {
            record.changes.clear();
            record.is_abandoned = true;
        })
    }

    fn remove(self: Box<Self>) -> io::Result<()> {
        self.records.discard(&self.key)
    }
}
