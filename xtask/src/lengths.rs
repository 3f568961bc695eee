//! Lists of files and crates that are longer than one subject usually is. The lists do not fail a
//! run: a table or a test may be long for a reason, and ARCHITECTURE.md states why a crate is.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::imports::Imports;
use crate::metadata::{self, Package};
use crate::sources::rust_files;

/// Lines of code above which a file probably has two subjects.
const CODE_LINES_MAX: usize = 400;
/// Product lines above which a crate probably has two subjects.
const CRATE_LINES_MAX: usize = 8000;

/// Prints every file with more code than [`CODE_LINES_MAX`], and every crate with more than
/// [`CRATE_LINES_MAX`].
pub(crate) fn report(root: &Path) -> Result<()> {
    for package in metadata::read(root)?.packages {
        for path in rust_files(package.folder())? {
            let Ok(text) = fs::read_to_string(&path) else { continue };
            let lines = code_lines(&text);
            if lines > CODE_LINES_MAX {
                let display = path.strip_prefix(root).unwrap_or(&path).display();
                println!(
                    "warning: {display} has {lines} lines of code (about {CODE_LINES_MAX} is one subject)"
                );
            }
        }
        let lines = crate_lines(&package)?;
        if lines > CRATE_LINES_MAX {
            println!(
                "warning: {} has {lines} product lines (about {CRATE_LINES_MAX} is one subject)",
                package.name
            );
        }
    }
    Ok(())
}

/// Counts the lines that are neither blank nor comments.
fn code_lines(text: &str) -> usize {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

/// Counts the lines of a crate's library and programs, without tests and generated files.
fn crate_lines(package: &Package) -> Result<usize> {
    let mut files: BTreeSet<PathBuf> = BTreeSet::new();
    for target in &package.targets {
        if target.kind.iter().any(|kind| matches!(kind.as_str(), "lib" | "bin" | "custom-build")) {
            files.extend(Imports::read(&target.src_path)?.files);
        }
    }
    files.iter().try_fold(0, |sum, path| {
        let text = fs::read_to_string(path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        Ok(sum + product_lines(&text))
    })
}

/// Counts the lines of a file without its test modules.
fn product_lines(text: &str) -> usize {
    let mut count = 0;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line != "#[cfg(test)]" {
            count += 1;
            continue;
        }
        // The module ends with its declaration, or with the next brace in the first column.
        let declaration = lines.find(|line| !line.starts_with("#["));
        if declaration.is_some_and(|line| line.ends_with('{')) {
            lines.find(|line| line.starts_with('}'));
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_and_comments_are_no_code() {
        assert_eq!(code_lines("//! a\n\nfn x() {}\n    // b\n  /// c\nlet y = 1; // d\n"), 2);
    }

    #[test]
    fn test_modules_are_no_product() {
        let inline = "fn x() {}\n#[cfg(test)]\nmod tests {\n    fn y() {\n    }\n}\nfn z() {}\n";
        assert_eq!(product_lines(inline), 2);
        let file = "fn x() {}\n\n#[cfg(test)]\n#[path = \"x_tests.rs\"]\nmod tests;\n";
        assert_eq!(product_lines(file), 2);
    }
}
