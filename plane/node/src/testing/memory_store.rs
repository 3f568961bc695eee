//! A store in memory that can refuse a commit or take the process down with it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use suimon_ports::{StateStore, StoreError};

/// What happens at a commit, counted from 0 after arming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreFailure {
    /// It is refused; nothing is written.
    Refuse(usize),
    /// This and every later one is refused.
    RefuseFrom(usize),
    /// The process dies before anything is written.
    CrashBefore(usize),
    /// The process dies when everything is written.
    CrashAfter(usize),
}

/// Clones are the same store.
#[derive(Clone, Default)]
pub(crate) struct MemoryStore {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    entries: BTreeMap<(String, String), Vec<u8>>,
    failure: Option<StoreFailure>,
    commits: usize,
}

impl MemoryStore {
    pub(crate) fn arm(&self, failure: StoreFailure) {
        let mut inner = self.lock();
        inner.failure = Some(failure);
        inner.commits = 0;
    }

    /// What a new process finds.
    pub(crate) fn surviving(&self) -> Self {
        let entries = self.lock().entries.clone();
        Self { inner: Arc::new(Mutex::new(Inner { entries, ..Inner::default() })) }
    }

    /// How often something was written since it was armed.
    pub(crate) fn commits(&self) -> usize {
        self.lock().commits
    }

    pub(crate) fn keys(&self, table: &str) -> Vec<String> {
        let inner = self.lock();
        inner.entries.keys().filter(|(t, _)| t == table).map(|(_, key)| key.clone()).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StateStore for MemoryStore {
    fn read(&self, table: &str, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.lock().entries.get(&(table.to_owned(), key.to_owned())).cloned())
    }

    fn scan(
        &self,
        table: &str,
        from: &str,
        limit: usize,
    ) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        let inner = self.lock();
        let start = (table.to_owned(), from.to_owned());
        let entries = inner.entries.range(start..).take_while(|((t, _), _)| t == table);
        Ok(entries.take(limit).map(|((_, key), value)| (key.clone(), value.clone())).collect())
    }

    fn commit(&self, changes: &[(&str, String, Option<Vec<u8>>)]) -> Result<(), StoreError> {
        let mut inner = self.lock();
        let nth = inner.commits;
        inner.commits += 1;
        match inner.failure {
            Some(StoreFailure::Refuse(n)) if n == nth => {
                return Err(StoreError { detail: "the disk is full".to_owned() });
            }
            Some(StoreFailure::RefuseFrom(n)) if n <= nth => {
                return Err(StoreError { detail: "the disk is full".to_owned() });
            }
            Some(StoreFailure::CrashBefore(n)) if n <= nth => panic!("crash before commit {nth}"),
            Some(StoreFailure::CrashAfter(n)) if n < nth => panic!("dead since commit {n}"),
            _ => {}
        }
        for (table, key, value) in changes {
            let key = ((*table).to_owned(), key.clone());
            match value {
                Some(value) => inner.entries.insert(key, value.clone()),
                None => inner.entries.remove(&key),
            };
        }
        if inner.failure == Some(StoreFailure::CrashAfter(nth)) {
            panic!("crash after commit {nth}");
        }
        Ok(())
    }
}
