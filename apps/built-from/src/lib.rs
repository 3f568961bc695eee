//! For build scripts: tells the program from which commit it is built, so that what it found can
//! be made again. The program reads `env!("SUIMON_COMMIT")`.
//!
//! It needs no repository: without one, or without git, the commit is `unknown`.
#![forbid(unsafe_code)]

use std::process::Command;

/// Sets `SUIMON_COMMIT` for the crate whose build script this is called from.
pub fn tell() {
    let commit = git(&["rev-parse", "--short=12", "HEAD"]);
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]);
    let told = match (commit, changed) {
        (Some(commit), Some(changed)) if changed.is_empty() => commit,
        (Some(commit), _) => format!("{commit} and changes"),
        (None, _) => "unknown".to_owned(),
    };
    println!("cargo::rustc-env=SUIMON_COMMIT={told}");
    println!("cargo::rerun-if-changed=src");
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
}

/// What git says, if it is here and this is a repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
