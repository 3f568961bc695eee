//! `make test`: every check and every test, in one order, with one line of totals
//! at the end. Everything is compiled once; the test programs are then run one
//! after the other, so that tests that load the machine do not disturb each other.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::{docs, layers, lengths, workspace};

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Everything.
    All,
    /// Without the tests that start daemons, namespaces and guests.
    WithoutRig,
}

/// The crate whose tests drive real parts and must run one at a time.
const RIG: &str = "testing/rig";

/// Test programs of it whose tests mostly wait for timers of a protocol, each in devices of
/// its own, and how many of them run at a time.
const PATIENT: &[(&str, u8)] = &[("lacp_conformance", 4)];

/// A test program that prints nothing for so long goes round in circles; what it would
/// have told is worth less than what the others tell. The longest test takes a third of it.
const SILENCE_MAX: Duration = Duration::from_secs(600);

#[derive(Default)]
struct Totals {
    passed: u64,
    failed: u64,
    /// What failed, to be read without scrolling.
    failures: Vec<String>,
}

impl Totals {
    fn step(&mut self, name: &str, result: Result<()>, began: Instant) {
        let seconds = began.elapsed().as_secs();
        match result {
            Ok(()) => {
                self.passed += 1;
                println!("==> {name}: passed ({seconds} s)");
            }
            Err(error) => {
                self.failed += 1;
                self.failures.push(format!("{name}: {error:#}"));
                println!("==> {name}: FAILED ({seconds} s): {error:#}");
            }
        }
    }
}

/// Runs all steps, even after one failed, and prints the totals last.
pub(crate) fn run(root: &Path, scope: Scope) -> Result<()> {
    let mut totals = Totals::default();
    let began = Instant::now();
    totals.step("format", cargo(root, &["fmt", "--all", "--check"]), began);
    let began = Instant::now();
    totals.step("floors", layers::check(root), began);
    lengths::report(root)?;
    let began = Instant::now();
    totals.step("clippy", clippy(root), began);
    let began = Instant::now();
    let programs = test_programs(root);
    totals.step(
        "build",
        programs.as_ref().map(|_| ()).map_err(|e| anyhow::anyhow!("{e:#}")),
        began,
    );
    let began = Instant::now();
    totals.step("generated documents", docs::check(root), began);
    for program in programs.unwrap_or_default() {
        let rig = program.folder.ends_with(RIG);
        if scope == Scope::WithoutRig && rig {
            continue;
        }
        run_program(&program, rig, &mut totals);
    }
    let began = Instant::now();
    totals.step("doc tests", cargo(root, &["test", "--workspace", "--doc", "--quiet"]), began);

    for failure in &totals.failures {
        println!("FAILED {failure}");
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

/// A compiled test program and the folder of its crate.
struct TestProgram {
    name: String,
    folder: PathBuf,
    executable: PathBuf,
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
    programs.sort_by_key(|program| {
        (program.folder.ends_with(RIG), program.folder.clone(), program.name.clone())
    });
    Ok(programs)
}

fn run_program(program: &TestProgram, one_at_a_time: bool, totals: &mut Totals) {
    let folder = program.folder.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let title = format!("{folder} / {}", program.name);
    let began = Instant::now();
    let mut command = Command::new(&program.executable);
    command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder);
    if one_at_a_time {
        let patient = PATIENT.iter().find(|(name, _)| *name == program.name);
        let threads = patient.map_or(1, |(_, threads)| *threads);
        command.arg(format!("--test-threads={threads}"));
    }
    let result = counted(command, SILENCE_MAX, totals);
    match result {
        Ok(()) => println!("==> {title}: passed ({} s)", began.elapsed().as_secs()),
        Err(error) => {
            println!("==> {title}: FAILED: {error:#}");
            totals.failures.push(format!("{title}: {error:#}"));
        }
    }
}

/// Runs a test program, shows what it prints and adds up its totals. A program
/// that dies before its totals counts as one failure, and so does one that is silent for
/// so long that it is stopped.
fn counted(mut command: Command, silence_max: Duration, totals: &mut Totals) -> Result<()> {
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
    let mut failed_tests = Vec::new();
    let status = loop {
        let line = match lines.recv_timeout(silence_max) {
            Ok(line) => line?,
            Err(RecvTimeoutError::Disconnected) => break child.wait()?,
            Err(RecvTimeoutError::Timeout) => {
                child.kill().context("it is silent and cannot be stopped")?;
                child.wait()?;
                totals.failed += 1;
                bail!("stopped after {} s without a line of output", silence_max.as_secs());
            }
        };
        println!("{line}");
        if let Some((passed, failed)) = totals_in(&line) {
            totals.passed += passed;
            totals.failed += failed;
            finished = true;
        } else if let Some(name) = failed_test_in(&line) {
            failed_tests.push(name.to_owned());
        }
    };
    if !finished {
        totals.failed += 1;
        bail!("it ended before its tests did ({status})");
    }
    ensure!(status.success(), "{}", failed_tests.join(", "));
    Ok(())
}

/// The counts in `test result: ok. 3 passed; 0 failed; …`.
fn totals_in(line: &str) -> Option<(u64, u64)> {
    let rest = line.strip_prefix("test result: ")?;
    let count = |word: &str| {
        let (before, _) = rest.split_once(word)?;
        before.split_whitespace().last()?.parse().ok()
    };
    Some((count(" passed;")?, count(" failed;")?))
}

/// The name in `test NAME ... FAILED`.
fn failed_test_in(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read_from_the_harness() {
        let line =
            "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out";
        assert_eq!(totals_in(line), Some((12, 3)));
        assert_eq!(totals_in("test a::b ... ok"), None);
        assert_eq!(failed_test_in("test a::b ... FAILED"), Some("a::b"));
    }

    #[test]
    fn a_program_that_dies_counts_as_a_failure() {
        let mut totals = Totals::default();
        let mut command = Command::new("sh");
        command.args(["-c", "echo running 2 tests; exit 101"]);
        assert!(counted(command, SILENCE_MAX, &mut totals).is_err());
        assert_eq!((totals.passed, totals.failed), (0, 1));
    }

    #[test]
    fn a_program_that_goes_round_in_circles_is_stopped() {
        let mut totals = Totals::default();
        let mut command = Command::new("sh");
        command.args(["-c", "echo running 2 tests; exec sleep 1000"]);
        let error = counted(command, Duration::from_millis(200), &mut totals).unwrap_err();
        assert!(error.to_string().starts_with("stopped after"), "{error}");
        assert_eq!((totals.passed, totals.failed), (0, 1));
    }
}
