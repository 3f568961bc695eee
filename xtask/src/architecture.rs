//! Checks ARCHITECTURE.md: every path exists, and every name that the page attributes to a source
//! file is in that file.
//!
//! A name belongs to a file in one of these notations: `` `FILE`: `NAME`, `NAME` ``, `` `FILE`
//! (`NAME` `` and `` `NAME` in `FILE` ``.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::specification::is_source_path;

const FILE: &str = "ARCHITECTURE.md";

/// Checks every line of the page.
///
/// # Errors
/// Lists the missing paths and names with their lines.
pub(crate) fn check(root: &Path) -> Result<()> {
    let text = fs::read_to_string(root.join(FILE)).context(FILE)?;
    let mut violations = Vec::new();
    let mut names = 0;
    for (number, line) in text.lines().enumerate() {
        let pairs = pairs(line);
        names += pairs.len();
        let paths =
            spans(line).into_iter().map(|(_, span)| span).filter(|span| is_source_path(span));
        let missing = paths.filter(|path| !root.join(path).exists());
        violations
            .extend(missing.map(|path| format!("{FILE}:{}: {path} does not exist", number + 1)));
        for (file, name) in pairs {
            // A missing file is reported above.
            let Ok(source) = fs::read_to_string(root.join(file)) else { continue };
            if !defines(&source, name) {
                violations.push(format!("{FILE}:{}: {file} has no `{name}`", number + 1));
            }
        }
    }
    if names == 0 {
        bail!("{FILE} names no function");
    }
    if violations.is_empty() {
        println!("architecture: {names} names are in their files");
        return Ok(());
    }
    bail!("{}", violations.join("\n"))
}

/// Returns the code spans of a line, each with the text before it.
fn spans(line: &str) -> Vec<(&str, &str)> {
    let parts: Vec<&str> = line.split('`').collect();
    let pairs = parts.chunks_exact(2).filter_map(|pair| Some((*pair.first()?, *pair.get(1)?)));
    pairs.collect()
}

/// Returns the names in a line with the source files to which it attributes them.
fn pairs(line: &str) -> Vec<(&str, &str)> {
    let mut pairs = Vec::new();
    let mut file = None;
    let mut before = None;
    for (text, span) in spans(line) {
        if is_source_path(span) {
            file = Path::new(span).extension().map(|_| span);
            pairs.extend(file.zip(before.filter(|_| text == " in ")));
            before = None;
            continue;
        }
        let is_listed = text == ", " && before.is_some();
        if !(text == ": " || text == " (" || is_listed) || !is_name(span) {
            file = None;
        }
        before = is_name(span).then_some(span);
        pairs.extend(file.zip(before));
    }
    pairs
}

/// Returns true for an identifier, with or without its type.
fn is_name(span: &str) -> bool {
    span.starts_with(char::is_alphabetic)
        && span
            .chars()
            .all(|character| character.is_alphanumeric() || matches!(character, '_' | ':'))
}

/// Returns true if a source file declares `name`, given as `function`, `Type` or `Type::function`.
fn defines(source: &str, name: &str) -> bool {
    let (parent, last) = name.rsplit_once("::").unwrap_or((name, name));
    let is_function = last.starts_with(char::is_lowercase);
    let contains = |text: &str, after: &str| {
        source.match_indices(text).any(|(position, _)| {
            let is_whole =
                |text: Option<char>| text.is_none_or(|next| !next.is_alphanumeric() && next != '_');
            let rest = source.get(position + text.len()..).unwrap_or_default();
            let start = source.get(..position).unwrap_or_default();
            start.ends_with(after)
                && is_whole(rest.chars().next())
                && (!after.is_empty() || is_whole(start.chars().next_back()))
        })
    };
    contains(last, if is_function { "fn " } else { "" }) && contains(parent, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_belong_to_the_file_before_or_after_them() {
        let line = "| 1 | `plane/a.rs`: `Engine::run`, `stop` | by `Other::call`; `sys/b.rs` (`Spec`; \
                    its text), `LIMIT` in `base/c.rs`, `plane/d.rs` and `Lone` |";
        let expected = [
            ("plane/a.rs", "Engine::run"),
            ("plane/a.rs", "stop"),
            ("sys/b.rs", "Spec"),
            ("base/c.rs", "LIMIT"),
        ];
        assert_eq!(pairs(line), expected);
    }

    #[test]
    fn a_renamed_function_is_found() {
        let source = "impl Engine {\n    fn run_all(&self) {}\n    fn stop(&self) {}\n}\nconst LIMIT: u8 = 1;";
        assert!(defines(source, "Engine::stop") && defines(source, "LIMIT"));
        for stale in ["Engine::run", "Motor::stop", "LIM", "start"] {
            assert!(!defines(source, stale), "{stale}");
        }
    }
}
