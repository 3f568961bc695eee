//! Socket files on this host: identification, and removal of stale ones.

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::UNIX_EPOCH;

use suimon_ports::{FileIdentity, SocketFiles, StaleSocket};

/// Socket files of this host.
pub struct HostSocketFiles;

/// Result of connecting to a socket file.
pub(crate) enum SocketState {
    /// A process listens, possibly with a full backlog.
    Active,
    /// No process listens: the file is stale.
    Stale,
}

impl SocketFiles for HostSocketFiles {
    fn identity(&self, path: &Path) -> Option<FileIdentity> {
        std::fs::symlink_metadata(path).ok().map(|metadata| identity(&metadata))
    }

    fn remove_stale(&self, socket: &StaleSocket) -> io::Result<bool> {
        let metadata = match std::fs::symlink_metadata(&socket.path) {
            Ok(metadata) => metadata,
            Err(error) if is_absence(&error) => return Ok(false),
            Err(error) => return Err(error),
        };
        if !metadata.file_type().is_socket() || !is_it(socket, &metadata) {
            return Ok(false);
        }
        match probe_socket(&socket.path)? {
            SocketState::Active => Ok(false),
            SocketState::Stale => std::fs::remove_file(&socket.path).map(|()| true),
        }
    }
}

/// Returns the identity of a file.
pub(crate) fn identity(metadata: &std::fs::Metadata) -> FileIdentity {
    FileIdentity {
        device: metadata.dev(),
        inode: metadata.ino(),
        created_unix_ns: created_unix_ns(metadata),
    }
}

/// Checks whether a process listens on the socket at `path`.
///
/// # Errors
/// The check is not possible.
pub(crate) fn probe_socket(path: &Path) -> io::Result<SocketState> {
    match UnixStream::connect(path) {
        Ok(_) => Ok(SocketState::Active),
        Err(error) => match error.kind() {
            io::ErrorKind::ConnectionRefused => Ok(SocketState::Stale),
            io::ErrorKind::WouldBlock => Ok(SocketState::Active),
            _ => Err(error),
        },
    }
}

fn is_it(socket: &StaleSocket, metadata: &std::fs::Metadata) -> bool {
    if let Some(recorded_identity) = socket.identity {
        return recorded_identity == identity(metadata);
    }
    let absent_ns = socket.absent_unix_ms.saturating_mul(1_000_000);
    // The creation time may be that of the file system's last clock tick, at most 10 ms earlier.
    let is_new = created_unix_ns(metadata)
        .is_some_and(|created_ns| created_ns.saturating_add(10_000_000) >= absent_ns);
    is_new && metadata.uid() == rustix::process::geteuid().as_raw()
}

fn created_unix_ns(metadata: &std::fs::Metadata) -> Option<u64> {
    let created = metadata.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(created.as_nanos()).ok()
}

/// Returns true if the file or its directory does not exist.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::time::{Duration, SystemTime};

    use super::*;

    fn now_ms() -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        u64::try_from(since.as_millis()).unwrap()
    }

    #[test]
    fn only_the_recorded_file_is_removed_and_only_without_a_listener() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.sock");
        let mut socket =
            StaleSocket { path: path.clone(), identity: None, absent_unix_ms: now_ms() };
        assert!(!HostSocketFiles.remove_stale(&socket).unwrap(), "nothing is there");
        let listener = UnixListener::bind(&path).unwrap();
        socket.identity = HostSocketFiles.identity(&path);
        assert!(!HostSocketFiles.remove_stale(&socket).unwrap(), "somebody listens");
        drop(listener);
        // Replaced by a stale file of the same type and user.
        std::fs::remove_file(&path).unwrap();
        let others = directory.path().join("others.sock");
        drop(UnixListener::bind(&others).unwrap());
        std::fs::rename(&others, &path).unwrap();
        assert!(!HostSocketFiles.remove_stale(&socket).unwrap());
        socket.identity = HostSocketFiles.identity(&path);
        assert!(HostSocketFiles.remove_stale(&socket).unwrap());
        assert!(!path.exists());
        std::fs::write(&path, "a file").unwrap();
        socket.identity = HostSocketFiles.identity(&path);
        assert!(!HostSocketFiles.remove_stale(&socket).unwrap(), "no socket");
    }

    #[test]
    fn a_file_of_unknown_identity_has_to_be_newer_than_the_record() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.sock");
        drop(UnixListener::bind(&path).unwrap());
        std::thread::sleep(Duration::from_millis(50));
        let mut socket =
            StaleSocket { path: path.clone(), identity: None, absent_unix_ms: now_ms() };
        assert!(!HostSocketFiles.remove_stale(&socket).unwrap());
        socket.absent_unix_ms -= 60_000;
        assert!(HostSocketFiles.remove_stale(&socket).unwrap());
    }
}
