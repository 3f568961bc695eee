//! Exit codes of failed commands, and errors that have a code of their own.

use std::fmt;
use std::io;
use std::process::ExitCode;

/// Error: the plan is rejected, or the machine does not meet its requirements.
#[derive(Debug)]
pub(crate) struct RunRejected;

impl fmt::Display for RunRejected {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("refused")
    }
}

/// Error: interrupted on request; measured values are kept.
#[derive(Debug)]
pub(crate) struct RunInterrupted;

impl fmt::Display for RunInterrupted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("interrupted")
    }
}

/// Prints the error of a command and returns its exit code. A closed standard output is a success
/// without a message.
pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
    if error.downcast_ref::<io::Error>().map(io::Error::kind) == Some(io::ErrorKind::BrokenPipe) {
        return ExitCode::SUCCESS;
    }
    eprintln!("suimon lab: {error:#}");
    if error.is::<RunRejected>() {
        ExitCode::from(3)
    } else if error.is::<RunInterrupted>() {
        ExitCode::from(130)
    } else {
        ExitCode::FAILURE
    }
}
