//! Runs tests with cargo-nextest: one process per test, with the groups, time limits and tiers of
//! `.config/nextest.toml`.

use std::fs;
use std::path::Path;
use std::thread::available_parallelism;

use anyhow::{Context, Result, bail, ensure};

use crate::output::print_line;
use crate::session::{FailedTest, Session, Tests};
use crate::unchanged::{self, TestPrograms};
use crate::{metadata, workspace};

/// Slots per CPU. A test that computes takes two (`threads-required` in the configuration), a test
/// that mostly waits takes one.
const SLOTS_PER_CPU: usize = 4;

/// Seed from which tests with random cases draw them, so that two runs of one commit test the same
/// cases.
const SEED: u64 = 1;

/// Environment variables that set the seeds of proptest and shuttle.
const SEED_VARIABLES: [&str; 2] = ["PROPTEST_RNG_SEED", "SHUTTLE_RANDOM_SEED"];

/// Exit codes of nextest (nextest-metadata, `NextestExitCode`).
const TESTS_FAILED: i32 = 100;
const BUILD_FAILED: i32 = 101;
const NO_TESTS_RUN: i32 = 4;

/// Selection of tests and parameters of their run, which differ between the tiers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection<'a> {
    /// Profile of `.config/nextest.toml`.
    pub(crate) profile: &'a str,
    /// Filterset; all tests of the profile's default filter if `None`.
    pub(crate) filter: Option<String>,
    /// The only package to build; the whole workspace if `None`.
    pub(crate) package: Option<&'a str>,
    /// Environment variables of the tests.
    pub(crate) environment: &'a [(&'a str, &'a str)],
    /// Seed of tests with random cases; [`SEED`] if `None`. Seeds that the user has set in the
    /// environment take precedence.
    pub(crate) seed: Option<u64>,
    /// Leaves out test programs that have not changed since all their tests passed.
    pub(crate) skips_unchanged: bool,
}

/// Runs the selected tests, and builds those that are not built yet.
///
/// # Errors
/// Something does not compile, nextest cannot be run, or no test is selected.
pub(crate) fn run(session: &Session, selection: &Selection<'_>) -> Result<Tests> {
    let root = session.root();
    // The report is in nextest's store, which does not follow CARGO_TARGET_DIR.
    let report = root.join("target/nextest").join(selection.profile).join("junit.xml");
    // A report of an earlier run must not be mistaken for the one of this run.
    if report.exists() {
        fs::remove_file(&report).with_context(|| format!("cannot remove {}", report.display()))?;
    }
    let seeds = seeds(selection.seed.unwrap_or(SEED));
    let mut programs = if selection.skips_unchanged {
        Some(TestPrograms::read(root, &metadata::read(root)?, &seeds)?)
    } else {
        None
    };
    let unchanged = programs.as_ref().map(TestPrograms::unchanged).unwrap_or_default();
    let changed_only = unchanged::filter_without(unchanged.keys().copied());
    let slots = SLOTS_PER_CPU * available_parallelism().map_or(1, usize::from);
    let mut command = workspace::build(root)?;
    command.args(["nextest", "run", "--profile", selection.profile, "--no-fail-fast"]);
    match selection.package {
        Some(package) => command.args(["--package", package]),
        None => command.arg("--workspace"),
    };
    if let Some(filter) = selection.filter.as_ref().or(changed_only.as_ref()) {
        command.args(["-E", filter]);
    }
    command.env("NEXTEST_TEST_THREADS", slots.to_string());
    command.envs(seeds.iter().map(|(name, seed)| (*name, seed)));
    print_line(format_args!("tests with random cases: {}", shell_assignments(&seeds)));
    command.envs(selection.environment.iter().copied());
    let status = session.run(&mut command)?;
    ensure!(!session.interrupt().is_received(), "interrupted");
    match status.code() {
        Some(0 | TESTS_FAILED) => {}
        Some(NO_TESTS_RUN) => bail!("the crate has no test of this name and tier"),
        Some(BUILD_FAILED) => bail!("the tests do not compile; see above"),
        _ => bail!("cargo nextest run failed ({status}); see the messages above"),
    }
    let text = fs::read_to_string(&report)
        .with_context(|| format!("nextest wrote no report {}", report.display()))?;
    let repeat_with = selection.seed.map(|_| shell_assignments(&seeds) + " ").unwrap_or_default();
    let mut tests = parse_report(&text, &repeat_with)?;
    if status.success() != tests.failed.is_empty() {
        bail!("nextest ended with {status}, its report has {} failures", tests.failed.len());
    }
    tests.unchanged = unchanged.values().sum();
    if let Some(programs) = &mut programs {
        programs.record(&tests)?;
    }
    Ok(tests)
}

/// Returns the seed of each kind of test with random cases: the user's value if it is set.
fn seeds(seed: u64) -> Vec<(&'static str, String)> {
    let value = |name| std::env::var(name).unwrap_or_else(|_| seed.to_string());
    SEED_VARIABLES.iter().map(|name| (*name, value(name))).collect()
}

/// Formats variables as a shell expects them before a command.
fn shell_assignments(variables: &[(&str, String)]) -> String {
    let assignments: Vec<String> =
        variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assignments.join(" ")
}

/// Parses the JUnit report that nextest writes. `repeat_with` precedes the commands that repeat a
/// test.
fn parse_report(text: &str, repeat_with: &str) -> Result<Tests> {
    let document = roxmltree::Document::parse(text).context("the JUnit report is not XML")?;
    let mut tests = Tests::default();
    for case in document.descendants().filter(|node| node.has_tag_name("testcase")) {
        let program = case.attribute("classname").context("a test case has no classname")?;
        let name = case.attribute("name").context("a test case has no name")?;
        let is_failed = case
            .children()
            .any(|child| child.has_tag_name("failure") || child.has_tag_name("error"));
        let counts = tests.programs.entry(program.to_owned()).or_default();
        if is_failed {
            counts.failed += 1;
            // A program's name begins with that of its package.
            let package = program.split("::").next().unwrap_or(program);
            tests.failed.push(FailedTest {
                name: format!("{program} {name}"),
                repeat_command: format!("{repeat_with}make test CRATE={package} TEST='{name}'"),
            });
        } else {
            counts.passed += 1;
            tests.passed += 1;
        }
    }
    Ok(tests)
}

/// Returns the filterset of one test, given as `TEST` or `PROGRAM TEST`.
pub(crate) fn test_filter(test: &str) -> String {
    match test.split_once(' ') {
        Some((program, name)) => format!("binary_id(={program}) & test(={name})"),
        None => format!("test({test})"),
    }
}

/// Returns an error that names the command to install nextest if it is missing.
pub(crate) fn check_installed(root: &Path) -> Result<()> {
    let output = workspace::cargo(root).args(["nextest", "--version"]).output()?;
    ensure!(output.status.success(), "cargo-nextest is not installed; run scripts/nextest");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passed_and_failed_tests_are_read_from_the_report() {
        let report = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="3" failures="1" errors="0">
  <testsuite name="suimon-vmq" tests="2" failures="1">
    <testcase name="a::b" classname="suimon-vmq" time="0.1"/>
    <testcase name="a::c" classname="suimon-vmq" time="0.1">
      <failure type="test failure with exit code 101">thread &apos;a::c&apos; panicked</failure>
    </testcase>
  </testsuite>
  <testsuite name="suimon-rig::disks"><testcase name="d" classname="suimon-rig::disks"/></testsuite>
</testsuites>"#;
        let tests = parse_report(report, "SEED=7 ").unwrap();
        assert_eq!(tests.passed, 2);
        assert_eq!(tests.programs["suimon-vmq"].failed, 1);
        assert_eq!(tests.programs["suimon-rig::disks"].passed, 1);
        assert_eq!(tests.failed[0].name, "suimon-vmq a::c");
        assert_eq!(tests.failed[0].repeat_command, "SEED=7 make test CRATE=suimon-vmq TEST='a::c'");
        assert!(parse_report("<testsuites>", "").is_err());
    }

    #[test]
    fn a_test_is_named_alone_or_with_its_program() {
        assert_eq!(test_filter("a::b"), "test(a::b)");
        assert_eq!(
            test_filter("suimon-rig::disks a::b"),
            "binary_id(=suimon-rig::disks) & test(=a::b)"
        );
    }
}
