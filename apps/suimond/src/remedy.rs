//! Remedies for errors of the operating system during startup.

use std::io::{Error, ErrorKind};

/// Returns what to do about `error` on the path of the command-line option `option`.
pub(crate) fn path_error_remedy(error: &Error, option: &str) -> String {
    match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            format!(
                "run suimond as root, or choose a path that is writable for this user with \
                 {option}"
            )
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            format!("delete files on that file system, or choose a path on another with {option}")
        }
        _ => format!("choose another path with {option}"),
    }
}
