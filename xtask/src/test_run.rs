//! `make test`: every check and every test, in one order, with one line of totals
//! at the end. Everything is compiled once; the test programs are then run one
//! after the other, so that tests that load the machine do not disturb each other.

use std::collections::BinaryHeap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::cpu_use::Moment;
use crate::oldest_rust::{self, Checked};
use crate::test_program::{Kind, TestProgram};
use crate::{book, doc_tests, docs, layers, lengths, workspace};

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Everything.
    All,
    /// Without the tests that start daemons, namespaces and guests.
    WithoutRig,
}

/// The crates whose tests use real time and parts nobody here wrote.
const REAL: &str = "testing";

/// Of them the one whose tests start daemons and guests and must run one at a time.
const RIG: &str = "testing/rig";

/// Test programs of it whose tests mostly wait for timers of a protocol, each in devices of
/// its own, and how many of them run at a time.
const PATIENT: &[(&str, u8)] = &[("lacp_conformance", 4)];

/// A driver of disks' rings, which tests of the rig start, too.
const DRIVER: &str = "disk_speed";

/// So many test programs may have tests run a second time. If more need that, it is not
/// the machine.
const SECOND_RUNS_MAX: usize = 3;

#[derive(Default)]
struct Totals {
    passed: u64,
    failed: u64,
    /// What failed, to be read without scrolling.
    failures: Vec<String>,
    /// What passed only when it was run again.
    second_runs: Vec<String>,
    /// What was run, by seconds, with the words for it.
    longest: BinaryHeap<(u64, String)>,
}

/// So many of the longest steps are told at the end.
const LONGEST: usize = 12;

impl Totals {
    fn step(&mut self, name: &str, result: Result<()>, began: Moment) {
        let took = self.took(name, began);
        match result {
            Ok(()) => {
                self.passed += 1;
                println!("==> {name}: passed ({took})");
            }
            Err(error) => {
                self.failed += 1;
                self.failures.push(format!("{name}: {error:#}"));
                println!("==> {name}: FAILED ({took}): {error:#}");
            }
        }
    }

    /// Keeps in mind how long something took, and says so.
    fn took(&mut self, name: &str, began: Moment) -> String {
        let took = began.told();
        self.longest.push((began.seconds(), format!("{name} ({took})")));
        took
    }
}

/// Runs all steps, even after one failed, and prints the totals last.
pub(crate) fn run(root: &Path, scope: Scope) -> Result<()> {
    let mut totals = Totals::default();
    let began = Moment::now();
    totals.step("format", cargo(root, &["fmt", "--all", "--check"]), began);
    let began = Moment::now();
    totals.step("floors", layers::check(root), began);
    lengths::report(root)?;
    // First, because the page goes into the daemon.
    let began = Moment::now();
    totals.step("the console's page", console(root), began);
    let began = Moment::now();
    totals.step("clippy", clippy(root), began);
    let began = Moment::now();
    let programs = test_programs(root);
    totals.step(
        "build",
        programs.as_ref().map(|_| ()).map_err(|e| anyhow::anyhow!("{e:#}")),
        began,
    );
    let began = Moment::now();
    totals.step("generated documents", docs::check(root), began);
    let began = Moment::now();
    totals.step("the book", book::check(root), began);
    let programs = programs.unwrap_or_default();
    let (own, real): (Vec<_>, Vec<_>) =
        programs.into_iter().partition(|of| kind_of(root, of) == Kind::Own);
    let began = Moment::now();
    // Beside tests with time of their own, of which many wait; those of real time run alone.
    let oldest = std::thread::scope(|scope| {
        let oldest = scope.spawn(|| oldest_rust::check(root));
        for program in &own {
            run_program(root, program, &mut totals);
        }
        oldest.join().unwrap_or_else(|_| bail!("the check panicked"))
    });
    let is_unchecked = matches!(oldest, Ok(Checked::NotHere));
    totals.step("own tests beside the oldest Rust", oldest.map(drop), began);
    for program in &real {
        if scope == Scope::WithoutRig && program.folder.ends_with(RIG) {
            continue;
        }
        run_program(root, program, &mut totals);
    }
    let began = Moment::now();
    let documented = doc_tests::run(root);
    let name = format!("doc tests of {} crates", *documented.as_ref().unwrap_or(&0));
    totals.step(&name, documented.map(drop), began);

    for (_, step) in (0..LONGEST).map_while(|_| totals.longest.pop()) {
        println!("LONGEST {step}");
    }
    for failure in &totals.failures {
        println!("FAILED {failure}");
    }
    for tests in &totals.second_runs {
        println!("AT THE SECOND RUN ONLY {tests}");
    }
    if is_unchecked {
        println!("NOT CHECKED the oldest Rust: it is not here");
    }
    println!("{} passed, {} failed", totals.passed, totals.failed);
    if totals.failed > 0 {
        std::process::exit(1);
    }
    Ok(())
}

/// Warnings are errors with the compiler this is developed with; a newer one
/// brings lints nobody has seen, which must not break a build.
fn clippy(root: &Path) -> Result<()> {
    let mut arguments = vec!["clippy", "--workspace", "--all-targets", "--quiet"];
    if pinned_compiler(root)? {
        arguments.extend(["--", "-D", "warnings"]);
    }
    cargo(root, &arguments)
}

/// Builds the page, and checks and tests what of it needs no daemon.
fn console(root: &Path) -> Result<()> {
    let script = root.join("scripts/console");
    let status = Command::new(&script).arg("--check").status();
    let status = status.with_context(|| format!("cannot run {}", script.display()))?;
    ensure!(status.success(), "scripts/console --check failed");
    Ok(())
}

fn pinned_compiler(root: &Path) -> Result<bool> {
    let toolchain = std::fs::read_to_string(root.join("rust-toolchain.toml"))?;
    let pinned = toolchain.split('"').nth(1).context("rust-toolchain.toml names no channel")?;
    let output = workspace::cargo(root).arg("--version").output()?;
    Ok(String::from_utf8_lossy(&output.stdout).split_whitespace().nth(1) == Some(pinned))
}

fn cargo(root: &Path, arguments: &[&str]) -> Result<()> {
    let status = workspace::cargo(root).args(arguments).status().context("cannot run cargo")?;
    ensure!(status.success(), "cargo {} failed", arguments.join(" "));
    Ok(())
}

#[derive(Deserialize)]
struct Message {
    reason: String,
    manifest_path: Option<PathBuf>,
    executable: Option<PathBuf>,
    profile: Option<Profile>,
    target: Option<Target>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

/// Compiles all programs and all tests; returns the tests, those of the rig last.
fn test_programs(root: &Path) -> Result<Vec<TestProgram>> {
    let mut child = workspace::cargo(root)
        .args(["test", "--workspace", "--all-targets", "--no-run", "--quiet"])
        .arg("--message-format=json-render-diagnostics")
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run cargo test --no-run")?;
    let mut programs = Vec::new();
    let stdout = child.stdout.take().context("cargo has no output")?;
    for line in BufReader::new(stdout).lines() {
        let Ok(message) = serde_json::from_str::<Message>(&line?) else { continue };
        let (Some(executable), Some(manifest), Some(profile), Some(target)) =
            (message.executable, message.manifest_path, message.profile, message.target)
        else {
            continue;
        };
        if message.reason == "compiler-artifact" && profile.test {
            let folder = manifest.parent().unwrap_or(root).to_owned();
            programs.push(TestProgram { name: target.name, folder, executable });
        }
    }
    if !child.wait()?.success() {
        bail!("the tests do not compile");
    }
    // The rig starts the programs themselves, as they are installed.
    cargo(root, &["build", "--workspace", "--bins", "--quiet"])?;
    cargo(root, &["build", "--package", "suimon-vhost-user", "--example", DRIVER, "--quiet"])?;
    programs.sort_by_key(|program| {
        (program.folder.ends_with(RIG), program.folder.clone(), program.name.clone())
    });
    Ok(programs)
}

/// Runs a program and adds up its totals. Tests of real time that fail are run once more,
/// each alone, and are told whatever comes of it: decision 20.
fn run_program(root: &Path, program: &TestProgram, totals: &mut Totals) {
    let title = program.title();
    let began = Moment::now();
    let kind = kind_of(root, program);
    let first = program.run(kind, &[]);
    let mut counts = first.counts;
    let mut failure = first.failure;
    let may_repeat = kind != Kind::Own && totals.second_runs.len() < SECOND_RUNS_MAX;
    if failure.is_some() && may_repeat && !first.failed_tests.is_empty() {
        println!("==> {title}: run again: {}", first.failed_tests.join(", "));
        let second = program.run(Kind::Alone, &first.failed_tests);
        if second.failure.is_none() && second.counts.passed == counts.failed {
            counts.passed += counts.failed;
            counts.failed = 0;
            totals.second_runs.push(format!("{title}: {}", first.failed_tests.join(", ")));
            failure = None;
        }
    }
    totals.passed += counts.passed;
    totals.failed += counts.failed;
    match failure {
        None => println!("==> {title}: passed ({})", totals.took(&title, began)),
        Some(error) => {
            println!("==> {title}: FAILED ({}): {error:#}", totals.took(&title, began));
            totals.failures.push(format!("{title}: {error:#}"));
        }
    }
}

fn kind_of(root: &Path, program: &TestProgram) -> Kind {
    if program.folder.ends_with(RIG) {
        let patient = PATIENT.iter().find(|(name, _)| *name == program.name);
        return patient.map_or(Kind::Alone, |(_, threads)| Kind::Side(*threads));
    }
    if program.folder.starts_with(root.join(REAL)) { Kind::Real } else { Kind::Own }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A program whose only test fails for the first so many runs.
    fn failing(root: &Path, folder: &str, times: u32) -> TestProgram {
        let folder = root.join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        let executable = folder.join("program");
        let script = format!(
            "#!/bin/sh\n\
             echo \"$*\" >> runs\n\
             if [ \"$(wc -l < runs)\" -le {times} ]; then\n\
             echo 'test a_test ... FAILED'\n\
             echo 'test result: FAILED. 4 passed; 1 failed; 0 ignored'; exit 101\n\
             fi\n\
             echo 'test result: ok. 1 passed; 0 failed; 0 ignored'\n"
        );
        std::fs::write(&executable, script).unwrap();
        std::fs::set_permissions(&executable, PermissionsExt::from_mode(0o755)).unwrap();
        TestProgram { name: "program".to_owned(), folder, executable }
    }

    fn runs(program: &TestProgram) -> Vec<String> {
        let told = std::fs::read_to_string(program.folder.join("runs")).unwrap();
        told.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_test_of_real_time_that_fails_is_run_once_more_and_told() {
        let root = tempfile::tempdir().unwrap();
        let mut totals = Totals::default();
        let once = failing(root.path(), "testing/once", 1);
        run_program(root.path(), &once, &mut totals);
        assert_eq!(runs(&once), ["", "--test-threads=1 --exact a_test"]);
        assert_eq!((totals.passed, totals.failed), (5, 0));
        assert_eq!(totals.second_runs, ["once / program: a_test"]);

        let always = failing(root.path(), "testing/always", 9);
        run_program(root.path(), &always, &mut totals);
        assert_eq!(runs(&always).len(), 2);
        assert_eq!((totals.passed, totals.failed), (9, 1));
        assert_eq!(totals.failures, ["always / program: a_test"]);
    }

    #[test]
    fn other_tests_fail_at_once_and_so_do_all_when_many_do() {
        let root = tempfile::tempdir().unwrap();
        let mut totals = Totals::default();
        let own = failing(root.path(), "plane/own", 1);
        run_program(root.path(), &own, &mut totals);
        assert_eq!((runs(&own).len(), totals.failed), (1, 1));
        for nth in 0..=SECOND_RUNS_MAX {
            let program = failing(root.path(), &format!("testing/{nth}"), 1);
            run_program(root.path(), &program, &mut totals);
        }
        assert_eq!(totals.second_runs.len(), SECOND_RUNS_MAX);
        assert_eq!(totals.failures.len(), 2);
    }
}
