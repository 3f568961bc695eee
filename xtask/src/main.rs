//! Checks, generators and the test tiers.
//!
//! - `layers`: which crate may depend on which, and the rules that each layer's sources keep.
//! - `cycles [CRATE]`: lists source files of a crate that import each other.
//! - `docs [--check]`: writes (or compares) the documents that are generated from the code.
//! - `book`: builds the book and checks its links.
//! - `specification`: checks that promises name existing tests and their tier, and that names in
//!   ARCHITECTURE.md are in their files.
//! - `lengths`: lists files and crates that are longer than one subject usually is.
//! - `test [--package NAME] [--test NAME]`: the checks and tests that guard a change, except test
//!   programs that have not changed since their tests passed.
//! - `test --all`: all of them.
//! - `test-full [PART ...]`: every test, in parts.
//! - `campaign [PART ...]`: open-ended runs.
//!
//! This crate is outside the layers: it may use anything, nothing may use it.
#![forbid(unsafe_code)]

mod architecture;
mod book;
mod cycles;
mod doc_tests;
mod docs;
mod imports;
mod interrupt;
mod layer_rules;
mod layers;
mod lengths;
mod metadata;
mod module_tree;
mod nextest;
mod oldest_rust;
mod output;
mod resource_bounds;
mod run_folder;
mod session;
mod sources;
mod specification;
mod tiers;
mod unchanged;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::session::Session;
use crate::tiers::{CAMPAIGNS, FULL, Part};

const USAGE: &str = "usage: cargo xtask layers | cycles [CRATE] | docs [--check] | book | specification | lengths \
    | test [--all] [--package NAME] [--test NAME] | test-full [PART ...] | campaign [PART ...]";

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
        ["cycles"] => cycles::check(&root, None),
        ["cycles", name] => cycles::check(&root, Some(name)),
        ["docs"] => docs::write(&root),
        ["docs", "--check"] => docs::check(&root),
        ["book"] => book::check(&Session::new(&root)?),
        ["specification"] => {
            specification::check(&root)?;
            architecture::check(&root)?;
            resource_bounds::check(&root)
        }
        ["lengths"] => lengths::report(&root),
        ["test", "--package", name] => in_session(|session| tiers::package(session, name, None)),
        ["test", "--package", name, "--test", test] => {
            in_session(|session| tiers::package(session, name, Some(test)))
        }
        ["test", "--test", test] => in_session(|session| tiers::one_test(session, test)),
        ["test"] => in_session(tiers::guard),
        ["test", "--all"] => in_session(tiers::guard_all),
        ["test-full", parts @ ..] => run_parts(FULL, parts),
        ["campaign"] => bail!("name a campaign:{}", list(CAMPAIGNS)),
        ["campaign", parts @ ..] => run_parts(CAMPAIGNS, parts),
        _ => bail!("{USAGE}\nparts of test-full:{}\ncampaigns:{}", list(FULL), list(CAMPAIGNS)),
    }
}

fn run_parts(parts: &[Part], names: &[&str]) -> Result<()> {
    in_session(|session| tiers::run_parts(session, parts, names))
}

fn in_session(run: impl FnOnce(&mut Session) -> Result<()>) -> Result<()> {
    let mut session = Session::new(&workspace::root()?)?;
    run(&mut session)?;
    session.finish()
}

fn list(parts: &[Part]) -> String {
    parts.iter().map(|part| format!("\n  {:12} {}", part.name, part.description)).collect()
}
