//! Durable key-value store of the daemon's state.

use thiserror::Error;

/// Failure of the state store.
#[derive(Debug, Error)]
#[error("state store: {detail}")]
pub struct StoreError {
    /// Failure, naming the path, and what to do next.
    pub detail: String,
}

/// Small durable map with ordered keys, divided into tables. A commit is atomic, and durable when
/// `commit` returns, across crashes of the process and of the host.
pub trait StateStore: Send + Sync {
    /// Returns the value of a key.
    ///
    /// # Errors
    /// Fails if the store is damaged or unreadable.
    fn read(&self, table: &str, key: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Returns at most `limit` entries of a table with `key >= from`, in ascending order.
    ///
    /// # Errors
    /// Fails if the store is damaged or unreadable.
    fn scan(
        &self,
        table: &str,
        from: &str,
        limit: usize,
    ) -> Result<Vec<(String, Vec<u8>)>, StoreError>;

    /// Applies all changes or none: `(table, key, Some(value) | None to remove)`.
    ///
    /// # Errors
    /// Fails with nothing written.
    fn commit(&self, changes: &[(&str, String, Option<Vec<u8>>)]) -> Result<(), StoreError>;
}
