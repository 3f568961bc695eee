//! Test double: state store in memory that can reject a commit or panic at one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use suimon_ports::{StateStore, StateStoreError, StateStoreErrorKind};

/// Failure at a commit, counted from 0 after arming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreFailure {
    /// The commit is rejected and writes nothing.
    Refuse(usize),
    /// This commit and every later one is rejected and writes nothing.
    RefuseFrom(usize),
    /// The process dies before the commit.
    CrashBefore(usize),
    /// The process dies after the commit.
    CrashAfter(usize),
}

/// State store in memory. Clones share their contents and armed failures.
#[derive(Clone, Default)]
pub struct MemoryStore {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    entries: BTreeMap<(String, String), Vec<u8>>,
    failure: Option<StoreFailure>,
    /// True while all commits fail because the disk is full.
    is_full: bool,
    /// Table whose changes are rejected.
    refused_table: Option<String>,
    commits: usize,
}

impl MemoryStore {
    /// Arms a failure. Commits are counted from now on.
    pub fn arm(&self, failure: StoreFailure) {
        let mut inner = self.lock();
        inner.failure = Some(failure);
        inner.commits = 0;
    }

    /// Refuses all commits because the disk is full, or accepts them again.
    pub fn set_full(&self, is_full: bool) {
        self.lock().is_full = is_full;
    }

    /// Rejects all commits that change this table; `None`: no commit.
    pub fn refuse_table(&self, table: Option<&str>) {
        self.lock().refused_table = table.map(str::to_owned);
    }

    /// Returns a copy of the contents without armed failures, as a process that starts later reads
    /// it.
    pub fn surviving(&self) -> Self {
        let inner = self.lock();
        let (entries, is_full) = (inner.entries.clone(), inner.is_full);
        Self { inner: Arc::new(Mutex::new(Inner { entries, is_full, ..Inner::default() })) }
    }

    /// Returns the number of commits since arming.
    pub fn commits(&self) -> usize {
        self.lock().commits
    }

    /// Returns the keys of a table.
    pub fn keys(&self, table: &str) -> Vec<String> {
        let inner = self.lock();
        inner.entries.keys().filter(|(t, _)| t == table).map(|(_, key)| key.clone()).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn full() -> StateStoreError {
    let detail = "the disk is full".to_owned();
    StateStoreError { kind: StateStoreErrorKind::Unwritable, detail }
}

impl StateStore for MemoryStore {
    fn read(&self, table: &str, key: &str) -> Result<Option<Vec<u8>>, StateStoreError> {
        Ok(self.lock().entries.get(&(table.to_owned(), key.to_owned())).cloned())
    }

    fn scan(
        &self,
        table: &str,
        from: &str,
        limit: usize,
    ) -> Result<Vec<(String, Vec<u8>)>, StateStoreError> {
        let inner = self.lock();
        let start = (table.to_owned(), from.to_owned());
        let entries = inner.entries.range(start..).take_while(|((t, _), _)| t == table);
        Ok(entries.take(limit).map(|((_, key), value)| (key.clone(), value.clone())).collect())
    }

    fn commit(&self, changes: &[(&str, String, Option<Vec<u8>>)]) -> Result<(), StateStoreError> {
        let mut inner = self.lock();
        let number = inner.commits;
        inner.commits += 1;
        let refused_table = inner.refused_table.as_deref();
        if inner.is_full || changes.iter().any(|(table, ..)| Some(*table) == refused_table) {
            return Err(full());
        }
        match inner.failure {
            Some(StoreFailure::Refuse(n)) if n == number => {
                return Err(full());
            }
            Some(StoreFailure::RefuseFrom(n)) if n <= number => {
                return Err(StateStoreError::new("the file is damaged"));
            }
            Some(StoreFailure::CrashBefore(n)) if n <= number => {
                panic!("crash before commit {number}")
            }
            Some(StoreFailure::CrashAfter(n)) if n < number => panic!("dead since commit {n}"),
            _ => {}
        }
        for (table, key, value) in changes {
            let key = ((*table).to_owned(), key.clone());
            match value {
                Some(value) => inner.entries.insert(key, value.clone()),
                None => inner.entries.remove(&key),
            };
        }
        if inner.failure == Some(StoreFailure::CrashAfter(number)) {
            panic!("crash after commit {number}");
        }
        Ok(())
    }
}
