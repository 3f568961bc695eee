//! The host file of `--config`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use suimon_contract::{
    ApiError, ErrorCode, HostConfig, HostSection, OperationState, locate_errors, old_names_in_file,
    parse_toml,
};
use suimon_node::{ChangeOptions, Edit, Node};
use suimond_api::host_file::read;
use suimond_api::{Console, TcpApi};

/// Time limit for applying the file.
const APPLY_TIMEOUT: Duration = Duration::from_secs(300);

/// Host file as it was read at the start of the daemon.
///
/// Without stored state, an error ends the daemon. With stored state, the daemon starts with that
/// state and reports the error: VMs of the former daemon need their NICs and disks, and a start may
/// follow a crash.
pub(crate) struct HostFile {
    /// Path of the file; `None` without `--config`.
    path: Option<PathBuf>,
    parsed: Result<Option<Parsed>, Vec<ApiError>>,
}

struct Parsed {
    text: String,
    config: HostConfig,
}

impl HostFile {
    /// Reads and parses the host file.
    pub(crate) fn read(path: Option<&Path>) -> Self {
        Self { path: path.map(Path::to_owned), parsed: path.map(parse).transpose() }
    }

    /// Checks the file and the files that its listeners name, for a start without stored state.
    ///
    /// # Errors
    /// The file cannot be read or is invalid, or a file of a listener cannot be used.
    pub(crate) fn check_for_first_start(&self) -> Result<(), Vec<ApiError>> {
        let Some(Parsed { text, config }) = self.parsed.as_ref().map_err(Clone::clone)? else {
            return Ok(());
        };
        let api = config.api.as_ref().map(TcpApi::load).and_then(Result::err);
        let console = config.console.as_ref().map(Console::load).and_then(Result::err);
        let mut errors: Vec<_> = api.into_iter().chain(console).collect();
        if errors.is_empty() {
            return Ok(());
        }
        let path_text = self.path.as_ref().map(|path| path.display().to_string());
        locate_errors(text, path_text.as_deref(), &mut errors);
        Err(errors)
    }

    /// Returns `[host]` of the file, or its default, for a start without stored state.
    ///
    /// # Errors
    /// As [`Self::check_for_first_start`], or the address of a listener is not available.
    pub(crate) fn host_section_for_first_start(&self) -> Result<HostSection, Vec<ApiError>> {
        self.check_for_first_start()?;
        self.probe_listeners()?;
        Ok(self.config().map(|config| config.host.clone()).unwrap_or_default())
    }

    /// Checks that the addresses of the TCP listeners are available. Called for a host file that is
    /// applied for the first time, before anything is created.
    ///
    /// # Errors
    /// An address cannot be used.
    fn probe_listeners(&self) -> Result<(), Vec<ApiError>> {
        let Some(config) = self.config() else { return Ok(()) };
        let api = config.api.as_ref().map(|api| TcpApi::load(api)?.probe()).and_then(Result::err);
        let console = config.console.as_ref().map(|console| Console::load(console)?.probe());
        let errors: Vec<_> = api.into_iter().chain(console.and_then(Result::err)).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// Applies the file if its text has changed. If it is refused, the stored state stays in
    /// effect, and an event reports the errors.
    ///
    /// # Errors
    /// The file is refused at the first start, which has no stored state.
    pub(crate) fn apply_at_start(
        &self,
        node: &Node,
        is_first_start: bool,
    ) -> Result<(), Vec<ApiError>> {
        let Some(path) = &self.path else { return Ok(()) };
        let options = ChangeOptions { keeps_faulty_disks: true, ..ChangeOptions::default() };
        let parsed = self.parsed.as_ref().map(drop).map_err(Clone::clone);
        let Err(errors) = parsed.and_then(|()| apply(node, path, options)) else { return Ok(()) };
        if is_first_start {
            return Err(errors);
        }
        for error in &errors {
            tracing::error!("the host file was not applied: {error}");
        }
        node.report_host_file_not_applied(&path.display().to_string(), &errors);
        Ok(())
    }

    fn config(&self) -> Option<&HostConfig> {
        self.parsed.as_ref().ok()?.as_ref().map(|parsed| &parsed.config)
    }
}

fn parse(file: &Path) -> Result<Parsed, Vec<ApiError>> {
    let text = read(file)?;
    let config = parse_toml(&text, Some(&file.display().to_string()))?;
    Ok(Parsed { text, config })
}

/// Applies the file at `path` if its text has changed, and blocks until it is applied.
pub(crate) fn apply(node: &Node, path: &Path, options: ChangeOptions) -> Result<(), Vec<ApiError>> {
    let text = read(path)?;
    let path_text = path.display().to_string();
    apply_text(node, &text, &path_text, options).map_err(|mut errors| {
        locate_errors(&text, Some(&path_text), &mut errors);
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
    operation_result(node, operation.id)
}

fn apply_text(
    node: &Node,
    text: &str,
    path_text: &str,
    options: ChangeOptions,
) -> Result<(), Vec<ApiError>> {
    let Some(operation) = node.submit_file(text, path_text, options)? else {
        tracing::info!(file = path_text, "the host file is unchanged since it was last applied");
        return Ok(());
    };
    for old in old_names_in_file(text, Some(path_text)) {
        tracing::warn!("{old}");
    }
    operation_result(node, operation.id)
}

/// Blocks until an operation has ended, and returns its error. An operation that lasts longer than
/// `APPLY_TIMEOUT` continues; the log says so.
fn operation_result(node: &Node, operation: u64) -> Result<(), Vec<ApiError>> {
    let Some(operation) = node.wait_operation(operation, APPLY_TIMEOUT) else {
        return Ok(());
    };
    match (operation.state, operation.error) {
        (OperationState::Succeeded, _) => Ok(()),
        (_, Some(error)) => Err(vec![error]),
        (OperationState::Running, None) => {
            let (id, limit) = (operation.id, APPLY_TIMEOUT.as_secs());
            tracing::warn!(
                "operation {id}, which applies the host file, has not ended within {limit} s and \
                 continues; `suimon operation show {id}` shows its state and result"
            );
            Ok(())
        }
        (state, None) => {
            let text = format!("operation {} ended as {state:?} without a reason", operation.id);
            Err(vec![ApiError::new(ErrorCode::Internal, text)])
        }
    }
}
