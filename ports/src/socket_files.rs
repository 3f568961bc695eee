//! The files of Unix sockets, which outlive the process that made them.

use std::io;
use std::path::{Path, PathBuf};

/// What tells a file from those that lay at its path before it or will after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    /// The file system.
    pub device: u64,
    /// The number in it, which is given out again after a file is deleted.
    pub inode: u64,
    /// When it was made, in nanoseconds since 1970-01-01 UTC, where the file
    /// system knows.
    pub made_unix_ns: Option<u64>,
}

/// A socket file that a process which has ended may have left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftSocket {
    /// Where it lies.
    pub path: PathBuf,
    /// Which file it is; `None` if the process ended before it could say.
    pub identity: Option<FileIdentity>,
    /// Nothing lay at the path at this time, in milliseconds since 1970-01-01
    /// UTC, and the socket was about to be made.
    pub absent_unix_ms: u64,
}

/// Looks at socket files and removes those that were left behind.
pub trait SocketFiles: Send + Sync {
    /// Which file lies at `path`, of whatever type; `None` if there is none that
    /// can be seen.
    fn identity(&self, path: &Path) -> Option<FileIdentity>;

    /// Removes the file if it is the one described: a socket on which nobody
    /// listens, with that identity or, where that is not known, owned by this
    /// user and not older than [`LeftSocket::absent_unix_ms`]. `Ok(false)` if it
    /// is gone or another.
    ///
    /// # Errors
    /// It is the one described and the host refuses.
    fn remove_left(&self, left: &LeftSocket) -> io::Result<bool>;
}
