//! Records of image metadata that outlive a process.

use std::io;

use suimon_image::{MetadataChange, OpenedImage, Redo};

/// Keeps the changes of one image's metadata where they outlive this process, but not the host: what
/// they name may be missing after a crash of the host.
///
/// Numbers count all changes that were ever kept of the image since it was opened.
pub trait RedoRecord: Send {
    /// Keeps changes behind those that are kept. They outlive this process when this returns. If
    /// there is no room for all of them, none is kept and `false` is returned: changes must be
    /// committed and forgotten first. `file_len` is how long the file must be for what they name.
    ///
    /// # Errors
    /// The record cannot be written. None of the changes may be relied on.
    fn keep(&mut self, changes: &[MetadataChange], file_len: u64) -> io::Result<bool>;

    /// How many changes it can keep at a time.
    fn room(&self) -> u64;

    /// The number of the next change.
    fn next(&self) -> u64;

    /// Forgets the changes before a number, which are in the file.
    ///
    /// # Errors
    /// The record cannot be written; the changes are still kept.
    fn forget(&mut self, before: u64) -> io::Result<()>;

    /// Forgets all changes. Nothing can be kept any more, and nothing will be redone.
    ///
    /// # Errors
    /// The record cannot be written; the changes may still be kept.
    fn abandon(&mut self) -> io::Result<()>;

    /// Removes the record. The image was closed and needs nothing to be redone.
    ///
    /// # Errors
    /// It cannot be removed.
    fn remove(self: Box<Self>) -> io::Result<()>;
}

/// The records of a host's images.
pub trait RedoRecords: Send + Sync {
    /// Returns what a killed process left of an image; `None` if there is nothing to redo. `key`
    /// tells the image from others of this host: letters, digits and `-`.
    ///
    /// The image has to be opened with `redone_as` as its new identity, which is the same until
    /// [`RedoRecords::discard`], so that changes which were redone are not redone over later ones.
    ///
    /// # Errors
    /// The record cannot be read, or is damaged.
    fn load(&self, key: &str) -> io::Result<Option<Redo>>;

    /// Removes what a killed process left of an image: it is in the file, or not wanted. Nothing
    /// happens if there is nothing.
    ///
    /// # Errors
    /// It cannot be removed.
    fn discard(&self, key: &str) -> io::Result<()>;

    /// Where what a killed process left of an image is, for people who want it removed.
    fn place(&self, key: &str) -> String;

    /// Begins the record of an image that is open, in place of the one before. What that one kept
    /// must be in the file.
    ///
    /// # Errors
    /// The record cannot be made.
    fn begin(&self, key: &str, opened: OpenedImage) -> io::Result<Box<dyn RedoRecord>>;
}
