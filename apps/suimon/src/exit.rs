//! Failures of commands, and the exit codes that report them.

use std::io;
use std::process::ExitCode;

use serde::Serialize;
use suimon_client::ClientError;
use suimon_contract::{ApiError, ErrorCode, Operation, OperationState};
use thiserror::Error;

/// Exit codes, as listed in `--help` and the reference.
pub(crate) const EXIT_CODES: &[(u8, &str)] = &[
    (0, "success"),
    (
        1,
        "the operation failed for another reason, such as a failed system call, device or file access",
    ),
    (2, "the command line is invalid"),
    (3, "the daemon, or the check of a host file, rejected the configuration or the request"),
    (4, "no object has the given name or number"),
    (5, "the daemon does not respond, or the connection was lost"),
    (6, "an object of this name exists already, or the object or a device is in use"),
    (7, "the operation was cancelled; an incomplete change was undone"),
    (130, "interrupted (Ctrl-C) while waiting; the operation continues"),
];

/// Failure of a command, which determines its exit code.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// Error from the daemon, or from the connection to it.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Rejected without the daemon: the configuration is invalid, or names something that does not
    /// exist.
    #[error("refused")]
    Refused(Vec<ApiError>),
    /// The operation failed or was cancelled.
    #[error("{} of {} {}", .0.kind, .0.subject, ending(.0))]
    Operation(Box<Operation>),
    /// Interrupted while an operation was in progress.
    #[error(
        "operation {operation_id} continues; `suimon operation watch {operation_id}` waits for its end, \
         `suimon operation cancel {operation_id}` cancels it"
    )]
    Interrupted {
        /// Number of the operation that continues.
        operation_id: u64,
    },
    /// File cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// Path or name of the file.
        path: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Error of standard input or output, or of the terminal.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The image was not checked, for any reason.
    #[error(transparent)]
    ImageNotChecked(Box<Self>),
    /// The image file cannot be opened.
    #[error("{message}")]
    CannotOpenImage {
        /// Reason as reported by the tool.
        message: String,
    },
    /// The report that was printed contains errors.
    #[error("exit code {exit_code}")]
    ReportWithErrors {
        /// Exit code of the report.
        exit_code: u8,
    },
    /// Invalid combination of arguments.
    #[error("{0}")]
    Usage(String),
}

fn ending(operation: &Operation) -> String {
    match (&operation.error, operation.state) {
        (Some(error), _) => format!("failed: {error}"),
        (None, OperationState::Cancelled) => "was cancelled".to_owned(),
        (None, _) => "failed".to_owned(),
    }
}

/// Error as printed by `--json`, in an object like the API's `ErrorBody`.
#[derive(Serialize)]
#[serde(untagged)]
enum PrintedError<'e> {
    /// Error of the daemon, or of the validation of a host file.
    Api(&'e ApiError),
    /// Error that only a client can have.
    Own { code: &'static str, message: String },
}

/// Returns these errors as one line of JSON.
fn json_line(errors: &[PrintedError<'_>]) -> String {
    serde_json::json!({ "errors": errors }).to_string()
}

/// Returns the `--json` error of an invalid command line.
pub(crate) fn usage_error_json(message: String) -> String {
    json_line(&[PrintedError::Own { code: "usage", message }])
}

impl Failure {
    /// Returns the error for a name that does not exist, with the names that do. `object` is the
    /// kind of object.
    pub(crate) fn no_such_object(object: &str, mut existing: Vec<String>) -> Self {
        /// Largest number of names shown.
        const SHOWN_MAX: usize = 16;
        let hidden = existing.len().saturating_sub(SHOWN_MAX);
        existing.truncate(SHOWN_MAX);
        let existing = match (existing.is_empty(), hidden) {
            (true, _) => "the host has none".to_owned(),
            (false, 0) => format!("the host has {}", existing.join(", ")),
            (false, hidden) => format!("the host has {} and {hidden} more", existing.join(", ")),
        };
        Self::not_found(format!("no {object} exists; {existing}"))
    }

    /// Returns the error for an object that does not exist.
    pub(crate) fn not_found(message: String) -> Self {
        Self::Refused(vec![ApiError::new(ErrorCode::NotFound, message)])
    }

    /// Reports the failure on standard error and returns the exit code.
    pub(crate) fn report(&self, json: bool) -> ExitCode {
        if let Self::ImageNotChecked(not_checked) = self {
            not_checked.report(json);
            return ExitCode::from(self.exit_code());
        }
        match self {
            Self::Io(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return ExitCode::SUCCESS;
            }
            Self::ReportWithErrors { exit_code: code } => return ExitCode::from(*code),
            _ if json => eprintln!("{}", json_line(&self.errors())),
            Self::Client(ClientError::Refused { errors, .. }) | Self::Refused(errors) => {
                for error in errors {
                    eprintln!("{error}");
                }
            }
            Self::Interrupted { .. } => eprintln!("{self}"),
            _ => eprintln!("suimon: {self}"),
        }
        ExitCode::from(self.exit_code())
    }

    fn errors(&self) -> Vec<PrintedError<'_>> {
        let own_error = |code| vec![PrintedError::Own { code, message: self.to_string() }];
        match self {
            Self::Client(ClientError::Refused { errors, .. }) | Self::Refused(errors) => {
                errors.iter().map(PrintedError::Api).collect()
            }
            Self::Client(_) => own_error("unreachable"),
            Self::Operation(operation) => match &operation.error {
                Some(error) => vec![PrintedError::Api(error)],
                None => own_error("cancelled"),
            },
            Self::Interrupted { .. } => own_error("interrupted"),
            Self::File { .. } | Self::Io(_) | Self::CannotOpenImage { .. } => own_error("file"),
            Self::ImageNotChecked(not_checked) => not_checked.errors(),
            Self::ReportWithErrors { .. } => Vec::new(),
            Self::Usage(_) => own_error("usage"),
        }
    }

    /// Returns the exit code of the program.
    pub(crate) fn exit_code(&self) -> u8 {
        let of_errors = |errors: &[ApiError]| errors.first().map_or(1, |error| code_of(error.code));
        match self {
            Self::Client(ClientError::Refused { errors, .. }) | Self::Refused(errors) => {
                of_errors(errors)
            }
            Self::Client(_) => 5,
            Self::Operation(operation) if operation.state == OperationState::Cancelled => 7,
            // An error that occurs during the operation has the same exit code as one that prevents
            // it.
            Self::Operation(operation) => {
                operation.error.as_ref().map_or(1, |error| code_of(error.code))
            }
            Self::File { .. }
            | Self::Io(_)
            | Self::CannotOpenImage { .. }
            | Self::ImageNotChecked(_) => 1,
            Self::ReportWithErrors { exit_code: code } => *code,
            Self::Interrupted { .. } => 130,
            Self::Usage(_) => 2,
        }
    }
}

const fn code_of(code: ErrorCode) -> u8 {
    match code {
        ErrorCode::Malformed
        | ErrorCode::UnknownKey
        | ErrorCode::InvalidValue
        | ErrorCode::MissingKey
        | ErrorCode::KeyNotApplicable
        | ErrorCode::DuplicateName
        | ErrorCode::Conflict
        | ErrorCode::OverlappingVlans
        | ErrorCode::UnknownReference
        | ErrorCode::DeviceMissing
        | ErrorCode::Overcommitted
        | ErrorCode::Unsupported => 3,
        ErrorCode::NotFound => 4,
        ErrorCode::AlreadyExists | ErrorCode::InUse | ErrorCode::DeviceBusy => 6,
        ErrorCode::Cancelled => 7,
        ErrorCode::PermissionDenied
        | ErrorCode::Unreachable
        | ErrorCode::HostError
        | ErrorCode::MethodNotAllowed
        | ErrorCode::Unauthorized
        | ErrorCode::Internal => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exit_code_is_documented() {
        for code in ErrorCode::ALL {
            let exit = code_of(code);
            assert!(EXIT_CODES.iter().any(|(documented, _)| *documented == exit), "{code}");
        }
    }

    #[test]
    fn a_closed_reader_of_standard_output_is_no_failure() {
        let broken_pipe = Failure::Io(io::ErrorKind::BrokenPipe.into());
        assert_eq!(format!("{:?}", broken_pipe.report(false)), format!("{:?}", ExitCode::SUCCESS));
    }
}
