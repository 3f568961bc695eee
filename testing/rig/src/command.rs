//! Commands with a time limit.

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// Default time limit of a command.
const COMMAND_LIMIT: Duration = Duration::from_secs(120);

/// Result of a command.
#[derive(Clone, Debug)]
pub struct Output {
    /// Exit code; 124 after the time limit, -1 after a signal.
    pub code: i32,
    /// Contents of stdout.
    pub stdout: String,
    /// Contents of stderr.
    pub stderr: String,
}

impl Output {
    /// Returns true if the exit code is 0.
    pub fn is_ok(&self) -> bool {
        self.code == 0
    }
}

/// Runs a command to its end. Returns its result with any exit code.
///
/// # Errors
/// The command could not be started.
pub fn run_any<S: AsRef<str>>(arguments: &[S], limit: Duration) -> Result<Output> {
    let mut command = Command::new("timeout");
    command.arg("--kill-after=1").arg(limit.as_secs().max(1).to_string());
    for argument in arguments {
        command.arg(argument.as_ref());
    }
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", sentence(arguments)))?;
    Ok(Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// Runs a command that must succeed. Returns its output.
///
/// # Errors
/// The command failed, with its output; or it took longer than two minutes.
pub fn run<S: AsRef<str>>(arguments: &[S]) -> Result<String> {
    let output = run_any(arguments, COMMAND_LIMIT)?;
    if output.code != 0 {
        bail!(
            "`{}` failed with {}: {}{}",
            sentence(arguments),
            output.code,
            output.stderr.trim(),
            output.stdout.trim()
        );
    }
    Ok(output.stdout)
}

fn sentence<S: AsRef<str>>(arguments: &[S]) -> String {
    arguments.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(" ")
}
