//! Text of a host file.

use std::io::Read;
use std::path::Path;

use suimon_contract::{ApiError, ErrorCode, TOML_BYTES_MAX};

/// Reads a host file.
///
/// # Errors
/// The file cannot be read or is not UTF-8; the error names the file.
pub fn read(path: &Path) -> Result<String, Vec<ApiError>> {
    let refuse = |code, text: String| {
        let mut error = ApiError::new(code, text);
        error.file = Some(path.display().to_string());
        vec![error]
    };
    let file = std::fs::File::open(path)
        .map_err(|error| refuse(ErrorCode::HostError, format!("cannot be read: {error}")))?;
    let mut bytes = Vec::new();
    file.take(TOML_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| refuse(ErrorCode::HostError, format!("cannot be read: {error}")))?;
    String::from_utf8(bytes)
        .map_err(|error| refuse(ErrorCode::Malformed, format!("is not UTF-8: {error}")))
}
