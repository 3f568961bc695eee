//! Access token of an API that listens on TCP.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Minimum length of a token in characters.
pub const TOKEN_CHARS_MIN: usize = 16;
/// Maximum size of a token file in bytes.
const TOKEN_BYTES_MAX: u64 = 4096;

/// Reason why the token in a file cannot be used.
#[derive(Debug, Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", file.display())]
    Unreadable {
        /// Path of the token file.
        file: PathBuf,
        /// Error of the system call.
        source: io::Error,
    },
    /// The file is readable by all users.
    #[error("{0} is readable by all users; run `chmod o= {0}`", file.display())]
    ReadByAll {
        /// Path of the token file.
        file: PathBuf,
    },
    /// The token is too short, or contains invalid characters.
    #[error(
        "the first line of {} must have at least {TOKEN_CHARS_MIN} visible ASCII characters; \
         create one with `openssl rand -hex 32`",
        file.display()
    )]
    Weak {
        /// Path of the token file.
        file: PathBuf,
    },
}

/// Reads the token in the first line of a file. Rejects a file that all users may access.
///
/// # Errors
/// See [`TokenError`].
pub fn read_token(file: &Path) -> Result<String, TokenError> {
    let unreadable = |source| TokenError::Unreadable { file: file.to_owned(), source };
    let opened = File::open(file).map_err(unreadable)?;
    let mode = opened.metadata().map_err(unreadable)?.permissions().mode();
    if mode & 0o007 != 0 {
        return Err(TokenError::ReadByAll { file: file.to_owned() });
    }
    let mut bytes = Vec::new();
    opened.take(TOKEN_BYTES_MAX).read_to_end(&mut bytes).map_err(unreadable)?;
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
    let line = std::str::from_utf8(line).ok().filter(|line| {
        line.len() >= TOKEN_CHARS_MIN && line.bytes().all(|byte| byte.is_ascii_graphic())
    });
    line.map(str::to_owned).ok_or_else(|| TokenError::Weak { file: file.to_owned() })
}
