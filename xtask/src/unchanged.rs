//! Test programs that have not changed since all their tests passed. `make test` does not run them
//! again: with the same program, files, installed packages, kernel and seeds, the result is the
//! same.
//!
//! Programs of packages that start programs of other packages always run, and those of this
//! package, which read the sources of all others.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::metadata::{Metadata, Package};
use crate::session::Tests;
use crate::workspace;

/// Files that determine how tests run.
const RUNNER_FILES: [&str; 3] =
    [".config/nextest.toml", "scripts/isolated", "scripts/reuse-freed-memory"];

/// Folder of the inputs that corpus tests of several packages replay.
const CORPUS: &str = "fuzz/corpus";

/// State of the installed packages and of the kernel, which tests use.
const SYSTEM_FILES: [&str; 3] =
    ["/var/lib/dpkg/status", "/proc/sys/kernel/osrelease", "/proc/sys/kernel/version"];

/// Fingerprint of each test program that may be left out, by its name in nextest (`binary_id`).
#[derive(Debug)]
pub(crate) struct TestPrograms {
    fingerprints: BTreeMap<String, u64>,
    passed: BTreeMap<String, PassedProgram>,
    file: PathBuf,
}

/// Test program whose tests passed, as it is stored.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
struct PassedProgram {
    fingerprint: u64,
    /// Number of tests that passed.
    tests: u64,
}

/// The part of the output of `cargo nextest list --list-type binaries-only` that is read here.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct List {
    rust_binaries: BTreeMap<String, ListedProgram>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct ListedProgram {
    package_id: String,
    binary_path: PathBuf,
}

impl TestPrograms {
    /// Reads the built test programs of the fast tier and the record of those that passed.
    /// `environment` is what their results depend on beside the files.
    ///
    /// # Errors
    /// nextest cannot list the programs, or a file cannot be read.
    pub(crate) fn read(
        root: &Path,
        metadata: &Metadata,
        environment: &[(&str, String)],
    ) -> Result<Self> {
        let mut command = workspace::build(root)?;
        command.args(["nextest", "list", "--workspace", "--cargo-quiet"]);
        let output = command
            .args(["--list-type", "binaries-only", "--message-format", "json"])
            .output()
            .context("cannot run cargo nextest list")?;
        ensure!(
            output.status.success(),
            "cargo nextest list failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        let list: List = serde_json::from_slice(&output.stdout)
            .context("cargo nextest list wrote unknown JSON")?;
        let mut shared = DefaultHasher::new();
        environment.hash(&mut shared);
        for file in SYSTEM_FILES {
            // A system without dpkg has no such file.
            fs::read(file).ok().hash(&mut shared);
        }
        for file in RUNNER_FILES {
            hash_file(&root.join(file), &mut shared)?;
        }
        hash_files(&root.join(CORPUS), &mut shared)?;
        let fingerprints = fingerprints(&list, metadata, &shared)?;
        let file = record_file(metadata);
        // A record that is missing or unreadable is one without programs.
        let passed = fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok());
        Ok(Self { fingerprints, passed: passed.unwrap_or_default(), file })
    }

    /// Returns the programs that have not changed since all their tests passed, with the number of
    /// these tests.
    pub(crate) fn unchanged(&self) -> BTreeMap<&str, u64> {
        let unchanged = self.passed.iter().filter(|(name, passed)| {
            self.fingerprints.get(*name).is_some_and(|current| *current == passed.fingerprint)
        });
        unchanged.map(|(name, passed)| (name.as_str(), passed.tests)).collect()
    }

    /// Stores which programs passed in a run.
    ///
    /// # Errors
    /// The record cannot be written.
    pub(crate) fn record(&mut self, tests: &Tests) -> Result<()> {
        for (name, counts) in &tests.programs {
            match self.fingerprints.get(name) {
                Some(&fingerprint) if counts.failed == 0 => {
                    let passed = PassedProgram { fingerprint, tests: counts.passed };
                    self.passed.insert(name.clone(), passed);
                }
                _ => drop(self.passed.remove(name)),
            }
        }
        let text = serde_json::to_vec_pretty(&self.passed)?;
        fs::write(&self.file, text).with_context(|| format!("cannot write {}", self.file.display()))
    }
}

/// Deletes the record of passed programs, so that the next run of the tests is a complete one.
///
/// # Errors
/// The record exists and cannot be deleted.
pub(crate) fn forget_passed(metadata: &Metadata) -> Result<()> {
    let file = record_file(metadata);
    match fs::remove_file(&file) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot delete {}", file.display()))
        }
        _ => Ok(()),
    }
}

fn record_file(metadata: &Metadata) -> PathBuf {
    metadata.target_directory.join("passed-tests.json")
}

/// Returns the filterset of all programs except these; `None` if there are none.
pub(crate) fn filter_without<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let ids: Vec<String> = names.map(|name| format!("binary_id(={name})")).collect();
    (!ids.is_empty()).then(|| format!("not ({})", ids.join(" + ")))
}

fn fingerprints(
    list: &List,
    metadata: &Metadata,
    shared: &DefaultHasher,
) -> Result<BTreeMap<String, u64>> {
    let mut fingerprints = BTreeMap::new();
    for (name, program) in &list.rust_binaries {
        let package = metadata.packages.iter().find(|package| package.id == program.package_id);
        let Some(package) = package.filter(|package| is_independent(package)) else { continue };
        let mut hasher = shared.clone();
        hash_file(&program.binary_path, &mut hasher)?;
        for target in package.targets.iter().filter(|target| target.is_program()) {
            hash_file(&metadata.target_directory.join("debug").join(&target.name), &mut hasher)?;
        }
        hash_files(package.folder(), &mut hasher)?;
        fingerprints.insert(name.clone(), hasher.finish());
    }
    Ok(fingerprints)
}

/// True if the package's tests use no programs and sources of other packages.
fn is_independent(package: &Package) -> bool {
    !package.starts_programs() && package.name != env!("CARGO_PKG_NAME")
}

/// Hashes the names and contents of all files in a folder except Rust sources, which are compiled
/// into the programs.
fn hash_files(folder: &Path, hasher: &mut DefaultHasher) -> Result<()> {
    let failed = || format!("cannot read {}", folder.display());
    let mut entries = fs::read_dir(folder)
        .and_then(|entries| entries.collect::<Result<Vec<_>, _>>())
        .with_context(failed)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_type().with_context(failed)?.is_dir() {
            hash_files(&path, hasher)?;
        } else if path.extension().is_none_or(|extension| extension != "rs") {
            hash_file(&path, hasher)?;
        }
    }
    Ok(())
}

fn hash_file(path: &Path, hasher: &mut DefaultHasher) -> Result<()> {
    path.hash(hasher);
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))?.hash(hasher);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::TestCounts;

    fn programs(folder: &Path, fingerprints: &[(&str, u64)]) -> TestPrograms {
        let fingerprints =
            fingerprints.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let file = folder.join("passed-tests.json");
        let passed = fs::read(&file).ok().map(|text| serde_json::from_slice(&text).unwrap());
        TestPrograms { fingerprints, passed: passed.unwrap_or_default(), file }
    }

    fn tests(counts: &[(&str, u64, u64)]) -> Tests {
        let counts = counts.iter().map(|(name, passed, failed)| {
            ((*name).to_owned(), TestCounts { passed: *passed, failed: *failed })
        });
        Tests { programs: counts.collect(), ..Tests::default() }
    }

    #[test]
    fn only_programs_that_passed_and_did_not_change_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let built = [("vmq", 1), ("ring", 2), ("disk", 3)];
        let mut first = programs(folder.path(), &built);
        assert!(first.unchanged().is_empty());
        first
            .record(&tests(&[("vmq", 5, 0), ("ring", 6, 1), ("disk", 7, 0), ("rig", 8, 0)]))
            .unwrap();
        let second = programs(folder.path(), &[("vmq", 1), ("ring", 2), ("disk", 4)]);
        assert_eq!(second.unchanged(), BTreeMap::from([("vmq", 5)]));
    }

    #[test]
    fn a_program_that_fails_later_is_run_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut programs = programs(folder.path(), &[("vmq", 1)]);
        programs.record(&tests(&[("vmq", 5, 0)])).unwrap();
        programs.record(&tests(&[("vmq", 4, 1)])).unwrap();
        assert!(programs.unchanged().is_empty());
    }

    #[test]
    fn every_file_except_sources_changes_the_fingerprint() {
        let folder = tempfile::tempdir().unwrap();
        let value = || {
            let mut hasher = DefaultHasher::new();
            hash_files(folder.path(), &mut hasher).unwrap();
            hasher.finish()
        };
        fs::create_dir(folder.path().join("snapshots")).unwrap();
        fs::write(folder.path().join("snapshots/a.snap"), "1").unwrap();
        let first = value();
        fs::write(folder.path().join("lib.rs"), "1").unwrap();
        assert_eq!(value(), first);
        fs::write(folder.path().join("snapshots/a.snap"), "2").unwrap();
        assert_ne!(value(), first);
    }

    #[test]
    fn the_filterset_names_each_program_that_is_left_out() {
        assert_eq!(filter_without([].into_iter()), None);
        let filter = filter_without(["suimon-vmq", "suimon-vhd::integration"].into_iter());
        let expected = "not (binary_id(=suimon-vmq) + binary_id(=suimon-vhd::integration))";
        assert_eq!(filter.as_deref(), Some(expected));
    }
}
