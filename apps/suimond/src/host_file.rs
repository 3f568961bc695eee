//! The host file of `--config`.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use suimon_contract::{
    ApiError, ErrorCode, OperationState, TOML_BYTES_MAX, locate_errors, old_names_of_file,
};
use suimon_node::{ChangeOptions, Edit, Node};

/// Time limit for applying the file.
const APPLY_TIMEOUT: Duration = Duration::from_secs(300);

/// Reads a host file. Errors name the file.
pub(crate) fn read(path: &Path) -> Result<String, Vec<ApiError>> {
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

/// Applies the file if its text is new, and blocks until it is applied.
pub(crate) fn apply(node: &Node, path: &Path, options: ChangeOptions) -> Result<(), Vec<ApiError>> {
    let text = read(path)?;
    let shown = path.display().to_string();
    apply_text(node, &text, &shown, options).map_err(|mut errors| {
        locate_errors(&text, Some(&shown), &mut errors);
        errors
    })
}

/// Applies the file, if given and its text is new, and reloads files named in desired state, such
/// as certificates.
pub(crate) fn reload(node: &Node, path: Option<&Path>) -> Result<(), Vec<ApiError>> {
    if let Some(path) = path {
        apply(node, path, ChangeOptions::default())?;
    }
    let operation = node.submit(Edit::Reload)?;
    ended(node, operation.id)
}

fn apply_text(
    node: &Node,
    text: &str,
    shown: &str,
    options: ChangeOptions,
) -> Result<(), Vec<ApiError>> {
    let Some(operation) = node.submit_file(text, shown, options)? else {
        tracing::info!(file = shown, "the host file is unchanged since it was last applied");
        return Ok(());
    };
    for old in old_names_of_file(text, Some(shown)) {
        tracing::warn!("{old}");
    }
    ended(node, operation.id)
}

/// Blocks until an operation has ended, and returns its error.
fn ended(node: &Node, operation: u64) -> Result<(), Vec<ApiError>> {
    let Some(operation) = node.wait_operation(operation, APPLY_TIMEOUT) else {
        return Ok(());
    };
    match (operation.state, operation.error) {
        (OperationState::Succeeded, _) => Ok(()),
        (_, Some(error)) => Err(vec![error]),
        (state, None) => {
            let text = format!("the host file is still {state:?} after {APPLY_TIMEOUT:?}");
            Err(vec![ApiError::new(ErrorCode::Internal, text)])
        }
    }
}
