//! Checks SPECIFICATION.md: every promise names tests that exist and the tier that runs them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

const FILE: &str = "SPECIFICATION.md";
/// Number of cells of a promise's row: number, promise, tests, tier, state.
const CELLS: usize = 5;
/// Folder that `rig/` stands for in the table.
const RIG: &str = "testing/rig/tests/";

/// Checks every row of the table.
///
/// # Errors
/// Lists every row with a number that another row has, a missing test file, an unknown tier, or a
/// tier that its test files do not have.
pub(crate) fn check(root: &Path) -> Result<()> {
    let text = fs::read_to_string(root.join(FILE)).context(FILE)?;
    let mut violations = Vec::new();
    let mut numbers = BTreeSet::new();
    for (index, line) in text.lines().enumerate() {
        let Some(row) = Row::parse(line) else { continue };
        let repeated = (!numbers.insert(row.number))
            .then(|| format!("another promise has the number {}", row.number));
        let reasons = repeated.into_iter().chain(row.violations(root));
        violations.extend(reasons.map(|reason| format!("{FILE}:{}: {reason}", index + 1)));
    }
    if numbers.is_empty() {
        bail!("{FILE} has no promise");
    }
    if violations.is_empty() {
        println!("specification: {} promises name their tests and tier", numbers.len());
        return Ok(());
    }
    bail!("{} promises are wrong:\n  {}", violations.len(), violations.join("\n  "))
}

/// Row of the table of promises.
struct Row<'a> {
    number: u32,
    tests: &'a str,
    tier: &'a str,
}

impl<'a> Row<'a> {
    /// Parses a row; `None` for text, headings and separators.
    fn parse(line: &'a str) -> Option<Self> {
        let cells: Vec<&str> =
            line.strip_prefix("| ")?.strip_suffix(" |")?.splitn(CELLS, " | ").collect();
        Some(Self {
            number: cells.first()?.trim().parse().ok()?,
            tests: cells.get(2).copied().unwrap_or_default().trim(),
            tier: cells.get(3).copied().unwrap_or_default().trim(),
        })
    }

    fn violations(&self, root: &Path) -> impl Iterator<Item = String> {
        let mut violations = Vec::new();
        if !["test", "full", "none"].contains(&self.tier) {
            violations.push(format!("the tier is test, full or none, not {:?}", self.tier));
        }
        // Files and crates are code spans; other words there explain them.
        let files = self.tests.split('`').skip(1).step_by(2).filter_map(source_path);
        let mut has_fast_test = false;
        let mut is_only_rig = true;
        for (name, file) in files {
            is_only_rig &= file.starts_with(RIG);
            let Ok(text) = fs::read_to_string(root.join(&file)) else {
                violations.push(format!("{name} does not exist"));
                continue;
            };
            has_fast_test |= has_test_outside_full(&text);
        }
        // Crates named without a file have tests in the fast tier.
        let names_no_file =
            self.tests.split('`').skip(1).step_by(2).any(|span| source_path(span).is_none());
        is_only_rig &= !names_no_file;
        if self.tier == "test" && is_only_rig && !has_fast_test {
            violations.push(format!("the tests of {} are all in the full tier", self.tests));
        }
        violations.into_iter()
    }
}

/// Returns the code span and the path from the root that it stands for, if it is a path from the
/// root or from the rig's folder to a source file.
fn source_path(span: &str) -> Option<(&str, String)> {
    let is_source = Path::new(span).extension().is_some_and(|extension| extension == "rs");
    if !is_source {
        return None;
    }
    if let Some(rest) = span.strip_prefix("rig/") {
        return Some((span, format!("{RIG}{rest}")));
    }
    is_source_path(span).then(|| (span, span.to_owned()))
}

/// Returns true for a path from the root into one of the folders of crates.
pub(crate) fn is_source_path(span: &str) -> bool {
    let folders = [
        "base", "policy", "formats", "contract", "ports", "sys", "plane", "apps", "testing",
        "xtask", "fuzz",
    ];
    span.split_once('/').is_some_and(|(first, _)| folders.contains(&first))
}

/// Returns true if a source file has a test before its module `full`, which is the last in a file.
fn has_test_outside_full(text: &str) -> bool {
    let fast = text.split("\nmod full {").next().unwrap_or_default();
    fast.contains("#[test]")
        || fast.contains("#[tokio::test")
        || fast.contains("mod tests")
        || fast.contains("proptest!")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(tests: &str, tier: &str) -> Vec<String> {
        let root = crate::workspace::root().unwrap();
        let line = format!("| 7 | It works | {tests} | {tier} | holds |");
        Row::parse(&line).unwrap().violations(&root).collect()
    }

    #[test]
    fn rows_name_files_that_exist_and_a_tier() {
        assert_eq!(violations("`rig/daemon/api.rs`; `policy/vmq`", "test"), [""; 0]);
        assert_eq!(
            violations("`rig/daemon/gone.rs`, `plane/node`", "test"),
            ["rig/daemon/gone.rs does not exist"]
        );
        assert_eq!(violations("`policy/vmq`", "sometimes").len(), 1);
        assert!(Row::parse("| | **Subject** | | | |").is_none());
        assert!(Row::parse("|---|---|---|---|---|").is_none());
    }

    #[test]
    fn two_promises_do_not_have_the_same_number() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("policy/vmq")).unwrap();
        let table = |second: u32| {
            let row = |number| format!("| {number} | It works | `policy/vmq` | test | holds |\n");
            std::fs::write(folder.path().join(FILE), row(7) + &row(second)).unwrap();
            check(folder.path())
        };
        table(8).unwrap();
        let error = table(7).unwrap_err().to_string();
        assert!(error.contains("SPECIFICATION.md:2: another promise has the number 7"), "{error}");
    }

    #[test]
    fn tests_in_a_module_full_are_not_of_the_fast_tier() {
        assert!(has_test_outside_full("#[test]\nfn a() {}\n\nmod full {\n#[test]\nfn b() {}\n}\n"));
        assert!(!has_test_outside_full("fn check() {}\n\nmod full {\n#[test]\nfn b() {}\n}\n"));
    }
}
