//! Files of Unix sockets, which persist after the process that created them.

use std::io;
use std::path::{Path, PathBuf};

/// Identity of a file, distinguishing it from earlier and later files at its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    /// Device number of the file system.
    pub device: u64,
    /// Inode number; may be reused after the file is deleted.
    pub inode: u64,
    /// Creation time in nanoseconds since 1970-01-01 UTC; `None` if the file system does not record
    /// it.
    pub created_unix_ns: Option<u64>,
}

/// Socket file that a process which has ended may have left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaleSocket {
    /// Path of the socket file.
    pub path: PathBuf,
    /// Identity of the file; `None` if the process ended before recording it.
    pub identity: Option<FileIdentity>,
    /// Time in milliseconds since 1970-01-01 UTC, shortly before the socket was created, at which
    /// no file existed at the path.
    pub absent_unix_ms: u64,
}

/// Inspects socket files and removes stale ones.
pub trait SocketFiles: Send + Sync {
    /// Returns the identity of the file at `path`, of any type; `None` if none is visible.
    fn identity(&self, path: &Path) -> Option<FileIdentity>;

    /// Removes the file if it is the stale socket described: a socket without a listener and with
    /// the recorded identity or, without a recorded identity, owned by this user and not older than
    /// [`StaleSocket::absent_unix_ms`]. Returns `Ok(false)` if the file does not exist or is
    /// another one.
    ///
    /// # Errors
    /// Fails if the host rejects the removal.
    fn remove_stale(&self, stale: &StaleSocket) -> io::Result<bool>;
}
