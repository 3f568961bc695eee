//! The host file of `--config`.

use std::path::Path;
use std::time::Duration;

use suimon_contract::{ApiError, ErrorCode, OperationState, locate_errors, old_names_of_file};
use suimon_node::{ChangeOptions, Edit, Node};
use suimond_api::host_file::read;

/// Time limit for applying the file.
const APPLY_TIMEOUT: Duration = Duration::from_secs(300);

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
