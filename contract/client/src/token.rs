//! Access token of an API that listens on TCP.

use std::io::Read;
use std::path::{Path, PathBuf};

use suimon_secret_file::{SecretFileError, open_secret};
use thiserror::Error;

/// Minimum length of a token in characters.
pub const TOKEN_CHARS_MIN: usize = 16;
/// Maximum size of a token file in bytes.
const TOKEN_BYTES_MAX: u64 = 4096;

/// Reason why the token in a file cannot be used.
#[derive(Debug, Error)]
pub enum TokenError {
    /// The file cannot be read, or all users may access it.
    #[error(transparent)]
    File(#[from] SecretFileError),
    /// The token is too short, or contains invalid characters.
    #[error(
        "the first line of {} must have at least {TOKEN_CHARS_MIN} visible ASCII characters; create \
         a token with `openssl rand -hex 32`",
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
    let opened = open_secret(file)?;
    let mut bytes = Vec::new();
    opened
        .take(TOKEN_BYTES_MAX)
        .read_to_end(&mut bytes)
        .map_err(|source| SecretFileError::Unreadable { file: file.to_owned(), source })?;
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
    let line = std::str::from_utf8(line).ok().filter(|line| {
        line.len() >= TOKEN_CHARS_MIN && line.bytes().all(|byte| byte.is_ascii_graphic())
    });
    line.map(str::to_owned).ok_or_else(|| TokenError::Weak { file: file.to_owned() })
}
