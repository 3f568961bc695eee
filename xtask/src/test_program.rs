//! One compiled test program: it is run, what it prints is shown and its totals are read.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow};

/// A test program that prints nothing for so long goes round in circles; what it would
/// have told is worth less than what the others tell. The longest test takes a third of it.
const SILENCE_MAX: Duration = Duration::from_secs(600);

/// A compiled test program and the folder of its crate.
pub(crate) struct TestProgram {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) executable: PathBuf,
}

/// What the harness counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

/// What came of a run.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) counts: Counts,
    pub(crate) failed_tests: Vec<String>,
    /// Why it is not all right; a program that died or was stopped counts as one failure.
    pub(crate) failure: Option<Error>,
}

impl TestProgram {
    /// How it is called in the output.
    pub(crate) fn title(&self) -> String {
        let folder = self.folder.file_name().map(|name| name.to_string_lossy());
        format!("{} / {}", folder.unwrap_or_default(), self.name)
    }

    /// Runs these of its tests, or all if none is named, so many at a time or as many as there are
    /// CPUs, and says each line that it prints.
    pub(crate) fn run(
        &self,
        threads: Option<u8>,
        tests: &[String],
        say: &mut dyn FnMut(&str),
    ) -> Outcome {
        let mut command = Command::new(&self.executable);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command.args(threads.map(|threads| format!("--test-threads={threads}")));
        if !tests.is_empty() {
            command.arg("--exact").args(tests);
        }
        follow(command, SILENCE_MAX, say)
    }
}

/// Runs a test program and says what it prints.
fn follow(command: Command, silence_max: Duration, say: &mut dyn FnMut(&str)) -> Outcome {
    let mut outcome = Outcome::default();
    match follow_to_end(command, silence_max, &mut outcome, say) {
        Ok(true) => {}
        Ok(false) => outcome.failure = Some(anyhow!(outcome.failed_tests.join(", "))),
        Err(error) => {
            outcome.counts.failed += 1;
            outcome.failure = Some(error);
        }
    }
    outcome
}

/// Says whether all tests passed; an error if the program did not come to an end.
fn follow_to_end(
    mut command: Command,
    silence_max: Duration,
    outcome: &mut Outcome,
    say: &mut dyn FnMut(&str),
) -> Result<bool> {
    let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start it")?;
    let stdout = child.stdout.take().context("it has no output")?;
    let (sender, lines) = channel();
    // Whoever the program has started may hold its output open for longer than it lives.
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines() {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let mut finished = false;
    let status = loop {
        let line = match lines.recv_timeout(silence_max) {
            Ok(line) => line?,
            Err(RecvTimeoutError::Disconnected) => break child.wait()?,
            Err(RecvTimeoutError::Timeout) => {
                child.kill().context("it is silent and cannot be stopped")?;
                child.wait()?;
                anyhow::bail!("stopped after {} s without a line of output", silence_max.as_secs());
            }
        };
        say(&line);
        if let Some(counts) = counts_in(&line) {
            outcome.counts = counts;
            finished = true;
        } else if let Some(name) = failed_test_in(&line) {
            outcome.failed_tests.push(name.to_owned());
        }
    };
    anyhow::ensure!(finished, "it ended before its tests did ({status})");
    Ok(status.success())
}

/// The counts in `test result: ok. 3 passed; 0 failed; …`.
fn counts_in(line: &str) -> Option<Counts> {
    let rest = line.strip_prefix("test result: ")?;
    let count = |word: &str| {
        let (before, _) = rest.split_once(word)?;
        before.split_whitespace().last()?.parse().ok()
    };
    Some(Counts { passed: count(" passed;")?, failed: count(" failed;")? })
}

/// The name in `test NAME ... FAILED`.
fn failed_test_in(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(passed: u64, failed: u64) -> Counts {
        Counts { passed, failed }
    }

    #[test]
    fn totals_are_read_from_the_harness() {
        let line =
            "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out";
        assert_eq!(counts_in(line), Some(told(12, 3)));
        assert_eq!(counts_in("test a::b ... ok"), None);
        assert_eq!(failed_test_in("test a::b ... FAILED"), Some("a::b"));
    }

    #[test]
    fn a_program_that_dies_counts_as_a_failure() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo running 2 tests; exit 101"]);
        let outcome = follow(command, SILENCE_MAX, &mut |_| ());
        assert!(outcome.failure.is_some());
        assert_eq!(outcome.counts, told(0, 1));
    }

    #[test]
    fn a_program_that_goes_round_in_circles_is_stopped() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo running 2 tests; exec sleep 1000"]);
        let outcome = follow(command, Duration::from_millis(200), &mut |_| ());
        let error = outcome.failure.unwrap();
        assert!(error.to_string().starts_with("stopped after"), "{error}");
        assert_eq!(outcome.counts, told(0, 1));
    }
}
