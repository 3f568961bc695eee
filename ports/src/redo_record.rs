//! Redo records: metadata changes of images that survive the process.

use std::io;

use suimon_image::{ImageIdentity, MetadataChange, RedoChanges};

/// Redo record of one open image: metadata changes stored so that they survive this process, but
/// not the host. After a crash of the host, data they refer to may be missing.
///
/// Changes are numbered consecutively since the image was opened.
pub trait RedoRecord: Send {
    /// Appends changes to the record. They survive this process once the call returns. Returns
    /// false, with none appended, if the record lacks room: the caller must first commit changes
    /// and remove them with [`RedoRecord::truncate_before`]. `file_len` is the file length in bytes
    /// that the changes require.
    ///
    /// # Errors
    /// Fails if the record cannot be written. None of the changes counts as recorded.
    fn append(&mut self, changes: &[MetadataChange], file_len: u64) -> io::Result<bool>;

    /// Returns the maximum number of changes that the record can contain, used room included.
    fn capacity_changes(&self) -> u64;

    /// Returns the number that the next appended change gets.
    fn next_change_number(&self) -> u64;

    /// Removes the changes before number `before`, which are committed to the file.
    ///
    /// # Errors
    /// Fails if the record cannot be written; the changes remain recorded.
    fn truncate_before(&mut self, before: u64) -> io::Result<()>;

    /// Removes all changes. The record accepts no further changes, and nothing will be redone.
    ///
    /// # Errors
    /// Fails if the record cannot be written; the changes may still be recorded.
    fn abandon(&mut self) -> io::Result<()>;

    /// Deletes the record of an image that was closed and has nothing to redo.
    ///
    /// # Errors
    /// Fails if the record cannot be deleted.
    fn remove(self: Box<Self>) -> io::Result<()>;
}

/// Redo records of a host's images.
pub trait RedoRecords: Send + Sync {
    /// Returns the changes that a killed process left uncommitted; `None` if there is nothing to
    /// redo. `key` identifies the image on this host: letters, digits and `-`.
    ///
    /// The image must be opened with [`RedoChanges::new_write_id`] as its new identity. That
    /// identity stays the same until [`RedoRecords::discard`], so that changes are not redone again
    /// over later ones.
    ///
    /// # Errors
    /// Fails if the record cannot be read or is damaged.
    fn load(&self, key: &str) -> io::Result<Option<RedoChanges>>;

    /// Deletes the record left by a killed process, whose changes are committed to the file or must
    /// not be applied. A missing record counts as success.
    ///
    /// # Errors
    /// Fails if the record cannot be deleted.
    fn discard(&self, key: &str) -> io::Result<()>;

    /// Returns the location of the record left by a killed process, for messages to operators.
    fn location(&self, key: &str) -> String;

    /// Starts the record of an open image, replacing a previous record. The changes of the previous
    /// record must be committed to the file.
    ///
    /// # Errors
    /// Fails if the record cannot be created.
    fn create(&self, key: &str, opened: ImageIdentity) -> io::Result<Box<dyn RedoRecord>>;
}
