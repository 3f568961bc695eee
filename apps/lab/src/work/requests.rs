//! Files of requests in the folder of results.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;
use suimon_lab_run::folder::RequestResult;

/// Number of ended requests that are kept.
pub(super) const ENDED_REQUESTS_MAX: usize = 16;

/// Writes the result of a request, then removes the request. Observers therefore always find at
/// least one of them.
pub(super) fn complete(request: &Path, result: &RequestResult) -> Result<()> {
    write(&request.with_extension("done"), result)?;
    remove(&request.with_extension("stop"))?;
    remove(request)
}

/// Removes the oldest results of requests beyond [`ENDED_REQUESTS_MAX`].
pub(super) fn remove_old_results(requests: &Path) -> Result<()> {
    let ended_paths = files_with_extension(requests, "done")?;
    for path in ended_paths.iter().take(ended_paths.len().saturating_sub(ENDED_REQUESTS_MAX)) {
        remove(path)?;
    }
    Ok(())
}

/// Returns the path of the oldest request; `None` if there is none.
pub(super) fn next(requests: &Path) -> Result<Option<PathBuf>> {
    // The names of the files are times, so that the first one is the oldest.
    Ok(files_with_extension(requests, "json")?.into_iter().next())
}

/// Returns the files with an extension, oldest first.
pub(super) fn files_with_extension(requests: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(requests).with_context(|| requests.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|path_extension| path_extension == extension) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Removes a file. A missing file is not an error.
pub(super) fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| path.display().to_string())
        }
        _ => Ok(()),
    }
}

/// Writes a file atomically.
pub(super) fn write(path: &Path, value: &impl Serialize) -> Result<()> {
    let unfinished = path.with_extension("part");
    let write = || -> std::io::Result<()> {
        fs::write(&unfinished, serde_json::to_vec(value)?)?;
        fs::rename(&unfinished, path)
    };
    write().with_context(|| path.display().to_string())
}
