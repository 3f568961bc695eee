//! Examples in documentation, which are compiled and run.
//!
//! `cargo test --doc` takes minutes to process crates without examples. Therefore only crates that
//! contain code blocks which rustdoc would run are tested.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::session::Session;
use crate::{metadata, sources, workspace};

/// Info strings of code blocks that rustdoc treats as Rust (The rustdoc book, "Documentation
/// tests"), in addition to an empty one.
const RUST: [&str; 5] = ["rust", "no_run", "should_panic", "compile_fail", "test_harness"];

/// Runs the examples of all crates.
///
/// # Errors
/// An example fails, or a source file cannot be read.
pub(crate) fn run(session: &Session) -> Result<()> {
    let root = session.root();
    let mut arguments = vec!["test".to_owned(), "--doc".to_owned(), "--quiet".to_owned()];
    for package in metadata::read(root)?.packages {
        let is_library = |target: &metadata::Target| target.kind.iter().any(|kind| kind == "lib");
        if package.targets.iter().any(is_library) && has_examples(package.folder())? {
            arguments.extend(["--package".to_owned(), package.name]);
        }
    }
    if arguments.len() > 3 {
        let status = session.run(workspace::cargo(root).args(&arguments))?;
        ensure!(status.success(), "cargo {} failed", arguments.join(" "));
    }
    Ok(())
}

fn has_examples(folder: &Path) -> Result<bool> {
    for file in sources::rust_files(&folder.join("src"))? {
        let text = std::fs::read_to_string(&file)
            .with_context(|| format!("cannot read {}", file.display()))?;
        if has_example(&text) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns true if documentation comments contain a block of Rust.
fn has_example(text: &str) -> bool {
    let mut is_inside = false;
    text.lines()
        .filter_map(|line| {
            let line = line.trim_start();
            line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))
        })
        .filter_map(|line| line.trim_start().strip_prefix("```"))
        .any(|info| {
            is_inside = !is_inside;
            let mut words = info.split([',', ' ']).map(str::trim).filter(|word| !word.is_empty());
            is_inside && (info.trim().is_empty() || words.any(|word| RUST.contains(&word)))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_rust_are_found_and_others_are_not() {
        let text =
            |info: &str| format!("//! Words.\n//! ```{info}\n//! a -> b\n//! ```\nfn a() {{}}\n");
        for info in ["", "rust", "no_run", "rust,should_panic", "edition2024, no_run"] {
            assert!(has_example(&text(info)), "{info:?}");
        }
        for info in ["text", "toml", "ignore", "sh"] {
            assert!(!has_example(&text(info)), "{info:?}");
        }
        assert!(!has_example("// ```\n// not documentation\n// ```\nlet a = \"/// ```\";\n"));
        assert!(has_example(
            "    /// ```text\n    /// ```\n    ///\n    /// ```\n    /// f();\n    /// ```\n"
        ));
    }
}
