//! The Unix socket of the API.

use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use rustix::fs::Mode;
use suimon_ports::{FileIdentity, SocketFiles};

use crate::remedy;
use crate::socket_files::{HostSocketFiles, Listening, listening};

/// Who may connect: the owner and the group.
const SOCKET_MODE: u32 = 0o660;

/// A listening Unix socket whose file is removed when this is dropped.
pub struct ApiSocket {
    path: PathBuf,
    /// Which file it is, so that another's is never removed.
    identity: Option<FileIdentity>,
    listener: UnixListener,
}

impl ApiSocket {
    /// Listens on `path`. A file that a daemon left behind is replaced; a socket
    /// on which somebody answers is not. To be called before there are other
    /// threads, because the file-creation mask is the process's.
    ///
    /// # Errors
    /// Another daemon answers there, something else is there, or the host
    /// refuses.
    pub fn bind(path: &Path) -> Result<Self> {
        if let Some(directory) = path.parent().filter(|d| !d.as_os_str().is_empty()) {
            std::fs::create_dir_all(directory)
                .map_err(|error| refused("create", directory, &error))?;
        }
        remove_stale(path)?;
        let before = rustix::process::umask(Mode::from_bits_truncate(0o777 & !SOCKET_MODE));
        let bound = UnixListener::bind(path);
        rustix::process::umask(before);
        let listener = bound.map_err(|error| refused("listen on", path, &error))?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(SOCKET_MODE))
            .map_err(|error| refused("set the mode of", path, &error))?;
        listener.set_nonblocking(true)?;
        let identity = HostSocketFiles.identity(path);
        Ok(Self { path: path.to_owned(), identity, listener })
    }

    /// The listener, for the runtime to poll.
    ///
    /// # Errors
    /// Out of descriptors.
    pub fn listener(&self) -> io::Result<tokio::net::UnixListener> {
        tokio::net::UnixListener::from_std(self.listener.try_clone()?)
    }
}

impl Drop for ApiSocket {
    fn drop(&mut self) {
        let found = HostSocketFiles.identity(&self.path);
        if found.is_some() && found == self.identity {
            // If it cannot be removed, the next daemon replaces it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Returns an error with what was tried, on which file, why it failed and what to do.
fn refused(action: &str, path: &Path, error: &io::Error) -> anyhow::Error {
    let remedy = remedy::for_path(error, "--socket");
    anyhow!("--socket: cannot {action} {}: {error}; {remedy}", path.display())
}

fn remove_stale(path: &Path) -> Result<()> {
    let shown = path.display();
    let metadata = match std::fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(refused("look at", path, &error)),
    };
    if !metadata.file_type().is_socket() {
        bail!("--socket: {shown} exists and is not a socket; remove it or choose another path");
    }
    match listening(path) {
        Ok(Listening::Somebody) => bail!(
            "--socket: a daemon answers on {shown} already; stop it first or choose another path"
        ),
        Ok(Listening::Nobody) => {
            std::fs::remove_file(path).map_err(|error| refused("replace the stale", path, &error))
        }
        Err(error) => Err(refused("connect to", path, &error)),
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
        assert!(error.contains("answers"), "{error}");
        drop(socket);
        assert!(!path.exists());

        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let socket = ApiSocket::bind(&path).unwrap();
        // Somebody else's file at our path is left alone.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "mine").unwrap();
        drop(socket);
        assert!(path.exists());
        let error = ApiSocket::bind(&path).err().unwrap().to_string();
        assert!(error.contains("not a socket"), "{error}");
    }
}
