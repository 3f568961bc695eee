//! Durable key-value store of the daemon's state.

use thiserror::Error;

/// Kind of a [`StateStoreError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateStoreErrorKind {
    /// The store cannot be written at present: the file system is full, over quota or read-only, or
    /// permission is missing. Stored values can be read.
    Unwritable,
    /// Any other failure, for example damage.
    Other,
}

/// Failure of the state store.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("state directory: {detail}")]
pub struct StateStoreError {
    /// Kind of the failure.
    pub kind: StateStoreErrorKind,
    /// Failure, naming the path, and what to do next.
    pub detail: String,
}

impl StateStoreError {
    /// Creates an error of kind [`StateStoreErrorKind::Other`].
    pub fn new(detail: impl Into<String>) -> Self {
        Self { kind: StateStoreErrorKind::Other, detail: detail.into() }
    }
}

/// Small durable map with ordered keys, divided into tables. A commit is atomic, and durable when
/// `commit` returns, across crashes of the process and of the host.
pub trait StateStore: Send + Sync {
    /// Returns the value of a key.
    ///
    /// # Errors
    /// Fails if the store is damaged or unreadable.
    fn read(&self, table: &str, key: &str) -> Result<Option<Vec<u8>>, StateStoreError>;

    /// Returns at most `limit` entries of a table with `key >= start`, in ascending order of keys.
    ///
    /// # Errors
    /// Fails if the store is damaged or unreadable.
    fn scan(
        &self,
        table: &str,
        start: &str,
        limit: usize,
    ) -> Result<Vec<(String, Vec<u8>)>, StateStoreError>;

    /// Applies all changes or none: `(table, key, Some(value) | None to remove)`.
    ///
    /// # Errors
    /// Fails with nothing written.
    fn commit(&self, changes: &[(&str, String, Option<Vec<u8>>)]) -> Result<(), StateStoreError>;
}
