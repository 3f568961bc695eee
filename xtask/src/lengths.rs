//! List of files that are longer than one subject usually is. The list does not fail a run: a table
//! or a test may be long for a reason.

use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::metadata;
use crate::sources::rust_files;

/// Lines of code above which a file probably has two subjects.
const CODE_LINES_MAX: usize = 400;

/// Prints every file with more code than [`CODE_LINES_MAX`]. Returns their number.
pub(crate) fn report(root: &Path) -> Result<usize> {
    let mut long = 0;
    for package in metadata::read(root)?.packages {
        for path in rust_files(package.folder())? {
            let Ok(text) = fs::read_to_string(&path) else { continue };
            let lines = code_lines(&text);
            if lines > CODE_LINES_MAX {
                long += 1;
                let shown = path.strip_prefix(root).unwrap_or(&path).display();
                println!(
                    "warning: {shown} has {lines} lines of code (about {CODE_LINES_MAX} is one subject)"
                );
            }
        }
    }
    Ok(long)
}

/// Counts the lines that are neither blank nor comments.
fn code_lines(text: &str) -> usize {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_and_comments_are_no_code() {
        assert_eq!(code_lines("//! a\n\nfn x() {}\n    // b\n  /// c\nlet y = 1; // d\n"), 2);
    }
}
