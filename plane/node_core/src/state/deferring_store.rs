//! State store that a daemon can start with although it cannot be written.
//!
//! While a node starts, changes that the store refuses because it is full or read-only are kept in
//! memory: records of devices, sockets and settings that the daemon has made or changed anyway.
//! They are part of all reads, and are written with the next commit that succeeds. After the
//! start, such commits fail: changes of desired state are refused.
//!
//! Changes kept in memory are lost if the daemon ends before they are written. The next daemon then
//! does not remove what it finds no record of, for example a TAP of a NIC that was deleted
//! meanwhile.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use suimon_ports::{StateStore, StateStoreError, StateStoreErrorKind};

/// Maximum number of changes kept in memory. Reaching it fails the start.
pub const DEFERRED_MAX: usize = 16_384;

/// Changes by table and key. The value is the entry's new contents; `None` removes the entry.
type Changes = BTreeMap<(String, String), Option<Vec<u8>>>;

/// State store that writes in a thread of its own; see the module documentation.
pub struct DeferringStore {
    store: Arc<dyn StateStore>,
    /// Held during a commit, so that deferred changes are written before later ones.
    writer: Mutex<()>,
    /// Not held while the store is read or written.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Thread that starts the node. Only its changes are deferred.
    starting: Option<ThreadId>,
    deferred: Changes,
    /// Error of the last commit, if the store could not be written.
    failure: Option<StateStoreError>,
}

impl State {
    /// Returns true if the calling thread starts the node.
    fn is_starting(&self) -> bool {
        self.starting == Some(std::thread::current().id())
    }

    /// Returns the error of the last commit if the calling thread starts the node.
    fn failure_at_start(&self) -> Option<StateStoreError> {
        self.failure.clone().filter(|_| self.is_starting())
    }
}

impl DeferringStore {
    /// Creates a store on top of `store`. Changes are not deferred yet.
    pub fn new(store: Arc<dyn StateStore>) -> Self {
        Self { store, writer: Mutex::default(), state: Mutex::default() }
    }

    /// Defers changes of the calling thread from now on if they cannot be written.
    pub fn begin_start_up(&self) {
        self.state().starting = Some(std::thread::current().id());
    }

    /// Ends the deferral that [`Self::begin_start_up`] began. Later commits that fail are not
    /// deferred.
    pub fn end_start_up(&self) {
        self.state().starting = None;
    }

    /// Returns why the last commit could not be written; `None` if it was written.
    pub fn failure(&self) -> Option<StateStoreError> {
        self.state().failure.clone()
    }

    /// Tries to write deferred changes.
    ///
    /// # Errors
    /// They stay in memory.
    pub fn write_deferred(&self) -> Result<(), StateStoreError> {
        self.commit(&[])
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes deferred changes, followed by `changes`, in one commit. Returns false without a
    /// commit if there is nothing to write.
    fn write(&self, changes: &[(&str, String, Option<Vec<u8>>)]) -> Result<bool, StateStoreError> {
        let mut pending = self.state().deferred.clone();
        if pending.is_empty() {
            self.store.commit(changes)?;
            return Ok(!changes.is_empty());
        }
        add(&mut pending, changes);
        let pending: Vec<_> = pending
            .iter()
            .map(|((table, key), value)| (table.as_str(), key.clone(), value.clone()))
            .collect();
        self.store.commit(&pending)?;
        self.state().deferred.clear();
        Ok(true)
    }
}

impl StateStore for DeferringStore {
    fn read(&self, table: &str, key: &str) -> Result<Option<Vec<u8>>, StateStoreError> {
        let deferred = self.state().deferred.get(&(table.to_owned(), key.to_owned())).cloned();
        deferred.map_or_else(|| self.store.read(table, key), Ok)
    }

    fn scan(
        &self,
        table: &str,
        first_key: &str,
        limit: usize,
    ) -> Result<Vec<(String, Vec<u8>)>, StateStoreError> {
        let start = (table.to_owned(), first_key.to_owned());
        let deferred: Vec<(String, Option<Vec<u8>>)> = self
            .state()
            .deferred
            .range(start..)
            .take_while(|((name, _), _)| name == table)
            .map(|((_, key), value)| (key.clone(), value.clone()))
            .collect();
        // As many more as may be removed.
        let stored = self.store.scan(table, first_key, limit.saturating_add(deferred.len()))?;
        if deferred.is_empty() {
            return Ok(stored);
        }
        let mut entries: BTreeMap<_, _> = stored.into_iter().collect();
        for (key, value) in deferred {
            match value {
                Some(value) => entries.insert(key, value),
                None => entries.remove(&key),
            };
        }
        Ok(entries.into_iter().take(limit).collect())
    }

    fn commit(&self, changes: &[(&str, String, Option<Vec<u8>>)]) -> Result<(), StateStoreError> {
        let _writing = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        // While a node starts, a store that was unwritable is not tried again.
        let earlier_failure = self.state().failure_at_start().filter(|_| !changes.is_empty());
        let result = earlier_failure.map_or_else(|| self.write(changes), Err);
        let mut state = self.state();
        match result {
            Ok(is_written) => {
                if is_written {
                    state.failure = None;
                }
                Ok(())
            }
            Err(error) if error.kind == StateStoreErrorKind::Unwritable => {
                state.failure = Some(error.clone());
                if !state.is_starting() || state.deferred.len() + changes.len() > DEFERRED_MAX {
                    return Err(error);
                }
                add(&mut state.deferred, changes);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

fn add(pending: &mut Changes, changes: &[(&str, String, Option<Vec<u8>>)]) {
    for (table, key, value) in changes {
        pending.insert(((*table).to_owned(), key.clone()), value.clone());
    }
}

#[cfg(test)]
#[path = "deferring_store_tests.rs"]
mod tests;
