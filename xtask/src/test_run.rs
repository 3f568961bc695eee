//! `make test`: every check and every test, in one order, with one line of totals
//! at the end. Everything is compiled once; then test programs run, in an order in
//! which those that load the machine do not disturb others.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::cpu_use::Moment;
use crate::oldest_rust::{self, Checked};
use crate::test_program::TestProgram;
use crate::totals::Totals;
use crate::{book, doc_tests, docs, layers, lengths, program_runs, workspace};

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Everything.
    All,
    /// Without the tests that start daemons, namespaces and guests.
    WithoutRig,
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
    let began = Moment::now();
    // Beside tests with time of their own, of which many wait.
    let oldest = program_runs::run_own(root, &programs, &mut totals, || oldest_rust::check(root))
        .unwrap_or_else(|_| bail!("the check panicked"));
    if matches!(oldest, Ok(Checked::NotHere)) {
        totals.unchecked.push("the oldest Rust: it is not here".to_owned());
    }
    totals.step("own tests beside the oldest Rust", oldest.map(drop), began);
    program_runs::run_real(root, &programs, &mut totals, scope == Scope::All);
    let began = Moment::now();
    let documented = doc_tests::run(root);
    let name = format!("doc tests of {} crates", *documented.as_ref().unwrap_or(&0));
    totals.step(&name, documented.map(drop), began);
    let has_failed = totals.failed > 0;
    totals.tell();
    if has_failed {
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

/// Compiles all programs and all tests; returns the tests, by folder and name.
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
    // The rig starts the programs themselves, and a driver of disks' rings that is an example.
    // Asked for beside the tests they are made of the same libraries; by themselves they would be
    // made of others, because tests switch on features, and compile most of it again.
    cargo(root, &["build", "--workspace", "--all-targets", "--quiet"])?;
    programs.sort_by_key(|program| (program.folder.clone(), program.name.clone()));
    Ok(programs)
}
