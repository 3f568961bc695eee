//! Durable keys and values.

use thiserror::Error;

/// Why the store did not do what was asked.
#[derive(Debug, Error)]
#[error("state store: {detail}")]
pub struct StoreError {
    /// What failed, with the path, and what to do next.
    pub detail: String,
}

/// A small durable map with ordered keys, kept in tables. A batch is atomic and
/// durable when `commit` returns, whatever happens to the process or the host.
pub trait StateStore: Send + Sync {
    /// The value of a key.
    ///
    /// # Errors
    /// The store is damaged or unreadable.
    fn read(&self, table: &str, key: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Up to `limit` entries of a table with `key >= from`, ascending.
    ///
    /// # Errors
    /// The store is damaged or unreadable.
    fn scan(
        &self,
        table: &str,
        from: &str,
        limit: usize,
    ) -> Result<Vec<(String, Vec<u8>)>, StoreError>;

    /// Writes all changes or none: `(table, key, Some(value) | None to remove)`.
    ///
    /// # Errors
    /// Nothing was written.
    fn commit(&self, changes: &[(&str, String, Option<Vec<u8>>)]) -> Result<(), StoreError>;
}
