//! The documents as a book: built by `scripts/book`, and checked for broken links.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::session::Session;

/// Folder in which the book is built.
const BOOK: &str = "target/book";

/// Maximum number of wrong links that are printed.
const PRINTED_MAX: usize = 20;

/// Tags that load resources, which must be available without a network.
const LOADED: [&str; 3] = ["<link ", "<script ", "<img "];

/// Builds the book. Fails if a page loads an external resource or contains a broken link.
pub(crate) fn check(session: &Session) -> Result<()> {
    let root = session.root();
    let book = root.join(BOOK);
    let status = session.run(Command::new(root.join("scripts/book")).arg(&book))?;
    ensure!(status.success(), "scripts/book failed; `make setup` installs what it needs");
    let mut pages = Vec::new();
    pages_below(&book, &mut pages)?;
    let mut violations = BTreeSet::new();
    for page in &pages {
        let text = fs::read_to_string(page).with_context(|| format!("{}", page.display()))?;
        let name = page.strip_prefix(&book).unwrap_or(page);
        violations.extend(check_page(&book, name, &text));
    }
    ensure!(pages.len() > 20, "the book has {} pages only", pages.len());
    if violations.is_empty() {
        println!("book: {} pages, {BOOK}/index.html is the first", pages.len());
        return Ok(());
    }
    let printed: Vec<String> = violations.iter().take(PRINTED_MAX).cloned().collect();
    bail!("{} links are wrong, among them\n{}", violations.len(), printed.join("\n"))
}

fn pages_below(folder: &Path, pages: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("{}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            pages_below(&path, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "html") {
            pages.push(path);
        }
    }
    Ok(())
}

/// Returns the errors of a page, whose name is relative to the book.
fn check_page(book: &Path, name: &Path, text: &str) -> Vec<String> {
    let mut violations = Vec::new();
    for tag in text.split('<').skip(1).filter_map(|rest| Some(rest.split_once('>')?.0)) {
        let tag = format!("<{tag}");
        let is_loaded = LOADED.iter().any(|start| tag.starts_with(start));
        for target in ["href=\"", "src=\""].iter().filter_map(|attribute| value(&tag, attribute)) {
            if target.contains("://") || target.starts_with("//") {
                if is_loaded {
                    violations.push(format!("{} loads {target}", name.display()));
                }
                continue;
            }
            let path = target.split(['#', '?']).next().unwrap_or_default();
            if path.is_empty() || path.starts_with("mailto:") || path.starts_with("data:") {
                continue;
            }
            let file = book.join(flat(name.parent().unwrap_or(Path::new("")), path));
            if !file.is_file() {
                violations.push(format!("{} links to {target}, which is no page", name.display()));
            }
        }
    }
    violations
}

fn value<'t>(tag: &'t str, before: &str) -> Option<&'t str> {
    Some(tag.split_once(before)?.1.split_once('"')?.0)
}

/// Resolves a path relative to a folder, without `..`.
fn flat(folder: &Path, path: &str) -> PathBuf {
    let mut result = folder.to_owned();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => drop(result.pop()),
            Component::Normal(name) => result.push(name),
            _ => {}
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_links_and_external_resources_are_reported() {
        let book = tempfile::tempdir().unwrap();
        fs::create_dir_all(book.path().join("docs/css")).unwrap();
        fs::write(book.path().join("index.html"), "").unwrap();
        fs::write(book.path().join("docs/css/a.css"), "").unwrap();
        let page = "<a href=\"../index.html#top\"> <a href=\"#here\"> <link href=\"css/a.css\"> \
                    <a href=\"https://elsewhere.example/\"> <a href=\"gone.html\"> \
                    <a href=\"css\"> <script src=\"https://elsewhere.example/a.js\">";
        let violations = check_page(book.path(), Path::new("docs/a.html"), page);
        assert_eq!(
            violations,
            [
                "docs/a.html links to gone.html, which is no page",
                "docs/a.html links to css, which is no page",
                "docs/a.html loads https://elsewhere.example/a.js",
            ]
        );
    }
}
