//! JSON files of the lab.

use serde::de::DeserializeOwned;
use suimon_contract::ApiError;

use crate::folder::{Folder, file_error};

/// Largest accepted size of small files in bytes.
pub(crate) const SMALL_FILE_BYTES_MAX: u64 = 1 << 20;

/// Reads and parses a JSON file of the folder; `None` if it does not exist.
///
/// # Errors
/// The file has more than `bytes_max` bytes, cannot be read, or does not match `T`.
pub(crate) fn read<T: DeserializeOwned>(
    folder: &Folder,
    name: &str,
    bytes_max: u64,
) -> Result<Option<T>, ApiError> {
    let Some(bytes) = folder.read_file(name, bytes_max)? else { return Ok(None) };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| {
        let text = format!("is damaged, or was written by another version of suimon-lab: {error}");
        file_error(&folder.path(name), text)
    })
}
