//! Checks docs/resource-bounds.md: every file of the first column exists and contains the items
//! that follow it, and every named test exists.
//!
//! The first column has the notation `` `FILE`, `ITEM`, `ITEM`; `FILE` ``. A file without a folder
//! of crates is in the folder of the first file of its row. The last column names test functions.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::specification::is_source_path;

const FILE: &str = "docs/resource-bounds.md";
/// Number of cells of a row: place, elements, bound, test.
const CELLS: usize = 4;
/// Folders with tests.
const FOLDERS: [&str; 9] =
    ["base", "policy", "formats", "contract", "ports", "sys", "plane", "apps", "testing"];

/// Checks every row of the page.
///
/// # Errors
/// Lists the missing files, items and tests with their lines.
pub(crate) fn check(root: &Path) -> Result<()> {
    let text = fs::read_to_string(root.join(FILE)).context(FILE)?;
    let mut sources = String::new();
    for folder in FOLDERS {
        read_sources(&root.join(folder), &mut sources)?;
    }
    let (mut rows, mut violations) = (0, Vec::new());
    for (number, line) in text.lines().enumerate() {
        let Some(row) = Row::parse(line) else { continue };
        rows += 1;
        let locate = |reason: String| format!("{FILE}:{}: {reason}", number + 1);
        violations.extend(row.missing_items(root).into_iter().map(locate));
        let exists = |test: &&str| sources.contains(&format!("fn {test}("));
        let missing = row.tests().filter(|test| !exists(test));
        violations.extend(missing.map(|test| locate(format!("there is no test {test}"))));
    }
    if rows == 0 {
        bail!("{FILE} has no row");
    }
    if violations.is_empty() {
        println!("resource bounds: the items and tests of {rows} rows exist");
        return Ok(());
    }
    bail!("{}", violations.join("\n"))
}

/// Appends the source files of a folder.
fn read_sources(folder: &Path, sources: &mut String) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            read_sources(&path, sources)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources
                .push_str(&fs::read_to_string(&path).with_context(|| path.display().to_string())?);
        }
    }
    Ok(())
}

/// Row of a table.
struct Row<'a> {
    place: &'a str,
    tests: &'a str,
}

impl<'a> Row<'a> {
    /// Parses a row; `None` for text, headings and separators.
    fn parse(line: &'a str) -> Option<Self> {
        let cells: Vec<&str> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
        let [location, _, _, tests] = <[&str; CELLS]>::try_from(cells).ok()?;
        (location.contains('`')).then_some(Self { place: location, tests })
    }

    /// Returns the test functions. Other code spans are files, crates and fuzz targets.
    fn tests(&self) -> impl Iterator<Item = &'a str> {
        let is_sentence = |span: &&str| {
            span.matches('_').count() >= 2
                && span.chars().all(|character| {
                    character.is_ascii_lowercase() || character.is_ascii_digit() || character == '_'
                })
        };
        spans(self.tests).filter(is_sentence)
    }

    fn missing_items(&self, root: &Path) -> Vec<String> {
        let mut missing = Vec::new();
        let mut folder: Option<PathBuf> = None;
        let mut source: Option<(String, String)> = None;
        for span in spans(self.place) {
            if Path::new(span).extension().is_none() {
                match &source {
                    Some((file, text)) if !has_item(text, span) => {
                        missing.push(format!("{file} has no `{span}`"));
                    }
                    None if is_source_path(span) && !root.join(span).is_dir() => {
                        missing.push(format!("{span} does not exist"));
                    }
                    _ => {}
                }
                continue;
            }
            let path = match &folder {
                Some(folder) if !is_source_path(span) => folder.join(span),
                _ => PathBuf::from(span),
            };
            folder = folder.or_else(|| path.parent().map(Path::to_owned));
            match fs::read_to_string(root.join(&path)) {
                Ok(text) => source = Some((path.display().to_string(), text)),
                Err(_) => {
                    source = None;
                    missing.push(format!("{} does not exist", path.display()));
                }
            }
        }
        missing
    }
}

/// Returns the code spans of a text.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Returns true if a source file contains each part of `name`, given as `item` or `Type::field`, as
/// a whole word.
fn has_item(source: &str, name: &str) -> bool {
    let is_part = |next: char| next.is_alphanumeric() || next == '_';
    name.split("::")
        .all(|part| source.split(|next| !is_part(next)).any(|candidate| candidate == part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(location: &str) -> Vec<String> {
        let root = crate::workspace::root().unwrap();
        let line =
            format!("| {location} | threads | 4 | `tests.rs`, `a_test_name`; `other_file` |");
        let row = Row::parse(&line).unwrap();
        assert_eq!(row.tests().collect::<Vec<_>>(), ["a_test_name"]);
        row.missing_items(&root)
    }

    #[test]
    fn files_and_items_exist() {
        let location =
            "`xtask/src/resource_bounds.rs`, `Row::place`, `CELLS`; `specification.rs`, `Row`";
        assert_eq!(row(location), [""; 0]);
        assert_eq!(
            row("`xtask/src/specification.rs`, `Row::plac`; `gone.rs`, `Row`"),
            ["xtask/src/specification.rs has no `Row::plac`", "xtask/src/gone.rs does not exist"]
        );
        assert_eq!(row("`policy/vmq`, queues"), [""; 0]);
        assert_eq!(row("`policy/gone`, queues"), ["policy/gone does not exist"]);
        assert!(Row::parse("| place | elements | bound | test |").is_none());
        assert!(Row::parse("|---|---|---|---|").is_none());
    }
}
