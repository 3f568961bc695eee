//! Unix socket of the API.

use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use rustix::fs::Mode;
use suimon_ports::{FileIdentity, SocketFiles};

use crate::remedy;
use crate::socket_files::{HostSocketFiles, SocketState, probe_socket};

/// Permissions of the socket: owner and group may connect.
const SOCKET_MODE: u32 = 0o660;

/// Listening Unix socket. Dropping it removes its file.
pub(crate) struct ApiSocket {
    path: PathBuf,
    /// Identity of the file, so that a file of another process is never removed.
    identity: Option<FileIdentity>,
    listener: UnixListener,
}

impl ApiSocket {
    /// Listens on `path`. Replaces the file of an ended daemon, but not a socket on which a process
    /// listens. Must be called while the process has a single thread, since it changes the file
    /// mode creation mask of the process.
    ///
    /// # Errors
    /// Another daemon listens, the path is not a socket, or the host refuses.
    pub(crate) fn bind(path: &Path) -> Result<Self> {
        if let Some(directory) = path.parent().filter(|d| !d.as_os_str().is_empty()) {
            std::fs::create_dir_all(directory)
                .map_err(|error| socket_error("create", directory, &error))?;
        }
        remove_stale(path)?;
        let before = rustix::process::umask(Mode::from_bits_truncate(0o777 & !SOCKET_MODE));
        let bound = UnixListener::bind(path);
        rustix::process::umask(before);
        let listener = bound.map_err(|error| socket_error("listen on", path, &error))?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(SOCKET_MODE))
            .map_err(|error| socket_error("set the mode of", path, &error))?;
        listener.set_nonblocking(true)?;
        let identity = HostSocketFiles.identity(path);
        Ok(Self { path: path.to_owned(), identity, listener })
    }

    /// Returns the listener, registered with the async runtime.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(crate) fn listener(&self) -> io::Result<tokio::net::UnixListener> {
        tokio::net::UnixListener::from_std(self.listener.try_clone()?)
    }
}

impl Drop for ApiSocket {
    fn drop(&mut self) {
        let identity = HostSocketFiles.identity(&self.path);
        if identity.is_some() && identity == self.identity {
            // If removal fails, the next daemon replaces the file.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Returns an error that states the action, the file, the cause and the remedy.
fn socket_error(action: &str, path: &Path, error: &io::Error) -> anyhow::Error {
    let remedy = remedy::path_error_remedy(error, "--socket");
    anyhow!("--socket: cannot {action} {}: {error}; {remedy}", path.display())
}

fn remove_stale(path: &Path) -> Result<()> {
    let path_text = path.display();
    let metadata = match std::fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(socket_error("check", path, &error)),
    };
    if !metadata.file_type().is_socket() {
        bail!("--socket: {path_text} exists and is not a socket; remove it or choose another path");
    }
    match probe_socket(path) {
        Ok(SocketState::Active) => bail!(
            "--socket: a daemon already listens on {path_text}; stop it first or choose \
             another path"
        ),
        Ok(SocketState::Stale) => std::fs::remove_file(path)
            .map_err(|error| socket_error("replace the stale", path, &error)),
        Err(error) => Err(socket_error("connect to", path, &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_in_use_is_refused_and_a_stale_one_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run/api.sock");
        let socket = ApiSocket::bind(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, SOCKET_MODE);
        let error = ApiSocket::bind(&path).err().unwrap().to_string();
        assert!(error.contains("already listens"), "{error}");
        drop(socket);
        assert!(!path.exists());

        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let socket = ApiSocket::bind(&path).unwrap();
        // A file of another owner at the path is kept.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "mine").unwrap();
        drop(socket);
        assert!(path.exists());
        let error = ApiSocket::bind(&path).err().unwrap().to_string();
        assert!(error.contains("not a socket"), "{error}");
    }
}
