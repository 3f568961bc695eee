//! Runs tests with cargo-nextest: one process per test, with the groups, time limits and tiers of
//! `.config/nextest.toml`.

use std::fs;
use std::path::Path;
use std::thread::available_parallelism;

use anyhow::{Context, Result, bail, ensure};

use crate::session::{FailedTest, Session, Tests};
use crate::workspace;

/// Slots per CPU. A test that computes takes as many (`threads-required` in the configuration), a
/// test that mostly waits takes one.
const SLOTS_PER_CPU: usize = 4;

/// Seed from which property tests draw their cases, so that two runs of one commit test the same
/// cases.
const PROPERTY_SEED: u64 = 1;

/// Environment variable of proptest that sets the seed.
const PROPERTY_SEED_VARIABLE: &str = "PROPTEST_RNG_SEED";

/// Exit code of nextest when tests failed (nextest-metadata, `NextestExitCode::TEST_RUN_FAILED`).
const TESTS_FAILED: i32 = 100;

/// Tests to run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection<'a> {
    /// Profile of `.config/nextest.toml`.
    pub(crate) profile: &'a str,
    /// Filterset; all tests of the profile's default filter if `None`.
    pub(crate) filter: Option<String>,
    /// The only package to build and test; the whole workspace if `None`.
    pub(crate) package: Option<&'a str>,
    /// Environment variables of the tests.
    pub(crate) environment: &'a [(&'a str, &'a str)],
    /// Seed of the property tests; [`PROPERTY_SEED`] if `None`. A seed that the user has set in
    /// the environment takes precedence.
    pub(crate) property_seed: Option<u64>,
}

/// Runs the selected tests, which must be built or are built by this.
///
/// # Errors
/// Something does not compile, nextest cannot be run, or no test is selected.
pub(crate) fn run(session: &Session, selection: &Selection<'_>) -> Result<Tests> {
    let root = session.root();
    // In nextest's store, which does not follow CARGO_TARGET_DIR.
    let report = root.join("target/nextest").join(selection.profile).join("junit.xml");
    // A report of an earlier run must not be taken for this one's.
    if report.exists() {
        fs::remove_file(&report).with_context(|| format!("cannot remove {}", report.display()))?;
    }
    let slots = SLOTS_PER_CPU * available_parallelism().map_or(1, usize::from);
    let mut command = workspace::build(root)?;
    command.args(["nextest", "run", "--profile", selection.profile, "--no-fail-fast"]);
    match selection.package {
        Some(package) => command.args(["--package", package]),
        None => command.arg("--workspace"),
    };
    if let Some(filter) = &selection.filter {
        command.args(["-E", filter]);
    }
    command.env("NEXTEST_TEST_THREADS", slots.to_string());
    if std::env::var_os(PROPERTY_SEED_VARIABLE).is_none() {
        let seed = selection.property_seed.unwrap_or(PROPERTY_SEED);
        command.env(PROPERTY_SEED_VARIABLE, seed.to_string());
        println!("property tests: {PROPERTY_SEED_VARIABLE}={seed}");
    }
    command.envs(selection.environment.iter().copied());
    let status = session.interrupt().run(&mut command)?;
    ensure!(!session.interrupt().is_received(), "interrupted");
    ensure!(
        status.success() || status.code() == Some(TESTS_FAILED),
        "cargo nextest run failed ({status}); see the messages above"
    );
    let text = fs::read_to_string(&report)
        .with_context(|| format!("nextest wrote no report {}", report.display()))?;
    let tests = parse_report(&text)?;
    ensure!(tests.passed > 0 || !tests.failed.is_empty(), "no test was selected");
    if status.success() != tests.failed.is_empty() {
        bail!("nextest ended with {status}, its report has {} failures", tests.failed.len());
    }
    Ok(tests)
}

/// Parses the JUnit report that nextest writes.
fn parse_report(text: &str) -> Result<Tests> {
    let document = roxmltree::Document::parse(text).context("the JUnit report is not XML")?;
    let mut tests = Tests::default();
    for case in document.descendants().filter(|node| node.has_tag_name("testcase")) {
        let program = case.attribute("classname").context("a test case has no classname")?;
        let name = case.attribute("name").context("a test case has no name")?;
        let is_failed = case
            .children()
            .any(|child| child.has_tag_name("failure") || child.has_tag_name("error"));
        if is_failed {
            tests.failed.push(FailedTest {
                name: format!("{program} {name}"),
                repeat_command: format!("make test TEST='{program} {name}'"),
            });
        } else {
            tests.passed += 1;
        }
    }
    Ok(tests)
}

/// Returns the filterset of one test, given as `TEST` or `PROGRAM TEST`.
pub(crate) fn filter_of_test(test: &str) -> String {
    match test.split_once(' ') {
        Some((program, name)) => format!("binary_id(={program}) & test(={name})"),
        None => format!("test({test})"),
    }
}

/// Returns an error that names the command to install nextest if it is missing.
pub(crate) fn check_installed(root: &Path) -> Result<()> {
    let output = workspace::cargo(root).args(["nextest", "--version"]).output()?;
    ensure!(output.status.success(), "cargo-nextest is not installed; run `make setup`");
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
        let tests = parse_report(report).unwrap();
        assert_eq!(tests.passed, 2);
        assert_eq!(tests.failed[0].name, "suimon-vmq a::c");
        assert_eq!(tests.failed[0].repeat_command, "make test TEST='suimon-vmq a::c'");
        assert!(parse_report("<testsuites>").is_err());
    }

    #[test]
    fn a_test_is_named_alone_or_with_its_program() {
        assert_eq!(filter_of_test("a::b"), "test(a::b)");
        assert_eq!(
            filter_of_test("suimon-rig::disks a::b"),
            "binary_id(=suimon-rig::disks) & test(=a::b)"
        );
    }
}
