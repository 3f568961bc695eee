//! One run of checks and tests: named stages, their durations, counts and failures, and the
//! summary that ends the output.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Error, Result, bail};

use crate::interrupt::Interrupt;
use crate::output::print_line;
use crate::run_folder::RunFolder;

/// Counts and failures of the tests that one stage ran.
#[derive(Debug, Default)]
pub(crate) struct Tests {
    pub(crate) passed: u64,
    /// Names of the failed tests, each with the command that repeats only that test.
    pub(crate) failed: Vec<FailedTest>,
    /// Checks that this machine cannot run, with the reason.
    pub(crate) not_run: Vec<String>,
    /// Counts of each test program, by its name in nextest.
    pub(crate) programs: BTreeMap<String, TestCounts>,
    /// Tests that were left out because their programs have not changed since they passed.
    pub(crate) unchanged: u64,
}

/// Counts of one test program.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TestCounts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

/// Failed test with the command that repeats it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FailedTest {
    pub(crate) name: String,
    pub(crate) repeat_command: String,
}

impl Tests {
    /// Returns the result of a stage that is a single check.
    pub(crate) fn one_check() -> Self {
        Self { passed: 1, ..Self::default() }
    }
}

/// State of a run. Stages run in the order of the calls of [`Session::stage`].
pub(crate) struct Session {
    root: PathBuf,
    interrupt: Interrupt,
    folder: RunFolder,
    started_at: Instant,
    stages: Vec<StageReport>,
    passed: u64,
    failures: Vec<String>,
    repeat_commands: Vec<String>,
    failed: u64,
    not_run: Vec<String>,
    unchanged: u64,
}

struct StageReport {
    name: String,
    duration: Duration,
    is_passed: bool,
}

impl Session {
    /// Starts a run in the workspace at `root`.
    ///
    /// # Errors
    /// Signal handlers cannot be installed, or /var/tmp cannot be written to.
    pub(crate) fn new(root: &Path) -> Result<Self> {
        Ok(Self {
            root: root.to_owned(),
            interrupt: Interrupt::install()?,
            folder: RunFolder::create()?,
            started_at: Instant::now(),
            stages: Vec::new(),
            passed: 0,
            failures: Vec::new(),
            repeat_commands: Vec::new(),
            failed: 0,
            not_run: Vec::new(),
            unchanged: 0,
        })
    }

    /// Returns the root of the workspace.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the signals that this run has received.
    pub(crate) fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// Runs a command to its end, with the run's folder for its temporary files.
    ///
    /// # Errors
    /// The command cannot be started or waited for.
    pub(crate) fn run(&self, command: &mut Command) -> Result<ExitStatus> {
        self.interrupt.run(command.env("TMPDIR", self.folder.path()))
    }

    /// Runs a check that has no count of its own.
    pub(crate) fn check(&mut self, name: &str, run: impl FnOnce(&Self) -> Result<()>) -> bool {
        self.stage(name, |session| run(session).map(|()| Tests::one_check()))
    }

    /// Runs a stage and records its result. Returns true if it passed. After an interrupt stages
    /// are skipped.
    pub(crate) fn stage(&mut self, name: &str, run: impl FnOnce(&Self) -> Result<Tests>) -> bool {
        if self.interrupt.is_received() {
            return false;
        }
        print_line(format_args!("==> {name}: started"));
        let started_at = Instant::now();
        let result = run(self);
        let duration = started_at.elapsed();
        let is_passed = self.record(name, result);
        let verdict = if is_passed { "passed" } else { "FAILED" };
        print_line(format_args!("==> {name}: {verdict} in {} s", duration.as_secs()));
        self.stages.push(StageReport { name: name.to_owned(), duration, is_passed });
        is_passed
    }

    fn record(&mut self, name: &str, result: Result<Tests, Error>) -> bool {
        match result {
            Ok(tests) => {
                self.passed += tests.passed;
                self.failed += tests.failed.len() as u64;
                self.not_run.extend(tests.not_run);
                self.unchanged += tests.unchanged;
                let is_passed = tests.failed.is_empty();
                for test in tests.failed {
                    self.failures.push(test.name);
                    self.repeat_commands.push(test.repeat_command);
                }
                is_passed
            }
            Err(error) => {
                print_line(format_args!("{name}: {error:#}"));
                self.failed += 1;
                self.failures.push(format!("{name}: {error:#}"));
                false
            }
        }
    }

    /// Prints the summary. The last line has the totals.
    ///
    /// # Errors
    /// A stage failed, no test ran, or the run was interrupted.
    pub(crate) fn finish(self) -> Result<()> {
        print_line("\nstage                                      result   seconds");
        for stage in &self.stages {
            let verdict = if stage.is_passed { "passed" } else { "FAILED" };
            print_line(format_args!(
                "{:42} {verdict}   {:7}",
                stage.name,
                stage.duration.as_secs()
            ));
        }
        print_line(format_args!(
            "{:42}          {:7}",
            "all stages",
            self.started_at.elapsed().as_secs()
        ));
        for part in &self.not_run {
            print_line(format_args!("NOT RUN {part}"));
        }
        for failure in &self.failures {
            print_line(format_args!("FAILED {failure}"));
        }
        for command in &self.repeat_commands {
            print_line(format_args!("repeat one test: {command}"));
        }
        if self.unchanged > 0 {
            print_line(format_args!(
                "{} tests were not repeated: they passed before and their programs are unchanged; \
                 `make test ALL=1` runs them",
                self.unchanged
            ));
        }
        print_line(format_args!("{} passed, {} failed", self.passed, self.failed));
        if self.interrupt.is_received() {
            bail!("interrupted; the remaining stages were not run");
        }
        if self.failed > 0 || self.passed == 0 {
            bail!("{} of {} checks and tests failed", self.failed, self.passed + self.failed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_stages_and_of_tests_are_counted() {
        let mut session = Session::new(Path::new("/")).unwrap();
        assert!(session.check("format", |_| Ok(())));
        assert!(!session.check("layers", |_| bail!("an edge goes up")));
        let failed =
            FailedTest { name: "a::b".to_owned(), repeat_command: "make test TEST=b".to_owned() };
        let tests = Tests { passed: 3, failed: vec![failed], ..Tests::default() };
        assert!(!session.stage("tests", |_| Ok(tests)));
        assert_eq!((session.passed, session.failed), (4, 2));
        assert_eq!(session.failures, ["layers: an edge goes up", "a::b"]);
        assert!(session.finish().is_err());
    }

    #[test]
    fn a_run_without_any_test_fails() {
        assert!(Session::new(Path::new("/")).unwrap().finish().is_err());
    }
}
