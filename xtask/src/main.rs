//! Checks and generators that cargo does not bring.
//!
//! - `layers`: which crate may use which, and the rules each floor's sources keep.
//! - `docs [--check]`: writes (or compares) what is generated from the code.
//! - `book`: makes a book of the documents and looks through it.
//! - `lengths`: lists files that grew beyond one subject.
//! - `test`: everything `make test` runs, with one line of totals at the end.
//!
//! It stands outside the floors: it may use anything, nothing may use it.
#![forbid(unsafe_code)]

mod book;
mod cpu_use;
mod doc_tests;
mod docs;
mod floors;
mod layers;
mod lengths;
mod metadata;
mod oldest_rust;
mod program_runs;
mod sources;
mod test_program;
mod test_run;
mod totals;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "usage: cargo xtask layers | docs [--check] | book | lengths | test [--quick]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str]) -> Result<()> {
    let root = workspace::root()?;
    match arguments {
        ["layers"] => layers::check(&root),
        ["docs"] => docs::write(&root),
        ["docs", "--check"] => docs::check(&root),
        ["book"] => book::check(&root),
        ["lengths"] => {
            lengths::report(&root)?;
            Ok(())
        }
        ["test"] => test_run::run(&root, test_run::Scope::All),
        ["test", "--quick"] => test_run::run(&root, test_run::Scope::WithoutRig),
        _ => bail!("{USAGE}"),
    }
}
