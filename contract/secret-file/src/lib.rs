//! Files with secrets: private keys, tokens, passwords.
//!
//! A secret that all users of the host may read or replace protects nothing. Every such file of a
//! configuration is opened by [`open_secret`], so that all of them have the same check and the same
//! error. Access of the file's group is the administrator's decision.
//!
//! Outside of the scope: the contents of the files.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Permission bits of users that are neither the owner nor in the group of a file.
const OTHERS: u32 = 0o007;

/// Reason why a file with a secret is not used.
#[derive(Debug, Error)]
pub enum SecretFileError {
    /// The file cannot be opened.
    #[error("cannot read {}: {source}", file.display())]
    Unreadable {
        /// Path of the rejected file, as given by the caller.
        file: PathBuf,
        /// Error of the system call.
        source: io::Error,
    },
    /// The file is accessible to all users.
    #[error("{0} has permissions for others; run `chmod o= {0}`", file.display())]
    OpenToAll {
        /// Path of the rejected file, as given by the caller.
        file: PathBuf,
    },
}

/// Opens a file with a secret for reading. Rejects a file that all users may access. The check
/// applies to the opened file, so the file cannot be replaced in between.
///
/// # Errors
/// See [`SecretFileError`].
pub fn open_secret(path: &Path) -> Result<File, SecretFileError> {
    let unreadable = |source| SecretFileError::Unreadable { file: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    let mode = file.metadata().map_err(unreadable)?.permissions().mode();
    if mode & OTHERS != 0 {
        return Err(SecretFileError::OpenToAll { file: path.to_owned() });
    }
    Ok(file)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::fs::{Permissions, set_permissions, write};
    use std::io::Read;

    use super::*;

    #[test]
    fn any_access_of_all_users_is_refused_with_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        write(&path, "secret").unwrap();
        let open = |mode| {
            set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            open_secret(&path)
        };
        for mode in [0o644, 0o604, 0o602, 0o601] {
            let error = open(mode).unwrap_err();
            assert!(matches!(error, SecretFileError::OpenToAll { .. }), "{mode:o}");
            assert!(error.to_string().ends_with(&format!("run `chmod o= {}`", path.display())));
        }
        for mode in [0o600, 0o640, 0o400] {
            let mut text = String::new();
            open(mode).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "secret");
        }
        let error = open_secret(&folder.path().join("none")).unwrap_err();
        assert!(matches!(error, SecretFileError::Unreadable { .. }), "{error}");
    }
}
