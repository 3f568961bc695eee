//! Commands that run to their end, with a limit of time.

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// The longest a command may take unless its caller says otherwise.
const COMMAND_LIMIT: Duration = Duration::from_secs(120);

/// What a command said.
#[derive(Clone, Debug)]
pub struct Output {
    /// Its exit code; 124 if it took too long, -1 if a signal ended it.
    pub code: i32,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

impl Output {
    /// Whether it ended well.
    pub fn is_ok(&self) -> bool {
        self.code == 0
    }
}

/// Runs `words` and returns what it said, whatever its exit code.
///
/// # Errors
/// It could not be started.
pub fn run_any<S: AsRef<str>>(words: &[S], limit: Duration) -> Result<Output> {
    let mut command = Command::new("timeout");
    command.arg("--kill-after=1").arg(limit.as_secs().max(1).to_string());
    for word in words {
        command.arg(word.as_ref());
    }
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", sentence(words)))?;
    Ok(Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// Runs `words`, which must end well, and returns what it printed.
///
/// # Errors
/// It failed, with its words; or it took longer than two minutes.
pub fn run<S: AsRef<str>>(words: &[S]) -> Result<String> {
    let output = run_any(words, COMMAND_LIMIT)?;
    if output.code != 0 {
        bail!(
            "`{}` failed with {}: {}{}",
            sentence(words),
            output.code,
            output.stderr.trim(),
            output.stdout.trim()
        );
    }
    Ok(output.stdout)
}

fn sentence<S: AsRef<str>>(words: &[S]) -> String {
    words.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(" ")
}
