//! Commit id for build scripts: a program that contains it can be rebuilt to reproduce its results.
//! The program reads `env!("SUIMON_COMMIT")`.
//!
//! Without git or a repository, the commit is `unknown`.
#![forbid(unsafe_code)]

use std::process::Command;

/// Sets `SUIMON_COMMIT` for the crate of the calling build script.
pub fn set_commit() {
    let commit = git(&["rev-parse", "--short=12", "HEAD"]);
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]);
    let revision = match (commit, changed) {
        (Some(commit), Some(changed)) if changed.is_empty() => commit,
        (Some(commit), _) => format!("{commit} and changes"),
        (None, _) => "unknown".to_owned(),
    };
    println!("cargo::rustc-env=SUIMON_COMMIT={revision}");
    println!("cargo::rerun-if-changed=src");
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
}

/// Returns the output of git; `None` without git or outside of a repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
